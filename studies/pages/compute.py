"""The page of `studies/compute.py`: sentences with verdicts, accuracy by cost, and the choices that were tried."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.studies.frame.adaptive import Course
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.costs import UNKNOWN, RunCost, noted_cost
from menagerie.studies.frame.parts import Curves, Facts, Heading, Lines, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate

DASH, WAITING = UNKNOWN, "…"
# What figures have below them.
FLOPS, IMAGES, SECONDS = "operations of training (TFLOP)", "images seen (thousands)", "CPU-seconds of training"
HEADER = ("steps", "images", "TFLOP", "CPU-seconds", "validation (%)", "unseen (%)")
VERDICTS = {
    "binds": "its interval lies at or above the bar",
    "does not bind": "its interval lies below the bar, and validation stopped rising before the largest budget",
    "not yet": "its interval lies below the bar, and validation still rose with the largest budget: more may help",
    "at chance": "its interval lies below the bar, and validation left chance with no budget: more may help",
    "open": "its interval lies below the bar so far: budgets are to be trained yet, or are too few to say if more help",
    "undecided": "the bar lies within its interval, or there are too few seeds or pairs for one",
    DASH: "no budget is finished yet with all seeds",
}
STATES = {
    "choosing": "choices are being halved",
    "waiting": "budgets are to be trained yet",
    "stopped": "validation stopped rising",
} | dict.fromkeys(("at chance", "rising", "flat"), "trained up to the largest budget")
BY_COST = """Accuracy on swaps of {tests}, by what the training run costs. Every point is a finished model, whose rate
decayed at its end. Larger: the budget that is best on validation. Dashed: the bar, from which on a model counts as one
that binds. Dotted: chance."""
BY_SECONDS = "The same by processor time: steps times the median time of a step of these runs."
BY_TEST = """Validation, by which all is chosen, and every test. A model that is right of what it was trained on and
wrong of what is unseen has memorised."""
BEST = """The budget of each model that validation chose. Above the first: points above the first model, on the same
records. In brackets the interval."""
RISING = """A model gets larger budgets until {patience} in a row bring no rise of validation by more than {rise:g}
points, in the mean over seeds; one that hasn't left chance yet goes on, because it may not have begun to rise. The rate
is constant until the last {decay:.0f} % of a budget's steps, in which it decays; a run goes on from where the budget
before began to decay. Costs are those of a run of that many steps by itself."""
CHOSEN_FROM = """Validation (%) of each choice with the first seed, by steps. After each budget the better half goes on,
until one is left, which is trained with all seeds. All choices take as many steps: larger towers and batches are given
more compute, not less. `–`: not trained so far. The loss of a choice with 0.0 was no number."""
TRAINING = """The runs of each model's largest budget. Validation: accuracy on at most 200 swaps, always the same ones;
the dotted line is chance. All numbers: `cells/*/training.csv`."""


class Point(NamedTuple):
    """A model's result at one budget that all seeds have finished."""

    steps: int
    arms: tuple[Arm, ...]
    validation: float
    """Accuracy on validation, from 0 to 1: the mean over seeds."""
    level: "Estimate"
    """Accuracy on the tests of what is unseen."""

    @property
    def cost(self) -> RunCost:
        """The cost of the first seed's run."""
        return noted_cost(self.arms[0])

    @property
    def texts(self) -> list[str]:
        level = percent(self.level).replace(" %", "")
        return [str(self.steps), *self.cost.texts, f"{100 * self.validation:.1f}", level]


class Line(NamedTuple):
    """A model at one split, budget by budget."""

    split: str
    model: str
    course: Course
    points: Sequence[Point]

    @property
    def best(self) -> Point | None:
        """The budget that is best on validation, of equal ones the smallest; None before any is finished."""
        return max(self.points, key=lambda point: (point.validation, -point.steps), default=None)


Key = tuple[Any, ...]
Gaps = Mapping[Key, "Estimate"]
Courses = Mapping[Key, Course]
"""The course of each model on each split, by split and model."""


