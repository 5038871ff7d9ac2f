"""Every command runs and answers --help at once, and nothing in studies/ is anything but a command."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from menagerie.console import COMMANDS as LISTED
from tests.command import ROOT

STUDIES = sorted(path.name for path in (ROOT / "studies").glob("[!_]*.py"))
COMMANDS = [
    *([ROOT / "studies" / name] for name in STUDIES),
    ["-m", "menagerie"],
    *(["-m", "menagerie", name] for name in (*LISTED, "binding-grid")),
]
SLOW = {"torch", "open_clip", "numba", "matplotlib", "skimage", "optuna", "trimesh", "pandas"}
SECONDS = 2.5  # of processor time: the clock would count what else the machine does


def processor_seconds() -> float:
    """Of all processes that this one waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: Path(command[-1]).name)
def test_help_is_light(command, tmp_path):
    for tries in (2, 1, 0):
        before = processor_seconds()
        result = subprocess.run(
            [sys.executable, "-X", "importtime", *command, "--help"], cwd=tmp_path, capture_output=True, text=True
        )
        if (seconds := processor_seconds() - before) < SECONDS or not tries:
            break
    assert result.returncode == 0, result.stderr.splitlines()[-1]
    assert "usage" in result.stdout
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert not imported & SLOW
    assert seconds < SECONDS
    assert not list(tmp_path.iterdir())


def test_studies_holds_commands_and_folders_alone():
    files = [path for path in (ROOT / "studies").iterdir() if path.is_file() and path.stem != "__init__"]
    assert {path.name for path in files} == {*STUDIES}
    for path in files:
        assert 'if __name__ == "__main__":' in path.read_text(), path


def test_a_pipe_that_is_closed_is_no_error():
    """As `| head` closes it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "menagerie", "recipes"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141
