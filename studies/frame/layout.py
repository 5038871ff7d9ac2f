"""The order of the rows, columns and panels of a part, and its table."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd

from menagerie.studies.analysis.tables import DASH, FLAG, NEAR, TEXT_SCORE, WAITING, number_text, task_order
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.arm import as_column
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import FigurePart, RecordsPart, Table
from menagerie.studies.frame.records import Records

TESTS = ("subset", "task")
UNKNOWN = "How small a difference such a study would decide is unknown"
FEW = 2  # models that stay in the order of the plan
Key = tuple[Any, ...]


class NumberPlace(NamedTuple):
    """The labels of a number on a page, with subset and task, and its position."""

    labels: dict[str, Any]
    test: int
    finished: bool


def tests_in_order(records: Records) -> list[tuple[str, str]]:
    """List subsets and tasks of finished runs, also those without records, in the order of tables."""
    if not len(records.scores):
        return []
    found = records.scores[list(TESTS)].drop_duplicates().itertuples(index=False, name=None)
    order = {name: number for number, name in enumerate(records.tests)}
    return sorted(found, key=lambda test: (order.get(test[0], -1), task_order(test[1])))


def label_values(labels: Mapping[str, Any], names: Sequence[str]) -> Key:
    return tuple(labels[name] for name in names)


@dataclass(frozen=True)
class PartNumbers:
    """The numbers of a part by the labels `names`, and the order in which its rows, columns and panels show them."""

    part: RecordsPart
    names: Sequence[str]

    @property
    def against(self) -> Mapping[str, Any]:
        return {name: as_column(value) for name, value in (getattr(self.part, "against", None) or {}).items()}

    @cached_property
    def places(self) -> list[NumberPlace]:
        """The places of all arms, in the order of the plan; of unfinished ones those of their planned tests, or a
        single one before any run is finished."""
        records, groups = self.part.records, self.part.records.groups
        done = {arm.id: groups or result["subsets"] for arm, result in records.results}
        over = {arm.id for arm in records.arms if records.over(arm)}
        if not (tests := tests_in_order(records)):
            return [NumberPlace(arm.place, 0, finished=False) for arm in records.arms]
        return [
            NumberPlace({**arm.place, "subset": subset, "task": task}, number, arm.id in over)
            for arm in records.arms
            for number, (subset, task) in enumerate(tests)
            if subset in done.get(arm.id, groups or ("validation", *arm.cell.tests))
        ]

    @cached_property
    def found(self) -> dict[Key, Estimate]:
        return self.part.records.estimates(self.names, self.against or None)

    @cached_property
    def awaited(self) -> set[Key]:
        """The combinations of labels of which no planned run has ended yet."""
        sides: tuple[set[Key], set[Key]] = (set(), set())
        for place in self.places:
            if place.labels.keys() >= {*self.names}:
                sides[place.finished].add(label_values(place.labels, self.names))
        return sides[0] - sides[1]

    @cached_property
    def liked(self) -> set[Key]:
        """The keys at which models prefer the same caption whatever the image; none for differences and other tasks."""
        scores = self.part.records.scores
        if self.against or "task" in self.names or not len(scores) or {*scores.task} != {"swap"}:
            return set()
        every = replace(self.part.records, chosen=()).scores
        four_way_items = every[every.task == TEXT_SCORE].groupby([*self.names], sort=False)["accuracy"]
        return {key for key, values in four_way_items if values.mean() < NEAR}

    @property
    def decides(self) -> str:
        """A sentence with the smallest differences that such studies would decide; empty for accuracies."""
        known = (
            sorted(its.decides for its in self.found.values() if not math.isnan(its.decides)) if self.against else []
        )
        if not known:
            return "How small a difference such a study would decide is unknown." if self.against else ""
        points = span(f"{100 * end:.1f}" for end in (known[0], known[-1]))
        return f"80 of 100 such studies would decide a difference of {points} points (`decides` in the CSV)."

    def missing(self, key: Key) -> str:
        return WAITING if {key, self.base_of(self.names, key)} & self.awaited else DASH

    def base_of(self, names: Sequence[str], key: Key) -> Key:
        """Return the key with which `key` is compared: the same, except for the labels in `against`."""
        return tuple(self.against.get(name, value) for name, value in zip(names, key, strict=True))

    def keys(self, names: Sequence[str]) -> list[Key]:
        """List the combinations of some labels in order, except those with which others are compared."""
        having = [place for place in self.places if place.labels.keys() >= {*names}]
        if {*names} & {*TESTS}:
            having.sort(key=lambda place: place.test)
        found, compared = (label_values(place.labels, names) for place in having), {*names} & {*self.against}
        return [key for key in dict.fromkeys(found) if not compared or self.base_of(names, key) != key]

    @property
    def panels(self) -> list[Key]:
        """The panels of a figure that have a number, whose labels come first in `names`; all panels if none has."""
        assert isinstance(self.part, FigurePart)
        every, filled = self.keys(self.part.panels) or [()], {key[: len(self.part.panels)] for key in self.found}
        return [key for key in every if key in filled] or every

    def rows(self, names: Sequence[str]) -> list[Key]:
        """List the keys of rows. With three models or more, the best comes first among rows that are alike else."""
        rows, at = self.keys(names), list(names).index("model") if "model" in names else -1
        models = list(dict.fromkeys(row[at] for row in rows)) if at >= 0 else []
        if len(models) <= FEW:
            return rows
        values: dict[str, list[float]] = {}
        for key, its in self.found.items():
            values.setdefault(key[list(self.names).index("model")], []).append(its.value)
        models.sort(key=lambda model: -fmean(values.get(model, [-2.0])))
        others = list(dict.fromkeys(row[:at] + row[at + 1 :] for row in rows))
        return sorted(rows, key=lambda row: (others.index(row[:at] + row[at + 1 :]), models.index(row[at])))


def decided_from(found: Iterable[Estimate]) -> str:
    """Say how small a difference studies like that of these differences would decide."""
    known = sorted(100 * its.decides for its in found if not math.isnan(its.decides))
    if not known:
        return UNKNOWN
    ends = dict.fromkeys(f"{end:.1f}" for end in (known[0], known[-1]))
    return f"80 of 100 such studies would decide a difference of {' to '.join(ends)} points"


def varying_labels(rows: Sequence[Key]) -> list[int]:
    """Return the positions of the labels that have several values among `rows`; the first label always counts."""
    return [k for k, values in enumerate(zip(*rows, strict=True)) if not k or len({*values}) > 1]


@dataclass(frozen=True)
class Sheet:
    """A table's texts, and the notes about them."""

    part: Table

    @cached_property
    def numbers(self) -> PartNumbers:
        return PartNumbers(self.part, [*self.part.rows, *self.part.columns])

    @cached_property
    def rows(self) -> list[Key]:
        return self.numbers.rows(self.part.rows)

    @cached_property
    def texts(self) -> dict[Key, dict[Key, str]]:
        columns = self.numbers.keys(self.part.columns)
        return {column: {row: self.text(row + column) for row in self.rows} for column in columns}

    def text(self, key: Key) -> str:
        """Write a number with its interval or its deviation, or the sign for a missing number."""
        if (its := self.numbers.found.get(key)) is None:
            return self.numbers.missing(key)
        whole = self.part.intervals or self.numbers.against
        text = str(its) if whole else number_text(100 * its.value, 100 * its.deviation)
        return text + FLAG * (key in self.numbers.liked)

    @property
    def columns(self) -> list[Key]:
        return [key for key, texts in self.texts.items() if {*texts.values()} != {DASH}]

    @property
    def labels(self) -> list[int]:
        """The positions of the row labels that have several values; the first label is always shown."""
        return varying_labels(self.rows)

    def label(self, name: str, value: object) -> str:
        """Write a row's label; for a difference, the labels of both sides."""
        text, against = self.part.word(name, value), self.numbers.against
        return f"{text} − {self.part.word(name, against[name])}" if name in against else text

    def column_titles(self, columns: Iterable[Key]) -> list[str]:
        return [self.part.title(self.part.columns, key) for key in columns]

    @property
    def frame(self) -> pd.DataFrame:
        rows, names = self.part.rows, [self.part.rows[k].replace("_", " ") for k in self.labels]
        body = [
            [self.label(rows[k], row[k]) for k in self.labels]
            + [self.texts[column][row] for column in self.columns]
            + [its.get(row, DASH) for its in self.part.beside.values()]
            for row in self.rows
        ]
        return pd.DataFrame(body, columns=[*names, *self.column_titles(self.columns), *self.part.beside])

    @property
    def notes(self) -> str:
        """What isn't in the table: labels that are the same in all rows, and columns without records."""
        alone = sorted({*range(len(self.part.rows))} - {*self.labels}) if self.rows else []
        same = [(self.part.rows[k].replace("_", " "), self.label(self.part.rows[k], self.rows[0][k])) for k in alone]
        empty = self.column_titles(key for key in self.texts if key not in self.columns)
        notes = {"In all rows": [" ".join(pair) for pair in same], "Without records": empty}
        return " ".join(f"{name}: {', '.join(texts)}." for name, texts in notes.items() if texts)

    @property
    def chances(self) -> dict[str, float]:
        """Chance in percent, by column, where it isn't 50."""
        scores, at = self.part.records.scores, [k for k, name in enumerate(self.part.columns) if name == "task"]
        alone = "".join({*scores.task}) if len(scores) else ""  # several tasks have no common chance
        tasks = [key[at[0]] if at else alone for key in self.columns]
        found = zip(self.column_titles(self.columns), tasks, strict=True)
        return {title: CHANCES[task] for title, task in found if task in CHANCES}

    @property
    def sizes(self) -> str:
        """Records and animal pairs behind the numbers of each test: "seen pairs 72 (6), unseen pairs 64 to 96 (6)"."""
        names, sizes = [name for name in TESTS if name in self.numbers.names], {}
        for key, its in self.numbers.found.items():
            if its.clusters:  # none of four-way items
                test = label_values(dict(zip(self.numbers.names, key, strict=True)), names)
                sizes.setdefault(test, []).append((its.n, its.clusters))
        spans = {test: [span(numbers) for numbers in zip(*its, strict=True)] for test, its in sizes.items()}
        shown = [test for test in self.numbers.keys(names) if test in spans]
        return ", ".join(
            f"{self.part.title(names, test) or 'all'} {spans[test][0]} ({spans[test][1]})" for test in shown
        )


def span(numbers: Iterable[int]) -> str:
    """Write the number if all are equal, else the smallest and the largest: "64 to 96"."""
    known = sorted(numbers)
    return f"{known[0]}" if known[0] == known[-1] else f"{known[0]} to {known[-1]}"
