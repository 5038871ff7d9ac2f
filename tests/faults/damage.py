"""Ways to damage a file: seeded by three numbers, so that a failure shrinks to the least of them."""

import io
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from menagerie.envs.core.records import KEY, seal

PAGE = b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n"
HUGE = 1 << 40  # bytes of a file of zeros that takes no space, and more rows than any memory has
NESTED = json.loads("[" * 400 + "]" * 400)
VALUES = (None, True, -1, 0, 10**30, 1e308, float("nan"), "", "a\0b", "\ud800", "x" * 9000, [], {}, [[]], NESTED)
STEPS = 1 << 16  # places in a file, whatever its length


class Damage(NamedTuple):
    """One way, at one place."""

    fault: str
    place: int
    amount: int

    def spoil(self, path: Path) -> bool:
        """Damage a file; False where this way doesn't suit what it holds."""
        return FAULTS[self.fault](path, self)

    def at(self, length: int) -> int:
        """Where in something of that length."""
        return self.place * length // STEPS


def on_bytes(change: Callable[[bytearray, int, int], bytes | bytearray]) -> Callable[[Path, Damage], bool]:
    """A fault of a file's bytes, from (bytes, place, amount)."""

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
    """Something else under the same name."""

    def spoil(path: Path, damage: Damage) -> bool:
        path.unlink()
        make(path)
        return True

    return spoil


def zeros(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


def deep(path: Path) -> None:
    path.write_text("[" * 100_000 if path.suffix != ".toml" else f"a = {'[' * 100_000}")


def png(width: int) -> bytes:
    """A picture that says it has that many pixels a side."""
    import struct
    import zlib

    header = b"IHDR" + struct.pack(">IIBBBBB", width, width, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)) + bytes(64)


def json_texts(path: Path) -> list[str] | None:
    """The JSON texts that a file holds; None for other files."""
    if path.suffix not in (".json", ".jsonl", ".log"):
        return None
    text = path.read_text()
    return text.splitlines() if path.suffix != ".json" else [text]


def other_value(path: Path, damage: Damage) -> bool:
    """One value of JSON, TOML or CSV of another type, or a key that is renamed, missing or too many; digests anew."""
    if path.suffix == ".toml":
        return other_line(path, damage)
    if path.suffix == ".csv":
        return other_cell(path, damage)
    texts = json_texts(path)
    if not texts:
        return False
    which = damage.at(len(texts))
    contents = [json.loads(text) for text in texts]
    sealed_before = isinstance(contents[which], dict) and KEY in contents[which]
    for content in contents:
        if isinstance(content, dict):
            content.pop(KEY, None)
    places = list(places_in(contents[which]))
    if not places:
        return False
    inner, key = places[damage.amount // len(CHANGES) % len(places)]
    CHANGES[damage.amount % len(CHANGES)](inner, key)
    salt = f"{len(contents)} " if path.name == "cells.jsonl" else ""
    write = (lambda its: seal(its, context=salt)) if sealed_before else json.dumps
    path.write_text("\n".join(map(write, contents)) + ("\n" if path.suffix != ".json" else ""))
    return True


def places_in(content: Any):
    """Every place of a value in JSON: the list or object around it, and its index or key."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items):
        yield content, key
        yield from places_in(value)


def removed(inner: Any, key: Any) -> None:
    del inner[key]


def renamed(inner: Any, key: Any) -> None:
    if isinstance(inner, dict):
        inner[f"{key}x"] = inner.pop(key)


def added(inner: Any, key: Any) -> None:
    if isinstance(inner, dict):
        inner["stranger"] = 1


def replaced(value: Any) -> Callable[[Any, Any], None]:
    return lambda inner, key: inner.__setitem__(key, value)


CHANGES = (removed, renamed, added, *map(replaced, VALUES))
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
    """A table or attribute of HDF5, or an array, that is well-formed and of another type, form or size."""
    if path.suffix == ".npz":
        return other_array(path, damage)
    if path.suffix != ".h5":
        return False
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(lambda name: names.append(name))  # links are not followed
        tables = [name for name in sorted(names) if isinstance(file[name], h5py.Dataset)]
        groups = [file, *(file[name] for name in sorted(names) if isinstance(file[name], h5py.Group))]
        attributes = [(group, name) for group in groups for name in sorted(group.attrs)]
        at = damage.at(len(tables) + len(attributes))
        if at >= len(tables):
            group, name = attributes[at - len(tables)]
            group.attrs[name] = (0, "x", [1, 2], "{}", '{"a": 1}', np.zeros((2, 2)), "[" * 5000)[damage.amount % 7]
            return True
        other_dataset(file, tables[at], damage.amount)
    return True


def other_dataset(file: h5py.File, name: str, amount: int) -> None:
    """Put another table in the place of one."""
    old, kind = file[name], amount % 6
    shape, dtype = old.shape, old.dtype
    content = old[:] if kind in (2, 3) else None
    del file[name]
    if kind == 0:
        file.create_dataset(name, (HUGE, *shape[1:]), dtype, chunks=(1024, *shape[1:]))
    elif kind == 1:
        file.create_dataset(
            name, (max(1, shape[0]), 100_000, 100_000, *shape[3:]), "u1", chunks=(1, 1000, 1000, *shape[3:])
        )
    elif kind == 2:
        file[name] = content[: len(content) // 2]
    elif kind == 3:
        file[name] = content[None]
    elif kind == 4:
        file[name] = np.zeros(shape, "f8")
    else:
        file.create_group(name)


def other_array(path: Path, damage: Damage) -> bool:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    name = sorted(arrays)[damage.at(len(arrays))]
    old = arrays[name]
    other = (old.astype("f8"), old[None], old[: len(old) // 2], np.zeros(0, old.dtype), np.array(["x"]), old.T - 1)
    if damage.amount % 7 == 6:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (HUGE,)})
        arrays[name] = np.frombuffer(header.getvalue(), np.uint8)
        np.savez(path, **arrays)
        content = path.read_bytes()
        path.write_bytes(content)
        return True
    arrays[name] = other[damage.amount % 7]
    np.savez(path, **arrays)
    return True


# Faults of bytes, of what lies under a name, and of what a well-formed file holds.
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
    "a picture": instead(lambda path: path.write_bytes(png(100_000))),
    "another JSON": instead(lambda path: path.write_text('{"a": 1}')),
    "nested deep": instead(deep),
    "a folder": instead(Path.mkdir),
    "a pipe": instead(os.mkfifo),
    "a circle of links": instead(lambda path: path.symlink_to(path.name)),
    "a device": instead(lambda path: path.symlink_to("/dev/zero")),
    "a terabyte of zeros": instead(zeros),
    "missing": instead(lambda path: None),
}
FORMS = {"another value": other_value, "another table": other_table}
FAULTS = {**BYTES, **NAMES, **FORMS}
TEXTS = re.compile(r"\.(json|jsonl|log|toml|csv)$")


def faults_of(path: Path) -> list[str]:
    """The faults that suit a file: of bytes twice, as they are the most usual."""
    own = ["another value"] * 4 if TEXTS.search(path.name) else []
    own += ["another table"] * 4 if path.suffix in (".h5", ".npz") else []
    return [*BYTES, *BYTES, *NAMES, *own]
