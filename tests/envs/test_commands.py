"""The commands of `menagerie`."""

import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

from menagerie.envs.checks.gallery import KINDS
from tests.command import run_here


def _run(*arguments: object) -> subprocess.CompletedProcess:
    return run_here([sys.executable, "-m", "menagerie", *map(str, arguments)], Path.cwd())


def test_gallery_writes_a_sheet(tmp_path):
    out = tmp_path / "sheet.png"
    done = _run("gallery", "--out", out, "--resolution", 32, "--rows", 1, "--columns", 2, "--world", "tiny")
    assert done.returncode == 0, done.stderr
    assert matplotlib.image.imread(out).shape[:2] == (32, 64)


@pytest.mark.parametrize("options", [*(("--kind", kind) for kind in KINDS), ("--layout", "rows")])
def test_gallery_of_every_kind_is_a_page_that_needs_no_other_file(options, tmp_path):
    out = tmp_path / "sheet.html"
    done = _run("gallery", "--out", out, *options, "--resolution", 16, "--columns", 2, "--world", "tiny")
    assert done.returncode == 0, done.stderr
    page = out.read_text()
    assert page.count("<img") >= 4
    assert page.count("<img") == page.count('src="data:image/png;base64,')
    assert "elephant" in page


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
