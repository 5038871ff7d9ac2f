"""The commands of `menagerie`."""

import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

from tests.command import run_here


def _run(*arguments: object) -> subprocess.CompletedProcess:
    return run_here([sys.executable, "-m", "menagerie", *map(str, arguments)], Path.cwd())


def test_gallery_writes_a_sheet(tmp_path):
    out = tmp_path / "sheet.png"
    done = _run("gallery", "--out", out, "--resolution", 32, "--rows", 1, "--columns", 2, "--world", "tiny")
    assert done.returncode == 0, done.stderr
    assert matplotlib.image.imread(out).shape[:2] == (32, 64)


@pytest.mark.parametrize("kind", ["animals", "backgrounds", "slots"])
def test_gallery_shows_every_animal_of_a_world(kind, tmp_path):
    out = tmp_path / "sheet.png"
    done = _run("gallery", "--out", out, "--kind", kind, "--resolution", 16, "--world", "tiny")
    assert done.returncode == 0, done.stderr
    assert matplotlib.image.imread(out).shape[0] > 4 * 16


def test_check_passes_and_prints_its_bounds():
    done = _run("check-renderer", "--scenes", 3, "--resolution", 48, "--world", "tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "whole image" in done.stdout
    assert "worst scene:" in done.stdout


def test_check_of_a_layout_says_what_is_hidden_and_how_relations_hold():
    done = _run(*["check-renderer", "--layout", "rows", "--scenes", "3", "--resolution", "48", "--world", "tiny"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hidden shares agree" in done.stdout
    assert "scenes whose relations hold, share" in done.stdout
