"""The door through which files are opened, and records with a digest of themselves."""

import json
import os
import threading
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from menagerie.envs.core import records
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import (
    DEEPEST,
    Unreadable,
    check_regular,
    open_file,
    read_bytes,
    read_json,
    read_text,
    read_toml,
)
from menagerie.envs.core.records import (
    check_digest,
    file_digest,
    read_record,
    read_records,
    write_record,
    write_records,
)


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    """Of a file."""

    name: str
    sizes: dict[str, float] = {}


OTHERS = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "Too many levels of symbolic links": lambda path: path.symlink_to(path.name),
    "No such file": lambda path: None,
}


@pytest.mark.parametrize("problem", OTHERS)
@pytest.mark.parametrize("read", [read_text, read_json, read_toml, read_record, check_regular])
def test_only_regular_files_are_opened(problem, read, tmp_path):
    OTHERS[problem](tmp_path / "a.json")
    found = []

    def attempt():
        with pytest.raises(UserError, match=problem) as error:
            read(tmp_path / "a.json")
        found.append(str(error.value))

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(5)
    assert str(tmp_path / "a.json") in found[0]


def test_too_large_files_are_refused_unread(tmp_path):
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(1 << 40)
    for read in (read_text, read_json, read_toml, read_record):
        with pytest.raises(Unreadable, match=r"a.json has 1099511627776 bytes, more than \d+ MB"):
            read(tmp_path / "a.json")
    assert read_bytes(Path("/proc/self/cmdline"))  # whose size is 0


def test_a_small_file_takes_little_memory_however_large_it_may_be(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    tracemalloc.start()
    assert read_bytes(tmp_path / "a.txt", 4 << 30) == b"a"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("depth", [DEEPEST, DEEPEST + 1, 5000, 200_000])
def test_deeply_nested_files_are_refused(depth, tmp_path):
    (tmp_path / "a.json").write_text("[" * depth + "]" * depth)
    (tmp_path / "a.toml").write_text(f"a = {'[' * (depth - 1)}{']' * (depth - 1)}")
    for read, name in ((read_json, "a.json"), (read_toml, "a.toml")):
        if depth <= DEEPEST:
            assert read(tmp_path / name)
        else:
            with pytest.raises(Unreadable, match=rf"{name} (nests deeper than 64 levels|is no (JSON|TOML))"):
                read(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"name": "a", "nmae": 1}, "unknown field `nmae`"),
        ({"name": 1}, r"Expected `str`, got `int` - at `\$.name`"),
        ({"name": "a", "sizes": {"b": "c"}}, r"Expected `float`, got `str` - at `\$.sizes"),
        ({}, "missing required field `name`"),
        ([1], "Expected `object`, got `array`"),
        ({"name": "a", "sizes": {"b": "\ud800"}}, "surrogates not allowed"),
    ],
)
def test_file_of_another_shape_is_refused_with_its_key(content, problem, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(Unreadable, match=f"a.json is not of its form: .*{problem}"):
        read_json(tmp_path / "a.json", Shape)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("content", [{}, {"a": [1, 2.5, None], "é": "\n", "n": -1e-30}])
def test_record_with_a_flipped_bit_is_refused(content, indent, tmp_path):
    path = tmp_path / "a.json"
    write_record(path, content, indent)
    assert read_record(path) == content
    written = path.read_bytes()
    for bit in range(8 * len(written)):
        changed = bytearray(written)
        changed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(changed)
        with pytest.raises(Unreadable, match=r"a\.json"):
            read_record(path)


def test_record_without_a_digest_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}')
    with pytest.raises(Unreadable, match="has no digest of itself"):
        read_record(tmp_path / "a.json")


def test_lost_line_of_records_is_noticed(tmp_path):
    every = [{"a": k} for k in range(4)]
    write_records(tmp_path / "a.jsonl", every)
    assert read_records(tmp_path / "a.jsonl") == every
    lines = (tmp_path / "a.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(Unreadable, match="line 1 was changed since it was written"):
        read_records(tmp_path / "a.jsonl")


def test_file_is_hashed_again_only_after_a_change(tmp_path, monkeypatch):
    path, opened = tmp_path / "a", []
    path.write_bytes(b"abc")
    monkeypatch.setattr(records, "open_file", lambda *args: opened.append(args) or open_file(*args))
    digest = file_digest(path)
    check_digest(path, digest)
    assert len(opened) == 1
    path.write_bytes(b"abcd")
    with pytest.raises(Unreadable, match="was changed since it was written"):
        check_digest(path, digest)
    assert len(opened) == 1, "another size says enough"
    path.write_bytes(b"abd")
    with pytest.raises(Unreadable, match="was changed since it was written"):
        check_digest(path, digest)
