"""Ways to damage a file, with numbers that say where and how, so that hypothesis shrinks a failure to the least."""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from menagerie.envs.core.records import KEY, seal
from tests.helpers.source_files import png_header

PAGE = b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n"
HUGE = 1 << 40  # bytes of a file of zeros that takes no space, and more rows than any memory has
NESTED = json.loads("[" * 400 + "]" * 400)
VALUES = (None, True, -1, 0, 10**30, 1e308, float("nan"), "", "a\0b", "\ud800", "x" * 9000, [], {}, [[]], NESTED)
STEPS = 1 << 16  # places in a file, whatever its length


class Damage(NamedTuple):
    """A fault, and the numbers that say where in the file it is and how much it changes."""

    fault: str
    place: int
    amount: int

    def spoil(self, path: Path) -> bool:
        """Damage a file; returns False if this fault doesn't suit what it holds."""
        return FAULTS[self.fault](path, self)

    def at(self, length: int) -> int:
        """The place in something of that length."""
        return self.place * length // STEPS


def on_bytes(change: Callable[[bytearray, int, int], bytes | bytearray]) -> Callable[[Path, Damage], bool]:
    """Make a fault of a function of a file's bytes, the place and the amount."""

    def spoil(path: Path, damage: Damage) -> bool:
        content = path.read_bytes()
        changed = bytes(change(bytearray(content), damage.at(len(content)), damage.amount))
        path.write_bytes(changed)
        return changed != content

    return spoil


def flipped(content: bytearray, at: int, amount: int) -> bytearray:
    if content:
        content[at] ^= 1 << (amount % 8)
    return content


def overwritten(content: bytearray, at: int, amount: int) -> bytearray:
    new = np.random.default_rng(amount).bytes(1 + amount % 8)
    return content[:at] + new + content[at + len(new) :]


def zeroed(content: bytearray, at: int, amount: int) -> bytearray:
    return content[:at] + bytes(len(content[at : at + 512])) + content[at + 512 :]


def instead(make: Callable[[Path], object]) -> Callable[[Path, Damage], bool]:
    """Make a fault that puts something else in the file's place."""

    def spoil(path: Path, damage: Damage) -> bool:
        path.unlink()
        make(path)
        return True

    return spoil


