"""Options of dataclasses, and their help."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro

from menagerie.envs.core.command_help import choose_command, read_options
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, OTHER, PLACE, Option, list_options
from tests.flags import flags_read


@dataclass(frozen=True)
class Inner:
    """Something inside."""

    depth: int = 3
    """How deep. Measured in metres."""
    way: Annotated[Literal["up", "down"], tyro.conf.arg(name="direction"), PLACE] = "up"


@dataclass(frozen=True)
class Outer:
    """Something outside."""

    file: tyro.conf.Positional[Path]
    """A file."""
    size: Annotated[int, DATA, FIRST] = 1
    """How big; in pixels."""
    open: bool = False
    shares: tuple[float, ...] = (0.2, 0.5)
    share: float = 1 / 70
    pair: tuple[int, int] = (1, 2)
    name: str | None = None
    unnamed: Annotated[Inner, tyro.conf.arg(name=""), DATA] = field(default_factory=Inner)
    inside: Inner = field(default_factory=lambda: Inner(depth=5))


@dataclass(frozen=True)
class Derived(Outer):
    """Another default."""

    size: int = 2


def option(name: str, value: object = None) -> Option:
    """The one option of `Derived` called so."""
    (one,) = (one for one in list_options(Derived, value) if one.usage.split()[0].rstrip(",") == name)
    return one


def test_options_in_help_are_those_that_tyro_reads():
    written = " ".join(one.usage for one in list_options(Outer) if one.usage != "FILE")
    flags = set(re.findall(r"--[\w.-]+", written))
    assert flags == flags_read(Outer)
    assert {"--no-open", "--inside.depth", "--inside.direction", "--direction"} < flags


def test_help_has_placeholders_and_defaults():
    assert option("--shares")[:3] == ("--shares X ...", "", "0.2 0.5")
    assert option("--pair").usage == "--pair N N"
    assert option("--name")[:3] == ("--name TEXT", "", "")
    assert option("--direction").usage == "--direction {up,down}"
    assert (option("FILE").usage, option("FILE").default, option("FILE").required) == ("FILE", "", True)
    assert option("--inside.depth").default == "5"
    assert option("--share").default == "0.0142857"
    assert option("--size", Derived(Path("a"), size=9)).default == "9"


def test_subclass_and_inner_fields_keep_their_markers():
    assert option("--size")[1:5] == ("How big; in pixels.", "2", DATA, True)
    assert option("--depth").group is DATA
    assert option("--direction").group is PLACE
    assert (option("--inside.depth").group, option("--inside.depth").first) == (OTHER, False)


def test_help_shows_first_options_and_help_all_the_rest(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for arguments, shown in ((["--help"], 1), (["--size", "3", "-h"], 1), (["--help-all"], 6)):
        with pytest.raises(SystemExit) as end:
            read_options(Outer, arguments, "python x.py", "About it.\n\n    python x.py FILE\n\nMore of it.")
        assert not end.value.code
        text = capsys.readouterr().out
        assert text.startswith("usage: python x.py FILE [OPTIONS]\n\nAbout it.\n\n")
        assert len(re.findall("^  -", text, re.MULTILINE)) == shown
        assert re.search(r"^  FILE +A file\.? \(required\)", text, re.MULTILINE)
        assert ("More of it." in text) == (shown > 1)
        assert ("the 9 others" in text) == (shown == 1)
    assert "also --direction {up,down}, --inside.direction {up,down}\n" in text
    assert text.index("data:") < text.index("where it runs:") < text.index("other:")


def test_help_all_describes_the_options_with_a_word(capsys):
    with pytest.raises(SystemExit):
        read_options(Outer, ["--help-all", "depth"], "python x.py")
    text = capsys.readouterr().out
    assert re.findall("^  -[^ ]+", text, re.MULTILINE) == ["  --depth", "  --inside.depth"]
    assert "How deep. Measured in metres. (default: 3)" in text
    with pytest.raises(UserError, match="no option has this"):
        read_options(Outer, ["--help-all", "insids"], "python x.py")


def test_arguments_override_defaults():
    assert read_options(Outer, ["f.txt", "--size", "3", "--no-open"], "x") == Outer(Path("f.txt"), 3)
    assert read_options(Outer, ["f.txt"], "x", default=Outer(Path("g"), 7)).size == 7


@pytest.mark.parametrize(("unknown", "near"), [("--sizes", "--size"), ("--no-opn", "--no-open"), ("g", "")])
def test_unknown_option_is_refused_with_the_nearest(unknown, near, capsys):
    with pytest.raises(SystemExit, match="2"):
        read_options(Outer, ["f.txt", unknown], "x")
    said = capsys.readouterr().err
    assert unknown in said
    assert near in said


def test_command_is_chosen_by_name(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["x", "good"])
    assert choose_command("x", "About it.", ("good",)) == "good"
    monkeypatch.setattr(sys, "argv", ["x", "goof"])
    with pytest.raises(UserError, match="did you mean 'good'"):
        choose_command("x", "About it.", ("good",))
    monkeypatch.setattr(sys, "argv", ["x"])
    with pytest.raises(SystemExit) as end:
        choose_command("x", "About it.", ("good",))
    assert not end.value.code
    assert capsys.readouterr().out == "usage: x {good} [OPTIONS]\n\nAbout it.\n"
