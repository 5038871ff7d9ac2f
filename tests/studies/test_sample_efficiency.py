"""Sample efficiency: what counts as an image, what the searches draw, and the study as a user runs it."""

import csv
import json
import shutil
import statistics
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from envs.errors import Stopped, UserError
from envs.world import load_world
from generators.binding import BindingRecipe
from generators.cluster_run import still_running
from generators.cluster_task import Interruption
from generators.dataset import SplitDataset
from generators.store import ImageStore
from models.recipes import Recipe
from studies import sample_efficiency
from studies.cells import finished, run_cell
from studies.cluster_cells import run_interruptible
from studies.run_folder import run_folder
from studies.sample_cluster import one_command
from studies.sample_efficiency import PRESETS
from studies.sample_run import identity, searches
from studies.search import draw, from_cube, space, to_cube
from studies.setting import Setting, cell_of, distinct_images, everything, images_of, job_of, least, setting_of
from studies.trial_storage import Trials, optuna
from studies.trial_workers import work
from tests.generators.conftest import failed, make_split
from tests.studies.command import ROOT, kill_when, run, until

SMOKE, LAPTOP = PRESETS["smoke"], PRESETS["laptop"]
STUDY = [sys.executable, str(ROOT / "studies" / "sample_efficiency.py"), "--preset", "smoke"]
QUICK = ["--seeds", "1", "--trials", "3", "--steps", "8", "--test-scenes", "8", "--workers", "1"]


@pytest.mark.parametrize("params", [(0.5, 0.5, 1, 0.5), (1.0, 1.0, 2, 0.5), (0.0, 0.5, 2, 0.3)], ids=str)
def test_images_are_counted_as_the_split_file_has_them(params, tmp_path):
    config = replace(SMOKE, test_scenes=4)
    setting = setting_of(config, dict(zip(asdict(least(config)), params, strict=True)))
    recipe = cell_of(config, "store", "clip", setting, seed=1).split
    path = make_split(tmp_path, recipe)
    train = SplitDataset(path, "train").records.scenes
    assert len(set(train)) == len(train) == images_of(config, setting) == distinct_images(recipe)
    lone = [scene for scene in train if len(scene.things) == 1]
    assert {scene.view for scene in lone} == set(range(setting.singles_views))
    assert failed(path) == []


def test_views_of_lone_animals_are_at_most_all():
    with pytest.raises(UserError, match="singles_views must be from 0 to views, 16; got 17"):
        BindingRecipe(singles_views=17)


def test_the_same_data_has_one_name():
    few, same = (
        {"pairs": pairs, "hard_negatives": 0.1, "singles_views": 1, "singles_share": 0.5} for pairs in (0.1, 0.15)
    )
    assert setting_of(LAPTOP, few) == setting_of(LAPTOP, same) == Setting(2 / 16, 0.0, 1, 0.5)
    assert setting_of(LAPTOP, few | {"pairs": 0.0, "hard_negatives": 1.0}).hard_negatives == 0


def test_every_setting_trains_alike_and_is_tested_alike():
    """As many steps; the same tests and validation, whatever the data."""
    recipes = [cell_of(LAPTOP, "store", "clip", setting, 0) for setting in (least(LAPTOP), everything(LAPTOP))]
    assert {cell.recipe for cell in recipes} == {recipes[0].recipe}
    assert (recipes[0].recipe.steps, recipes[0].recipe.warmup) == (700, round(389 * 700 / 2000))
    subsets = [cell.split.subsets() for cell in recipes]
    for name in ("unseen_pairs", "validation"):
        assert subsets[0][name] == subsets[1][name]
    assert set(subsets[0]["train"]) < set(subsets[1]["train"])


def test_points_of_the_cube_are_settings():
    ranges = space(LAPTOP)
    for point in ([0.0] * 4, [1.0] * 4, [0.25, 0.5, 1.0, 0.5]):
        assert to_cube(from_cube(point, ranges), ranges) == pytest.approx(point)
    assert from_cube([0.33, 0.4, 0.5, 0.1], ranges) == {
        **{"pairs": 0.35, "hard_negatives": 0.5, "singles_views": 3, "singles_share": 0.3},
    }


def known_accuracy(setting):
    """More pairs, more hard negatives and more views help; the share has a best value."""
    data = 16 * setting.pairs * (1 + 2 * setting.hard_negatives) * setting.singles_views**0.4
    return 0.5 + 0.5 * data / (data + 1 + 4 * abs(setting.singles_share - 0.6))


