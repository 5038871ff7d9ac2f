"""How one run of a study differs from another, record by record: `--compare RUN_A RUN_B`."""

from pathlib import Path

import pandas as pd

from menagerie.envs.core.errors import UserError
from menagerie.models.registry import short_name
from menagerie.studies.analysis.tables import print_table, to_csv
from menagerie.studies.frame.arm import label_text
from menagerie.studies.frame.estimate import KEY, estimates
from menagerie.studies.frame.records import read

RUN, RECORD = "run", [*KEY, "animals", "value"]


def compare_runs(first: Path, second: Path) -> Path:
    """Print how the run `second` (B) differs from `first` (A) on the records that both have; writes comparison.csv
    into B."""
    sides = [read_points(folder) for folder in (first, second)]
    labels = [name for name in sides[0] if name not in RECORD and name in sides[1]]
    places = [set(side[labels].itertuples(index=False, name=None)) for side in sides]
    if not places[0] & places[1]:
        raise UserError(f"{first} and {second} have no place in common: other models or other values of what varies")
    on = [*labels, *KEY]
    common = sides[0][on].merge(sides[1][on], on=on)
    if not len(common):
        raise UserError(f"{first} and {second} have no record in common: other worlds, splits or seeds")
    named = zip(("A", "B"), sides, strict=True)
    both = pd.concat([side.merge(common, on=on).assign(**{RUN: name}) for name, side in named], ignore_index=True)
    by = [*labels, "subset", "task", RUN]
    levels, changes = estimates(both, by), estimates(both, by, against={RUN: "A"})
    rows = [
        (
            *(label_text(name, value) for name, value in zip(by, key[:-1], strict=False)),
            *(f"{100 * levels[*key[:-1], run].value:.1f}" for run in ("A", "B")),
            *(str(change), str(change.n)),
        )
        for key, change in sorted(changes.items(), key=lambda item: [*map(str, item[0])])
    ]
    header = (*(name.replace("_", " ") for name in by[:-1]), "A", "B", "B - A", "n")
    named_numbers = [*levels.items(), *(((*key[:-1], "B - A"), its) for key, its in changes.items())]
    numbers = [dict(zip(by, key, strict=True)) | its._asdict() for key, its in named_numbers]
    to_csv(second / "comparison.csv", pd.DataFrame(numbers))
    print_table(header, rows, f"A: {first}   B: {second}")
    return second / "comparison.csv"


def read_points(folder: Path) -> pd.DataFrame:
    """Read the records of a folder's runs. A user's model is named by its file without the folder, so that both runs
    may have the file in different places."""
    points = read(folder).points
    return points.assign(model=points["model"].map(short_name))
