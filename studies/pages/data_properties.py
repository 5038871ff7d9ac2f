"""The page of a study of data properties: effects and interactions of factors, claims of the paper, and all runs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from menagerie.generators.captions.spec import expected_binding_share
from menagerie.studies.analysis.factorial import ALL, Effect, design, effects
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import (
    EXPECTED,
    Verdict,
    claims_section,
    judge_difference,
    outcomes_sentence,
    points_above,
)
from menagerie.studies.frame.contrasts import Effects, Found, Levels, contrasts, finished_seeds, sign_of_effect
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Heading, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records

TEST = "seen_2"
"""The test on which effects are measured: two objects, both mentioned, as in a part of every run's training."""
TESTED = "seen 2: swap"
RECOGNITION = ("replace animal", "replace texture")
# Each factor in words, and the format of its values.
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


def parts(records: Records, levels: Levels, enough: float) -> Iterator[Part]:
    """Yield the page: sentences, a figure of all effects, their tables, the claims, recognition, and all runs."""
    swaps = records.where(subset=TEST, task="swap")
    found = contrasts(swaps, levels)
    words = {effect: effect_in_words(effect) for effect in effects(tuple(levels))}
    for model, its in found.items():
        yield Sentence(effects_sentence(model, its, levels))
        yield Sentence(accuracy_sentence(swaps.where(model=model), model, enough))
    yield Effects("effects", found, words, says=SAYS)
    yield Paragraph(" ".join([*image_sentences(swaps), *seeds_left_out(swaps, levels)]))
    yield Heading("Main effects", MAIN)
    yield effect_table("main", found, levels, 1)
    if len(levels) > 1:
        yield Heading("Interactions", f"{INTERACTIONS} {alias_sentence(len(levels))}".strip())
        yield effect_table("pairs", found, levels, 2)
    verdicts = [
        its for model in found for its in paper_verdicts(records.where(model=model), model, found, levels, enough)
    ]
    if verdicts:
        yield Sentence(outcomes_sentence(verdicts))
        yield from claims_section(verdicts, "points, or accuracy (%)", CLAIMS.format(f"{enough:.0%}"))
    yield Heading("Recognition", RECOGNISED)
    for task in RECOGNITION:
        if of_task := contrasts(records.where(subset=TEST, task=task), levels):
            yield effect_table(task.replace(" ", "-"), of_task, levels, 1, f"{task.capitalize()}.")
    yield Heading("All runs", RUNS)
    yield Table(
        "arms", swaps, ("model", *FACTORS), intervals=True, words=objects_in_words(swaps), beside=run_columns(swaps)
    )


def effect_in_words(effect: Effect) -> str:
    """Return an effect in words: "textures mentioned × batch size"."""
    return " × ".join(FACTORS[name][0] for name in effect)


def level_in_words(name: str, value: Any) -> str:
    """Return a level of a factor in words."""
    return FACTORS[name][1].format(max(value) if isinstance(value, tuple) else value)


def levels_in_words(name: str, levels: Levels) -> str:
    return " → ".join(level_in_words(name, value) for value in levels[name])


def effects_sentence(model: str, found: Mapping[Effect, Estimate], levels: Levels) -> str:
    """Say which factors raise accuracy, which lower it, which are undecided, and which interact."""
    main = {effect[0]: its for effect, its in found.items() if len(effect) == 1}
    said = [
        f"{what}: "
        + ", ".join(f"{effect_in_words((name,))} ({levels_in_words(name, levels)}) {main[name]}" for name in names)
        for what, sign in (("Raised by", 1), ("Lowered by", -1), ("Undecided", 0))
        if (names := [name for name, its in main.items() if sign_of_effect(its) == sign])
    ]
    pairs = [
        f"{effect_in_words(effect)} {its}" for effect, its in found.items() if len(effect) > 1 and sign_of_effect(its)
    ]
    if len(main) > 1:
        said.append(f"Interactions of two factors: {', '.join(pairs) or 'none is clear'}")
    return f"{title_of(model)}: what changes accuracy on swaps, in percentage points. {'. '.join(said)}."


def accuracy_sentence(swaps: Records, model: str, enough: float) -> str:
    """Say how accurate runs are, over all and with complete captions, and whether the latter are above chance."""
    (every,) = swaps.estimates(("model",)).values()
    text = f"{title_of(model)} gets {percent_with_bounds(every)} of swaps right over all runs (chance is 50)"
    for its in swaps.where(**COMPLETE).estimates(("model",)).values():
        text += f", and {percent_with_bounds(its)} with complete captions"
        if sign_of_effect(points_above(its, 0.5)) != 1:
            text += ". That isn't above chance, so effects say little"
        elif its.value < enough:
            text += f". Binding would be reliable from {enough:.0%} on"
    return f"{text}."


def percent_with_bounds(its: Estimate) -> str:
    return f"{100 * its.value:.1f} % [{its.bounds}]"


def paper_verdicts(records: Records, model: str, found: Found, levels: Levels, enough: float) -> Iterator[Verdict]:
    """Yield verdicts for a model on the paper's claims about CLIP."""
    title = title_of(model)
    for name, claim in HURT.items():
        its, sign = found[model].get((name,)), 1 if COMPLETE[name] else -1
        measured = f"{levels_in_words(name, levels)}: {its}" if its else "not varied"
        yield Verdict(claim, title, TESTED, judge_difference(its, sign), EXPECTED[sign], measured)
    yield Verdict(
        "too many attributes hurt", title, TESTED, "not tested", EXPECTED[-1], "an object has one texture here"
    )
    complete = records.where(**COMPLETE)
    others = {arm.id for arm in records.arms} - {arm.id for arm in complete.arms}
    for name, claim in UNRELIABLE.items():
        most = {name: levels[name][1] if name in levels else ()}
        yield level_verdict(claim, title, records.where(lambda arm: arm.id in others, **most), enough, -1)
    yield level_verdict("with the right data binding is nearly perfect", title, complete, enough, 1)


