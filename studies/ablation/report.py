"""What the ablation study writes from the runs that are finished: CSV, LaTeX and a page of tables and figures."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.figures import write_figure
from menagerie.envs.core.files import write_csv, write_text
from menagerie.envs.core.pages import write_page
from menagerie.models.spec import ScorerSpec
from menagerie.studies.ablation.figures import accuracy_figure, plane_figure, planes
from menagerie.studies.ablation.papers import ablations_of
from menagerie.studies.ablation.rows import SplitRow, all_rows, base_row
from menagerie.studies.ablation.tables import (
    OUTCOME,
    VERDICTS,
    Columns,
    Run,
    Runs,
    accuracy_table,
    caption,
    claim_row,
    claimed,
    column_name,
    columns_of,
    read_runs,
)
from menagerie.studies.analysis.curves import Curve, alike, training_curves
from menagerie.studies.analysis.paired_bootstrap import counts_of, fewest_pairs, record_line
from menagerie.studies.analysis.tables import DASH, WAITING, by_task, to_latex, to_rows
from menagerie.studies.analysis.two_levels import meaning
from menagerie.studies.analysis.words import CHANCES, TERMS, columns_explained, explained_as, records_in, smoke_words
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import finished

LOWEST = "lowest of all"
UNTESTED = {"validation", "train_pairs"}  # one chooses settings, of the other training has shown the scenes


class Score(NamedTuple):
    """The mean accuracy (%) over seeds of a test and a task."""

    accuracy: float
    subset: str
    task: str

    @property
    def above_chance(self) -> float:
        """The part of the way from chance to 100 %."""
        chance = CHANCES.get(self.task, 50.0)
        return (self.accuracy - chance) / (100 - chance)


def every_task(done: Runs, split: str) -> list[list[str]]:
    """A header, and a line for each row: of each task the lowest test, and the lowest of all with its name."""
    places = [place for place in done if place.split == split]
    scores = {place: list(mean_scores(done[place])) for place in places}
    tasks = sorted({score.task for group in scores.values() for score in group}, key=by_task)
    return [["row", *tasks, LOWEST], *([place.row, *line(scores[place], tasks)] for place in places)]


def line(scores: Sequence[Score], tasks: Sequence[str]) -> list[str]:
    """The cells of a row; a task is only on tests that have records of it."""
    if not scores:
        return [WAITING] * (len(tasks) + 1)
    lowest = [min((score.accuracy for score in scores if score.task == task), default=None) for task in tasks]
    least = min(scores, key=lambda score: score.above_chance)
    where = f"{least.subset.replace('_', ' ')}: {least.task}"
    return [*(DASH if value is None else f"{value:.1f}" for value in lowest), f"{where} {least.accuracy:.1f}"]


def mean_scores(runs: Sequence[Run]) -> Iterator[Score]:
    """The mean over seeds of every test and task that a row has records of."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for subset, task, record in tested(run):
            values.setdefault((subset, task), []).append(100 * record["accuracy"])
    for (subset, task), accuracies in values.items():
        yield Score(statistics.mean(accuracies), subset, task)


