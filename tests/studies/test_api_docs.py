"""docs/api.md: its commands and scripts run, and print what stands there, numbers aside."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.studies.command import ROOT

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
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def test_every_script_has_its_output():
    assert len(SCRIPTS) == sum(language == "python" for language, _ in BLOCKS) >= 6


def test_scripts_print_what_stands_there(folder):
    """One after the other, as in a notebook: later ones read files of earlier ones."""
    for code, expected in SCRIPTS:
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        assert NUMBER.sub("#", done.stdout) == NUMBER.sub("#", expected), code
