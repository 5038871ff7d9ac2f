"""A grid of a model that starts from another's training: DCSM on its frozen CLIP."""

import csv
import json
from dataclasses import asdict, replace

import pytest

from menagerie.envs.core.records import write_record
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.runs.cell import CHECKPOINT
from menagerie.studies.runs.results import RESULT
from tests.command import GRID, QUICK, run_here
from tests.forked import kill_when
from tests.grid_cells import cells

DCSM = [*GRID, *QUICK, "--models", "dcsm", "--hard-negatives", "1", "--workers", "1", "--out", "runs/d"]


def made(folder):
    """What every cell makes, the CLIP's too, but for timing."""
    cells = sorted((folder / "runs" / "d" / "cells").iterdir())
    files = [f"{CHECKPOINT}/model.safetensors", f"{CHECKPOINT}/config.json", "predictions.csv"]
    logs = [[line.rsplit(",", 2)[0] for line in (cell / "training.csv").read_text().splitlines()] for cell in cells]
    return [[(cell / file).read_bytes() for file in files] for cell in cells], logs


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A grid that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    done = run_here(DCSM, folder, figures=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_its_clip_is_a_cell_whose_passes_count(whole):
    out = whole / "runs" / "d"
    results = [json.loads(file.read_text()) for file in out.glob(f"cells/*/{RESULT}")]
    assert {result["model"]: result["images_seen"] for result in results} == {"clip": 130 * 8, "dcsm": 2 * 130 * 8}
    (own,) = (result for result in results if result["model"] == "dcsm")
    assert own["settings"]["base"]["model"] == "clip"
    assert own["settings"]["negatives"] == ["captions", "images"]
    rows = list(csv.DictReader((out / "results.csv").open()))
    assert {row["model"] for row in rows} == {"dcsm"}
    assert "DCSM" in (out / "report.html").read_text()


def test_killed_in_its_clip_and_in_itself_it_ends_the_same(whole, tmp_path):
    (tmp_path / "store").symlink_to(whole / "store")
    cells = tmp_path / "runs" / "d" / "cells"
    kill_when(DCSM, tmp_path, lambda: any(cells.glob("*/state.pt")))
    assert not any(cells.glob(f"*/{RESULT}"))
    kill_when(DCSM, tmp_path, lambda: any(cells.glob(f"*/{RESULT}")) and any(cells.glob("*/state.pt")))
    assert len(list(cells.glob(f"*/{RESULT}"))) == 1
    last = run_here(DCSM, tmp_path, page=False)
    assert last.returncode == 0, last.stderr
    assert made(tmp_path) == made(whole)


def test_a_tuned_recipe_is_that_of_both(tmp_path):
    """Tuning trains the CLIP with each trial's recipe: what it chose is trained again as it was."""
    recipe = asdict(Recipe(learning_rate=7e-4, warmup=9, singles_share=0.5))
    entry = {"architecture": "nano", "recipe": recipe, "tuned_for": {"options": {}}, "options": {"hidden": 32}}
    write_record(tmp_path / "best.json", {"dcsm": entry})
    grid = replace(PRESETS["smoke"], models=("dcsm",), tuned=str(tmp_path / "best.json"))
    for cell in cells(grid, "store"):
        assert cell.options["hidden"] == 32
        assert cell.base.recipe == cell.recipe
        assert cell.recipe.learning_rate == 7e-4
    for cell in cells(replace(grid, tuned="paper"), "store"):
        assert (cell.recipe.learning_rate, cell.base.recipe.learning_rate) == (1e-3, 5e-4)
