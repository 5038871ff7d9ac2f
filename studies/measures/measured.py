"""A measured number with its chance level, or the reason why there is none; rows of numbers, and their means over
seeds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from menagerie.envs.core.files import write_csv
from menagerie.studies.analysis.estimate import NOTHING, Estimate, mean_over_seeds
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.parts import Rows

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """The result of a measure on an embedding."""

    value: float | None
    """The number; None if it is refused."""
    chance: float | None
    """The number for an embedding without any information on what is measured."""
    refused: str = ""
    """Why there is no number."""

    def __post_init__(self) -> None:
        if (self.value is None) != bool(self.refused):
            raise ValueError("a measure has either a value or a reason why it has none")
        for name in ("value", "chance"):
            number = getattr(self, name)
            if number is not None and not np.isfinite(number):
                raise ValueError(f"{name} is {number}")
            object.__setattr__(self, name, None if number is None else float(number))

    def row(self, **place: str) -> Row:
        """Return a row of a table: what the number is of, value, chance, refused."""
        return place | {"value": self.value, "chance": self.chance, "refused": self.refused}


def no_number(reason: str, chance: float | None = None) -> Measured:
    return Measured(None, chance, reason)


def share_right(margins: Float[np.ndarray, "..."]) -> Measured:
    """Return the share of choices between two that are right, with a positive margin; a margin of 0 is one half."""
    return Measured(np.heaviside(margins, 0.5).mean(dtype=float), 0.5)


def label_rows(part: str, layer: str, read: str, found: tuple[Measured, ...]) -> Iterator[Row]:
    """Yield a row (part, layer, read, measure, value, chance, refused) for each number of a result, a named tuple."""
    for name, its in found._asdict().items():
        yield its.row(part=part, layer=layer, read=read, measure=name)


def write_rows(path: Path, rows: "pd.DataFrame") -> None:
    """Write all rows of a measure as CSV, if there are any."""
    if len(rows):
        plain = rows.astype(object).where(rows.notna(), "")
        write_csv(path, plain.columns, plain.itertuples(index=False))


def seed_means(
    rows: "pd.DataFrame", by: Sequence[str], least: float = 0.0, most: float = 1.0
) -> dict[tuple[Any, ...], Estimate]:
    """Return the mean over seeds of the values in rows, for each combination of the columns `by`. Places of a grid are
    pooled within a seed."""
    each = rows.dropna(subset="value").groupby([*by, "seed"], sort=False)["value"].mean()
    found = each.groupby(level=list(range(len(by))), sort=False)
    return {key if len(by) > 1 else (key,): mean_over_seeds(list(values), least, most) for key, values in found}


def model_table(
    name: str, rows: "pd.DataFrame", by: Sequence[str], times: int = 100, digits: int = 1, **how: str
) -> Rows:
    """Return a table with a row for each combination of the columns `by`, and a column for each model: chance, and
    means over seeds with their intervals, of shares in percent or of plain numbers (`times` is 1)."""
    models, bounds = list(dict.fromkeys(rows["model"])), (0.0, 1.0) if times == 100 else (-np.inf, np.inf)
    means = seed_means(rows, (*by, "model"), *bounds)
    chances = rows.groupby(list(by), sort=False)["chance"].mean()
    lines = []
    for key, chance in chances.items():
        key = key if len(by) > 1 else (key,)
        found = (means.get((*key, model), NOTHING)._replace(times=times, digits=digits) for model in models)
        lines.append((*key, DASH if np.isnan(chance) else f"{times * chance:.2g}", *map(str, found)))
    return Rows(name, (*by, "chance", *map(title_of, models)), lines, **how)