def known(config, search, trial):
    """An objective without training."""
    setting = setting_of(config, draw(trial, space(config)))
    images, accuracy = images_of(config, setting), known_accuracy(setting)
    trial.set_user_attr("accuracy", accuracy)
    trial.set_user_attr("images", images)
    if len(search.directions) == 2:
        return float(images), accuracy
    if accuracy < config.target:
        raise optuna.TrialPruned
    return (float(images),)


def run_known(storage, config, question, stop_after=None):
    """The trials of one search, by one worker; it may stop in the middle of a trial."""
    trials = Trials(str(storage))
    search = next(search for search in searches(config, "s") if f" {question} " in search.name)
    trials.open(search, identity(config))

    def objective(search, trial):
        draw(trial, space(config))
        if trial.number == stop_after:
            raise KeyboardInterrupt
        return known(config, search, trial)

    if stop_after is not None:
        with pytest.raises(KeyboardInterrupt):
            work(trials, [search], objective)
        return run_known(storage, config, question)
    work(trials, [search], objective)
    return [(trial.params, trial.values, trial.state.name) for trial in trials.all(search)], trials.all(search)


@pytest.mark.parametrize("question", ["front", "target"])
def test_one_worker_tries_the_same_however_often_it_is_stopped(question, tmp_path):
    config = replace(LAPTOP, trials=9)
    once, _ = run_known(tmp_path / "a.log", config, question)
    stopped, _ = run_known(tmp_path / "b.log", config, question, stop_after=6)
    assert stopped == once
    assert len({json.dumps(params) for params, _, _ in once}) >= 8


def test_the_boundary_is_found_and_trials_are_spent_there(tmp_path):
    config = replace(LAPTOP, trials=16, target=0.9)
    _, trials = run_known(tmp_path / "j.log", config, "target")
    found = min(trial.user_attrs["images"] for trial in trials if trial.user_attrs["accuracy"] >= 0.9)
    grid = [
        setting_of(config, from_cube([p / 20, h / 4, v / 8, 2 / 3], space(config)))
        for p in range(21)
        for h in range(5)
        for v in range(9)
    ]
    fewest = min(images_of(config, setting) for setting in grid if known_accuracy(setting) >= 0.9)
    assert fewest <= found <= 1.3 * fewest
    late = [abs(trial.user_attrs["accuracy"] - 0.9) for trial in trials[5:]]
    assert statistics.median(late) < 0.05


def test_validation_is_watched_without_a_trace(tmp_path):
    """A run whose validation is asked in the middle ends with the same bytes."""
    config = replace(SMOKE, seeds=1, test_scenes=4, recipe=Recipe(steps=6, batch=8))
    store = ImageStore(tmp_path, load_world("tiny"), 32)
    job = job_of(store, cell_of(config, store.identity, "oc-clip", least(config), 0), tmp_path)
    seen = []
    run_cell(job, lambda step: None)
    run_cell(replace(job, folder=tmp_path / "watched"), lambda step: None, lambda step, ask: seen.append(ask()))
    assert len(seen) == 6
    assert seen[-1] == finished(job.folder)["subsets"]["validation"]["swap"]["accuracy"]
    for name in ("predictions.csv", "checkpoint/model.safetensors"):
        assert (tmp_path / "watched" / name).read_bytes() == (job.folder / name).read_bytes()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with one undisturbed run by one worker."""
    folder = tmp_path_factory.mktemp("sample")
    result = run([*STUDY, *QUICK, "--out", "runs/a"], folder)
    assert result.returncode == 0, result.stderr
    return folder / "runs/a"


def test_a_run_ends_with_its_report(study):
    rows = list(csv.DictReader((study / "trials.csv").open()))
    for model in ("clip", "oc-clip"):
        for question in ("front", "target"):
            mine = [row for row in rows if (row["model"], row["question"]) == (model, question)]
            assert [row["trial"] for row in mine] == ["0", "1", "2"]
            assert {row["state"] for row in mine} <= {"complete", "pruned"}
            assert {row["images_seen"] for row in mine} == {str(8 * 16)}
    first = [{name: row[name] for name in ("pairs", "singles_share", "images")} for row in rows if row["trial"] == "1"]
    assert first == first[:1] * 4, "all searches begin alike"
    report = (study / "report.html").read_text()
    assert report.count('src="data:image/png;base64,') == 2
    assert "<code>validation</code>" in report
    assert (study / "results.tex").read_text().count(r"\begin{table}") == 3
    assert [row["models"] for row in csv.DictReader((study / "ratios.csv").open())] == ["oc-clip : clip"]


def test_killed_and_started_again_it_tries_the_same(study, tmp_path):
    shutil.copytree(study.parents[1] / "store", tmp_path / "store")
    out = tmp_path / "runs/b"
    command = [*STUDY, *QUICK, "--out", "runs/b"]
    kill_when(command, tmp_path, lambda: len(list(out.glob("cells/*/result.json"))) == 2)
    result = run(command, tmp_path)
    assert result.returncode == 0, result.stderr
    assert (out / "trials.csv").read_bytes() == (study / "trials.csv").read_bytes()
    for cell in out.glob("cells/*"):
        assert finished(cell)["subsets"] == finished(study / "cells" / cell.name)["subsets"]


def trials_of(out):
    """Settings and accuracies of all trials; when a target's are pruned depends on those that ended before."""
    rows = list(csv.DictReader((out / "trials.csv").open()))
    told = ("question", "model", "trial", "pairs", "hard_negatives", "singles_views", "singles_share", "images")
    fronts = [row for row in rows if row["question"] == "front"]
    return [[row[name] for name in told] for row in rows], fronts


