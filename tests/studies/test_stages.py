"""A grid of a model that starts from another's training: DCSM on its frozen CLIP."""

import json
from dataclasses import asdict, replace

import pytest

from menagerie.envs.core.records import write_record
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.runs.results import RESULT
from tests.command import GRID, QUICK, read_rows, succeed
from tests.forked import kill_when
from tests.grid_cells import cell_output, cells

DCSM = [*GRID, *QUICK, "--models", "dcsm", "--hard-negatives", "1", "--workers", "1", "--out", "runs/d"]


def made(folder):
    """What every cell makes, the CLIP's too."""
    return [cell_output(cell) for cell in sorted((folder / "runs" / "d" / "cells").iterdir())]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A grid that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    succeed(DCSM, folder, page=False)
    return folder


def test_a_staged_model_counts_the_images_of_its_clip(whole):
    out = whole / "runs" / "d"
    results = [json.loads(file.read_text()) for file in out.glob(f"cells/*/{RESULT}")]
    assert {result["model"]: result["images_seen"] for result in results} == {"clip": 130 * 8, "dcsm": 2 * 130 * 8}
    (own,) = (result for result in results if result["model"] == "dcsm")
    assert own["settings"]["base"]["model"] == "clip"
    assert own["settings"]["negatives"] == ["captions", "images"]
    rows = read_rows(out / "results.csv")
    assert {row["model"] for row in rows} == {"dcsm"}


def test_a_staged_run_killed_in_either_stage_ends_as_an_undisturbed_one(whole, tmp_path):
    (tmp_path / "store").symlink_to(whole / "store")
    cells = tmp_path / "runs" / "d" / "cells"
    kill_when(DCSM, tmp_path, lambda: any(cells.glob("*/state.pt")))
    assert not any(cells.glob(f"*/{RESULT}"))
    kill_when(DCSM, tmp_path, lambda: any(cells.glob(f"*/{RESULT}")) and any(cells.glob("*/state.pt")))
    assert len(list(cells.glob(f"*/{RESULT}"))) == 1
    succeed(DCSM, tmp_path, page=False)
    assert made(tmp_path) == made(whole)


def test_a_tuned_recipe_holds_for_both_stages(tmp_path):
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
