"""The first headline of each benchmark, with its interval: in a sentence, and as a dot in a figure."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from menagerie.studies.analysis.two_levels import CONFIDENCE, FEWEST
from menagerie.studies.analysis.words import wrap
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import OwnFigure, Part, Sentence
from menagerie.studies.report.figures import COLOURS, chance_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SAID = 6  # benchmarks with a sentence that says which model is best
MOST_ROWS, MOST_PANELS = 12, 24  # that a figure shows
ROW, NARROW, WIDE = 0.19, 2.05, 2.8  # inches: height of a row, width of a panel of many and of few
FEW = 3  # panels that are wide
SAYS = (
    "Accuracy (%): for each benchmark the first number that its paper states. Lines are intervals, nominally of 95 %, "
    "over new records; a dot without a line has none, or was scored before intervals were kept."
)


def level_of(row: Mapping[str, Any]) -> Estimate:
    """Return the accuracy of a model on a benchmark, with the interval that was computed when it was scored."""
    low, high = (math.nan if row.get(name) is None else float(row[name]) for name in ("low", "high"))
    return Estimate(float(row["official"]), low, high, int(row["n"]), int(row["n"]), 1, math.nan)


def binomial(share: float, n: int) -> dict[str, float | None]:
    """Return a share's interval over n records (Wilson 1927); None for under `FEWEST` of them or a share of 0 or 1."""
    from scipy.stats import binomtest

    if n < FEWEST or share in (0, 1):
        return {"low": None, "high": None}
    found = binomtest(round(share * n), n).proportion_ci(CONFIDENCE, "wilson")
    return {"low": float(found.low), "high": float(found.high)}


def in_percent(share: float) -> str:
    """Return a share in percent with one decimal; below 0.1 %, with one significant digit."""
    return f"{100 * share:.1g}" if 0 < share < 0.001 else f"{100 * share:.1f}"


def seed_mean(levels: Sequence[Estimate]) -> Estimate:
    """Return the mean of the accuracies of several seeds.

    Half the width of its interval is sqrt(a^2 + b^2). a is half the width of Student's interval of the seeds. b is the
    mean over seeds of the wider side of their intervals over records, which all seeds share; the other side may end at
    0 or 1. Two seeds have no interval (`two_levels`); a single seed keeps its own.
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


@dataclass(frozen=True)
class Levels(OwnFigure):
    """A panel for each benchmark, with a dot and an interval for each model; the best are at the top."""

    levels: Mapping[tuple[str, str], Estimate]
    """The estimates, by the titles of their panel and their row."""
    chances: Mapping[str, float] = field(default_factory=dict)
    """Chance as a share, by the title of the panel."""

    @property
    def panels(self) -> list[str]:
        return list(dict.fromkeys(panel for panel, _ in self.levels))

    @property
    def rows(self) -> list[str]:
        """The rows, best first. Each is ranked by the share of rows that are better, averaged over the row's panels."""
        values: dict[str, list[float]] = {}
        for (panel, _), its in self.levels.items():
            values.setdefault(panel, []).append(its.value)
        better: dict[str, list[float]] = {}
        for (panel, row), its in self.levels.items():
            better.setdefault(row, []).append(statistics.mean(value > its.value for value in values[panel]))
        return sorted(better, key=lambda row: statistics.mean(better[row]))

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each of the first panels on which row is best."""
        for panel in self.panels[:MOST_SAID]:
            its = {row: level for (at, row), level in self.levels.items() if at == panel}
            top = max(its.values(), key=lambda level: level.value)
            best = [row for row, level in its.items() if level.value == top.value]
            who = f"{best[0]} is best of {len(its)} with" if len(its) > 1 else f"{best[0]} has"
            if len(best) > 1:
                who = f"{len(best)} of {len(its)} are best with"
            interval = f" [{top.bounds}]" * top.known
            over = f", mean of {top.seeds} seeds" * (top.seeds > 1)
            chance = f"; chance is {in_percent(self.chances[panel])}" if panel in self.chances else ""
            yield f"{panel}: {who} {100 * top.value:.1f} %{interval} of {top.n} records{over}{chance}."
        if len(self.panels) > MOST_SAID:
            yield "The figure has the others."

    def numbers(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"benchmark": panel, "model": row, **its._asdict(), "chance": self.chances.get(panel)}
            for (panel, row), its in self.levels.items()
        ]

    def figure(self) -> "Figure | None":
        if not self.levels:
            return None
        from menagerie.studies.frame.bars import NAMES, draw_dot
        from menagerie.studies.frame.figures import panel_axes, style_axes

        rows, panels = self.rows[:MOST_ROWS], self.panels[:MOST_PANELS]
        names = [wrap(row, 28) for row in rows]
        lines = max(1 + name.count("\n") for name in names)
        size = (WIDE if len(panels) <= FEW else NARROW, ROW * lines * len(rows) + 0.7)
        figure, axes = panel_axes(len(panels), size, NAMES, sharex=True, sharey=True)
        for axis, panel in zip(axes, panels, strict=True):
            axis.set_title(wrap(panel, 28), fontsize=9, parse_math=False)
            for y, row in enumerate(rows):
                draw_dot(axis, self.levels.get((panel, row)), float(y), COLOURS[0], ())
            style_axes(axis)
            axis.tick_params(labelbottom=True)  # a line of panels may be the last of its column
            if panel in self.chances:
                chance_line(axis, "x", percent=100 * self.chances[panel])
        axes[0].set_yticks(range(len(rows)), names, parse_math=False)
        axes[0].set_ylim(len(rows) - 0.4, -0.6)
        figure.supxlabel("accuracy (%), dotted line: chance", x=NAMES / figure.get_figwidth(), ha="left", fontsize=9)
        return figure


def name_headline(benchmark: str, headline: str) -> str:
    """Return the name of a headline; over all records it is just the benchmark's name."""
    return benchmark if headline in ("", "all") else f"{benchmark}, {headline}"


def level_parts(part: Levels) -> Iterator[Part]:
    """Yield the beginning of a page: sentences, and then the figure; nothing if nothing is scored."""
    yield from map(Sentence, part.sentences())
    if part.levels:
        yield part


def level_figure(found: Mapping[tuple[str, str], Estimate], chances: Mapping[str, float]) -> Levels:
    """Return the figure, with a note on what it leaves out."""
    part = Levels("first-headlines", found, chances)
    left = [
        f"Of {len(its)} {name} the {shown} are shown."
        for its, name, most, shown in (
            (part.rows, "models", MOST_ROWS, f"best {MOST_ROWS} by mean rank"),
            (part.panels, "benchmarks", MOST_PANELS, f"first {MOST_PANELS}"),
        )
        if len(its) > most
    ]
    return replace(part, says=" ".join([SAYS, *left]))