def page(study: Any, records: Records, courses: Courses, judged: Mapping[str, Sequence[str]]) -> Iterator[Part]:
    """The parts of the page; `judged` are the tests of what is unseen, by split."""
    unseen = {"subset": tuple(dict.fromkeys(test for names in judged.values() for test in names)), "task": "swap"}
    lines = lines_of(study, records, courses, unseen)
    points = [(line, point) for line in lines for point in line.points]
    curves = only([point for _, point in points], records).labelled(costs)
    chosen = only([line.best for line in lines if line.best], records)
    gaps = chosen.where(**unseen).estimates(("split", "model"), {"model": study.models[0]})
    names = "; ".join(f"{', '.join(f'`{test}`' for test in names)} ({split})" for split, names in judged.items())
    drawn = figures(study, curves, curves.where(**unseen), chosen, BY_COST.format(tests=names)) if points else []
    yield from said(study, lines, gaps)
    yield from drawn[:1]
    header = ("split", "model", *HEADER, "above the first", "outcome")
    yield Rows("best", header, best_rows(study, lines, gaps), says=BEST)
    yield Facts(VERDICTS)
    shares = {"rise": 100 * study.rise, "decay": 100 * study.decay}
    yield Heading("How long models are trained", RISING.format(patience=study.patience, **shares))
    yield Facts({f"{line.split}, {title_of(line.model)}": STATES[line.course.outlook(study.rise)] for line in lines})
    yield from drawn[1:]
    yield Table("chosen", chosen.where(task="swap"), ("split", "model"), says="Each model at its best budget.")
    rows = [[line.split, title_of(line.model), str(line.course.chosen), *point.texts] for line, point in points]
    yield Rows("compute", ("split", "model", "choice", *HEADER), rows, says="Every budget.")
    yield Heading("What was chosen from", CHOSEN_FROM)
    yield Rows("choices", ("split", "model", "choice", *map(str, study.budgets)), choice_rows(study, records))
    yield Heading("How they trained")
    longest = only([line.points[-1] for line in lines if line.points], records)
    yield Curves("training", longest, ("split",), says=TRAINING)


def figures(study: Any, curves: Records, unseen: Records, chosen: Records, says: str) -> list[Part]:
    """Accuracy on what is unseen by operations, images and processor time, and on every test."""
    timed = unseen.where(lambda arm: arm.labels["cpu_seconds"] != "")
    look: dict[str, Any] = {"x": "steps", "log": True, "large": chosen}
    split: dict[str, Any] = {"panels": ("split",), "level": study.bar, **look}
    return [
        Lines("operations", unseen, at=FLOPS, says=says, **split),
        Lines("images", unseen, at=IMAGES, says="The same by images seen.", **split),
        *([Lines("cpu_seconds", timed, at=SECONDS, says=BY_SECONDS, **split)] if timed.arms else []),
        Lines("tests", curves.where(task="swap"), at=FLOPS, says=BY_TEST, panels=("split", "subset"), **look),
    ]


def lines_of(study: Any, records: Records, courses: Courses, unseen: Mapping[str, Any]) -> list[Line]:
    """Return each model at each split, with the budgets that all seeds have finished."""
    found: dict[Key, list[Arm]] = {}
    for arm, _ in records.results:
        at = arm.labels["split"], arm.cell.model
        if study.setup_of(arm) == courses[at].chosen:
            found.setdefault((*at, arm.labels["steps"]), []).append(arm)
    whole = {key: tuple(arms) for key, arms in sorted(found.items()) if len(arms) == study.seeds}
    ids = {arm.id for arms in whole.values() for arm in arms}
    levels = records.where(lambda arm: arm.id in ids, **unseen).estimates(("split", "model", "steps"))
    points: dict[Key, list[Point]] = {key: [] for key in courses}
    for key, arms in whole.items():
        points[key[:2]].append(Point(key[2], arms, records.mean(arms) or 0.0, levels[key]))
    return [Line(*key, course, points[key]) for key, course in courses.items()]


def only(points: Iterable[Point], records: Records) -> Records:
    ids = {arm.id for point in points for arm in point.arms}
    return records.where(lambda arm: arm.id in ids)


def costs(arm: Arm, records: Records) -> dict[str, Any]:
    """Return a run's costs, as the labels by which figures place it."""
    cost = noted_cost(arm)
    return {FLOPS: cost.flops / 1e12, IMAGES: cost.images / 1000, SECONDS: cost.cpu_seconds}


