"""The help of every study: one screen of what matters first, and all options on request."""

import re
import subprocess
import sys
from dataclasses import fields
from importlib import import_module

import pytest

from menagerie.console import COMMANDS
from menagerie.envs.core.options import Group, list_options
from menagerie.generators.splits.recipe_file import KINDS, SHIPPED
from menagerie.models.registry import specs
from menagerie.studies.commands.worlds import Make
from menagerie.studies.frame import command
from tests.command import ROOT
from tests.flags import flags_read

NAMES = ("binding_grid", "spatial_grid", "split_study", "ablations", "compute", "photo_transfer", "real_data")
STUDIES = {name: import_module(f"menagerie.studies.{name}") for name in (*NAMES, "sample_efficiency", "sparo", "tune")}
EVERY = [(name, preset) for name, study in STUDIES.items() for preset in study.PRESETS]
FLAGS = r"--[\w-]+(?:\.[\w-]+)*"
LINES, MOST = 45, 60  # lines of --help, and options of --help-all


@pytest.fixture
def shown(monkeypatch, capsys):
    """What a study prints for arguments that request help."""

    def show(name, *arguments):
        study = STUDIES[name]
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setattr(sys, "argv", [f"studies/{name}.py", *arguments])
        with pytest.raises(SystemExit) as end:
            command.start_study(
                name, study.__doc__, study.PRESETS, "laptop"
            ) if study.main is command.main else study.main()
        assert not end.value.code
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_help_fits_one_screen(shown, name, preset):
    text = shown(name, "--preset", preset, "--help")
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= 100
    groups = [line.removesuffix(":") for line in lines if re.fullmatch(r"[a-z ]+:", line)]
    assert groups == [group.value for group in Group if group is not Group.OTHER]
    assert re.search(r"^  --preset NAME +\S", text, re.MULTILINE)
    assert re.search(r"^  --recipe NAME +\S", text, re.MULTILINE)
    assert all(other in text for other in STUDIES[name].PRESETS)
    assert ("--compare RUN_A RUN_B" in text) == (STUDIES[name].main is command.main)


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_help_all_names_every_option_that_is_read(shown, name, preset):
    config = STUDIES[name].PRESETS[preset]
    own = {flag for option in list_options(type(config), config) for flag in re.findall(FLAGS, option.usage)}
    assert own == flags_read(type(config), config)
    assert not [option.usage for option in list_options(type(config), config) if not option.text]
    text = shown(name, "--preset", preset, "--help-all")
    assert own <= set(re.findall(FLAGS, text))
    assert len(re.findall(r"^  --", text, re.MULTILINE)) <= MOST


def printed(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "menagerie", *command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_make_shows_its_recipes_and_the_options_of_every_kind(capsys):
    text = printed("make", "--help")
    assert text.startswith("usage: menagerie make RECIPE [OPTIONS]\n")
    assert all(re.search(rf"^  {name} +\S", text, re.MULTILINE) for name in (*SHIPPED, "FILE.toml"))
    for name, kind in KINDS.items():
        with pytest.raises(SystemExit):
            Make.read([name, "--help-all"], "menagerie make")
        own = {flag for option in list_options(kind) for flag in re.findall(FLAGS, option.usage)}
        assert own < set(re.findall(FLAGS, capsys.readouterr().out))


def test_menagerie_lists_every_command():
    """Without a command, and for --help."""
    text = printed()
    studies = [path.stem.replace("_", "-") for path in (ROOT / "studies").glob("[!_]*.py")]
    assert [name for name in (*COMMANDS, *studies) if f"menagerie {name} " not in text] == []
    assert printed("--help") == text


def test_menagerie_scorers_lists_every_scorer():
    text = printed("scorers")
    assert [name for name in (*specs(), "micro", "ViT-B-16", "FILE.py:Class") if name not in text] == []
    assert re.search(r"laptop +clip, oc-clip, .*\n +twelve ", text), "which scorers have recipes"
    options = {f"--sparo.{item.name.replace('_', '-')}" for item in fields(specs()["sparo"].config)}
    assert options <= set(re.findall(FLAGS, printed("scorers", "sparo")))