def test_two_workers_on_slurm_try_the_same(study, slurm):
    """Though one of them is told to end: it gives its trial back and queues again.

    With three trials all settings are the first ones, which are the same however many workers there are.
    """
    folder, out = study.parents[1], study.parent / "slurm"
    command = [*STUDY, *QUICK, "--cluster", "slurm", "--workers", "2", "--out", "runs/slurm"]
    launcher = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: any("trial" in log.read_text() for log in out.glob("cluster/*_0_0_log.out")), launcher)
    worker = json.loads((out / "cluster/tasks.json").read_text())["worker 0"]
    preempt = subprocess.Popen(["scancel", "--signal=TERM", worker[1]])  # it tries again if all goes well
    output, errors = launcher.communicate(timeout=300)
    preempt.kill()
    preempt.wait()
    assert launcher.returncode == 0, errors
    assert trials_of(out) == trials_of(study)
    assert "12 of 12 trials have ended" in output
    assert "Requeued job" in Path(worker[2]).read_text()
    assert not still_running(out / "cluster")


def test_a_worker_between_two_runs_ends_at_once(tmp_path):
    """Also when the last run was pruned between two steps, and when it was asked to end just then."""
    config = replace(SMOKE, seeds=1, test_scenes=4, recipe=Recipe(steps=6, batch=8))
    store = ImageStore(tmp_path, load_world("tiny"), 32)
    job = job_of(store, cell_of(config, store.identity, "clip", least(config), 0), tmp_path)

    def prune(step, accuracy):
        raise optuna.TrialPruned

    interruption = Interruption()
    with pytest.raises(optuna.TrialPruned):
        run_interruptible(job, interruption, prune)
    with pytest.raises(Stopped):
        interruption.ask(0, None)

    def ask_and_prune(step, accuracy):
        interruption.ask(0, None)
        raise optuna.TrialPruned

    interruption = Interruption()
    with pytest.raises(Stopped):
        run_interruptible(job, interruption, ask_and_prune)


def test_one_command_waits_for_tasks(tmp_path):
    other = pytest.raises(UserError, match="another command waits for the tasks")
    with one_command(tmp_path), other, one_command(tmp_path):
        pass


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--cluster", "slurm"], "--cluster slurm needs --workers"),
        (["--target", "0.4"], "--target is above chance"),
        (["--trials", "0"], "--trials must be at least 1"),
        (["--singles-shares", "2"], "--singles-shares are fractions"),
        (["--reserve", "0"], "--reserve must leave pairs"),
        (["--models", "clipp"], "did you mean 'clip'"),
    ],
)
def test_a_mistake_is_one_line(arguments, told, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sample_efficiency.py", "--preset", "smoke", *arguments])
    with pytest.raises(UserError, match=told):
        sample_efficiency.main()
    assert not list(tmp_path.iterdir())


def test_a_password_is_nowhere_in_the_folder(tmp_path):
    url = "postgresql+psycopg://me:secret@127.0.0.1:1/none"
    result = run([*STUDY, *QUICK, "--storage", url, "--out", "runs/p"], tmp_path)
    assert result.returncode == 2
    assert "can't be opened" in result.stderr
    config = (tmp_path / "runs/p/config.json").read_text()
    assert "me:***@127" in config
    assert "secret" not in config + result.stderr


def test_runs_of_one_configuration_share_a_folder(tmp_path):
    def enter(config, shared=True):
        with run_folder(tmp_path / "r", config, frozenset(), shared):
            return

    with run_folder(tmp_path / "r", SMOKE, frozenset(), shared=True):
        enter(SMOKE)
        with pytest.raises(UserError, match="another configuration: target"):
            enter(replace(SMOKE, target=0.9))
        with pytest.raises(UserError, match="another run is working"):
            enter(SMOKE, shared=False)
    enter(SMOKE, shared=False)