def level_verdict(claim: str, title: str, runs: Records, enough: float, sign: int) -> Verdict:
    """Return the verdict on the claim that the accuracy of runs is above `enough` (`sign` 1) or below it (-1).

    It is undecided if the runs don't recognise objects either: then low accuracy says nothing about binding.
    """
    tasks = {task: its for (task,), its in runs.where(subset=TEST).estimates(("task",)).items()}
    its, expected = tasks.get("swap"), f"{'above' if sign > 0 else 'below'} {enough:.0%}"
    if its is None:
        return Verdict(claim, title, TESTED, "not tested", expected, "no such run")
    judgement, measured = judge_difference(points_above(its, enough), sign), percent_with_bounds(its)
    known = min((tasks[task].value for task in RECOGNITION if task in tasks), default=1.0)
    if known < enough and its.value < enough:
        return Verdict(claim, title, TESTED, "undecided", expected, f"{measured}; recognition {100 * known:.1f} % only")
    return Verdict(claim, title, TESTED, judgement, expected, measured)


def effect_table(name: str, found: Found, levels: Levels, factors: int, text: str = "") -> Rows:
    """Return a table with a row for each model and effect of `factors` factors."""
    rows = [
        [title_of(model), effect_in_words(effect), *(levels_in_words(each, levels) for each in effect), str(its)]
        for model, of_model in found.items()
        for effect, its in of_model.items()
        if len(effect) == factors
    ]
    sides = ["levels"] if factors == 1 else ["levels of the first", "levels of the second"]
    return Rows(
        name, ["model", "factor" if factors == 1 else "interaction", *sides, "effect in points"], rows, says=text
    )


def objects_in_words(records: Records) -> dict[str, dict[Any, str]]:
    return {"objects": {text: f"up to {text.rpartition('+')[2]}" for text in records.labels("objects")}}


def image_sentences(records: Records) -> Iterable[str]:
    """Yield sentences on how many images runs train on, and how many they see with each batch size."""
    counts = {(arm.place["batch"], result["train_images"], result["images_seen"]) for arm, result in records.results}
    trained = ", ".join(str(number) for number in sorted({images for _, images, _ in counts}))
    if counts:
        yield f"Runs train on {trained} different images."
    for batch, shown in sorted({(batch, shown) for batch, _, shown in counts}):
        yield f"With a batch size of {batch} they take {shown // batch} steps and see {shown} images, counting repeats."
    if len({shown for *_, shown in counts}) > 1:
        yield "So the effect of the batch size includes that of more images seen; `--held images` shows equally many."


def seeds_left_out(records: Records, levels: Levels) -> Iterable[str]:
    """Yield sentences on the seeds that are in no effect yet."""
    runs = len(design(len(levels)))
    for model in records.labels("model"):
        lacking = set(records.labels("seed")) - set(finished_seeds(records, model, runs))
        if lacking:
            listed = ", ".join(map(str, sorted(lacking)))
            yield f"Effects leave out seed {listed} of {title_of(model)}: not all its runs have a result."


def alias_sentence(factors: int) -> str:
    """Say which effects of a half design can't be told apart; empty for a full design."""
    if factors <= ALL:
        return ""
    return (
        f"Half of the {2**factors} combinations of levels are run. So a main effect can't be told from an interaction "
        f"of the {factors - 1} other factors, nor an interaction of two factors from that of the {factors - 2} others. "
        "Interactions of so many factors are taken to be 0."
    )


def run_columns(records: Records) -> dict[str, dict[tuple[Any, ...], str]]:
    """Return further columns of the table of runs, by the labels of its rows."""
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
the interval includes 0, or there is none. A swap compares a caption of the two objects in an image with the same
caption with their textures exchanged; chance is 50 %."""
MAIN = """Accuracy on swaps at the second level minus that at the first. Factors are varied together, so every run
counts for every factor. Test captions mention both objects with their textures. All runs train on such captions,
some on more of them than others (the last table). Captions of only the salient object also mention fewer objects, so
this effect includes that of fewer objects."""
INTERACTIONS = """How far one factor changes the effect of another: half of the difference between the effects of the
one at the second and at the first level of the other. Of twenty effects that are 0, one is expected to have a 95 %
interval without 0."""
CLAIMS = """Of Gurung, Hoffmann and Brox (GCPR 2025, arXiv 2507.07985) on CLIP, by its abstract and the caption of its
first figure. They also name the number of objects in an image, but state no direction. Effects are judged by
whether their intervals include 0. Claims on reliable binding are judged by whether accuracy on swaps is {0}. A big
batch alone and hard negatives alone: the runs with them and without complete captions. The right data: the runs with
complete captions. A claim is undecided if its runs are below {0} and don't recognise animals and textures either."""
RECOGNISED = """The same effects where the false caption names an animal, or a texture, that the image doesn't show.
This needs no binding, and chance is 50 %. A factor with an effect here changes more than binding."""
RUNS = """Accuracy (%) on swaps; chance is 50. Captions that bind: of images of two objects or more, the expected share
of captions that mention two objects with their textures. Only these say which texture belongs to which object."""
