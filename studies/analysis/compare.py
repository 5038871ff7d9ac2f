"""Two finished runs of a study, record by record: `--compare RUN_A RUN_B`."""

from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text
from menagerie.models.registry import short_name
from menagerie.studies.analysis.paired_bootstrap import difference, read_points
from menagerie.studies.analysis.tables import to_csv, to_latex
from menagerie.studies.runs.data import FRACTIONS
from menagerie.studies.runs.results import read_results

HEADER = ("model", "pairs", "hard negatives", "subset", "task", "A", "B", "B - A", "n")

Place = tuple[str, float, float]


def compare(first: Path, second: Path) -> Path:
    """Print how B differs from A wherever both have results; writes comparison.csv and .tex into B."""
    cells = [by_place(run) for run in (first, second)]
    places = [place for place in cells[0] if place in cells[1]]
    if not places:
        raise UserError(f"{first} and {second} have no place in common: other models or other fractions")
    rows = [row for place in places for row in compare_place(place, first, second, cells[0][place], cells[1][place])]
    if not rows:
        raise UserError(f"{first} and {second} have no record in common: other worlds, splits or seeds")
    table = pd.DataFrame(rows, columns=list(HEADER))
    to_csv(second / "comparison.csv", table)
    caption = f"{second.name} against {first.name}: accuracy in percent, difference with paired 95 % bootstrap interval"
    write_text(second / "comparison.tex", to_latex(table, caption))
    print_table(rows, f"A: {first}   B: {second}")
    return second / "comparison.csv"


def by_place(run: Path) -> dict[Place, list[dict[str, Any]]]:
    """The finished cells of a run by their place in the grid."""
    places: dict[Place, list[dict[str, Any]]] = {}
    for cell in read_results(run):
        places.setdefault((label_of(cell), cell["pairs"], cell["hard_negatives"]), []).append(cell)
    return places


def label_of(cell: dict[str, Any]) -> str:
    """ "clip, information 0.2": the model, from whatever folder its file is, and what varies beside the fractions."""
    varied = (f"{axis} {cell[axis]}" for axis in cell.get("axes", ()) if axis not in FRACTIONS)
    return ", ".join([short_name(cell["model"]), *varied])


def compare_place(
    place: Place, first: Path, second: Path, cells: list[dict[str, Any]], others: list[dict[str, Any]]
) -> list[tuple[str, ...]]:
    """A row for every subset and task of one place."""
    points = [
        read_points((cell["seed"], run / "cells" / cell["id"]) for cell in finished)
        for run, finished in ((first, cells), (second, others))
    ]
    kinds = sorted({key[1:3] for key in points[0].keys() & points[1].keys()})
    rows = []
    for subset, task in kinds:
        change = difference(*points, subset, task)
        common = [key for key in points[0].keys() & points[1].keys() if key[1:3] == (subset, task)]
        means = [100 * sum(side[key].value for key in common) / len(common) for side in points]
        model, pairs, negatives = place
        accuracies = (f"{means[0]:.1f}", f"{means[1]:.1f}")
        rows.append((model, f"{pairs:.0%}", f"{negatives:.0%}", subset, task, *accuracies, str(change), str(change.n)))
    return rows


def print_table(rows: list[tuple[str, ...]], title: str) -> None:
    """The rows on the terminal."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(*HEADER, title=title)
    for row in rows:
        shown.add_row(*row)
    Console().print(shown)
