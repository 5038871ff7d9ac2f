"""Files that are added to the package: a mistake in one is a message that names the file and the field."""

import os
import sys

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.plugins import OWN_MODULES, Exports, exported, own_module

BENCHMARK = """
from menagerie.generators.benchmarks.registry import BenchmarkSpec

BENCHMARK = BenchmarkSpec(
    name="mine", about="about", files=(), images=(), source="source", licence="licence", build=None,
)
"""
SCORER = """
from dataclasses import dataclass

from menagerie.models.spec import ScorerSpec

@dataclass(frozen=True)
class Config:
    dim: int = 8

SPECS = (ScorerSpec(name="mine", implementation="mine:Mine", config=Config, FIELD),)
"""


@pytest.mark.parametrize(
    ("stem", "text", "name", "field"),
    [
        ("forgotten", BENCHMARK, "BENCHMARK", "'photographs'"),
        ("misspelt", SCORER.replace("FIELD", "titel='Mine'"), "SPECS", "'titel'"),
        ("unknown", SCORER.replace("FIELD", "small={'dmi': 4}"), "SPECS", "'dmi'"),
        ("empty", "", "SPECS", "'SPECS'"),
    ],
)
def test_a_wrong_field_names_file_and_field(tmp_path, monkeypatch, stem, text, name, field):
    package = tmp_path / f"added_{stem}"
    package.mkdir()
    (package / f"{stem}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError) as error:
        exported(f"{package.name}.{stem}", name)
    assert str(package / f"{stem}.py") in str(error.value)
    assert field in str(error.value)
    if text == BENCHMARK:
        with pytest.raises(UserError, match=field):
            Exports(package.name, package, "BENCHMARK", "benchmark").load("forgotten")


@pytest.mark.parametrize(
    "line", ["1 / 0", "raise SystemExit", "from menagerie.envs.core.errors import choose; choose('a', 'b', ['c'])"]
)
def test_a_file_that_fails_leaves_no_module(tmp_path, line):
    mine = tmp_path / "fails.py"
    mine.write_text(f"{line}\n")
    with pytest.raises(UserError):
        own_module(mine)
    assert not [name for name in sys.modules if name.startswith(f"{OWN_MODULES}fails")]


def test_an_edit_within_a_second_that_keeps_the_size_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    mine = tmp_path / "quick.py"
    for value in (1, 2):
        mine.write_text(f"VALUE = {value}\n")
        os.utime(mine, ns=(10**18, 10**18 + value))
        read = own_module(mine).VALUE
        assert read == value
