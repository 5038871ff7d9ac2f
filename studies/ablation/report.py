"""What the ablation study writes: a table for each split, the paper's claims in words, and a figure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd

from envs.common.figure_files import write_figure
from envs.common.figure_style import COLOURS, chance_line
from envs.common.files import write_csv, write_text
from envs.common.pages import write_page
from models.spec import Claim, ScorerSpec
from studies.ablation.every_task import every_task
from studies.ablation.planes import plane_figure, planes
from studies.ablation.rows import Place, base_row, named_rows
from studies.ablation.runs import Columns, Run, Runs, accuracies, columns_of, merged, read_runs
from studies.analysis.glossary import TERMS, explained_as
from studies.analysis.paired_bootstrap import Difference, difference, pooled
from studies.analysis.record_counts import Count, counts_of, fewest_pairs, record_line
from studies.analysis.smoke import records_in, smoke_words
from studies.analysis.tables import DASH, described, gap, pivot, to_latex, to_rows
from studies.analysis.two_levels import MANY_PAIRS, meaning
from studies.grids.curves import Curve, alike, training_curves
from studies.grids.task_words import CHANCES, columns_explained
from studies.runs.cell import Job, finished
from studies.runs.where_it_ran import where_it_ran

matplotlib.use("Agg")
from matplotlib.figure import Figure

HEADER = ("split", "row", "seed", "subset", "task", "accuracy", "n")
# Columns of a claim: the sign of the difference by which it would be right, and what came out.
OUTCOME = ("on our world", "expected")
EXPECTED = {-1: "lower: −", 1: "higher: +"}
# What may come out of a claim, in the words of reports.
VERDICTS = {
    "confirmed": "the interval leaves out 0, on the side that is expected after the paper",
    "contradicted": "the interval leaves out 0, on the other side",
    "undecided": "the interval holds 0, or there is none, or two measures differ in sign: these records don't tell",
    "not tested": "a run that it needs isn't finished, or this study leaves it out",
}


def publish(out: Path, spec: ScorerSpec, jobs: Mapping[Place, Sequence[Job]], notes: dict[str, Any]) -> Path:
    """Write `ablations.csv`, `ablations.tex` and `report.html` from the runs that are finished."""
    done, base = read_runs(spec, jobs), base_row(spec)
    write_csv(out / "ablations.csv", HEADER, scores_of(done))
    data = {place.split: its[0].cell.data for place, its in jobs.items()}
    columns, trained = {split: columns_of(its) for split, its in data.items()}, curves(jobs)
    training = training_curves(trained)
    ratio, seeds, runs = (
        spec.ablations.ratio,
        max(map(len, jobs.values())),
        [run for its in done.values() for run in its],
    )
    ratios = {split: ratio if its.kind == "spatial" else None for split, its in data.items()}
    tasks = {split: every_task(done, split) for split in columns}
    tables = {split: accuracy_table(done, split, columns[split], base, ratios[split]) for split in columns}
    write_text(out / "ablations.tex", "\n".join(to_latex(tables[split], caption(split)) for split in columns))
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title=f"Ablations of {base}",
        tables={split: to_rows(table.rename(columns={"": "row"})) for split, table in tables.items()},
        base=base,
        about=explained_as(spec.name),
        says=rows_explained(spec, [place.row for place in jobs] + [claim.row for claim in spec.ablations.claims]),
        tests={
            split: columns_explained(
                [*its, *claimed(spec, split), *((its[0][0], task) for task in tasks[split][0][1:-1])], data[split].kind
            )
            for split, its in columns.items()
        },
        verdicts=VERDICTS,
        meaning=meaning(
            seeds, fewest_pairs(map(counted, runs), [column for its in columns.values() for column in its])
        ),
        seeds=seeds,
        shares=shares_of(jobs),
        record_numbers={split: records_of(done, split, its) for split, its in columns.items()},
        ratio=" / ".join(ratio) if ratio and any(ratios.values()) else "",
        ratio_says=spec.ablations.ratio_says,
        claims=[
            ("claim", "row", "tests, their records pooled", *OUTCOME, f"measured: points above {base}"),
            *(claim_row(done, claim, base) for claim in spec.ablations.claims if claim.split in columns),
        ],
        figures={
            split: write_figure(out / "figures" / f"{split}.png", accuracy_figure(done, split, its, base))
            for split, its in columns.items()
        },
        tasks=tasks,
        chances=CHANCES,
        planes={split: list(draw_planes(out, spec, jobs, done, split, its)) for split, its in columns.items()},
        training=write_figure(out / "figures" / "training.png", training) if training else "",
        alike=alike(trained),
        terms=TERMS,
        finished=sum(map(len, done.values())),
        runs=sum(map(len, jobs.values())),
        notes={**notes, **where_it_ran(out)},
        smoke=smoke_of(jobs),
    )


def draw_planes(
    out: Path, spec: ScorerSpec, jobs: Mapping[Place, Sequence[Job]], done: Runs, split: str, columns: Columns
) -> Iterator[tuple[str, str, str]]:
    """What is varied up and across, and the file, of the heat maps of a split."""
    for plane in planes(spec, jobs, split, base_row(spec)):
        file = out / "figures" / f"{split}-{plane.up}-{plane.across}.png"
        yield plane.up, plane.across, write_figure(file, plane_figure(done, plane, columns))


def smoke_of(jobs: Mapping[Place, Sequence[Job]]) -> str:
    """The sentence on a smoke run, if these runs are one."""
    every = [job for its in jobs.values() for job in its]
    results = [result for job in every if (result := finished(job.folder))]
    return smoke_words([job.cell.recipe.steps for job in every], records_in(results))


def shares_of(jobs: Mapping[Place, Sequence[Job]]) -> str:
    """How many of the trainable animal pairs the runs train on, where their data say so: ", with 50% of the pairs"."""
    every = {job.cell.data.axes.get("pairs") for its in jobs.values() for job in its}
    shares = {share for share in every if isinstance(share, float)}
    return f", with {' and '.join(f'{share:.0%}' for share in sorted(shares))} of the animal pairs" if shares else ""


def counted(run: Run) -> dict[tuple[str, str], Count]:
    """How many records a run has of each column."""
    return counts_of(run.points)


def records_of(done: Runs, split: str, columns: Columns) -> str:
    """How many records the columns of a table are of."""
    runs = [run for place, its in done.items() if place.split == split for run in its]
    return record_line(map(counted, runs), {column: column_name(*column) for column in columns})


def curves(jobs: Mapping[Place, Sequence[Job]]) -> list[Curve]:
    """The finished runs in the figure of how all trained: a column per split, a colour per row."""
    return [
        Curve(place.split, place.row, job.folder) for place, its in jobs.items() for job in its if finished(job.folder)
    ]


def accuracy_table(done: Runs, split: str, columns: Columns, base: str, ratio: tuple[str, str] | None) -> pd.DataFrame:
    """A row for each of the study: accuracies, how the first column's differs, and a ratio of weights."""
    names = {column: column_name(*column) for column in columns}
    places = [place for place in done if place.split == split]
    shown = [*names.values(), *([" / ".join(ratio)] if ratio else [])]
    table = described(
        pivot(values_of(done, split, names, ratio), ["row"], ["column"], "value"),
        [place.row for place in places],
        shown,
        scale=1.0,
        deviations=True,
    )
    differences = [DASH if place.row == base else difference_of(done, place, columns, base) for place in places]
    table.insert(len(names), f"{shown[0]}, difference", differences)
    return table.rename_axis("").reset_index()


