"""What a grid is refused for, each in one clear line."""

import pytest

from tests.command import GRID, QUICK, run_here

MISTAKES = {
    "a misspelt model": (["--models", "clip", "oc-clop"], "unknown model 'oc-clop'; did you mean 'oc-clip'?"),
    "a misspelt preset": (["--preset", "lapttop"], "unknown preset 'lapttop'; did you mean 'laptop'?"),
    "a misspelt world": (["--world", "pugg"], "unknown world 'pugg'; did you mean 'pug'?"),
    "a misspelt architecture": (
        ["--architecture", "ViT-B-15"],
        "unknown architecture 'ViT-B-15'; did you mean 'ViT-B-1",
    ),
    "towers without patches": (["--architecture", "RN50"], "oc-clip needs patch tokens, which 'RN50' does not give"),
    "heads that don't divide": (["--oc-clip.heads", "3"], "model oc-clip can't be built as configured: "),
    "a fraction above 1": (["--pairs", "20"], "pairs must be at most 1, got 20"),
    "a fraction below 0": (["--hard-negatives", "-0.1"], "--hard-negatives must be at least 0, got -0.1"),
    "no resolution": (["--resolution", "0"], "--resolution must be at least 16, got 0"),
    "a resolution between patches": (["--resolution", "33"], "resolution 33 is not a multiple of nano's patch 8"),
    "a rate that a paper's replaces": (
        ["--tuned", "paper", "--models", "oc-clip", "--learning-rate", "1e-4"],
        "--learning-rate is replaced by the recipes of --tuned paper",
    ),
    "an option that was tuned": (
        ["--tuned", "breadth", "--models", "siglip", "clip", "--siglip.logit-bias", "-8"],
        "--siglip.logit-bias is replaced by the recipes of --tuned breadth",
    ),
    "models without a tuned recipe": (
        ["--tuned", "laptop", "--models", "filip"],
        "has recipes for clip, oc-clip, negclip, sparo, flair, not for filip; --tuned '' trains all models alike",
    ),
    "no steps": (["--steps", "0"], "--steps must be at least 1, got 0"),
    "a file of no class": (["--models", "nothing.py:Scorer"], "there must be a file 'nothing.py'"),
    "a device that isn't there": (["--device", "tpu"], "unknown --device 'tpu'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_clear_line(mistake, tmp_path):
    arguments, message = MISTAKES[mistake]
    result = run_here([*GRID, *QUICK, *arguments], tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr
    assert not list(tmp_path.iterdir()), "nothing is made before the mistake is found"


@pytest.mark.parametrize(
    "arguments", [["--compare", "a"], ["--compare", "a", "b", "--seeds", "2"], ["--compare", ".", "."]]
)
def test_a_wrong_comparison_is_one_line(arguments, tmp_path):
    result = run_here([*GRID, *arguments], tmp_path)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "--compare RUN_A RUN_B" in result.stderr or "is not the folder of a study" in result.stderr


def test_output_folder_that_is_a_file_or_a_strangers(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    result = run_here([*GRID, *QUICK, "--out", "notes.txt"], tmp_path)
    assert (result.returncode, (tmp_path / "notes.txt").read_text()) == (2, "mine")
    assert "notes.txt is a file" in result.stderr
    result = run_here([*GRID, *QUICK, "--out", "."], tmp_path)
    assert result.returncode == 2
    assert "is not a study's folder" in result.stderr
