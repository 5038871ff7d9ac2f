"""The commands of `menagerie`."""

import sys
from pathlib import Path

import matplotlib.image
import pytest

from tests.command import run_here


def run_menagerie(*arguments: object) -> str:
    """What a command prints; it must succeed."""
    done = run_here([sys.executable, "-m", "menagerie", *map(str, arguments), "--world", "tiny"], Path.cwd())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["scenes", "animals", "backgrounds", "slots"])
def test_gallery_shows_random_scenes_or_every_animal_of_a_world(kind, tmp_path):
    out = tmp_path / "sheet.png"
    run_menagerie("gallery", "--out", out, "--kind", kind, "--resolution", 16, "--rows", 1, "--columns", 2)
    height, width, _ = matplotlib.image.imread(out).shape
    assert (height, width) == (16, 32) if kind == "scenes" else height > 4 * 16


@pytest.mark.parametrize(
    ("options", "rows"), [((), ["whole image"]), (("--layout", "rows"), ["hidden shares agree", "relations hold"])]
)
def test_check_of_the_renderer_passes(options, rows):
    printed = run_menagerie("check-renderer", "--scenes", 3, "--resolution", 48, *options)
    assert [row for row in (*rows, "worst scene:") if row not in printed] == []
