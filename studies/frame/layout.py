"""Which labels a part has on its sides, in which order, and what they are called."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from menagerie.studies.analysis.tables import NEAR, QUAD, by_task
from menagerie.studies.frame.arm import text_of
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Shown
from menagerie.studies.frame.records import Records

TESTS = ("subset", "task")
FEW = 2  # models that stay in the order of the plan
Key = tuple[Any, ...]


class Place(NamedTuple):
    """Where a number belongs."""

    labels: dict[str, Any]
    """Subset and task among them."""
    test: int
    """The number of its test in the order of tables."""
    finished: bool
    """Whether its run is."""


def places(records: Records) -> list[Place]:
    """All places of all arms, in the order of the plan; a run that isn't finished will have its tests."""
    tests, done = tests_of(records), {arm.id: result["subsets"] for arm, result in records.results}
    over = {arm.id for arm in records.arms if records.over(arm)}
    if not tests:
        return [Place(arm.place, 0, finished=False) for arm in records.arms]
    return [
        Place({**arm.place, "subset": subset, "task": task}, number, arm.id in over)
        for arm in records.arms
        for number, (subset, task) in enumerate(tests)
        if subset in done.get(arm.id, ("validation", *arm.cell.tests))
    ]


def tests_of(records: Records) -> list[tuple[str, str]]:
    """Subsets and tasks of finished runs, those without records too, in the order of tables."""
    if not len(records.scores):
        return []
    found = records.scores[list(TESTS)].drop_duplicates().itertuples(index=False, name=None)
    order = {name: number for number, name in enumerate(records.tests)}
    return sorted(found, key=lambda test: (order.get(test[0], -1), by_task(test[1])))


def keys(found: Iterable[Place], names: Sequence[str]) -> list[Key]:
    """The combinations of some labels: tests in the order of tables, all else in that of the plan."""
    having = [place for place in found if place.labels.keys() >= {*names}]
    if {*names} & {*TESTS}:
        having.sort(key=lambda place: place.test)
    return list(dict.fromkeys(key_of(place.labels, names) for place in having))


def key_of(labels: Mapping[str, Any], names: Sequence[str]) -> Key:
    """The values of some labels."""
    return tuple(labels[name] for name in names)


def awaited(found: Iterable[Place], names: Sequence[str]) -> set[Key]:
    """The combinations of labels of which no run is finished yet."""
    sides: tuple[set[Key], set[Key]] = (set(), set())
    for place in found:
        if place.labels.keys() >= {*names}:
            sides[place.finished].add(key_of(place.labels, names))
    return sides[0] - sides[1]


def base_of(names: Sequence[str], key: Key, against: Mapping[str, Any] | None) -> Key:
    """The combination that one is compared with: the same but for the labels of `against`."""
    return tuple((against or {}).get(name, value) for name, value in zip(names, key, strict=True))


def without_base(names: Sequence[str], found: Iterable[Key], against: Mapping[str, Any] | None) -> list[Key]:
    """The combinations of labels but those that others are compared with."""
    compared = {*names} & {*(against or {})}
    return [key for key in found if not compared or base_of(names, key, against) != key]


def best_first(names: Sequence[str], rows: Sequence[Key], levels: Mapping[str, float]) -> list[Key]:
    """Rows in which of three models or more the best comes first, at each place of all else; `levels` are of models."""
    at = names.index("model") if "model" in names else -1
    models = list(dict.fromkeys(row[at] for row in rows)) if at >= 0 else []
    if len(models) <= FEW:
        return list(rows)
    order = sorted(models, key=lambda model: -levels.get(model, -2.0))
    others = list(dict.fromkeys(row[:at] + row[at + 1 :] for row in rows))
    return sorted(rows, key=lambda row: (others.index(row[:at] + row[at + 1 :]), order.index(row[at])))


def levels_of(names: Sequence[str], found: Mapping[Key, Estimate]) -> dict[str, float]:
    """The mean of each model's numbers; `names` are the labels of their keys."""
    if "model" not in names:
        return {}
    values: dict[str, list[float]] = {}
    for key, its in found.items():
        values.setdefault(key[names.index("model")], []).append(its.value)
    return {model: sum(numbers) / len(numbers) for model, numbers in values.items()}


def liked(records: Records, names: Sequence[str]) -> set[Key]:
    """Where accuracies on swaps are of one caption, liked whatever the image; none where other tasks are shown too."""
    if "task" in names or not len(records.scores) or {*records.scores.task} != {"swap"}:
        return set()
    every = type(records)(records.arms, records.out).scores
    quads = every[every.task == QUAD].groupby([*names], sort=False)["accuracy"]
    return {key for key, values in quads if values.mean() < NEAR}


def varying(rows: Sequence[Key]) -> list[int]:
    """Which labels of rows, by number, have several values; the first always counts."""
    return [k for k, values in enumerate(zip(*rows, strict=True)) if not k or len({*values}) > 1]


def called(part: Shown, name: str, value: Any) -> str:
    """A label's value in words."""
    if value in part.words.get(name, {}):
        return part.words[name][value]
    return text_of(name, value)


def title(part: Shown, names: Sequence[str], key: Key) -> str:
    """Several labels in a line; numbers with what they are of."""
    said = zip(names, key, strict=True)
    return ", ".join(
        f"{n.replace('_', ' ')} {called(part, n, v)}" if counts(v) else called(part, n, v) for n, v in said
    )


def counts(value: Any) -> bool:
    """Whether a label is a number, which by itself says little."""
    return isinstance(value, int | float)
