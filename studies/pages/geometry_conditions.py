"""Tables of the conditions in the study of geometry: how often each model meets each, and why some have no number."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from menagerie.studies.analysis.tables import DASH
from menagerie.studies.embeddings.conditions import (
    ALL,
    BINDING,
    CATEGORISATION,
    CONDITIONS,
    EVERY,
    INDEPENDENT,
    OTHER_ATTRIBUTES,
    OTHER_VIEW,
)
from menagerie.studies.frame.cells import title_of
from menagerie.studies.pages.geometry_cells import PLACE
from menagerie.studies.pages.probes import Mean, mean_of

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str]
"""A condition and the name of its part."""


@dataclass(frozen=True)
class ConditionRows:
    """The rows of the measure of conditions, and the place of the grid at which all models are compared."""

    frame: "pd.DataFrame"
    place: Mapping[str, Any]

    def first(self, by: str = "scores") -> "pd.DataFrame":
        """Return the shares of scenes in which conditions hold, at the place where all models are compared."""
        kept = (self.frame["measure"] == "holds") & (self.frame["by"] == by)
        for name, value in self.place.items():
            kept &= self.frame[name] == value
        return self.frame[kept]

    @cached_property
    def of_models(self) -> dict[str, dict[Key, Mean]]:
        """The mean over seeds of each condition that has a number, by model, and then by condition and part."""
        found: dict[str, dict[Key, Mean]] = {}
        rows = self.first().dropna(subset="value")
        for (model, *key), its in rows.groupby(["model", "condition", "part"], sort=False):
            found.setdefault(model, {})[tuple(key)] = mean_of(list(its["value"]))
        return found

    @property
    def header(self) -> tuple[str, ...]:
        """The conditions, each with its chance in percent."""
        return (*map(self.with_chance, (*CONDITIONS, ALL)), INDEPENDENT)

    def with_chance(self, condition: str) -> str:
        text = self.chance(condition)
        return f"{condition} (chance {text})" if text else condition

    def chance(self, condition: str) -> str:
        """Return a condition's chance in percent, or the least and the greatest if models have different texts."""
        every = self.first()
        every = every[(every["condition"] == condition) & (every["part"] == EVERY)].dropna(subset="chance")
        found = sorted({*every["chance"]})
        return " to ".join(f"{100 * value:.2g}" for value in dict.fromkeys([*found[:1], *found[-1:]]))

    def rows(self) -> Iterator[tuple[str, ...]]:
        keys = [*((name, EVERY) for name in (*CONDITIONS, ALL)), (ALL, INDEPENDENT)]
        for model, its in self.of_models.items():
            yield title_of(model), *(mean_percent(its[key]) if key in its else DASH for key in keys)

    def refusals(self) -> list[str]:
        """Return sentences that say why conditions have no number."""
        rows = self.first()
        found = rows[rows["value"].isna()].groupby(["condition", "refused"], sort=False)["model"].unique()
        return [
            f"{condition.capitalize()} is refused for {', '.join(map(title_of, models))}: {reason}."
            for (condition, reason), models in found.items()
        ]

    def parts(self, by: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return header and rows of a table of the conditions' parts, with a column for each model."""
        rows = self.first(by)
        rows = rows[~rows["part"].isin((EVERY, INDEPENDENT))]
        models, found = list(dict.fromkeys(rows["model"])), []
        for (condition, part), its in rows.groupby(["condition", "part"], sort=False):
            each = (its[its["model"] == model]["value"].dropna() for model in models)
            texts = (mean_percent(mean_of(list(values))) if len(values) else DASH for values in each)
            found.append((condition, part, f"{100 * its['chance'].mean():.0f}", *texts))
        return ("condition", "part", "chance", *map(title_of, models)), found

    def gap(self, model: str, base: str, condition: str) -> Mean | None:
        """Return how far a model's share of scenes is above another's, over common seeds; None without any."""
        rows = self.first()
        rows = rows[(rows["condition"] == condition) & (rows["part"] == EVERY)].dropna(subset="value")
        one, other = (rows[rows["model"] == name].set_index("seed")["value"] for name in (model, base))
        gaps = (one - other).dropna()
        return mean_of(list(gaps), -1.0) if len(gaps) else None

    @property
    def shares(self) -> "pd.DataFrame":
        """A row for each cell, with the shares of scenes in which categorisation and attribute binding hold."""
        return self.by_cell("scores", "holds", (EVERY,))

    @property
    def margins(self) -> "pd.DataFrame":
        """A row for each cell, with its mean margins between embeddings of images."""
        return self.by_cell("embeddings", "margin", (OTHER_ATTRIBUTES, OTHER_VIEW))

    def by_cell(self, by: str, measure: str, parts: tuple[str, ...]) -> "pd.DataFrame":
        rows = self.frame[(self.frame["measure"] == measure) & (self.frame["by"] == by)]
        rows = rows[rows["part"].isin(parts) & rows["condition"].isin((CATEGORISATION, BINDING))].dropna(subset="value")
        labels = ["model", "seed", *(name for name in PLACE if name in rows)]
        wide = rows.pivot_table("value", labels, "condition", sort=False).reset_index()
        return wide.rename_axis(columns=None).reindex(columns=[*labels, CATEGORISATION, BINDING])

    @property
    def chances(self) -> dict[str, float]:
        """Chance in categorisation and in attribute binding, as shares of scenes."""
        rows = self.frame[(self.frame["part"] == EVERY) & (self.frame["by"] == "scores")]
        return {name: float(rows[rows["condition"] == name]["chance"].mean()) for name in (CATEGORISATION, BINDING)}


def mean_percent(its: Mean, interval: bool = True) -> str:
    bounds = f" [{100 * its.low:.0f}, {100 * its.high:.0f}]" if interval and not np.isnan(its.low) else ""
    return f"{100 * its.value:.1f}{bounds}"
