"""The tables of the ablation study: accuracies of its rows, and how they differ from the model as it is."""

from collections.abc import Mapping, Sequence

import pandas as pd

from menagerie.studies.ablation.rows import Place
from menagerie.studies.ablation.runs import Columns, Runs, accuracies, merged
from menagerie.studies.analysis.paired_bootstrap import Difference, difference, pooled
from menagerie.studies.analysis.tables import DASH, described, gap, pivot


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


def caption(split: str) -> str:
    """The caption of a LaTeX table."""
    return f"Ablations, {split} split: accuracy in percent, mean and deviation over seeds."