def tested(run: Run) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Subset, task and scores of what a run is tested on."""
    for subset, tasks in run.subsets.items():
        if subset not in UNTESTED:
            yield from ((subset, task, found) for task, found in tasks.items() if found["accuracy"] is not None)


HEADER = ("split", "row", "seed", "subset", "task", "accuracy", "n")


def publish(out: Path, spec: ScorerSpec, jobs: Mapping[SplitRow, Sequence[Job]], notes: dict[str, Any]) -> Path:
    """Write `ablations.csv`, `ablations.tex` and `report.html` from the runs that are finished."""
    done, base = read_runs(spec, jobs), base_row(spec)
    write_csv(out / "ablations.csv", HEADER, scores_of(done))
    data = data_of(jobs)
    columns, trained = {split: columns_of(source) for split, source in data.items()}, curves(jobs)
    training = training_curves(trained)
    ratio, seeds = ablations_of(spec).ratio, max(map(len, jobs.values()))
    runs = [run for group in done.values() for run in group]
    ratios = {split: ratio if source.kind == "spatial" else None for split, source in data.items()}
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
        says=rows_explained(spec, [place.row for place in jobs] + [claim.row for claim in ablations_of(spec).claims]),
        tests={
            split: columns_explained(
                [*shown, *claimed(spec, split), *((shown[0][0], task) for task in tasks[split][0][1:-1])],
                data[split].kind,
            )
            for split, shown in columns.items()
        },
        verdicts=VERDICTS,
        meaning=meaning(
            seeds,
            fewest_pairs(
                (counts_of(run.points) for run in runs), [column for shown in columns.values() for column in shown]
            ),
        ),
        seeds=seeds,
        trained_on=trained_on(data),
        record_numbers={split: records_of(done, split, shown) for split, shown in columns.items()},
        ratio=" / ".join(ratio) if ratio and any(ratios.values()) else "",
        ratio_says=ablations_of(spec).ratio_says,
        claims=[
            ("claim", "row", "tests, their records pooled", *OUTCOME, f"measured: points above {base}"),
            *(claim_row(done, claim, base) for claim in ablations_of(spec).claims if claim.split in columns),
        ],
        figures={
            split: write_figure(out / "figures" / f"{split}.png", accuracy_figure(done, split, shown, base))
            for split, shown in columns.items()
        },
        tasks=tasks,
        chances=CHANCES,
        planes={split: list(draw_planes(out, spec, jobs, done, split, shown)) for split, shown in columns.items()},
        training=write_figure(out / "figures" / "training.png", training) if training else "",
        alike=alike(trained),
        terms=TERMS,
        finished=sum(map(len, done.values())),
        runs=sum(map(len, jobs.values())),
        notes={**notes, **where_it_ran(out)},
        smoke=smoke_of(jobs),
    )


def draw_planes(
    out: Path, spec: ScorerSpec, jobs: Mapping[SplitRow, Sequence[Job]], done: Runs, split: str, columns: Columns
) -> Iterator[tuple[str, str, str]]:
    """Draw the heat maps of a split; yields for each the fields that vary upwards and across, and its file."""
    for plane in planes(spec, jobs, split, base_row(spec)):
        file = out / "figures" / f"{split}-{plane.up}-{plane.across}.png"
        yield plane.up, plane.across, write_figure(file, plane_figure(done, plane, columns, ablations_of(spec).axes))


def smoke_of(jobs: Mapping[SplitRow, Sequence[Job]]) -> str:
    """The sentence on a smoke run, if these runs are one."""
    every = [job for batch in jobs.values() for job in batch]
    results = [result for job in every if (result := finished(job.folder))]
    return smoke_words([job.cell.recipe.steps for job in every], records_in(results))


def data_of(jobs: Mapping[SplitRow, Sequence[Job]]) -> dict[str, CellData]:
    """The data of the first row of each split; other rows may have further tests."""
    data: dict[str, CellData] = {}
    for place, batch in jobs.items():
        data.setdefault(place.split, batch[0].cell.data)
    return data


def trained_on(data: Mapping[str, CellData]) -> str:
    """Say what the first row of each split is trained on: the hardest cell of the grids, with its share of animal
    pairs, or a split that the user gave."""
    if "own" in data:
        return "your own split"
    shares = sorted({source.axes["pairs"] for source in data.values()})
    pairs, grids = " and ".join(f"{share:.0%}" for share in shares), " or the ".join(data)
    return f"the hardest cell of the {grids} grid, with {pairs} of the animal pairs, none of them swapped too"


def records_of(done: Runs, split: str, columns: Columns) -> str:
    """A line that says how many records each column of a table has."""
    runs = [run for place, group in done.items() if place.split == split for run in group]
    return record_line((counts_of(run.points) for run in runs), {column: column_name(*column) for column in columns})


def curves(jobs: Mapping[SplitRow, Sequence[Job]]) -> list[Curve]:
    """The finished runs in the figure of how all trained: a column per split, a colour per row."""
    return [
        Curve(place.split, place.row, job.folder)
        for place, batch in jobs.items()
        for job in batch
        if finished(job.folder)
    ]


def rows_explained(spec: ScorerSpec, rows: Sequence[str]) -> dict[str, str]:
    """Explain what each row changes: in words, where the model's entry has them, and by its options."""
    lines, words = all_rows(spec), ablations_of(spec).says
    texts = {row: "; ".join(filter(None, (words.get(row), lines.get(row)))) for row in dict.fromkeys(rows)}
    return {row: text or "a line of configuration" for row, text in texts.items() if row != base_row(spec)}


def scores_of(done: Runs) -> Iterator[tuple[Any, ...]]:
    """A row of `HEADER` for every accuracy of every run."""
    for place, runs in done.items():
        for run in runs:
            for subset, tasks in run.subsets.items():
                for task, scores in tasks.items():
                    yield *place, run.seed, subset, task, scores["accuracy"], scores["n"]