def column_name(subset: str, task: str) -> str:
    """The name of a column."""
    return subset.replace("_", " ") + ("" if task == "swap" else f": {task}")


def values_of(
    done: Runs, split: str, names: Mapping[tuple[str, str], str], ratio: tuple[str, str] | None
) -> pd.DataFrame:
    """A row for each run and column of the tables: accuracy in percent, and the ratio of two weights."""
    cells = []
    for place, runs in done.items():
        for run in runs if place.split == split else ():
            for key, name in names.items():
                cells += [(place.row, run.seed, name, accuracy) for accuracy in accuracies([run], *key)]
            if ratio and run.ratio is not None:
                cells.append((place.row, run.seed, " / ".join(ratio), run.ratio))
    return pd.DataFrame(cells, columns=["row", "seed", "column", "value"])


def difference_of(done: Runs, place: Place, columns: Columns, base: str) -> str:
    """How a row differs from the model as it is in the first column, as text."""
    found = against_base(done, place, columns[:1], base)
    return str(found or gap(done.get(Place(place.split, base)) and done[place]))


def against_base(done: Runs, place: Place, columns: Sequence[tuple[str, str]], base: str) -> Difference | None:
    """How a row differs from the model as it is, over the records of all `columns`; None where one is missing."""
    sides = [done.get(Place(place.split, base), ()), done.get(place, ())]
    points = [pooled(merged(runs), columns) for runs in sides]
    return difference(*points, "", "")


