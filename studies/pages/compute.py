"""The page of `studies/compute.py`: sentences with verdicts, accuracy by cost, and the choices that were tried."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.studies.frame.adaptive import Course
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.costs import UNKNOWN, RunCost, cost_in_labels
from menagerie.studies.frame.parts import Curves, Facts, Heading, Lines, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate

DASH, WAITING = UNKNOWN, "…"
# Labels of x axes.
FLOPS, IMAGES, SECONDS = "operations of training (TFLOP)", "images seen (thousands)", "CPU-seconds of training"
HEADER = ("steps", "images", "TFLOP", "CPU-seconds", "validation (%)", "unseen (%)")
VERDICTS = {
    "binds": "its interval lies at or above the bar",
    "does not bind": "its interval lies below the bar, and validation stopped rising before the largest budget",
    "not yet": "its interval lies below the bar, and validation still rose with the largest budget: more may help",
    "at chance": "its interval lies below the bar, and validation left chance with no budget: more may help",
    "open": "its interval lies below the bar so far: budgets remain to be trained, or are too few to say if more help",
    "undecided": "the bar lies within its interval, or there are too few seeds or pairs for an interval",
    DASH: "no budget is finished with all seeds yet",
}
STATES = {
    "choosing": "choices are being halved",
    "waiting": "budgets remain to be trained",
    "stopped": "validation stopped rising",
} | dict.fromkeys(("at chance", "rising", "flat"), "trained up to the largest budget")
BY_COST = """Accuracy on swaps of {tests}, by the cost of the training run. Each point is a finished model, whose rate
decayed at its end. Larger: the budget that is best on validation. Dashed: the bar; a model above it counts as binding.
Dotted: chance."""
BY_SECONDS = "The same by processor time: steps times the median time of a step of these runs."
BY_TEST = """Validation, by which all is chosen, and every test. A model that is right on what it was trained on and
wrong on what is unseen has memorised."""
BEST = """The budget of each model that is best on validation. Above the first: points above the first model, on the
same records. In brackets the interval."""
RISING = """A model gets larger budgets until {patience} in a row raise validation by no more than {rise:g} points, in
the mean over seeds. One that hasn't left chance goes on, because its rise may still begin. The rate is constant until
the last {decay:.0f} % of a budget's steps, in which it decays; a longer run continues from where the budget before it
began to decay. Costs are those of a separate run of that many steps."""
CHOSEN_FROM = """Validation (%) of each choice with the first seed, by steps. After each budget the better half goes on,
until one is left, which is trained with all seeds. All choices take equally many steps, so larger towers and batches
get more compute, not less. `–`: not trained so far. 0.0: the loss was not a number."""
TRAINING = """The runs of each model's largest budget. Validation: accuracy on at most 200 swaps, always the same ones;
the dotted line is chance. All numbers: `cells/*/training.csv`."""


class BudgetResult(NamedTuple):
    """A model's result at a budget that all seeds have finished."""

    steps: int
    arms: tuple[Arm, ...]
    validation: float
    """Accuracy on validation, from 0 to 1: the mean over seeds."""
    level: "Estimate"
    """Accuracy on the tests of what is unseen."""

    @property
    def cost(self) -> RunCost:
        """The cost of the first seed's run."""
        return cost_in_labels(self.arms[0])

    @property
    def texts(self) -> list[str]:
        level = level_text(self.level).replace(" %", "")
        return [str(self.steps), *self.cost.texts, f"{100 * self.validation:.1f}", level]


class BudgetLine(NamedTuple):
    """The results of a model on a split, budget by budget."""

    split: str
    model: str
    course: Course
    points: Sequence[BudgetResult]

    @property
    def best(self) -> BudgetResult | None:
        """The result at the budget that is best on validation, of equal ones the smallest; None if none is finished."""
        return max(self.points, key=lambda point: (point.validation, -point.steps), default=None)


Key = tuple[Any, ...]
Gaps = Mapping[Key, "Estimate"]
Courses = Mapping[Key, Course]
"""The course of each model on each split, by split and model."""


def parts(study: Any, records: Records, courses: Courses, judged: Mapping[str, Sequence[str]]) -> Iterator[Part]:
    """Yield the parts of the page. `judged` has the tests of what is unseen, by split."""
    unseen = {"subset": tuple(dict.fromkeys(test for names in judged.values() for test in names)), "task": "swap"}
    lines = budget_lines(study, records, courses, unseen)
    points = [(line, point) for line in lines for point in line.points]
    curves = with_runs_of([point for _, point in points], records).with_labels(cost_labels)
    chosen = with_runs_of([line.best for line in lines if line.best], records)
    gaps = chosen.where(**unseen).estimates(("split", "model"), {"model": study.models[0]})
    names = "; ".join(f"{', '.join(f'`{test}`' for test in names)} ({split})" for split, names in judged.items())
    drawn = cost_figures(study, curves, curves.where(**unseen), chosen, BY_COST.format(tests=names)) if points else []
    yield from result_sentences(study, lines, gaps)
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
    longest = with_runs_of([line.points[-1] for line in lines if line.points], records)
    yield Curves("training", longest, ("split",), says=TRAINING)


def cost_figures(study: Any, curves: Records, unseen: Records, chosen: Records, says: str) -> list[Part]:
    """Return the figures of accuracy on what is unseen by operations, images and processor time, and on all tests."""
    timed = unseen.where(lambda arm: arm.labels["cpu_seconds"] != "")
    look: dict[str, Any] = {"x": "steps", "log": True, "large": chosen}
    split: dict[str, Any] = {"panels": ("split",), "level": study.bar, **look}
    return [
        Lines("operations", unseen, at=FLOPS, says=says, **split),
        Lines("images", unseen, at=IMAGES, says="The same by images seen.", **split),
        *([Lines("cpu_seconds", timed, at=SECONDS, says=BY_SECONDS, **split)] if timed.arms else []),
        Lines("tests", curves.where(task="swap"), at=FLOPS, says=BY_TEST, panels=("split", "subset"), **look),
    ]


