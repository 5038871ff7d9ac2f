"""Every command answers --help without importing what is slow."""

import subprocess
import sys

import pytest

from tests.studies.command import ROOT

STUDIES = sorted(path.name for path in (ROOT / "studies").glob("*.py") if "__main__" in path.read_text())
COMMANDS = [["studies/" + name] for name in STUDIES] + [
    ["-m", "generators"],
    ["-m", "envs.check"],
    ["-m", "envs.gallery"],
    ["-m", "envs.physics"],
]
SLOW = {"torch", "open_clip", "numba", "matplotlib", "skimage", "optuna", "trimesh"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[-1])
def test_help_is_light(command):
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *command, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0
    assert "usage" in result.stdout
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert not imported & SLOW


def test_imports_run_one_way():
    """envs <- generators <- models <- studies."""
    floors = ["envs", "generators", "models", "studies"]
    for height, floor in enumerate(floors):
        for path in (ROOT / floor).rglob("*.py"):
            lines = [line.split() for line in path.read_text().splitlines()]
            imported = {
                line[1].partition(".")[0] for line in lines if line[:1] in (["from"], ["import"]) and len(line) > 1
            }
            assert not imported & set(floors[height + 1 :]), path


def test_a_pipe_that_is_closed_is_no_error():
    """As `| head` closes it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "generators", "list"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141
