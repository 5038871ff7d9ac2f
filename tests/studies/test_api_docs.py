"""docs/api.md: its commands and scripts run, and print what stands there, numbers aside."""

import os
import re
import shlex
import sys
from itertools import pairwise

import pytest

from tests.command import ROOT, as_before, run_here

TEXT = (ROOT / "docs" / "api.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, flags=re.DOTALL)
PREPARATION = BLOCKS[0]
SCRIPTS = [
    (code, expected)
    for (language, code), (next_language, expected) in pairwise(BLOCKS)
    if (language, next_language) == ("python", "text")
]
NUMBER = re.compile(r"-?\d+\.\d+(e-?\d+)?")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the first block's commands were run."""
    folder = tmp_path_factory.mktemp("notebook")
    language, commands = PREPARATION
    assert language == "sh"
    for line in commands.splitlines():
        command = [sys.executable, *shlex.split(line.replace("studies/", f"{ROOT}/studies/"))[1:]]
        done = run_here(command, folder, page=False)
        assert done.returncode == 0, done.stderr
    return folder


def test_every_script_has_its_output():
    assert len(SCRIPTS) == sum(language == "python" for language, _ in BLOCKS) >= 6


def test_scripts_print_what_stands_there(folder, capsys):
    """One after the other, as in a notebook: later ones read files of earlier ones, but each is a script of its own."""
    for code, expected in SCRIPTS:
        with as_before():
            os.chdir(folder)
            exec(compile(code, "docs/api.md", "exec"), {"__name__": "__main__"})
        assert NUMBER.sub("#", capsys.readouterr().out) == NUMBER.sub("#", expected), code