def budget_lines(study: Any, records: Records, courses: Courses, unseen: Mapping[str, Any]) -> list[BudgetLine]:
    """Return the results of each model on each split, at the budgets that all seeds have finished."""
    found: dict[Key, list[Arm]] = {}
    for arm, _ in records.results:
        at = arm.labels["split"], arm.cell.model
        if study.setup_of(arm) == courses[at].chosen:
            found.setdefault((*at, arm.labels["steps"]), []).append(arm)
    whole = {key: tuple(arms) for key, arms in sorted(found.items()) if len(arms) == study.seeds}
    ids = {arm.id for arms in whole.values() for arm in arms}
    levels = records.where(lambda arm: arm.id in ids, **unseen).estimates(("split", "model", "steps"))
    points: dict[Key, list[BudgetResult]] = {key: [] for key in courses}
    for key, arms in whole.items():
        points[key[:2]].append(BudgetResult(key[2], arms, records.mean(arms) or 0.0, levels[key]))
    return [BudgetLine(*key, course, points[key]) for key, course in courses.items()]


def with_runs_of(points: Iterable[BudgetResult], records: Records) -> Records:
    """Return the records of the runs behind some results."""
    ids = {arm.id for point in points for arm in point.arms}
    return records.where(lambda arm: arm.id in ids)


def cost_labels(arm: Arm, records: Records) -> dict[str, Any]:
    """Return a run's costs as labels, along which figures place it."""
    cost = cost_in_labels(arm)
    return {FLOPS: cost.flops / 1e12, IMAGES: cost.images / 1000, SECONDS: cost.cpu_seconds}


def result_sentences(study: Any, lines: Sequence[BudgetLine], gaps: Gaps) -> Iterator[Part]:
    """Yield a sentence on each model with results, for each split on which the first model has results."""
    firsts = {line.split: line for line in lines if line.model == study.models[0] and line.best}
    if not firsts:
        yield Paragraph("No model has finished its first budget with all seeds yet.")
    for line in (line for line in lines if line.split in firsts and line.best):
        gap = gaps.get((line.split, line.model))  # none of the first itself
        yield Sentence(other_sentence(firsts[line.split], line, gap) if gap else first_sentence(study, line))


def first_sentence(study: Any, line: BudgetLine) -> str:
    """Say how accurate the first model gets, and at what cost."""
    place = "On your own split" if line.split == "own" else f"At the hardest cell of the {line.split} split"
    images, tflop, seconds = line.best.cost.texts
    spent = f"{images} images, {tflop} TFLOP" + f", {seconds} CPU-seconds" * (seconds != DASH)
    outcome = budget_outcome(study, line)
    return (
        f"{place} {title_of(line.model)} prefers the true caption in {level_text(line.best.level)} of what is "
        f"unseen, after the {line.best.steps} steps that validation chose of up to {line.points[-1].steps} ({spent}). "
        f"With a bar of {100 * study.bar:.0f} % the outcome is “{outcome}”: {VERDICTS[outcome]}."
    )


def other_sentence(first: BudgetLine, line: BudgetLine, gap: "Estimate") -> str:
    """Say how far another model is above the first, and at which budget it is as good on validation."""
    base, best, title = first.best, line.best, title_of(first.model)
    match = next((point for point in line.points if point.validation >= base.validation), None)
    times = f"with {best.cost.flops / base.cost.flops:.2g} times the operations"
    text = f"{title_of(line.model)} gets {level_text(best.level)} after {best.steps} steps, {times}: {gap} points"
    if match is None:
        return f"{text}; at no budget is it as good on validation as {title} at its best."
    share = f"with {match.cost.flops / base.cost.flops:.2g} times the operations"
    return f"{text}; on validation it is as good as {title} at its best after {match.steps} steps, {share}."


def budget_outcome(study: Any, line: BudgetLine) -> str:
    """Return the key of `VERDICTS` for a model on a split."""
    if line.best is None:
        return DASH
    level, outlook = line.best.level, line.course.outlook(study.rise)
    if level.conclusive and level.low >= study.bar:
        return "binds"
    if level.conclusive and level.high < study.bar:
        return {"stopped": "does not bind", "rising": "not yet", "at chance": "at chance"}.get(outlook, "open")
    return "undecided"


def best_rows(study: Any, lines: Sequence[BudgetLine], gaps: Gaps) -> list[list[str]]:
    """Return a row for each line: its best budget on validation, points above the first model, and outcome."""
    known = [(line, line.best.texts if line.best else [WAITING] * len(HEADER)) for line in lines]
    return [
        [
            line.split,
            title_of(line.model),
            *texts,
            str(gaps.get((line.split, line.model), DASH)),
            budget_outcome(study, line),
        ]
        for line, texts in known
    ]


def choice_rows(study: Any, records: Records) -> list[list[str]]:
    """Return each choice's validation accuracy (%) by budget, with the first seed; a dash where there is no run."""
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


def level_text(level: "Estimate") -> str:
    """Return an accuracy with its interval, which many animal pairs have even if all their records are right."""
    bounds = f"{100 * level.low:.1f}, {100 * level.high:.1f}" if level.conclusive else level.bounds
    return f"{100 * level.value:.1f} % [{bounds}]"
