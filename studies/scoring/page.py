"""What studies of scored models write: numbers of models on tests (`Score`) in sentences, figures and tables; notes."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from menagerie.envs.core.files import file_names, write_csv
from menagerie.generators.trained_on import COUNTED, Overlap
from menagerie.studies.analysis.intervals import CONFIDENCE, FEWEST
from menagerie.studies.analysis.tables import DASH, MEANS, print_table
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Chart, Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.models import explain_source, short_labels, training_lines
from menagerie.studies.scoring.piece import Piece, unread_sentence

if TYPE_CHECKING:
    import altair as alt

MOST_SAID = 6  # numbers with a sentence that says which model is best
MOST_UNDECIDED = 0.05  # share of items without a judge's verdict above which a model is marked
FIGURE = "Accuracy (%): dots with intervals, nominally of 95 %, if there are any, and chance as a dashed line."
AS_THEY_ARE = (
    "Nothing was trained for this: models of a run are as they were trained there, others as published. Numbers are "
    "accuracies in percent with 95 % intervals, for these models as they are and new records or animal pairs; a number "
    "of few has none. Texts that differ only in what a model doesn't read have equal scores, which count as ties."
)
BAG = "Words: what the best bag of words gets, which knows all but their order."
NOTES = (
    "What wasn't scored or read, and what judges answered. An item of a judge without a verdict counts as guessed. "
    "Choices are asked in both orders; if the same letter is answered in both, the place decided, and if both answers "
    "are equally sure, the item counts as guessed too. Tokens include those of answers that were kept from before."
)
TRAINED_ON = (
    "How much of each test the model's training had. Compositions: an animal in a texture. Arrangements: two "
    "compositions in one image or, for relations, two animals in their order. Texts: true captions."
)
LEFT_OUT = (
    "Unseen and seen, in the names of tests, refer to the split's own training. A record is left out of a model's "
    "numbers if its training had the record's image, or what the test calls unseen; a test without any record left has "
    "no number."
)


class Score(NamedTuple):
    """A number of a model on a test."""

    model: str
    test: str  # a split or a benchmark
    part: str  # a subset of a split; "task" or "headline" of a benchmark
    measure: str
    its: Estimate
    ties: float | None = None
    chance: float | None = None
    title: str = ""
    """The name of a headline: one of the numbers that a page shows first; empty for all others."""
    drawn: bool = False  # whether it is among the sentences and in the figure
    flag: str = ""  # a remark after the number
    words: float | None = None  # what the best bag of words gets, which doesn't know their order

    @property
    def text(self) -> str:
        """The accuracy in percent, with the deviation of seeds and the interval, as far as they are known."""
        if math.isnan(self.its.value):
            return DASH
        deviation = "" if math.isnan(self.its.deviation) else f" ± {100 * self.its.deviation:.1f}"
        return in_percent(self.its.value) + deviation + f" [{self.its.bounds}]" * self.its.known + self.flag


def in_percent(share: float | None) -> str:
    """Return a share in percent with one decimal, below 0.1 % with one significant digit; a dash if there is none."""
    if share is None:
        return DASH
    return f"{100 * share:.1g}" if 0 < share < 0.001 else f"{100 * share:.1f}"


def level_of(row: Mapping[str, Any]) -> Estimate:
    """Return the official accuracy in a row of results.csv, with its interval."""
    value, low, high = (math.nan if row.get(name) is None else float(row[name]) for name in ("official", "low", "high"))
    return Estimate(value, low, high, int(row["n"]), int(row["n"]), 1, math.nan)


def binomial(share: float, n: int) -> dict[str, float | None]:
    """Return a share's interval over n records (Wilson 1927); None for under `FEWEST` of them or a share of 0 or 1."""
    from scipy.stats import binomtest

    if n < FEWEST or share in (0, 1):
        return {"low": None, "high": None}
    found = binomtest(round(share * n), n).proportion_ci(CONFIDENCE, "wilson")
    return {"low": float(found.low), "high": float(found.high)}


def seed_mean(levels: Sequence[Estimate]) -> Estimate:
    """Return the mean of the accuracies of several seeds. Half the width of its interval is sqrt(a^2 + b^2). a is half
    the width of Student's interval of the seeds. b is the mean over seeds of the wider side of their intervals over
    records, which all seeds share; the other side may end at 0 or 1. Two seeds have no interval (`two_levels`)."""
    from scipy.special import stdtrit

    if len(levels) == 1:
        return levels[0]
    value, deviation = (f([its.value for its in levels]) for f in (statistics.mean, statistics.stdev))
    low = high = math.nan
    if len(levels) > 2:
        student = float(stdtrit(len(levels) - 1, (1 + CONFIDENCE) / 2)) * deviation / math.sqrt(len(levels))
        half = math.hypot(student, statistics.mean(max(its.high - its.value, its.value - its.low) for its in levels))
        low, high = (min(max(end, 0.0), 1.0) for end in (value - half, value + half))
    return Estimate(value, low, high, levels[0].n, levels[0].n, len(levels), deviation)


