"""What the ablation study writes: a table for each split, the paper's claims in words, and a figure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import pandas as pd

from envs.common.figure_files import write_png
from envs.common.files import write_csv, write_text
from envs.common.pages import write_page
from studies.ablation.rows import BASE, Place
from studies.ablation.runs import COLUMNS, Runs, accuracies, merged, read_runs
from studies.analysis.paired_bootstrap import Difference, difference, pooled
from studies.analysis.tables import DASH, described, pivot, to_latex, to_rows
from studies.runs.cell import Job

matplotlib.use("Agg")
from matplotlib.figure import Figure


class Claim(NamedTuple):
    """What the paper says of a row: on these columns it is lower (-1) or higher (1) than OC-CLIP as it is."""

    row: str
    split: str
    columns: tuple[tuple[str, str], ...]
    sign: int
    text: str


RATIO = "alpha / beta"
HEADER = ("split", "row", "seed", "subset", "task", "accuracy", "n")

CLAIMS = (
    Claim(
        *("no local loss", "spatial", COLUMNS["spatial"][:2], -1),
        "Without the local loss relations are understood less (table 7: swap obj 80.7 to 73.1).",
    ),
    Claim(
        *("regular attention", "binding", COLUMNS["binding"][:3], -1),
        "Competitive attention helps attributes a little (table 7: swap att 88.7 against 86.0).",
    ),
    Claim(
        *("joint relation", "spatial", COLUMNS["spatial"][:2], -1),
        "A joint MLP of both slots is worse than the sum of two (table 7: swap obj 80.7 to 78.4).",
    ),
)


def publish(out: Path, jobs: Mapping[Place, Sequence[Job]], notes: dict[str, Any]) -> Path:
    """Write `ablations.csv`, `ablations.tex` and `report.html` from the runs that are finished."""
    done = read_runs(jobs)
    write_csv(out / "ablations.csv", HEADER, scores_of(done))
    splits = list(dict.fromkeys(place.split for place in jobs))
    tables = {split: accuracy_table(done, split) for split in splits}
    write_text(out / "ablations.tex", "\n".join(to_latex(tables[split], caption(split)) for split in splits))
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title="Ablations of OC-CLIP",
        tables={split: to_rows(table) for split, table in tables.items()},
        claims=[(claim.text, *verdict(done, claim)) for claim in CLAIMS if claim.split in splits],
        figures={split: write_png(out / "figures" / f"{split}.png", accuracy_figure(done, split)) for split in splits},
        finished=sum(map(len, done.values())),
        runs=sum(map(len, jobs.values())),
        notes=notes,
    )


def accuracy_table(done: Runs, split: str) -> pd.DataFrame:
    """A row for each of the study: accuracies, how the first column's differs, and alpha / beta."""
    names = {column: column_name(*column) for column in COLUMNS[split]}
    places = [place for place in done if place.split == split]
    shown = [*names.values(), *([RATIO] if split == "spatial" else [])]
    table = described(
        pivot(values_of(done, split, names), ["row"], ["column"], "value"),
        [place.row for place in places],
        shown,
        scale=1.0,
        deviations=True,
    )
    differences = [DASH if place.row == BASE else difference_of(done, place) for place in places]
    table.insert(len(names), f"{shown[0]}, difference", differences)
    return table.rename_axis("").reset_index()


def column_name(subset: str, task: str) -> str:
    """The name of a column."""
    return subset.replace("_", " ") + ("" if task == "swap" else f": {task}")


def values_of(done: Runs, split: str, names: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """A row for each run and column of the tables: accuracy in percent, and alpha / beta."""
    cells = [
        (place.row, run.seed, column, value)
        for place, runs in done.items()
        if place.split == split
        for run in runs
        for column, value in (
            *((name, accuracy) for key, name in names.items() for accuracy in accuracies([run], *key)),
            (RATIO, run.ratio),
        )
    ]
    return pd.DataFrame(cells, columns=["row", "seed", "column", "value"])


def difference_of(done: Runs, place: Place) -> str:
    """How a row differs from OC-CLIP as it is in the first column, as text."""
    return str(against_base(done, place, COLUMNS[place.split][:1]) or DASH)


def against_base(done: Runs, place: Place, columns: Sequence[tuple[str, str]]) -> Difference | None:
    """How a row differs from OC-CLIP as it is, over the records of all `columns`; None where one is missing."""
    sides = [done.get(Place(place.split, BASE), ()), done.get(place, ())]
    points = [pooled(merged(runs), columns) for runs in sides]
    return difference(*points, "", "")


def verdict(done: Runs, claim: Claim) -> tuple[str, str]:
    """Whether the interval of the difference is on the claim's side of 0, and the difference."""
    delta = against_base(done, Place(claim.split, claim.row), claim.columns)
    if delta is None:
        return "not tested", DASH
    if delta.low <= 0 <= delta.high:
        return "undecided", str(delta)
    return "confirmed" if (delta.mean > 0) == (claim.sign > 0) else "contradicted", str(delta)


def caption(split: str) -> str:
    """The caption of a LaTeX table."""
    return f"Ablations, {split} split: accuracy in percent, mean and deviation over seeds."


def scores_of(done: Runs) -> Iterator[tuple[Any, ...]]:
    """A row of `HEADER` for every accuracy of every run."""
    for place, runs in done.items():
        for run in runs:
            for subset, tasks in run.subsets.items():
                for task, scores in tasks.items():
                    yield *place, run.seed, subset, task, scores["accuracy"], scores["n"]


def accuracy_figure(done: Runs, split: str) -> Figure:
    """A panel for each column: a dot for each seed of each row, the mean as a bar, OC-CLIP as it is as a line."""
    rows = [place for place in done if place.split == split]
    figure = Figure((2.3 * len(COLUMNS[split]) + 1.6, 0.28 * len(rows) + 1.0), layout="constrained")
    axes = figure.subplots(1, len(COLUMNS[split]), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (subset, task) in zip(axes, COLUMNS[split], strict=True):
        for y, place in enumerate(rows):
            values = accuracies(done[place], subset, task)
            axis.plot(values, [y] * len(values), "o", color="#0072b2", alpha=0.6, markersize=4)
            if values:
                axis.plot([statistics.mean(values)], [y], "|", color="black", markersize=12)
        if base := accuracies(done[Place(split, BASE)], subset, task):
            axis.axvline(statistics.mean(base), color="0.6", linewidth=1, linestyle=":")
        axis.set_title(subset.replace("_", " ") + ("" if task == "swap" else f"\n{task}"), fontsize=9)
        axis.set_xlabel("accuracy (%)", fontsize=8)
        axis.set_yticks(range(len(rows)), [place.row for place in rows], fontsize=8, parse_math=False)
        axis.set_ylim(len(rows) - 0.5, -0.5)
    return figure
