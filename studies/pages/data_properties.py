"""The page of a study of data properties: effects and interactions of factors, claims of the paper, and all runs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from menagerie.generators.captions.spec import expected_binding_share
from menagerie.studies.analysis.factorial import ALL, Effect, design, effects
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import EXPECTED, Verdict, claims, judged, points_above, sentence
from menagerie.studies.frame.contrasts import Effects, Found, Levels, contrasts, helps, whole_seeds
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Heading, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records

TEST = "seen_2"
"""The test on which effects are measured: two objects, both mentioned. Such images and captions are in every run's
training, whatever its factors."""
TESTED = "seen 2: swap"
RECOGNITION = ("replace animal", "replace texture")
# Each factor in words, and its values.
FACTORS = {
    "attributes": ("textures mentioned", "{:.0%}"),
    "objects": ("objects in an image", "up to {}"),
    "mentioned": ("objects mentioned", "{:.0%}"),
    "salient": ("only the salient object", "{:.0%}"),
    "batch": ("batch size", "{}"),
    "hard_negatives": ("hard negatives", "{:.0%}"),
}
# The values with which captions are complete.
COMPLETE = {"attributes": 1.0, "mentioned": 1.0, "salient": 0.0}
HURT = {
    "attributes": "too few attributes hurt",
    "mentioned": "captions that leave objects out hurt",
    "salient": "captions of the salient object hurt",
}
UNRELIABLE = {
    "batch": "a big batch alone gives no reliable binding",
    "hard_negatives": "hard negatives alone give no reliable binding",
}
BINDS = "captions that bind (%)"


def page(records: Records, levels: Levels, enough: float) -> Iterator[Part]:
    """The answer, a figure of all effects, their tables, the claims, recognition, and every run."""
    swaps = records.where(subset=TEST, task="swap")
    found = contrasts(swaps, levels)
    words = {effect: called(effect) for effect in effects(tuple(levels))}
    for model, its in found.items():
        yield Sentence(answer(model, its, levels))
        yield Sentence(reached(swaps.where(model=model), model, enough))
    yield Effects("effects", found, words, says=SAYS)
    yield Paragraph(" ".join([*seen(swaps), *left_out(swaps, levels)]))
    yield Heading("Main effects", MAIN)
    yield table("main", found, levels, 1)
    if len(levels) > 1:
        yield Heading("Interactions", f"{INTERACTIONS} {aliases(len(levels))}".strip())
        yield table("pairs", found, levels, 2)
    verdicts = [its for model in found for its in judgements(records.where(model=model), model, found, levels, enough)]
    if verdicts:
        yield Sentence(sentence(verdicts))
        yield from claims(verdicts, "points, or accuracy (%)", CLAIMS.format(f"{enough:.0%}"))
    yield Heading("Recognition", RECOGNISED)
    for task in RECOGNITION:
        if of_task := contrasts(records.where(subset=TEST, task=task), levels):
            yield table(task.replace(" ", "-"), of_task, levels, 1, f"{task.capitalize()}.")
    yield Heading("All runs", RUNS)
    yield Table("arms", swaps, ("model", *FACTORS), intervals=True, words=in_words(swaps), beside=counted(swaps))


def called(effect: Effect) -> str:
    """An effect in words: "textures mentioned × batch size"."""
    return " × ".join(FACTORS[name][0] for name in effect)


def level(name: str, value: Any) -> str:
    """A level in words."""
    return FACTORS[name][1].format(max(value) if isinstance(value, tuple) else value)


def change(name: str, levels: Levels) -> str:
    return " → ".join(level(name, value) for value in levels[name])


def answer(model: str, found: Mapping[Effect, Estimate], levels: Levels) -> str:
    """Say which factors raise accuracy, which lower it, which are undecided, and which interact."""
    main = {effect[0]: its for effect, its in found.items() if len(effect) == 1}
    said = [
        f"{what}: " + ", ".join(f"{called((name,))} ({change(name, levels)}) {main[name]}" for name in names)
        for what, sign in (("Raised by", 1), ("Lowered by", -1), ("Undecided", 0))
        if (names := [name for name, its in main.items() if helps(its) == sign])
    ]
    pairs = [f"{called(effect)} {its}" for effect, its in found.items() if len(effect) > 1 and helps(its)]
    if len(main) > 1:
        said.append(f"Interactions of two factors: {', '.join(pairs) or 'none is clear'}")
    return f"{title_of(model)}: what changes accuracy on swaps, in percentage points. {'. '.join(said)}."


def reached(swaps: Records, model: str, enough: float) -> str:
    """Say how accurate a model's runs are, over all and where captions are complete. If the latter aren't above chance,
    effects say little."""
    (every,) = swaps.estimates(("model",)).values()
    text = f"{title_of(model)} gets {percent(every)} of swaps right over all runs (chance is 50)"
    for its in swaps.where(**COMPLETE).estimates(("model",)).values():
        text += f", and {percent(its)} where captions are complete"
        if helps(points_above(its, 0.5)) != 1:
            text += ". That isn't above chance, so effects say little"
        elif its.value < enough:
            text += f". Binding would be reliable from {enough:.0%} on"
    return f"{text}."


def percent(its: Estimate) -> str:
    return f"{100 * its.value:.1f} % [{its.bounds}]"


def judgements(records: Records, model: str, found: Found, levels: Levels, enough: float) -> Iterator[Verdict]:
    """Yield verdicts for a model on what the paper claims of CLIP."""
    title = title_of(model)
    for name, claim in HURT.items():
        its, sign = found[model].get((name,)), 1 if COMPLETE[name] else -1
        measured = f"{change(name, levels)}: {its}" if its else "not varied"
        yield Verdict(claim, title, TESTED, judged(its, sign), EXPECTED[sign], measured)
    yield Verdict(
        "too many attributes hurt", title, TESTED, "not tested", EXPECTED[-1], "an object has one texture here"
    )
    complete = records.where(**COMPLETE)
    others = {arm.id for arm in records.arms} - {arm.id for arm in complete.arms}
    for name, claim in UNRELIABLE.items():
        most = {name: levels[name][1] if name in levels else ()}
        yield of_level(claim, title, records.where(lambda arm: arm.id in others, **most), enough, -1)
    yield of_level("with the right data binding is nearly perfect", title, complete, enough, 1)


def of_level(claim: str, title: str, runs: Records, enough: float, sign: int) -> Verdict:
    """Return the verdict on the claim that the accuracy of runs is above `enough` (`sign` 1) or below it (-1).

    It is undecided if the runs don't recognise objects either: then low accuracy says nothing of binding.
    """
    tasks = {task: its for (task,), its in runs.where(subset=TEST).estimates(("task",)).items()}
    its, expected = tasks.get("swap"), f"{'above' if sign > 0 else 'below'} {enough:.0%}"
    if its is None:
        return Verdict(claim, title, TESTED, "not tested", expected, "no such run")
    judgement, measured = judged(points_above(its, enough), sign), percent(its)
    known = min((tasks[task].value for task in RECOGNITION if task in tasks), default=1.0)
    if known < enough and its.value < enough:
        return Verdict(claim, title, TESTED, "undecided", expected, f"{measured}; recognition {100 * known:.1f} % only")
    return Verdict(claim, title, TESTED, judgement, expected, measured)


def table(name: str, found: Found, levels: Levels, factors: int, text: str = "") -> Rows:
    """A row for each effect of `factors` factors of each model."""
    rows = [
        [title_of(model), called(effect), *(change(each, levels) for each in effect), str(its)]
        for model, of_model in found.items()
        for effect, its in of_model.items()
        if len(effect) == factors
    ]
    sides = ["levels"] if factors == 1 else ["levels of the first", "levels of the second"]
    return Rows(
        name, ["model", "factor" if factors == 1 else "interaction", *sides, "effect in points"], rows, says=text
    )


def in_words(records: Records) -> dict[str, dict[Any, str]]:
    return {"objects": {text: f"up to {text.rpartition('+')[2]}" for text in records.labels("objects")}}


def seen(records: Records) -> Iterable[str]:
    """Say on how many images runs train, and how many they see with each batch size."""
    counts = {(arm.place["batch"], result["train_images"], result["images_seen"]) for arm, result in records.results}
    trained = ", ".join(str(number) for number in sorted({images for _, images, _ in counts}))
    if counts:
        yield f"Runs train on {trained} different images."
    for batch, shown in sorted({(batch, shown) for batch, _, shown in counts}):
        yield f"With a batch size of {batch} they take {shown // batch} steps and see {shown} images, counting repeats."
    if len({shown for *_, shown in counts}) > 1:
        yield "So the effect of the batch size includes that of more images seen; `--held images` shows equally many."


def left_out(records: Records, levels: Levels) -> Iterable[str]:
    """Say which seeds count in no effect yet."""
    runs = len(design(len(levels)))
    for model in records.labels("model"):
        lacking = set(records.labels("seed")) - set(whole_seeds(records, model, runs))
        if lacking:
            listed = ", ".join(map(str, sorted(lacking)))
            yield f"Effects leave out seed {listed} of {title_of(model)}: not all its runs have a result."


def aliases(factors: int) -> str:
    """Say which effects of a half design can't be told apart."""
    if factors <= ALL:
        return ""
    return (
        f"Half of the {2**factors} combinations of levels are run. So a main effect can't be told from an interaction "
        f"of the {factors - 1} other factors, nor an interaction of two factors from that of the {factors - 2} others. "
        "Interactions of so many factors are taken to be 0."
    )


