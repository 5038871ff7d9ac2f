"""The page of a study of data properties: effects of factors and pairs, claims of the paper, and all runs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from menagerie.generators.captions.crowds import share_bound
from menagerie.studies.analysis.factorial import ALL, Effect, design, effects
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import EXPECTED, Verdict, claims, judged, points_above, sentence
from menagerie.studies.frame.contrasts import Effects, Found, Levels, contrasts, helps, whole_seeds
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Heading, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records

TEST = "seen_2"
"""Two things, both mentioned: such images and captions are in every run's train, whatever its factors."""
TESTED = "seen 2: swap"
RECOGNITION = ("replace animal", "replace texture")
# Each factor in words, and its values.
FACTORS = {
    "attributes": ("textures told", "{:.0%}"),
    "things": ("things an image", "up to {}"),
    "mentioned": ("things told", "{:.0%}"),
    "salient": ("salient thing alone", "{:.0%}"),
    "batch": ("batch", "{}"),
    "hard_negatives": ("hard negatives", "{:.0%}"),
}
# The values with which captions are complete.
COMPLETE = {"attributes": 1.0, "mentioned": 1.0, "salient": 0.0}
HURT = {
    "attributes": "too few attributes hurt",
    "mentioned": "captions that leave things out hurt",
    "salient": "captions of the salient thing hurt",
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
        yield Heading("Pairs", f"{PAIRS} {aliases(len(levels))}".strip())
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
    """An effect in words: "textures told x batch"."""
    return " x ".join(FACTORS[name][0] for name in effect)


def level(name: str, value: Any) -> str:
    """A level in words."""
    return FACTORS[name][1].format(max(value) if isinstance(value, tuple) else value)


def change(name: str, levels: Levels) -> str:
    return " → ".join(level(name, value) for value in levels[name])


def answer(model: str, found: Mapping[Effect, Estimate], levels: Levels) -> str:
    """Which factors help, which hurt, and which pairs matter."""
    main = {effect[0]: its for effect, its in found.items() if len(effect) == 1}
    said = [
        f"{what}: " + ", ".join(f"{called((name,))} {change(name, levels)} {main[name]}" for name in names)
        for what, sign in (("more of it helps", 1), ("hurts", -1))
        if (names := [name for name, its in main.items() if helps(its) == sign])
    ]
    if names := [name for name, its in main.items() if not helps(its)]:
        said.append(f"undecided: {', '.join(f'{called((name,))} {main[name]}' for name in names)}")
    pairs = [f"{called(effect)} {its}" for effect, its in found.items() if len(effect) > 1 and helps(its)]
    if len(main) > 1:
        said.append(f"pairs that matter: {', '.join(pairs) or 'none'}")
    return f"{title_of(model)}, points on swaps. {capitalised('; '.join(said))}."


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def reached(swaps: Records, model: str, enough: float) -> str:
    """How far a model's runs have come where captions are complete, without which effects say little."""
    (every,) = swaps.estimates(("model",)).values()
    text = f"{title_of(model)} is right about {percent(every)} of swaps over all runs"
    for its in swaps.where(**COMPLETE).estimates(("model",)).values():
        text += f", and about {percent(its)} where captions are complete"
        if helps(points_above(its, 0.5)) != 1:
            text += ": not above chance, so that effects say little"
        elif its.value < enough:
            text += f", less than the {enough:.0%} of reliable binding"
    return f"{text}."


def percent(its: Estimate) -> str:
    return f"{100 * its.value:.1f} % [{its.bounds}]"


def judgements(records: Records, model: str, found: Found, levels: Levels, enough: float) -> Iterator[Verdict]:
    """What the paper claims of CLIP, for a model."""
    title = title_of(model)
    for name, claim in HURT.items():
        its, sign = found[model].get((name,)), 1 if COMPLETE[name] else -1
        measured = f"{change(name, levels)}: {its}" if its else "not varied"
        yield Verdict(claim, title, TESTED, judged(its, sign), EXPECTED[sign], measured)
    yield Verdict("too many attributes hurt", title, TESTED, "not tested", EXPECTED[-1], "a thing has one texture here")
    complete = records.where(**COMPLETE)
    others = {arm.id for arm in records.arms} - {arm.id for arm in complete.arms}
    for name, claim in UNRELIABLE.items():
        most = {name: levels[name][1] if name in levels else ()}
        yield of_level(claim, title, records.where(lambda arm: arm.id in others, **most), enough, -1)
    yield of_level("with the right data binding is nearly perfect", title, complete, enough, 1)


def of_level(claim: str, title: str, runs: Records, enough: float, sign: int) -> Verdict:
    """A claim that the accuracy of runs is above `enough` (1), or below (-1).

    Runs that don't recognise things either say nothing of binding: then it isn't decided that they are below.
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
    """A row for each effect of so many factors of each model."""
    rows = [
        [title_of(model), called(effect), *(change(each, levels) for each in effect), str(its)]
        for model, of_model in found.items()
        for effect, its in of_model.items()
        if len(effect) == factors
    ]
    sides = ["levels"] if factors == 1 else ["levels of the first", "levels of the second"]
    return Rows(name, ["model", "factor" if factors == 1 else "pair", *sides, "effect in points"], rows, says=text)


def in_words(records: Records) -> dict[str, dict[Any, str]]:
    return {"things": {text: f"up to {text.rpartition('+')[2]}" for text in records.labels("things")}}


def seen(records: Records) -> Iterable[str]:
    """How many images runs train on, and how many they see, by batch."""
    counts = {(arm.place["batch"], result["train_images"], result["images_seen"]) for arm, result in records.results}
    trained = ", ".join(str(number) for number in sorted({images for _, images, _ in counts}))
    if counts:
        yield f"Runs train on {trained} different images."
    for batch, shown in sorted({(batch, shown) for batch, _, shown in counts}):
        yield f"With a batch of {batch} they take {shown // batch} steps and see {shown} images, repeated ones too."
    if len({shown for *_, shown in counts}) > 1:
        yield "So the effect of the batch is that of more images seen, too; `--held images` has equally many."


def left_out(records: Records, levels: Levels) -> Iterable[str]:
    """Which seeds no effect is of yet."""
    runs = len(design(len(levels)))
    for model in records.labels("model"):
        lacking = set(records.labels("seed")) - set(whole_seeds(records, model, runs))
        if lacking:
            listed = ", ".join(map(str, sorted(lacking)))
            yield f"Not all runs of {title_of(model)} have a result for seed {listed}, which effects leave out."


def aliases(factors: int) -> str:
    """What the effects of a half design can't be told from."""
    if factors <= ALL:
        return ""
    return (
        f"Half of the {2**factors} combinations of levels are run, so that a main effect can't be told from what "
        f"{factors - 1} factors do together, and a pair from what the {factors - 2} others do; both are taken for 0."
    )


def counted(records: Records) -> dict[str, dict[tuple[Any, ...], str]]:
    """Further columns of the table of runs, by the labels of its rows."""
    columns: dict[str, dict[tuple[Any, ...], str]] = {}
    for arm, result in records.results:
        shown, key = result["images_seen"], tuple(arm.place[name] for name in ("model", *FACTORS))
        if hasattr(arm.cell, "data"):  # one that is read back has no recipe
            columns.setdefault(BINDS, {})[key] = f"{100 * share_bound(vars(arm.cell.data.recipe)):.0f}"
        numbers = {
            "training images": result["train_images"],
            "steps": shown // arm.place["batch"],
            "images seen": shown,
        }
        for name, number in numbers.items():
            columns.setdefault(name, {})[key] = str(number)
    return columns


SAYS = """Effects on swaps of two things, in points: what the second level brings above the first, over both levels of
all else; below the line those of pairs. Grey: the interval holds 0, or there is none."""
MAIN = """Accuracy on swaps at the second level minus that at the first. Each run speaks of each factor. Tests show
two things and mention both, as captions of all runs do, more or less often. Where the salient thing alone is
mentioned fewer things are: its effect is that of both, and of what a caption can teach then (the last table)."""
PAIRS = """Half of the difference between the effects of one factor at the second and at the first level of the other.
Intervals are of 95 %, so that of twenty effects that are none one is expected to leave out 0."""
CLAIMS = """Of Gurung, Hoffmann and Brox (GCPR 2025, arXiv 2507.07985) on CLIP, as the abstract and the caption of its
first figure have them. That names the number of things in an image, too, of which we know no direction. Effects are
judged by their intervals. Reliable binding is {0} right on swaps: there 0 of the words below is this share. A big
batch and hard negatives alone: where they are, and captions aren't complete. The right data: where they are. Runs
below, that don't recognise animals and textures as reliably either, decide nothing."""
RECOGNISED = """The same effects on captions in which an animal, or a texture, is replaced by one that isn't shown: no
binding is needed. A factor that changes these changes more than binding."""
RUNS = """Accuracy (%) on swaps. Captions that bind: the expected share of captions, of images of two things or more,
that mention two with their textures; no other says which texture belongs to which of two things."""
