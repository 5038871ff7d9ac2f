"""Tables of a study on photographs: benchmarks by what was trained on, and how much there was."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from menagerie.studies.analysis.tables import DASH, described, pivot
from menagerie.studies.real_training.cells import Described
from menagerie.studies.real_training.config import NONE, Place
from menagerie.studies.real_training.hold_out import GROUP
from menagerie.studies.transferring.pieces import measured
from menagerie.studies.transferring.report import THEIRS

Published = Mapping[str, Mapping[str, float]]  # by model and name
AXES = ("model", *Place._fields)
NUMBERS = ("official", "neutral", "tie_rate", "n", "missing", "unread")
COLUMNS = (*AXES, "seed", "benchmark", "kind", "name", *NUMBERS, "cell")
HELD_OUT = "held-out captions"
HEADLINE = "headline"


def tidy(cells: Sequence[Mapping[str, Any]], scores: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """A row for each number of each finished cell, as fractions; `scores` are results of benchmarks by cell."""
    rows = []
    for cell in cells:
        place = {**{name: cell.get(name, NONE) for name in AXES}, "seed": cell["seed"], "cell": cell["id"]}
        its = cell["subsets"]["validation"][GROUP]
        held = {"official": its["official"], "neutral": its["accuracy"], "tie_rate": its["tie_rate"], "n": its["n"]}
        rows.append(place | {"benchmark": HELD_OUT, "kind": HEADLINE, "name": ""} | held)
        for result in scores.get(cell["id"], ()):
            what = {"benchmark": result["benchmark"]}
            rows += [place | what | {"kind": kind, "name": name} | values for kind, name, values in measured(result)]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({name: float for name in ("official", "neutral", "tie_rate")})


def headlines(frame: pd.DataFrame, published: Mapping[str, Published]) -> pd.DataFrame:
    """A row for each model and place with means over seeds and deviations, in percent, a column for each headline.

    Rows of papers are marked as theirs. Columns that say where are left out where they say the same in all rows.
    """
    own = frame[frame.kind == HEADLINE]
    own = own.assign(column=own.benchmark + (": " + own.name.astype(str)).where(own.name != "", ""))
    table = described(pivot(own, list(AXES), ["column"], "official"), deviations=True).reset_index()
    names = [name for name in table.columns if name not in AXES]
    theirs = [
        {"model": model + THEIRS, **{name: DASH for name in AXES[1:]}, **row}
        for model in dict.fromkeys(model for its in published.values() for model in its)
        if set((row := row_of(model, names, published)).values()) != {DASH}
    ]
    table = pd.concat([table, pd.DataFrame(theirs, columns=table.columns)], ignore_index=True)
    return table.drop(columns=[name for name in AXES[1:] if own[name].nunique() < 2])


def row_of(model: str, columns: Sequence[str], published: Mapping[str, Published]) -> dict[str, str]:
    """What papers report of a model, by the columns of headlines."""
    row = {}
    for column in columns:
        benchmark, _, name = column.partition(": ")
        number = published.get(benchmark, {}).get(model, {}).get(name)
        row[column] = DASH if number is None else f"{number:.1f}"
    return row


def data_table(photos: Mapping[tuple[str, str], Described]) -> pd.DataFrame:
    """How much there is of each set of sources with each parser."""
    rows = []
    for (sources, parser), its in photos.items():
        left = ", ".join(f"{count} {reason}" for reason, count in (*its.numbers.left_out, *its.numbers.refused))
        numbers = (its.numbers.images, its.numbers.held_out, its.numbers.captions)
        rows.append([sources, parser, *map(str, numbers), left or "none", its.numbers.parsed or DASH])
    columns = ["sources", "parser", "photographs", "held out", "captions", "left out", "parsed"]
    return pd.DataFrame(rows, columns=columns)
