"""The training runs of the study of slots: SPARO as it is, its ladder and its sweeps, and models beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from menagerie.studies.ablation.papers import ablations_of
from menagerie.studies.ablation.rows import SplitRow, ablated, base_row, changed
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import cells
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.results import finished

MODEL = "sparo"
# Figure 3: the field of each sweep, and what reports call it.
SWEPT = {"slots": "number of slots", "dim": "width of slots"}

Jobs = dict[SplitRow, list[Job]]


class Rows(NamedTuple):
    """The variants of SPARO to be trained: for the name of each row, its options."""

    base: str
    ladder: Mapping[str, str]
    sweeps: Mapping[str, Mapping[str, str]]
    """The options of each row, by the field that is swept and then by the row's name."""

    @property
    def lines(self) -> dict[str, str]:
        swept = {row: line for rows in self.sweeps.values() for row, line in rows.items()}
        return {self.base: ""} | dict(self.ladder) | swept


def rows(ladder: bool, sweeps: Mapping[str, Sequence[int]]) -> Rows:
    """The rows of a study with or without table 6, and with these values of each swept field."""
    spec = ablated(MODEL)
    lines = {name: {f"{name}={value}": f"{name}={value}" for value in values} for name, values in sweeps.items()}
    return Rows(base_row(spec), dict(ablations_of(spec).rows) if ladder else {}, lines)


def jobs_of(grid: Grid, identity: str, files: Mapping[CellData, Path], out: Path, lines: Mapping[str, str]) -> Jobs:
    """A run for each row or further model and each seed. Rows that come to the same are the same cell."""
    jobs: Jobs = {}
    spec, execution = ablated(MODEL), Execution.of(grid)
    for cell in cells(grid, identity):
        varied = lines.items() if cell.model == MODEL else ((title_of(cell.model), ""),)
        for row, line in varied:
            other = changed(spec, cell, line) if line else cell
            jobs.setdefault(SplitRow(grid.kind, row), []).append(Job(other, files[cell.data], out, row, execution))
    return jobs


def shown(row: str) -> str:
    """A row as reports call it: "dim=4" is a width of slots."""
    field, given, value = row.partition("=")
    return f"{SWEPT[field]}: {value}" if given and field in SWEPT else row


def whole(jobs: Sequence[Job]) -> list[Job]:
    return [job for job in jobs if finished(job.folder) is not None]
