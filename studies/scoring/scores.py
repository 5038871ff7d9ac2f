"""A number of a model on a test, as all pages of scored models show it: in sentences, in a figure and in tables."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.studies.analysis.intervals import CONFIDENCE, FEWEST
from menagerie.studies.analysis.tables import DASH, MEANS
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Chart, Part, Rows, Sentence

if TYPE_CHECKING:
    import altair as alt

MOST_SAID = 6  # numbers with a sentence that says which model is best
COLUMNS = 4  # panels beside each other
FIGURE = (
    "Accuracy (%): dots with intervals, nominally of 95 %, and chance as a dashed line. A dot without an interval has "
    "none, or was scored before intervals were kept."
)


class Score(NamedTuple):
    """A number of a model on a test."""

    model: str
    test: str
    """A split or a benchmark."""
    part: str
    """A subset of a split; "task" or "headline" of a benchmark."""
    measure: str
    its: Estimate
    ties: float | None = None
    """The rate of ties."""
    chance: float | None = None
    title: str = ""
    """The name of a headline: one of the numbers that a page shows first; empty for all others."""
    drawn: bool = False
    """Whether it is among the sentences and in the figure."""
    flag: str = ""
    """A remark after the number."""

    @property
    def text(self) -> str:
        """The accuracy in percent, with the deviation of seeds and the interval, as far as they are known."""
        if math.isnan(self.its.value):
            return DASH
        deviation = "" if math.isnan(self.its.deviation) else f" ± {100 * self.its.deviation:.1f}"
        return in_percent(self.its.value) + deviation + f" [{self.its.bounds}]" * self.its.known + self.flag


def in_percent(share: float) -> str:
    """Return a share in percent with one decimal; below 0.1 %, with one significant digit."""
    return f"{100 * share:.1g}" if 0 < share < 0.001 else f"{100 * share:.1f}"


def level_of(row: Mapping[str, Any]) -> Estimate:
    """Return the official accuracy of a model on a benchmark, with the interval that was computed when it was
    scored."""
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
    """Return the mean of the accuracies of several seeds.

    Half the width of its interval is sqrt(a^2 + b^2). a is half the width of Student's interval of the seeds. b is the
    mean over seeds of the wider side of their intervals over records, which all seeds share; the other side may end at
    0 or 1. Two seeds have no interval (`intervals`); a single seed keeps its own.
    """
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


def first_parts(scores: Sequence[Score]) -> Iterator[Part]:
    """Yield the beginning of a page: which model is best by the first headlines, the figure of these, and the table of
    all headlines."""
    drawn = [its for its in scores if its.drawn and not math.isnan(its.its.value)]
    for title in list(dict.fromkeys(its.title for its in drawn))[:MOST_SAID]:
        yield Sentence(best_sentence(title, [its for its in drawn if its.title == title]))
    if drawn:
        yield Chart("first-headlines", level_chart(drawn), says=FIGURE)
    if headlines := [its for its in scores if its.title]:
        flags = f" {MEANS}." * any(its.flag for its in headlines)
        yield score_table("headlines", headlines, f"Accuracy in percent.{flags}")


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
    import pandas as pd

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
    return alt.layer(chance, bars, dots, data=frame).facet(panels, columns=COLUMNS)


def score_table(name: str, scores: Sequence[Score], says: str, folded: str = "") -> Rows:
    """Return a table of scores with a column for each model; a number with ties has a second row with their rate."""
    models = list(dict.fromkeys(its.model for its in scores))
    rows: dict[str, dict[str, Score]] = {}
    for its in scores:
        rows.setdefault(its.title or f"{its.part}: {its.measure}", {})[its.model] = its
    lines = []
    for title, found in rows.items():
        there = [found.get(model) for model in models]
        chance = next((its.chance for its in found.values() if its.chance is not None), None)
        counts = sorted({its.its.n for its in found.values() if its.its.n}) or [0]
        n = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
        lines.append([title, *(its.text if its else DASH for its in there), share_or_dash(chance), n])
        if any(its.ties for its in found.values()):
            ties = (share_or_dash(its.ties) if its else DASH for its in there)
            lines.append([f"{title}, ties", *ties, DASH, n])
    return Rows(name, ("accuracy, %", *models, "chance", "n"), lines, says=says, folded=folded)


def share_or_dash(share: float | None) -> str:
    """Return a share in percent; a dash if there is none."""
    return DASH if share is None else in_percent(share)