def said(study: Any, lines: Sequence[Line], gaps: Gaps) -> Iterator[Part]:
    """Yield, for each split where the first model has results, a sentence on each model that has some there."""
    firsts = {line.split: line for line in lines if line.model == study.models[0] and line.best}
    if not firsts:
        yield Paragraph("No model has finished its first budget with all seeds yet.")
    for line in (line for line in lines if line.split in firsts and line.best):
        gap = gaps.get((line.split, line.model))  # none of the first itself
        yield Sentence(on_other(firsts[line.split], line, gap) if gap else on_first(study, line))


def on_first(study: Any, line: Line) -> str:
    """Say how accurate the first model becomes, and at what cost."""
    place = "On your own split" if line.split == "own" else f"At the hardest cell of the {line.split} split"
    images, tflop, seconds = line.best.cost.texts
    spent = f"{images} images, {tflop} TFLOP" + f", {seconds} CPU-seconds" * (seconds != DASH)
    outcome = verdict(study, line)
    return (
        f"{place} {title_of(line.model)} prefers the true caption in {percent(line.best.level)} of what is unseen, "
        f"after the {line.best.steps} steps that validation chose of up to {line.points[-1].steps} ({spent}). "
        f"With a bar of {100 * study.bar:.0f} % the outcome is “{outcome}”: {VERDICTS[outcome]}."
    )


def on_other(first: Line, line: Line, gap: "Estimate") -> str:
    """Say how far another model at its best budget is above the first, and which budget makes it as good on
    validation."""
    base, best, title = first.best, line.best, title_of(first.model)
    match = next((point for point in line.points if point.validation >= base.validation), None)
    times = f"with {best.cost.flops / base.cost.flops:.2g} times the operations"
    text = f"{title_of(line.model)} gets {percent(best.level)} after {best.steps} steps, {times}: {gap} points"
    if match is None:
        return f"{text}; at no budget is it as good on validation as {title} at its best."
    share = f"with {match.cost.flops / base.cost.flops:.2g} times the operations"
    return f"{text}; on validation it is as good as {title} at its best after {match.steps} steps, {share}."


def verdict(study: Any, line: Line) -> str:
    if line.best is None:
        return DASH
    level, outlook = line.best.level, line.course.outlook(study.rise)
    if level.conclusive and level.low >= study.bar:
        return "binds"
    if level.conclusive and level.high < study.bar:
        return {"stopped": "does not bind", "rising": "not yet", "at chance": "at chance"}.get(outlook, "open")
    return "undecided"


def best_rows(study: Any, lines: Sequence[Line], gaps: Gaps) -> list[list[str]]:
    """Return a row for each line: the budget that validation chose, the points above the first model, and the
    verdict."""
    known = [(line, line.best.texts if line.best else [WAITING] * len(HEADER)) for line in lines]
    return [
        [line.split, title_of(line.model), *texts, str(gaps.get((line.split, line.model), DASH)), verdict(study, line)]
        for line, texts in known
    ]


def choice_rows(study: Any, records: Records) -> list[list[str]]:
    """Return a row for each choice: its validation accuracy (%) with the first seed after each budget. A dash marks
    budgets that it wasn't trained for."""
    first = min(records.labels("seed"))
    scores = {
        (arm.labels["split"], arm.cell.model, study.setup_of(arm), arm.labels["steps"]): records.score(arm)
        for arm in records.arms
        if arm.cell.seed == first
    }
    rows = []
    for split, model, setup in product(study.names, study.models, study.setups):
        known = [scores.get((split, model, setup, steps)) for steps in study.budgets]
        texts = [DASH if score is None else f"{100 * score:.1f}" for score in known]
        rows.append([split, title_of(model), str(setup), *texts])
    return rows


def percent(level: "Estimate") -> str:
    """Return an accuracy with its interval. Many animal pairs get one even if their records are all alike."""
    bounds = f"{100 * level.low:.1f}, {100 * level.high:.1f}" if level.conclusive else level.bounds
    return f"{100 * level.value:.1f} % [{bounds}]"
