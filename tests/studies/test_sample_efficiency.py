"""The study of sample efficiency as a user runs it, on one machine and on a cluster."""

import csv
import html
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.image_store import ImageStore
from menagerie.models.recipe import Recipe
from menagerie.studies import sample_efficiency
from menagerie.studies.cluster.tasks import still_running
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.runs.cell import Execution
from menagerie.studies.runs.dispatch import run_interruptible
from menagerie.studies.runs.folder import run_folder
from menagerie.studies.runs.results import finished
from menagerie.studies.runs.train import Watch
from menagerie.studies.sample_efficiency import PRESETS
from menagerie.studies.sample_search.budget import cell_of, job_of, least
from menagerie.studies.trials.launch import one_command
from tests.command import ROOT, ended, kill_when, run_here, started, until
from tests.studies.browser import CHROMIUM, assert_readable, plain

SMOKE = PRESETS["smoke"]
STUDY = [sys.executable, str(ROOT / "studies" / "sample_efficiency.py"), "--preset", "smoke"]
QUICK = ["--seeds", "1", "--trials", "3", "--steps", "8", "--test-scenes", "8", "--workers", "1"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with one undisturbed run by one worker."""
    folder = tmp_path_factory.mktemp("sample")
    result = run_here([*STUDY, *QUICK, "--out", "runs/a"], folder)
    assert result.returncode == 0, result.stderr
    return folder / "runs/a"


def test_a_run_ends_with_its_report(study):
    rows = list(csv.DictReader((study / "trials.csv").open()))
    for model in ("clip", "oc-clip"):
        for question in ("front", "target"):
            mine = [row for row in rows if (row["model"], row["question"]) == (model, question)]
            assert [row["trial"] for row in mine] == ["0", "1", "2"]
            assert {row["state"] for row in mine} <= {"complete", "pruned", "missed"}
            assert {row["images_seen"] for row in mine} == {str(8 * 16)}
    first = [{name: row[name] for name in ("pairs", "singles_share", "images")} for row in rows if row["trial"] == "1"]
    assert first == first[:1] * 4, "all searches begin alike"
    report = (study / "report.html").read_text()
    assert report.count('src="data:image/png;base64,') == 3 + 2, "fronts, course, map, and the settings of each model"
    assert "<code>validation</code>" in report
    assert "no model has 8 finished settings" in report, "three trials say nothing of what mattered"
    assert (study / "results.tex").read_text().count(r"\begin{table}") == 3
    (ratio,) = csv.DictReader((study / "ratios.csv").open())
    assert ratio["other model"] == "oc-clip"
    page = html.unescape(plain(study / "report.html"))
    assert ratio["in words"] in page
    assert "This is a smoke run: no model was trained for more than 8 steps" in page
    assert "<p>Records of each test in one run" in page
    with_target = [row["model"] for row in csv.DictReader((study / "targets.csv").open()) if row["passes"] != "–"]
    assert page.count("On the test the setting by which") == len(with_target)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_report_can_be_read_on_a_telephone(study, tmp_path):
    assert_readable(study / "report.html", tmp_path)


def test_killed_and_started_again_it_tries_the_same(study, tmp_path):
    shutil.copytree(study.parents[1] / "store", tmp_path / "store")
    out = tmp_path / "runs/b"
    command = [*STUDY, *QUICK, "--out", "runs/b"]
    kill_when(command, tmp_path, lambda: len(list(out.glob("cells/*/result.json"))) >= 2)
    result = run_here(command, tmp_path)
    assert result.returncode == 0, result.stderr
    assert (out / "trials.csv").read_bytes() == (study / "trials.csv").read_bytes()
    for cell in out.glob("cells/*"):
        assert finished(cell)["subsets"] == finished(study / "cells" / cell.name)["subsets"]


def test_budgets_grow_until_validation_stops_and_both_ratios_are_reported(study):
    budgets = ["--budgets", "8", "16", "24", "--decay", "0.25", "--rise", "0", "--models", "clip", "oc-clip"]
    result = run_here([*STUDY, *QUICK, *budgets, "--warmup", "2", "--out", "runs/budgets"], study.parents[1])
    assert result.returncode == 0, result.stderr
    out = study.parent / "budgets"
    rows = list(csv.DictReader((out / "trials.csv").open()))
    assert {row["images_seen"] for row in rows} <= {str(steps * 16) for steps in (8, 16, 24)}
    assert {row["state"] for row in rows} <= {"complete", "missed"}, "nothing is pruned"
    ratios = [row["compared"] for row in csv.DictReader((out / "ratios.csv").open())]
    assert ratios == ["at convergence", "at equal compute, 16 steps"]
    page = plain(out / "report.html")
    assert "Settings that got the cap before validation had stopped rising" in page


def trials_of(out):
    """Settings and accuracies of all trials; when a target's are pruned depends on those that ended before."""
    rows = list(csv.DictReader((out / "trials.csv").open()))
    columns = ("question", "model", "trial", "pairs", "hard_negatives", "singles_views", "singles_share", "images")
    fronts = [row for row in rows if row["question"] == "front"]
    return [[row[name] for name in columns] for row in rows], fronts


def test_two_workers_on_slurm_try_the_same(study, slurm):
    """Though one of them is signalled to end: it gives its trial back and queues again.

    With three trials all settings are the first ones, which are the same however many workers there are.
    """
    folder, out = study.parents[1], study.parent / "slurm"
    command = [*STUDY, *QUICK, "--cluster", "slurm", "--workers", "2", "--out", "runs/slurm"]
    launcher = started(command, folder)
    until(lambda: any("trial" in log.read_text() for log in out.glob("cluster/*_0_0_log.out")), launcher)
    worker = json.loads((out / "cluster/tasks.json").read_text())["worker 0"]
    preempt = subprocess.Popen(["scancel", "--signal=TERM", worker[1]])  # it tries again if all goes well
    result = ended(launcher)
    preempt.kill()
    preempt.wait()
    assert result.returncode == 0, result.stderr
    assert trials_of(out) == trials_of(study)
    assert "12 of 12 trials have ended" in result.stdout
    assert "Requeued job" in Path(worker[2]).read_text()
    assert not still_running(out / "cluster")


def test_a_worker_between_two_runs_ends_at_once(tmp_path):
    """Also when the last run was pruned between two steps, and when it was signalled to end just then."""
    config = replace(SMOKE, seeds=1, test_scenes=4, recipe=Recipe(steps=6, batch=8))
    store = ImageStore(tmp_path, load_world("tiny"), 32)
    job = job_of(store, cell_of(config, store.identity, "clip", least(config), 0), tmp_path, Execution())

    def prune(step, accuracy):
        raise optuna.TrialPruned

    interruption = Interruption()
    with pytest.raises(optuna.TrialPruned):
        run_interruptible(job, interruption, Watch(prune, 1))
    with pytest.raises(Stopped):
        interruption.request(0, None)

    def ask_and_prune(step, accuracy):
        interruption.request(0, None)
        raise optuna.TrialPruned

    interruption = Interruption()
    with pytest.raises(Stopped):
        run_interruptible(job, interruption, Watch(ask_and_prune, 1))


def test_one_command_waits_for_tasks(tmp_path):
    other = pytest.raises(UserError, match="another command waits for the tasks")
    with one_command(tmp_path), other, one_command(tmp_path):
        pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cluster", "slurm"], "--cluster slurm needs --workers"),
        (["--target", "0.4"], "--target is above chance"),
        (["--trials", "0"], "--trials must be at least 1"),
        (["--singles-shares", "2"], "--singles-shares must be at most 1"),
        (["--reserve", "0"], "--reserve must leave pairs"),
        (["--patience", "3"], "--patience changes nothing without --budgets"),
        (["--pairs", "0.5", "--hard-negatives", "0", "--views", "1"], "all settings have as many images"),
        (["--models", "clipp"], "did you mean 'clip'"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sample_efficiency.py", "--preset", "smoke", *arguments])
    with pytest.raises(UserError, match=message):
        sample_efficiency.main()
    assert not list(tmp_path.iterdir())


def test_a_password_is_nowhere_in_the_folder(tmp_path):
    url = "postgresql+psycopg://me:secret@127.0.0.1:1/none"
    result = run_here([*STUDY, *QUICK, "--storage", url, "--out", "runs/p"], tmp_path)
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
