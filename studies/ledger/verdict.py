"""Judges a claim by what its study left in a folder."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.reading import path_inside
from menagerie.models.cell_results import RESULT
from menagerie.studies.ledger.claim_file import ClaimFile, Criterion, PaperClaim
from menagerie.studies.runs.folder import CONFIG, recorded_config
from menagerie.studies.runs.results import read_result

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.analysis.intervals import Estimate

SIDES = {1: "confirmed", -1: "contradicted", 0: "undecided"}


class Judgement(NamedTuple):
    outcome: str
    """One of "confirmed", "contradicted", "undecided", "not testable" and, where nothing was judged, "not run"."""
    numbers: str = ""
    condition: str = ""


def check_runs(file: ClaimFile, folder: Path) -> None:
    """Raise if a folder has runs that were made for another claim, for another state of the file, or for none."""
    noted = {"the folder": recorded_config(folder).get("claim", "")} if (folder / CONFIG).exists() else {}
    for result in sorted(folder.glob(f"*/*/{RESULT}")):
        origin = (read_result(result.parent) or {}).get("provenance", {})
        noted[f"{result.parent.parent.name}/{result.parent.name}"] = origin.get("claim", "")
    if others := {what: said for what, said in noted.items() if said.split(" ")[0] != file.digest}:
        what, said = next(iter(others.items()))
        more = f" and {len(others) - 1} more" * (len(others) > 1)
        of = f"another content of the file, digest {said.split(' ')[0]}" if said else "no claim"
        made = f"{folder} was made for {of} ({what}{more}), but {file.path} has the digest {file.digest}"
        raise UserError(f"{made}; nothing there is counted: move it away, choose another --out, or restore the file")


def judge_claim(claim: PaperClaim, folder: Path) -> Judgement:
    """Judge a claim whose study has ended in `folder`."""
    conditions = [(each, number_of(each, folder)) for each in claim.condition]
    unmet = [its for its in conditions if compare_with_bound(its[0], its[1].value, its[1].value) < 1]
    said = "; ".join(in_words(*its) for its in unmet or conditions)
    if unmet:  # then the tables of criteria may lack what nothing has learnt
        return Judgement("not testable", "", f"not met: {said}")
    found = [(each, number_of(each, folder)) for each in claim.criterion]
    sides = [judge_criterion(each, its, claim.seeds.number) for each, its in found]
    texts = [
        f"{in_words(each, its)}: {SIDES[side]}{missing_seeds_text(its, claim.seeds.number)}"
        for (each, its), side in zip(found, sides, strict=True)
    ]
    outcome = SIDES[-1 if -1 in sides else min(sides)]
    return Judgement(outcome, "; ".join(texts), f"met: {said}" if said else "")


def compare_with_bound(criterion: Criterion, low: float, high: float) -> int:
    """Return 1 if an interval lies on the claim's side of the bound, -1 if it lies on the other, else 0."""
    kind, bound = criterion.bound
    if kind == "within":
        return int(-bound < low and high < bound) - int(low > bound or high < -bound)
    above = int(low > bound) - int(high < bound)
    return above if kind == "above" else -above


def judge_criterion(criterion: Criterion, its: "Estimate", seeds: int) -> int:
    """Return 1 if the number confirms the claim, -1 if it contradicts it, else 0."""
    return (
        compare_with_bound(criterion, its.low, its.high) if its.conclusive and not missing_seeds_text(its, seeds) else 0
    )


def missing_seeds_text(its: "Estimate", seeds: int) -> str:
    return f", because only {its.seeds} of {seeds} seeds have it" if 0 < its.seeds < seeds else ""


def in_words(criterion: Criterion, its: "Estimate") -> str:
    kind, bound = criterion.bound
    return f"{criterion.says} {its.written(its.value)} [{its.bounds}] ({kind} {its.times * bound:g})"


def number_of(criterion: Criterion, folder: Path) -> "Estimate":
    """Find a criterion's number in a study's folder; raises `UserError` if it isn't there."""
    try:
        return number_in_table(criterion, folder) if criterion.table else sum_of_accuracies(criterion, folder)
    except UserError as error:
        raise error.at(f"{criterion.says!r}") from error


def sum_of_accuracies(criterion: Criterion, folder: Path) -> "Estimate":
    """Add the accuracies of groups of records, each times its weight."""
    import numpy as np

    from menagerie.studies.frame.estimate import contrast, estimate
    from menagerie.studies.frame.records import read

    records, groups = read(folder), [dict(group) for group in criterion.accuracy]
    weights = np.array([group.pop("weight", 1) for group in groups], float)
    parts = [records.where(**group).points for group in groups]
    if empty := next((group for group, part in zip(groups, parts, strict=True) if not len(part)), None):
        wanted = ", ".join(f"{name} {value!r}" for name, value in empty.items())
        raise UserError(f"{folder} has no records of {wanted}; its results.csv has the names of tests and tasks")
    if weights.tolist() == [1.0]:
        return estimate(parts[0])
    if not (its := contrast(parts, lambda means: means @ weights, signed=True)):
        raise UserError(f"{folder}: its groups have no seed in common")
    return its


def number_in_table(criterion: Criterion, folder: Path) -> "Estimate":
    """Read a number with its interval from a table; raises `UserError` if the table or the row isn't there."""
    import pandas as pd

    if not (file := path_inside(folder, criterion.table)).is_file():
        raise UserError(f"{file} isn't there; name a CSV that the study writes")
    frame = pd.read_csv(file)
    try:
        rows = rows_with(frame, criterion.row)
        if len(rows) > 1:
            raise UserError(f"{len(rows)} rows match; name more columns")
        return number_in_row(rows)
    except UserError as error:
        raise error.at(file) from error
    except ValueError as error:
        raise UserError(f"{file}: {error}; a row's numbers must be numbers") from error


def rows_with(frame: "pd.DataFrame", wanted: Mapping[str, Any]) -> "pd.DataFrame":
    """Return the rows with these values of columns; raises if there is none."""
    for name, value in wanted.items():
        kept = frame[frame[choose("column", name, frame)] == value]
        if not len(kept):
            raise UserError(f"no row has {name} {value!r}; there are {frame[name].unique().tolist()}")
        frame = kept
    return frame


def number_in_row(rows: "pd.DataFrame") -> "Estimate":
    from menagerie.studies.analysis.intervals import Estimate

    row = rows.fillna({"clusters": 0, "seeds": 0}).iloc[0]
    value, low, high = (float(row[choose("column", name, rows)]) for name in ("value", "low", "high"))
    seeds, clusters = int(row[choose("column", "seeds", rows)]), int(row.get("clusters", 0))
    return Estimate(value, low, high, 0, clusters or None, seeds, math.nan, times=1, digits=2)