def other_value(path: Path, damage: Damage) -> bool:
    """Change a value of JSON, TOML or CSV, or rename, remove or add a key; digests are those of the new content."""
    if path.suffix == ".toml":
        return other_line(path, damage)
    if path.suffix == ".csv":
        return other_cell(path, damage)
    contents = json_contents(path)
    if not contents:
        return False
    which = damage.at(len(contents))
    sealed_before = isinstance(contents[which], dict) and KEY in contents[which]
    for content in contents:
        if isinstance(content, dict):
            content.pop(KEY, None)
    places = list(places_in(contents[which]))
    if not places:
        return False
    changed_at(*places[damage.amount // CHANGES % len(places)], damage.amount % CHANGES)
    owner = f"{len(contents)} " if path.name == "cells.jsonl" else ""
    write = (lambda its: seal(its, context=owner)) if sealed_before else json.dumps
    path.write_text("\n".join(map(write, contents)) + ("\n" if path.suffix != ".json" else ""))
    return True


def json_contents(path: Path) -> list[Any]:
    """What a file of JSON holds, or each of its lines; nothing of other files."""
    if path.suffix not in (".json", ".jsonl", ".log"):
        return []
    text = path.read_text()
    return [json.loads(part) for part in (text.splitlines() if path.suffix != ".json" else [text])]


def places_in(content: Any):
    """Yield every place of a value in JSON: the list or object around it, and its index or key."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items):
        yield content, key
        yield from places_in(value)


def changed_at(inner: Any, key: Any, number: int) -> None:
    """Take a value away, rename its key, add another, or put one of `VALUES` in its place."""
    if number == 0:
        del inner[key]
    elif number == 1 and isinstance(inner, dict):
        inner[f"{key}x"] = inner.pop(key)
    elif number == 2 and isinstance(inner, dict):
        inner["stranger"] = 1
    elif number > 2:
        inner[key] = VALUES[number - 3]


CHANGES = 3 + len(VALUES)
TOML_VALUES = ("1e12", "-1", '"x"', "[]", "[[1]]", "{}", "true", "nan", '""', "9" * 5000, "1979-05-27", '"\\u0000"')


def other_line(path: Path, damage: Damage) -> bool:
    lines = path.read_text().splitlines()
    places = [n for n, line in enumerate(lines) if "=" in line]
    if not places:
        return False
    at = places[damage.at(len(places))]
    name = lines[at].partition("=")[0]
    lines[at] = f"{name} = {TOML_VALUES[damage.amount % len(TOML_VALUES)]}"
    path.write_text("\n".join(lines))
    return True


CELLS = ("", "nan", "x", "1e999", "-1", '"', "a\0b", "9" * 5000, "(" * 500, "[1, 'a']")


def other_cell(path: Path, damage: Damage) -> bool:
    lines = path.read_text().splitlines()
    at = damage.at(len(lines))
    cells = lines[at].split(",")
    cells[damage.amount // len(CELLS) % len(cells)] = CELLS[damage.amount % len(CELLS)]
    lines[at] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    return True


def other_table(path: Path, damage: Damage) -> bool:
    """Put a table or an attribute of another type, shape or size in the place of one of HDF5."""
    if path.suffix != ".h5":
        return False
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(lambda name: names.append(name))  # links are not followed
        tables = [name for name in sorted(names) if isinstance(file[name], h5py.Dataset)]
        groups = [file, *(file[name] for name in sorted(names) if isinstance(file[name], h5py.Group))]
        attributes = [(group, name) for group in groups for name in sorted(group.attrs)]
        at = damage.at(len(tables) + len(attributes))
        if at < len(tables):
            other_dataset(file, tables[at], damage.amount)
        else:
            group, name = attributes[at - len(tables)]
            group.attrs[name] = (0, "x", [1, 2], "{}", '{"a": 1}', np.zeros((2, 2)), "[" * 5000)[damage.amount % 7]
    return True


def other_dataset(file: h5py.File, name: str, amount: int) -> None:
    """Put another table in the place of one of HDF5."""
    old, kind = file[name], amount % 6
    shape, dtype, content = old.shape, old.dtype, old[:]
    del file[name]
    if kind == 0:
        file.create_dataset(name, (HUGE, *shape[1:]), dtype, chunks=(1024, *shape[1:]))
    elif kind == 1:
        wide = (max(1, shape[0]), 100_000, 100_000, *shape[3:])
        file.create_dataset(name, wide, "u1", chunks=(1, 1000, 1000, *shape[3:]))
    elif kind == 5:
        file.create_group(name)
    else:
        file[name] = (content[: len(content) // 2], content[None], np.zeros(shape, "f8"))[kind - 2]


# Faults of bytes, of the file as a whole, and of values in a file that stays well-formed.
BYTES: Mapping[str, Callable[[Path, Damage], bool]] = {
    "truncated": on_bytes(lambda content, at, amount: content[:at]),
    "a bit flipped": on_bytes(flipped),
    "overwritten": on_bytes(overwritten),
    "zeros in it": on_bytes(zeroed),
    "a part twice": on_bytes(lambda content, at, amount: content[:at] + content[max(0, at - amount % 999) :]),
    "garbage behind": on_bytes(lambda content, at, amount: content + np.random.default_rng(amount).bytes(99)),
}
NAMES: Mapping[str, Callable[[Path, Damage], bool]] = {
    "empty": instead(lambda path: path.write_bytes(b"")),
    "a page": instead(lambda path: path.write_bytes(PAGE)),
    "a picture": instead(lambda path: path.write_bytes(png_header(100_000, 100_000))),
    "another JSON": instead(lambda path: path.write_text('{"a": 1}')),
    "nested deep": instead(lambda path: path.write_text("a = " * (path.suffix == ".toml") + "[" * 100_000)),
    "a folder": instead(Path.mkdir),
    "a pipe": instead(os.mkfifo),
    "a circle of links": instead(lambda path: path.symlink_to(path.name)),
    "a device": instead(lambda path: path.symlink_to("/dev/zero")),
    "a terabyte of zeros": instead(lambda path: (path.touch(), os.truncate(path, HUGE))),
    "missing": instead(lambda path: None),
}
FORMS = {"another value": other_value, "another table": other_table}
FAULTS = {**BYTES, **NAMES, **FORMS}
TEXTS = re.compile(r"\.(json|jsonl|log|toml|csv)$")


def faults_of(path: Path) -> list[str]:
    """The faults that suit a file; those of bytes come twice, because they are the most usual."""
    own = ["another value"] * 4 if TEXTS.search(path.name) else []
    own += ["another table"] * 4 if path.suffix == ".h5" else []
    return [*BYTES, *BYTES, *NAMES, *own]
