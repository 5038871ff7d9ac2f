"""Equal tuning as a user runs it."""

import csv
import json
import re
import shutil
import sys
from dataclasses import asdict, replace

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import completed
from menagerie.envs.core.records import read_record, write_record
from menagerie.models.recipe import Recipe
from menagerie.models.towers.config import TowerConfig
from menagerie.studies import binding_grid, sample_efficiency, spatial_grid, tune
from menagerie.studies.frame.cells import SEARCHED, SHIPPED, read_tuned, recipe_line, training_recipe
from menagerie.studies.pages.tune import Searched, sentence
from menagerie.studies.runs.command_line import scorer_options
from tests.command import GRID, ROOT, run_here
from tests.forked import kill_when
from tests.studies.browser import CHROMIUM, assert_readable, plain

GRIDS = (binding_grid, spatial_grid)

TUNE = [sys.executable, str(ROOT / "studies" / "tune.py"), "--preset", "smoke", "--steps", "6", "--batch", "8"]
SMALL = ["--views", "1", "--test-scenes", "8", "--trials", "5", "--at-once", "2", "--finalists", "2"]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    result = run_here([*TUNE, *SMALL, "--out", "runs/t"], folder)
    assert result.returncode == 0, result.stderr
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


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_report_can_be_read_on_a_telephone(tuned, tmp_path):
    assert_readable(tuned / "runs/t/report.html", tmp_path)


def test_started_again_it_draws_the_same_and_trains_nothing(tuned):
    before = (tuned / "runs/t/trials.csv").read_bytes()
    stamps = {path: path.stat().st_mtime_ns for path in tuned.glob("runs/t/cells/*/result.json")}
    assert run_here([*TUNE, *SMALL, "--out", "runs/t", "--workers", "1"], tuned, page=False).returncode == 0
    assert (tuned / "runs/t/trials.csv").read_bytes() == before
    assert {path: path.stat().st_mtime_ns for path in tuned.glob("runs/t/cells/*/result.json")} == stamps


def test_a_folder_goes_on_with_further_models(tuned, tmp_path):
    """One model alone, then both: the first isn't trained again, and all is as if they had been tuned together."""
    shutil.copytree(tuned / "store", tmp_path / "store")
    command, out = [*TUNE, *SMALL, "--out", "runs/m"], tmp_path / "runs/m"
    result = run_here([*command, "--models", "oc-clip"], tmp_path, page=False)
    assert result.returncode == 0, result.stderr
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/result.json")}
    changed = run_here([*command, "--oc-clip.dim", "16"], tmp_path)
    assert "oc_clip.dim (32 there, 16 now)" in changed.stderr
    result = run_here(command, tmp_path, page=False)
    assert result.returncode == 0, result.stderr
    assert stamps.items() <= {path: path.stat().st_mtime_ns for path in out.glob("cells/*/result.json")}.items()
    for name in ("trials.csv", "best.json"):
        assert (out / name).read_bytes() == (tuned / "runs/t" / name).read_bytes()


def test_killed_and_started_again_on_a_cluster_it_draws_the_same(tuned, tmp_path):
    """One model, killed in the last trials of its search, ends on a cluster, where each run loads torch anew."""
    shutil.copytree(tuned / "store", tmp_path / "store")
    command, out = [*TUNE, *SMALL, "--models", "clip", "--out", "runs/b"], tmp_path / "runs/b"
    kill_when([*command, "--workers", "2"], tmp_path, lambda: len(list(out.glob("cells/*/result.json"))) >= 4)
    assert not (out / "best.json").exists()
    result = run_here([*command, "--workers", "3", "--cluster", "local"], tmp_path, page=False)
    assert result.returncode == 0, result.stderr
    for name in ("results.csv", "trials.csv"):
        both = list(csv.DictReader((tuned / "runs/t" / name).open()))
        assert list(csv.DictReader((out / name).open())) == [row for row in both if row["model"] == "clip"]
    assert read_record(out / "best.json")["clip"] == read_record(tuned / "runs/t/best.json")["clip"]


def test_optunas_own_programs_open_the_journal(tuned):
    """As optuna-dashboard does."""
    storage = JournalStorage(JournalFileBackend(str(tuned / "runs/t/journal.log")))
    studies = {study.study_name: study.n_trials for study in optuna.get_all_study_summaries(storage)}
    assert studies == {f"tune search {model}": 5 for model in ("clip", "oc-clip")}