def claim_row(done: Runs, claim: Claim, base: str) -> tuple[str, ...]:
    """What a paper says, the row that tests it, the columns that are pooled for that, and what came out."""
    tests = ", ".join(column_name(*column) for column in claim.columns)
    outcome, delta = verdict(done, claim, base)
    return claim.text, claim.row, f"{claim.split}: {tests}", outcome, EXPECTED[claim.sign], delta


def verdict(done: Runs, claim: Claim, base: str) -> tuple[str, str]:
    """Whether the interval of the difference is on the claim's side of 0, and the difference."""
    delta = against_base(done, Place(claim.split, claim.row), claim.columns, base)
    return judged(delta, claim.sign), str(delta or gap(done.get(Place(claim.split, claim.row), True)))


def judged(delta: Difference | None, sign: int) -> str:
    """Whether the interval of a difference is on one side of 0, and whether that is the side of `sign`."""
    if delta is None:
        return "not tested"
    told = delta.known or delta.clusters >= MANY_PAIRS  # few pairs that are all alike may be so by chance
    if not (told and (delta.low > 0 or delta.high < 0)):
        return "undecided"
    return "confirmed" if (delta.mean > 0) == (sign > 0) else "contradicted"


def claimed(spec: ScorerSpec, split: str) -> list[tuple[str, str]]:
    """The columns that claims are tested on."""
    return [column for claim in spec.ablations.claims if claim.split == split for column in claim.columns]


def rows_explained(spec: ScorerSpec, rows: Sequence[str]) -> dict[str, str]:
    """What each row changes: in words, where the model has any, and as a line of configuration."""
    lines, words = named_rows(spec.ablations), spec.ablations.says
    its = {row: "; ".join(filter(None, (words.get(row), lines.get(row)))) for row in dict.fromkeys(rows)}
    return {row: text or "a line of configuration" for row, text in its.items() if row != base_row(spec)}


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


def accuracy_figure(done: Runs, split: str, columns: Columns, base: str) -> Figure:
    """A panel for each column: a dot for each seed of each row, the mean of several as a bar, the model as it is as a
    dashed line, and chance where it is in sight."""
    rows = [place for place in done if place.split == split]
    figure = Figure((1.7 * len(columns) + 2.0, 0.28 * len(rows) + 1.0), layout="constrained")
    axes = figure.subplots(1, len(columns), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (subset, task) in zip(axes, columns, strict=True):
        for y, place in enumerate(rows):
            values = accuracies(done[place], subset, task)
            axis.plot(values, [y] * len(values), "o", color=COLOURS[0], alpha=0.6, markersize=4)
            if len(values) > 1:
                axis.plot([statistics.mean(values)], [y], "|", color="black", markersize=12)
        if unchanged := accuracies(done[Place(split, base)], subset, task):
            axis.axvline(statistics.mean(unchanged), color="0.6", linewidth=1, linestyle="--")
        axis.set_title(subset.replace("_", " ") + ("" if task == "swap" else f"\n{task}"), fontsize=9)
        axis.set_xlabel("accuracy (%)", fontsize=8)
        axis.set_yticks(range(len(rows)), [place.row for place in rows], fontsize=8, parse_math=False)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.margins(x=0.1)
    for axis in axes:  # which share their limits
        chance_line(axis, "x", stretch=False)
    return figure
