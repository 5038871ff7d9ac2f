"""Equal tuning as a user runs it."""

import csv
import json
import re
import shutil
import sys
from dataclasses import replace

import optuna
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import read_record
from menagerie.models.recipe import Recipe
from menagerie.models.towers.config import TowerConfig
from menagerie.studies import binding_grid, sample_efficiency, spatial_grid, tune
from menagerie.studies.frame.cells import SEARCHED, SHIPPED, read_tuned
from menagerie.studies.pages.tune import Searched, chosen_sentence
from menagerie.studies.runs.differences import with_defaults
from tests.command import GRID, ROOT, run_here, succeed
from tests.forked import kill_when

GRIDS = (binding_grid, spatial_grid)

TUNE = [sys.executable, str(ROOT / "studies" / "tune.py"), "--preset", "smoke", "--steps", "6", "--batch", "8"]
SMALL = ["--views", "1", "--test-scenes", "8", "--trials", "5", "--at-once", "2", "--finalists", "2"]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    succeed([*TUNE, *SMALL, "--out", "runs/t"], folder)
    return folder


def trials(folder):
    return list(csv.DictReader((folder / "trials.csv").open()))


def test_every_model_gets_as_many_trials_over_the_same_space(tuned):
    rows = trials(tuned / "runs/t")
    for model in ("clip", "oc-clip"):
        mine = [row for row in rows if row["model"] == model]
        assert [row["trial"] for row in mine] == [str(n) for n in range(5)]
        assert all(3e-4 <= float(row["learning_rate"]) <= 1e-2 for row in mine)
        assert len({row["learning_rate"] for row in mine}) == 5
    searched = [[row[name] for name in row if name not in ("model", "validation", "repeated")] for row in rows]
    assert searched[0] == searched[5], "the same first trials for every model"


def test_the_best_is_the_best_on_validation_and_nothing_else(tuned):
    rows, best = trials(tuned / "runs/t"), read_record(tuned / "runs/t/best.json")
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


def test_started_again_it_draws_the_same_and_trains_nothing(tuned):
    before = (tuned / "runs/t/trials.csv").read_bytes()
    stamps = {path: path.stat().st_mtime_ns for path in tuned.glob("runs/t/cells/*/result.json")}
    assert run_here([*TUNE, *SMALL, "--out", "runs/t", "--workers", "1"], tuned, page=False).returncode == 0
    assert (tuned / "runs/t/trials.csv").read_bytes() == before
    assert {path: path.stat().st_mtime_ns for path in tuned.glob("runs/t/cells/*/result.json")} == stamps


def test_killed_and_started_again_on_a_cluster_it_draws_the_same(tuned, tmp_path):
    """One model, killed in the last trials of its search, ends on a cluster, where each run loads torch anew."""
    shutil.copytree(tuned / "store", tmp_path / "store")
    command, out = [*TUNE, *SMALL, "--models", "clip", "--out", "runs/b"], tmp_path / "runs/b"
    kill_when([*command, "--workers", "2"], tmp_path, lambda: len(list(out.glob("cells/*/result.json"))) >= 4)
    assert not (out / "best.json").exists()
    succeed([*command, "--workers", "3", "--cluster", "local"], tmp_path, page=False)
    for name in ("results.csv", "trials.csv"):
        both = list(csv.DictReader((tuned / "runs/t" / name).open()))
        assert list(csv.DictReader((out / name).open())) == [row for row in both if row["model"] == "clip"]
    assert read_record(out / "best.json")["clip"] == read_record(tuned / "runs/t/best.json")["clip"]


def test_a_grid_takes_each_models_own_recipe(tuned):
    best = read_record(tuned / "runs/t/best.json")
    options = ["--preset", "smoke", "--pairs", "0.5", "--hard-negatives", "0", "--views", "1", "--test-scenes", "8"]
    succeed([*GRID, *options, "--tuned", "runs/t/best.json", "--out", "runs/g"], tuned, page=False)
    for line in (tuned / "runs/g/cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        recipe = with_defaults(cell["settings"]["recipe"], Recipe())
        assert {name: recipe[name] for name in SEARCHED} == {n: best[cell["model"]]["recipe"][n] for n in SEARCHED}
        towers = with_defaults(cell["settings"]["towers"], TowerConfig())
        assert towers["architecture"] == best[cell["model"]]["architecture"]


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
    rows = list(csv.DictReader((SHIPPED / f"{name}-trials.csv").open()))
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
    first = trials(tuned / "runs/t")[0]
    assert (float(first["learning_rate"]), first["architecture"]) == (2e-3, "nano")


def test_a_range_of_one_value_is_not_searched(tmp_path):
    study = replace(tune.Tune(), models=("clip",), learning_rates=(1e-3,), singles_shares=(0.5,), trials=6)
    assert study.space("clip")["learning_rate"].single()
    search = study.search("clip")
    drawn = [*search.first, *(search.sampled([], number) for number in (4, 5))]
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


def test_a_chosen_trial_that_nothing_was_compared_with_is_not_called_best():
    """Nor is its value called accuracy on validation, of which there are no records."""
    trial = optuna.trial.create_trial(value=0.6)

    def said(means):
        return chosen_sentence(Searched("clip", [trial], means, {}, 0, over=True), seeds=2).text

    assert "best" in said({trial.number: 0.6, 8: 0.5})
    assert not re.search("best|validation|chance", said({trial.number: 0.6}))