def counted(records: Records) -> dict[str, dict[tuple[Any, ...], str]]:
    """Further columns of the table of runs, by the labels of its rows."""
    columns: dict[str, dict[tuple[Any, ...], str]] = {}
    for arm, result in records.results:
        shown, key = result["images_seen"], tuple(arm.place[name] for name in ("model", *FACTORS))
        if hasattr(arm.cell, "data"):  # one that is read back has no recipe
            columns.setdefault(BINDS, {})[key] = f"{100 * expected_binding_share(vars(arm.cell.data.recipe)):.0f}"
        numbers = {
            "training images": result["train_images"],
            "steps": shown // arm.place["batch"],
            "images seen": shown,
        }
        for name, number in numbers.items():
            columns.setdefault(name, {})[key] = str(number)
    return columns


SAYS = """Effect of each factor on accuracy on swaps, in percentage points: accuracy at the factor's second level minus
that at its first, averaged over the levels of all other factors. Below the line: interactions of two factors. Grey:
the interval includes 0, or there is none. A swap is a caption of the two objects in an image against the same caption
with their textures exchanged; chance is 50 %."""
MAIN = """Accuracy on swaps at the second level minus that at the first. Factors are varied together, so every run
counts for every factor. Test captions mention both objects with their textures. Captions like these are in every run's
training, more of them in some runs than in others (the last table). A caption of only the salient object mentions fewer
objects too: its effect includes theirs."""
INTERACTIONS = """How far one factor changes the effect of another: half of the difference between the effects of the
one at the second and at the first level of the other. Of twenty effects that are 0 one is expected to have a 95 %
interval without 0."""
CLAIMS = """Of Gurung, Hoffmann and Brox (GCPR 2025, arXiv 2507.07985) on CLIP, by its abstract and the caption of its
first figure. They also name the number of objects in an image, but no direction that we know. Effects are judged by
whether their intervals include 0. Claims on reliable binding are judged by whether accuracy on swaps is {0}. A big
batch alone, hard negatives alone: the runs that have them, and captions that aren't complete. The right data: the runs
with complete captions. Runs below {0} that don't recognise animals and textures either leave a claim undecided."""
RECOGNISED = """The same effects where the false caption names an animal, or a texture, that the image doesn't show. It
can be told without binding, and chance is 50 %. A factor with an effect here changes more than binding."""
RUNS = """Accuracy (%) on swaps; chance is 50. Captions that bind: of images of two objects or more, the expected share
of captions that mention two objects with their textures. Only these say which texture belongs to which object."""
