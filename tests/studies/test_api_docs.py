"""docs/api.md: its commands and scripts run, and print what stands there, numbers aside."""

import re
import shlex
import sys
from itertools import pairwise

import pytest

from tests.command import ROOT, succeed
from tests.forked import run_forked

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
        succeed(command, folder, page=False)
    return folder


def test_every_script_has_its_output():
    assert len(SCRIPTS) == sum(language == "python" for language, _ in BLOCKS) >= 6


def test_scripts_of_the_docs_print_the_output_that_the_docs_show(folder):
    """One after the other, each pasted into a file: later ones read files of earlier ones."""
    for code, expected in SCRIPTS:
        (folder / "pasted.py").write_text(code)
        done = run_forked([sys.executable, "pasted.py"], folder)
        assert NUMBER.sub("#", done.stdout) == NUMBER.sub("#", expected), (code, done.stderr)
