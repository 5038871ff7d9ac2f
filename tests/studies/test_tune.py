"""Equal tuning as a user runs it."""

import json
import shutil
import sys
from dataclasses import replace

import optuna
import pytest
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import read_record
from menagerie.studies import binding_grid, sample_efficiency, spatial_grid, tune
from menagerie.studies.frame.cells import SEARCHED, SHIPPED, read_tuned
from tests.command import ROOT, read_rows, run_here, succeed
from tests.forked import kill_when
from tests.grid_cells import cells

GRIDS = (binding_grid, spatial_grid)

TUNE = [sys.executable, str(ROOT / "studies" / "tune.py"), "--preset", "smoke", "--steps", "6", "--batch", "8"]
SMALL = ["--views", "1", "--test-scenes", "8", "--trials", "5", "--at-once", "2", "--finalists", "2"]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    succeed([*TUNE, *SMALL, "--out", "runs/t"], folder, figures=False)
    return folder


def test_every_model_gets_as_many_trials_over_the_same_space(tuned):
    rows = read_rows(tuned / "runs/t/trials.csv")
    for model in ("clip", "oc-clip"):
        mine = [row for row in rows if row["model"] == model]
        assert [row["trial"] for row in mine] == [str(n) for n in range(5)]
        assert all(3e-4 <= float(row["learning_rate"]) <= 1e-2 for row in mine)
        assert len({row["learning_rate"] for row in mine}) == 5
    searched = [[row[name] for name in row if name not in ("model", "validation", "repeated")] for row in rows]
    assert searched[0] == searched[5], "the same first trials for every model"


def test_the_best_is_the_best_on_validation_and_nothing_else(tuned):
    rows, best = read_rows(tuned / "runs/t/trials.csv"), read_record(tuned / "runs/t/best.json")
    for model, chosen in best.items():
        mine = [row for row in rows if row["model"] == model]
        finals = [row for row in mine if row["repeated"]]
        assert len(finals) == 2
        assert min(float(row["validation"]) for row in finals) >= sorted(float(row["validation"]) for row in mine)[-2]
        row = max(finals, key=lambda row: float(row["repeated"]))
        assert chosen["validation"] == float(row["repeated"])
        assert chosen["recipe"]["learning_rate"] == pytest.approx(float(row["learning_rate"]))
        assert chosen["recipe"]["steps"] == 6
    report = (tuned / "runs/t/report.html").read_text()
    assert report.count("<tr>") >= 11
    assert 'src="data:image/png;base64,' in report


def test_tuning_started_again_draws_the_same_and_trains_nothing(tuned):
    before = (tuned / "runs/t/trials.csv").read_bytes()
    stamps = {path: path.stat().st_mtime_ns for path in tuned.glob("runs/t/cells/*/result.json")}
    assert run_here([*TUNE, *SMALL, "--out", "runs/t", "--workers", "1"], tuned, page=False).returncode == 0
    assert (tuned / "runs/t/trials.csv").read_bytes() == before
    assert {path: path.stat().st_mtime_ns for path in tuned.glob("runs/t/cells/*/result.json")} == stamps


def test_killed_and_started_again_it_draws_the_same(tuned, tmp_path):
    """One model, killed in the last trials of its search, goes on with another number of workers."""
    shutil.copytree(tuned / "store", tmp_path / "store")
    command, out = [*TUNE, *SMALL, "--models", "clip", "--out", "runs/b"], tmp_path / "runs/b"
    kill_when([*command, "--workers", "2"], tmp_path, lambda: len(list(out.glob("cells/*/result.json"))) >= 4)
    assert not (out / "best.json").exists()
    succeed([*command, "--workers", "3"], tmp_path, page=False)
    for name in ("results.csv", "trials.csv"):
        both = read_rows(tuned / "runs/t" / name)
        assert read_rows(out / name) == [row for row in both if row["model"] == "clip"]
    assert read_record(out / "best.json")["clip"] == read_record(tuned / "runs/t/best.json")["clip"]


def test_a_grid_takes_each_models_own_recipe(tuned):
    best = read_record(tuned / "runs/t/best.json")
    grid = replace(binding_grid.PRESETS["smoke"], tuned=str(tuned / "runs/t/best.json"))
    for cell in cells(grid, "store"):
        recipe = best[cell.model]["recipe"]
        assert {name: getattr(cell.recipe, name) for name in SEARCHED} == {name: recipe[name] for name in SEARCHED}
        assert cell.towers.architecture == best[cell.model]["architecture"]


def test_a_file_of_recipes_may_be_edited_without_its_digest(tuned, tmp_path):
    file = tmp_path / "best.json"
    best = read_record(tuned / "runs/t/best.json")
    best["clip"]["recipe"]["learning_rate"] = 0.00123
    file.write_text(json.dumps(best))
    assert read_tuned(str(file), ["clip"])["clip"].fields["learning_rate"] == 0.00123
    file.write_text(json.dumps(best | {"digest": "sha256:0"}))
    with pytest.raises(UserError, match="without 'digest' where you edited it"):
        read_tuned(str(file), ["clip"])


@pytest.mark.parametrize("name", [file.stem for file in SHIPPED.glob("*.json")])
def test_shipped_recipes_fit_a_preset(name):
    """Every file of recipes is some preset's, has all of its models, and evidence beside it."""
    studies = (*GRIDS, sample_efficiency)
    grid = next(preset for study in studies for preset in study.PRESETS.values() if preset.tuned == name)
    assert set(read_tuned(name, grid.models)) == set(grid.models)
    rows = read_rows(SHIPPED / f"{name}-trials.csv")
    recipes = read_record(SHIPPED / f"{name}.json")
    for model, entry in recipes.items():
        values = [float(row["repeated"] or 0) for row in rows if row["model"] == model]
        assert entry["validation"] == max(values)
        assert len(values) == len(rows) // len(recipes)


def test_the_first_trial_is_the_grids_own_recipe(tuned):
    assert tune.Tune().first_point("clip") == {
        "learning_rate": 2e-3,
        "weight_decay": 0.05,
        "warmup": 50,
        "singles_share": 0.95,
        "single_object_phase": 0.5,
        "architecture": "micro",
    }
    first = read_rows(tuned / "runs/t/trials.csv")[0]
    assert (float(first["learning_rate"]), first["architecture"]) == (2e-3, "nano")


def test_a_range_of_one_value_is_not_searched():
    study = replace(tune.Tune(), models=("clip",), learning_rates=(1e-3,), singles_shares=(0.5,), trials=6)
    assert study.space("clip")["learning_rate"].single()
    search = study.search("clip")
    owned = {"state": TrialState.RUNNING, "user_attrs": {"owner": "a"}}
    trials = [optuna.create_trial(**owned) for _ in range(6)]
    for number, trial in enumerate(trials):
        trial.number = number
    drawn = [search.draw(trial, trials, "a") for trial in trials]
    assert {(params["learning_rate"], params["singles_share"]) for params in drawn} == {(1e-3, 0.5)}
    assert len({params["weight_decay"] for params in drawn}) == 6


def test_the_recipes_of_sample_efficiency_are_tuned_on_its_setting_with_most_data():
    study, tuning = sample_efficiency.PRESETS["laptop"], tune.PRESETS["twelve"]
    assert study.tuned == "twelve"
    assert tuning.split_of(0, pairs=tuning.pairs, hard_negatives=tuning.hard_negatives) == study.recipe_of(
        study.everything, 0
    )
    assert tuning.recipe.singles_share == study.everything.singles_share
    assert tuning.recipe.decay == study.recipe.decay
