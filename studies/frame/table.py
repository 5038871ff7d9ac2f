"""The table of a part: which rows and columns it has, all as texts, and what is said of it."""

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from menagerie.studies.analysis.record_counts import Count, record_line
from menagerie.studies.analysis.tables import DASH, FLAG, WAITING, number
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.layout import (
    TESTS,
    Key,
    Place,
    awaited,
    base_of,
    best_first,
    called,
    keys,
    levels_of,
    liked,
    places,
    title,
    varying,
    without_base,
)
from menagerie.studies.frame.parts import Table

OF_RECORDS = {*TESTS, "scene", "caption", "animals", "value"}


@dataclass(frozen=True)
class Sheet:
    """A table's texts, and what is said of them."""

    part: Table

    @property
    def names(self) -> list[str]:
        """The labels of a number."""
        return [*self.part.rows, *self.part.columns]

    @cached_property
    def places(self) -> list[Place]:
        """Where its numbers belong."""
        return places(self.part.records)

    @cached_property
    def found(self) -> dict[Key, Estimate]:
        """Its numbers."""
        return self.part.records.estimates(self.names, self.part.against)

    @cached_property
    def rows(self) -> list[Key]:
        """The labels of its rows, from top to bottom."""
        rows = without_base(self.part.rows, keys(self.places, self.part.rows), self.part.against)
        return best_first(self.part.rows, rows, levels_of(self.names, self.found))

    @cached_property
    def texts(self) -> dict[Key, dict[Key, str]]:
        """Its numbers as texts, by column and row."""
        columns = without_base(self.part.columns, keys(self.places, self.part.columns), self.part.against)
        return {column: {row: self.text(row + column) for row in self.rows} for column in columns}

    @cached_property
    def awaited(self) -> set[Key]:
        """Numbers that are still to come."""
        return awaited(self.places, self.names)

    @cached_property
    def liked(self) -> set[Key]:
        """Accuracies on swaps that are of one caption, liked whatever the image."""
        return set() if self.part.against else liked(self.part.records, self.names)

    def text(self, key: Key) -> str:
        """A number with its interval or its deviation, or the sign that stands in its place."""
        found, against = self.found.get(key), self.part.against
        if found is None:
            return WAITING if {key, base_of(self.names, key, against)} & self.awaited else DASH
        if against is not None:
            return f"{100 * found.value:+.1f} [{found.bounds}]"
        text = str(found) if self.part.intervals else number(100 * found.value, 100 * found.deviation)
        return text + FLAG * (key in self.liked)

    @property
    def columns(self) -> list[Key]:
        """The columns that have records, or may have."""
        return [key for key, texts in self.texts.items() if {*texts.values()} != {DASH}]

    @property
    def labels(self) -> list[int]:
        """The labels of rows, by number, that have several values; the first is always shown."""
        return varying(self.rows)

    def label(self, name: str, value: object) -> str:
        """A row's label; of what is compared both."""
        text, against = called(self.part, name, value), self.part.against or {}
        return f"{text} − {called(self.part, name, against[name])}" if name in against else text

    @property
    def frame(self) -> pd.DataFrame:
        """All as texts."""
        rows, names = self.part.rows, [self.part.rows[k].replace("_", " ") for k in self.labels]
        header = [*names, *(title(self.part, self.part.columns, key) for key in self.columns), *self.part.beside]
        body = [
            [self.label(rows[k], row[k]) for k in self.labels]
            + [self.texts[column][row] for column in self.columns]
            + [its.get(row, DASH) for its in self.part.beside.values()]
            for row in self.rows
        ]
        return pd.DataFrame(body, columns=header)

    @property
    def same(self) -> str:
        """The labels of one value."""
        alone = {*range(len(self.part.rows))} - {*self.labels} if self.rows else ()
        names = ((self.part.rows[k], self.rows[0][k]) for k in sorted(alone))
        return ", ".join(f"{name.replace('_', ' ')} {self.label(name, value)}" for name, value in names)

    @property
    def empty(self) -> str:
        """The columns without records, which are left out."""
        return ", ".join(title(self.part, self.part.columns, key) for key in self.texts if key not in self.columns)

    @property
    def chances(self) -> dict[str, float]:
        """Chance in percent, by column, where it isn't 50."""
        scores, at = self.part.records.scores, [k for k, name in enumerate(self.part.columns) if name == "task"]
        alone = {*scores.task} if len(scores) else set()
        found = {key: key[at[0]] if at else "".join(alone) for key in self.columns if at or len(alone) == 1}
        return {title(self.part, self.part.columns, k): CHANCES[task] for k, task in found.items() if task in CHANCES}

    @property
    def numbers(self) -> str:
        """Records and animal pairs of each test in one run."""
        points, tests = self.part.records.points, [name for name in TESTS if name in self.names]
        if not len(points):
            return ""
        runs = [name for name in points.columns if name not in OF_RECORDS]
        counts: dict[Key, dict[Key, Count]] = {}
        for key, animals in points.groupby([*runs, *tests], sort=False, dropna=False)["animals"]:
            counts.setdefault(key[: len(runs)], {})[key[len(runs) :]] = Count(len(animals), animals.nunique())
        named = {key: title(self.part, tests, key) or "all" for key in keys(self.places, tests)}
        return record_line(counts.values(), named)