def best_sentence(title: str, scores: Sequence[Score]) -> str:
    """Say which models are best by a headline, and how good they are."""
    top = max(scores, key=lambda one: one.its.value)
    best = " and ".join(its.model for its in scores if its.its.value == top.its.value)
    over = f", mean of {top.its.seeds} seeds" * (top.its.seeds > 1)
    chance = "" if top.chance is None else f"; chance is {in_percent(top.chance)}"
    return f"{title}: best of {len(scores)} is {best} with {top.text} % of {top.its.n} records{over}{chance}."


def level_chart(scores: Sequence[Score]) -> "alt.TopLevelMixin":
    """Draw a panel for each headline, with a dot and an interval for each model."""
    import altair as alt

    rows = [
        {"test": its.title, "model": its.model, "n": its.its.n, "accuracy": 100 * its.its.value}
        | {name: 100 * end for name, end in (("low", its.its.low), ("high", its.its.high)) if its.its.known}
        | ({} if its.chance is None else {"chance": 100 * its.chance})
        for its in scores
    ]
    frame = pd.DataFrame(rows, columns=["test", "model", "accuracy", "low", "high", "chance", "n"])
    base = alt.Chart(height=alt.Step(16), width=150)
    model = alt.Y("model:N", title=None, sort=list(dict.fromkeys(frame.model)))
    chance = base.mark_rule(strokeDash=[3, 3]).encode(x="chance:Q")
    bars = base.mark_rule().encode(x="low:Q", x2="high:Q", y=model)
    accuracy = alt.X("accuracy:Q", title="accuracy (%)", scale=alt.Scale(zero=False))
    dots = base.mark_point(filled=True, opacity=1).encode(x=accuracy, y=model, tooltip=list(frame))
    panels = alt.Facet("test:N", title=None, sort=list(dict.fromkeys(frame.test)))
    return alt.layer(chance, bars, dots, data=frame).facet(panels, columns=4)


def score_table(name: str, scores: Sequence[Score], says: str, folded: str = "") -> Rows:
    """Return a table of scores with a column for each model; a number with ties has a second row with their rate."""
    models = list(dict.fromkeys(its.model for its in scores))
    rows: dict[str, dict[str, Score]] = {}
    for its in scores:
        rows.setdefault(its.title or f"{its.part}: {its.measure}", {})[its.model] = its
    lines = []
    for title, found in rows.items():
        there = [found.get(model) for model in models]
        chance, words = (
            next((level for its in found.values() if (level := getattr(its, name)) is not None), None)
            for name in ("chance", "words")
        )
        counts = sorted({its.its.n for its in found.values() if its.its.n}) or [0]
        n = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        lines.append([title, *(its.text if its else DASH for its in there), in_percent(chance), in_percent(words), n])
        if any(its.ties for its in found.values()):
            lines.append([f"{title}, ties", *(in_percent(its and its.ties) for its in there), DASH, DASH, n])
    return Rows(name, ("accuracy, %", *models, "chance", "words", "n"), lines, says=says, folded=folded)


def named_results(records: Records) -> list[tuple[Piece, Mapping[str, Any]]]:
    """Return the finished pieces with their results, labelled by this command and not by an earlier one."""
    found = ((arm.cell, arm.labels, result) for arm, result in records.results)
    return [(cell, {**result, "model": cell.model, next(iter(of)): cell.label}) for cell, of, result in found]


def write_results(records: Records, columns: Sequence[str]) -> None:
    """Write the table results.csv with a row for each number."""
    rows = (row for piece, result in named_results(records) for row in piece.rows(result))
    write_csv(records.out / "results.csv", columns, ([row.get(name) for name in columns] for row in rows))


def undecided_share(result: Mapping[str, Any]) -> float:
    """Return the share of a result's items without a judge's verdict."""
    counts = result.get("judged") or {}
    return counts.get("undecided", 0) / max(1, counts.get("items", 0))