def test_a_grid_takes_each_models_own_recipe(tuned):
    best = read_record(tuned / "runs/t/best.json")
    options = ["--preset", "smoke", "--pairs", "0.5", "--hard-negatives", "0", "--views", "1", "--test-scenes", "8"]
    result = run_here([*GRID, *options, "--tuned", "runs/t/best.json", "--out", "runs/g"], tuned, page=False)
    assert result.returncode == 0, result.stderr
    for line in (tuned / "runs/g/cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        recipe = completed(cell["settings"]["recipe"], asdict(Recipe()))
        assert {name: recipe[name] for name in SEARCHED} == {n: best[cell["model"]]["recipe"][n] for n in SEARCHED}
        towers = completed(cell["settings"]["towers"], asdict(TowerConfig()))
        assert towers["architecture"] == best[cell["model"]]["architecture"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parameters", "1000"], "more than --parameters 1000"),
        (["--split", "a.h5", "b.h5"], "a.h5"),
        (["--trials", "0"], "at least 1"),
        (["--at-once", "0"], "--at-once must be at least 1"),
        (["--storage", "nowhere/journal.log"], "there is no folder nowhere"),
        (["--tuned", "best.json"], "leave out --tuned and --pretrained"),
        (["--architectures", "nanno"], "did you mean 'nano'"),
        (["--learning-rates", "0", "1e-3"], "--learning-rates are one or two values above 0"),
        (["--singles-shares", "1.5"], "--singles-shares must be at most 1"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, tmp_path):
    result = run_here([*TUNE, *arguments], tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipe": {}}, "can't be read ('learning_rate')"),
        ({"recipe.learning_rate": "x"}, "learning_rate must be a number, got 'x'"),
        ({"recipe.warmup": 2.5}, "warmup must be a whole number, got 2.5"),
        ({"recipe.warmup": 10**30}, "best.json can't be read (--warmup must be at most"),
        ({"recipe.single_object_phase": 2.0}, "single-object-phase must be at most 1"),
        ({"recipe.local_weight": 1.0}, "unknown field 'local_weight'"),
        ({"recipe.learning_rat": 1e-3}, "unknown field 'learning_rat'; did you mean 'learning_rate'?"),
        ({"architecture": 5}, "unknown architecture '5'"),
    ],
    ids=str,
)
def test_a_wrong_file_of_recipes_is_named(tuned, tmp_path, change, message):
    best = read_record(tuned / "runs/t/best.json")
    for name, value in change.items():
        *path, last = name.split(".")
        for model in best:
            (best[model][path[0]] if path else best[model])[last] = value
    write_record(tmp_path / "best.json", best)
    result = run_here([*GRID, "--preset", "smoke", "--tuned", "best.json"], tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_file_of_recipes_may_be_edited_without_its_digest(tuned, tmp_path):
    file = tmp_path / "best.json"
    best = read_record(tuned / "runs/t/best.json")
    best["clip"]["recipe"]["learning_rate"] = 0.00123
    file.write_text(json.dumps(best))
    assert read_tuned(str(file), ["clip"])["clip"].fields["learning_rate"] == 0.00123
    file.write_text(json.dumps(best | {"digest": "sha256:0"}))
    with pytest.raises(UserError, match="without 'digest' where you edited it"):
        read_tuned(str(file), ["clip"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tuned", "laptp"], "unknown recipes for --tuned 'laptp'"),
        (["--tuned", "BEST", "--learning-rate", "1e-4"], "--learning-rate is replaced by the recipes"),
        (["--tuned", "BEST", "--architecture", "mini"], "add --tuned '' to set it"),
        (["--tuned", "none.json"], "none.json can't be read"),
    ],
)
def test_options_that_tuned_recipes_replace_are_refused(arguments, message, tuned, tmp_path):
    best = str(tuned / "runs/t/best.json")
    result = run_here([*GRID, "--preset", "smoke", *(best if part == "BEST" else part for part in arguments)], tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_grid_says_what_its_recipes_were_tuned_for(tuned, tmp_path):
    grid = replace(tune.PRESETS["smoke"], tuned=str(tuned / "runs/t/best.json"))
    assert recipe_line(grid, "clip").endswith("(tuned with steps 6, not 60)")
    assert recipe_line(replace(grid, recipe=replace(grid.recipe, steps=6)), "clip").endswith("(tuned)")
    spatial = replace(spatial_grid.PRESETS["smoke"], tuned=grid.tuned, recipe=replace(grid.recipe, steps=6))
    assert recipe_line(spatial, "clip").endswith("(tuned with kind binding, not spatial)")
    (tmp_path / "own.py").write_text(
        "from menagerie.models.networks.clip import CLIPScorer\n\nclass Own(CLIPScorer):\n    pass\n"
    )
    name = f"{tmp_path}/own.py:Own"
    own = replace(grid, models=("clip", name), scorers=scorer_options("smoke", [name]))
    assert recipe_line(own, name).endswith("(not tuned)")
    assert training_recipe(own, name) == grid.recipe


def test_a_grid_says_all_options_of_a_model():
    """Those of small towers and those left at their defaults, so that a result says what it is of."""
    line = recipe_line(binding_grid.PRESETS["laptop"], "oc-clip")
    assert "; dim 64, relation_dim 32, relation additive, " in line
    assert "layers 0, heads 4, " in line
    assert "position_scale 0.02, logit_scale 14.2857, " in line


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
        return sentence(Searched("clip", [trial], means, {}, 0, over=True), seeds=2).text

    assert "best" in said({trial.number: 0.6, 8: 0.5})
    assert not re.search("best|validation|chance", said({trial.number: 0.6}))


def test_the_chosen_trial_is_marked(tuned):
    """In the table, in words and in the figure."""
    out = tuned / "runs/t"
    rows, best = trials(out), read_record(out / "best.json")
    html = plain(out / "report.html")
    marked = re.findall(r"<tr><td>([^<]*)</td><td>✓</td><td>(\d+)</td>", html)
    tested = [(row["model"], float(row["repeated"])) for row in rows if row["repeated"]]
    repeated = {model: max(value for name, value in tested if name == model) for model in best}
    assert {model for model, _ in marked} == set(best)
    for model, trial in marked:
        (row,) = (row for row in rows if (row["model"], row["trial"]) == (model, trial))
        assert float(row["repeated"]) == repeated[model] == best[model]["validation"]
        level = f"{100 * float(row['repeated']):.1f} % [only 2 pairs: no interval]"
        assert f"{model}: trial {trial} is best, with {level} of validation over 2 seeds" in html
