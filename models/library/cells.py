"""Finds the cell of a run that a caller of `load_scorer` means."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from menagerie.envs.core.errors import UserError, choose
from menagerie.models.cell_results import result_in
from menagerie.models.checkpoint import scorer_config
from menagerie.models.registry import short_name

SHOWN = 8  # most cells in a message


class CellFile(msgspec.Struct):
    """The fields read from a cell's result: its seed, its settings, and its place in a study, by the names in
    `axes`.
    """

    model: str
    id: str = ""
    seed: int = 0
    axes: list[str] = []
    settings: dict[str, Any] = {}


def cell_result(cell: Path) -> dict[str, Any]:
    """Read a cell's result; empty for a checkpoint outside a study."""
    return result_in(cell, CellFile) or {}


def place_of_cell(cell: Path) -> dict[str, Any]:
    """The place of a cell in its study: axes and seed, by their names in its result."""
    result = cell_result(cell)
    return {axis: result[axis] for axis in (*result.get("axes", ()), "seed") if axis in result}


def find_cell(name: str, folders: Sequence[Path], wanted: Mapping[str, Any]) -> Path:
    """The checkpoint of the one cell that has the wanted model, axes, seed or settings (such as `options.dim`); raises
    if no cell or several match."""
    places = {f: {"model": short_name(scorer_config(f).model), **place_of_cell(f.parent)} for f in folders}
    named = {axis for place in places.values() for axis in place}
    known = places if set(wanted) <= named else with_settings(places)
    for axis in wanted:
        choose(f"axis of {name}", axis, list(dict.fromkeys(axis for place in known.values() for axis in place)))
    meant = [
        f for f, place in known.items() if all(a in place and equals_cell_value(place[a], v) for a, v in wanted.items())
    ]
    if len(meant) == 1:
        return meant[0]
    given = ", ".join(f"{axis}={value!r}" for axis, value in wanted.items())
    if not meant:
        raise UserError(f"{name} has no cell of {given}; it has {list_cells(places)}")
    raise UserError(
        f"{name} has {len(meant)} cells{f' of {given}' * bool(wanted)}; say which, by what tells them apart or by its "
        f"folder: {list_cells({folder: places[folder] for folder in meant})}"
    )


def equals_cell_value(of_cell: Any, value: Any) -> bool:
    """Whether a cell's value equals the wanted one, allowing for JSON's lists and for a class file in another
    folder.
    """
    if isinstance(value, str):
        return of_cell == short_name(value)
    return of_cell == (list(value) if isinstance(value, tuple) else value)


def list_cells(places: Mapping[Path, Mapping[str, Any]]) -> str:
    """List cells by the values on which they differ, in the form that `load_scorer` takes, each with its folder. If
    some have equal places, settings that differ are listed too."""
    words = differing_values(places)
    if len(set(words.values())) < len(words):
        words = differing_values(with_settings(places))
    lines = [f"{text} ({folder.parent})" if text else str(folder.parent) for folder, text in words.items()]
    return "; ".join(sorted(lines)[:SHOWN]) + "; …" * (len(lines) > SHOWN)


def with_settings(places: Mapping[Path, Mapping[str, Any]]) -> dict[Path, dict[str, Any]]:
    """Add each cell's settings to its place, whose values win for names in both."""
    settings = {folder: dict(flatten(cell_result(folder.parent).get("settings", {}))) for folder in places}
    return {folder: {**place, **settings[folder], **place} for folder, place in places.items()}


def differing_values(places: Mapping[Path, Mapping[str, Any]]) -> dict[Path, str]:
    """For each cell, its values on the axes on which the cells differ."""
    axes = dict.fromkeys(axis for place in places.values() for axis in place)
    varied = [axis for axis in axes if len({repr(place.get(axis)) for place in places.values()}) > 1]
    return {
        folder: ", ".join(f"{axis}={place[axis]!r}" for axis in varied if axis in place)
        for folder, place in places.items()
    }


def flatten(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings under dotted names."""
    for name, value in settings.items():
        yield from (flatten(value, f"{above}{name}.") if isinstance(value, Mapping) else [(f"{above}{name}", value)])