def short_names(records: Records) -> dict[str, str]:
    """Return the names of models in tables, with a remark if many of their items have no verdict."""
    names, worst = short_labels(list({arm.cell.model: arm.cell.tested for arm in records.arms}.values())), {}
    for arm, result in records.results:
        worst[arm.cell.model] = max(undecided_share(result), worst.get(arm.cell.model, 0.0))
    marks = {model: f", {share:.0%} without a verdict" for model, share in worst.items() if share > MOST_UNDECIDED}
    return {model: name + marks.get(model, "") for model, name in names.items()}


def score_page(records: Records, scores: Sequence[Score], further: Iterable[Part]) -> Iterator[Part]:
    """Yield the page: the best models, what to know of each, `further` parts, all numbers, and what the models are."""
    drawn = [its for its in scores if its.drawn and not math.isnan(its.its.value)]
    for title in list(dict.fromkeys(its.title for its in drawn))[:MOST_SAID]:
        yield Sentence(best_sentence(title, [its for its in drawn if its.title == title]))
    if drawn:
        yield Chart("first-headlines", level_chart(drawn), says=FIGURE)
    if headlines := [its for its in scores if its.title]:
        flags = f" {MEANS}." * any(its.flag for its in headlines)
        yield score_table("headlines", headlines, f"Accuracy in percent. {BAG}{flags}")
    yield Paragraph(AS_THEY_ARE)
    if notes := list(note_rows(records)):
        yield Rows("notes", ("model", "test", "note"), notes, says=NOTES)
    yield from further
    for test, file in file_names(its.test for its in scores).items():
        yield Heading(test)
        numbers = [its._replace(title="") for its in scores if its.test == test]
        yield score_table(f"scores-{file}", numbers, "All numbers.", folded=f"All numbers of {test}")
    yield from about_models(records, short_names(records))


def note_rows(records: Records) -> Iterator[list[str]]:
    """Yield what a reader has to know of a model on a test: why it has no numbers, what it didn't read, and so on."""
    names = short_names(records)
    results = {piece.id: result for piece, result in named_results(records)}
    for arm in records.arms:
        piece, result = arm.cell, results.get(arm.id, {})
        notes = [f"left out: {why}"] if (why := records.left_out(arm)) else []
        if result:
            notes += [unread_sentence(result), *piece.notes(result)]
        if judged := result.get("judged"):
            counted = [f"{name.replace('_', ' ')} {number}" for name, number in judged.items() if number]
            answered = result.get("answered_by", ())
            counted += [f"answered by {', '.join(answered)}"] * (len(answered) > 1)
            notes.append("; ".join([f"{undecided_share(result):.1%} of items without a verdict", *counted]))
        yield from ([names[piece.model], piece.label, note] for note in notes if note)


def about_models(records: Records, names: Mapping[str, str]) -> Iterator[Part]:
    """Yield a table of what the models are, and what models of a run were trained on."""
    models = list({arm.cell.model: arm.cell.tested for arm in records.arms}.values())
    trained, rows = training_lines(models), []
    for model in models:
        title, text = explain_source(model)
        about = text if title in (model.label, model.title) else f"{title}: {text}"
        rows.append([names.get(model.label, model.title), model.label, about, trained.get(model.label, "")])
    if rows:
        yield Heading("The models")
        yield Rows("models", ("name here", "given as", "what it is", "trained on"), rows)


def print_headlines(scores: Sequence[Score]) -> None:
    """Print the table of all headlines, without numbers of papers."""
    table = score_table("", [its for its in scores if its.title and its.its.n], "")
    print_table(table.header, table.rows, "accuracy, %")


class ScoredTest(NamedTuple):
    """A test that a model was scored on, and what the model's training had of it."""

    model: str  # the name in tables
    split: str
    subset: str
    had: Overlap


def coverage_parts(found: Sequence[ScoredTest], file: str, says: str = LEFT_OUT) -> Iterator[Part]:
    """Yield what training had of a split: a row for each model and test; `says` what happens to such records."""
    rows = {}
    for its in found:
        had = [f"{n} of {of}" for n, of in its.had.counts.values()] + [f"{its.had.lost} of {its.had.records}"]
        cells = had if its.had.counts else ["unknown"] * (len(COUNTED) + 1)
        rows[its.model, its.subset if its.had.counts else "all"] = [*cells, "; ".join(its.had.gaps)]
    if rows:
        yield Heading(f"{found[0].split}: what training had of it", level=3)
        header = ("model", "subset", *COUNTED, "records left out", "not known")
        table = [[*key, *cells] for key, cells in rows.items()]
        yield Rows(f"trained-on-{file}", header, table, says=f"{TRAINED_ON} {says}")
