"""What tuning draws, who may draw it when, and what failures leave: searches whose training takes no time."""

import csv
import json
import math
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import write_record
from menagerie.models.scorer import Diverged
from menagerie.studies import tune
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.frame.cells import read_tuned
from menagerie.studies.grids.grid import data_of
from menagerie.studies.runs.command_line import scorer_options
from menagerie.studies.trials.queue import Search, Trials
from menagerie.studies.trials.space import draw
from menagerie.studies.tuning import run
from menagerie.studies.tuning.report import best, failures, rows_of
from menagerie.studies.tuning.run import Runs, SearchJob, publish
from menagerie.studies.tuning.space import first_point, identity, leaders, repeats, searches, space


def learnt(point):
    """Accuracy of a point, without training."""
    return 0.9 - abs(math.log10(point["learning_rate"]) + 2.5) / 4 - point["weight_decay"] / 10


@pytest.fixture
def untrained(tmp_path, monkeypatch):
    """Runs searches in a folder whose training takes no time; a point for which `fails` holds diverges."""

    def search(folder, trials=7, at_once=2, fails=lambda point: False, stop_at=None, **changed):
        towers = {"architectures": ("nano", "micro"), "parameters": 10**6}
        config = replace(tune.PRESETS["smoke"], trials=trials, at_once=at_once, finalists=2, **(towers | changed))
        out = tmp_path / folder
        out.mkdir(exist_ok=True)
        config = replace(config, storage=str(out / "journal.log"))
        runs = []

        def train(job, interruption):
            runs.append(job)
            if len(runs) == stop_at:
                raise KeyboardInterrupt
            point = asdict(job.cell.recipe)
            if fails(point):
                raise Diverged("the loss is nan")
            subsets = {"validation": {"swap": {"accuracy": learnt(point)}}}
            result = {"id": job.cell.id, "model": job.cell.model, "subsets": subsets}
            write_record(job.folder / "result.json", result)

        monkeypatch.setattr(run, "run_interruptible", train)
        grid = replace(config.grid, seeds=config.final_seeds)
        files = {data: out / "split.h5" for data, _ in data_of(grid, "store")}
        queue = Trials(config.storage)
        stages = searches(config, "s"), repeats(config, "s")
        for stage in stages:
            for model, each in stage.items():
                queue.open(each, identity(config, model))
        run.run_worker(run.SearchJob(config, "s", out, "store", files), Interruption())
        return config, {model: tuple(queue.all(stage[model]) for stage in stages) for model in config.grid.models}

    return search


def drawn(trials):
    """Parameters and values of all trials."""
    return [[(trial.number, trial.params, trial.value) for stage in its for trial in stage] for its in trials.values()]


def test_a_trial_that_diverges_is_left_out_with_its_reason(untrained, tmp_path, capsys):
    """The others go on; it is nobody's best, and what TPE draws later knows of it."""
    config, trials = untrained("a", fails=lambda point: point["learning_rate"] > 3e-3)
    rows = rows_of("clip", *trials["clip"])
    failed = [row for row in rows if row["learning_rate"] > 3e-3]
    assert 0 < len(failed) < len(rows) == 7
    assert [row["validation"] for row in failed] == [None] * len(failed)
    assert all(row["validation"] for row in rows if row not in failed)
    assert f"s search clip: trial {failed[0]['trial']} pruned: the loss is nan" in capsys.readouterr().out
    tried, _ = trials["clip"]
    assert all(trial.state is TrialState.PRUNED for trial in tried if trial.value is None)
    assert set(failures("clip", tried).values()) == {"pruned: the loss is nan"}
    assert [trial.value for trial in leaders(tried)] == sorted(r["validation"] for r in rows if r not in failed)[::-1]
    assert best(rows, config.grid)["clip"]["recipe"]["learning_rate"] <= 3e-3
    publish(config, tmp_path, trials)
    assert "<code>pruned: the loss is nan</code>" in (tmp_path / "report.html").read_text()
    assert list(csv.DictReader((tmp_path / "trials.csv").open()))[failed[0]["trial"]]["validation"] == ""


def test_fewer_trials_than_finalists_are_enough(untrained):
    kept = {0.002}  # the first one's
    _, trials = untrained("a", fails=lambda point: point["learning_rate"] not in kept)
    tried, repeated = trials["clip"]
    assert len(leaders(tried)) == 1
    assert [trial.state for trial in repeated] == [TrialState.COMPLETE, TrialState.PRUNED]
    assert [row["repeated"] for row in rows_of("clip", tried, repeated)] == [tried[0].value] + [None] * 6


def test_a_model_all_of_whose_trials_fail_is_named(untrained, tmp_path):
    config, trials = untrained("a", trials=2, fails=lambda point: True)
    with pytest.raises(UserError, match="every trial of clip, oc-clip failed"):
        publish(config, tmp_path, trials)
    assert len(list(csv.DictReader((tmp_path / "trials.csv").open()))) == 4
    assert "<code>pruned: the loss is nan</code>" in (tmp_path / "report.html").read_text()


def test_what_was_chosen_for_others_is_written_where_all_trials_of_one_fail(untrained, tmp_path):
    config, trials = untrained("a", trials=2)
    failed = untrained("b", trials=2, fails=lambda point: True)[1]
    with pytest.raises(UserError, match="every trial of clip failed"):
        publish(config, tmp_path, trials | {"clip": failed["clip"]})
    assert set(read_tuned(str(tmp_path / "best.json"), ["clip", "oc-clip"])) == {"oc-clip"}
    assert (tmp_path / "report.html").exists()


def test_a_trial_of_too_many_parameters_is_pruned_with_its_reason(untrained):
    """Options of a model's own are searched too, and decide its size."""
    tried, _ = untrained("a", trials=3, parameters=1000)[1]["clip"]
    assert all(trial.state is TrialState.PRUNED for trial in tried)
    reasons = set(failures("clip", tried).values())
    assert reasons
    assert all(re.fullmatch(r"pruned: \d+ parameters, more than --parameters 1000", its) for its in reasons)


@pytest.mark.parametrize("stop_at", [1, 6, 12, 16])
def test_one_worker_draws_the_same_however_often_it_is_stopped(untrained, stop_at):
    """In a search's first points, after them, in the second model's search, and in a repeat."""
    with pytest.raises(KeyboardInterrupt):
        untrained("a", stop_at=stop_at)
    stopped = untrained("a")[1]
    once = untrained("b")[1]
    assert drawn(stopped) == drawn(once)
    assert len({json.dumps(trial.params) for trial in once["clip"][0]}) == 7


def params_of_all(journal, together):
    """What is drawn for eight trials in batches of two, which run together or one after the other."""
    config = replace(tune.PRESETS["laptop"], trials=8, at_once=2)
    search, queue = searches(config, "s")["clip"], Trials(str(journal))
    queue.open(search, {})
    for _ in range(4):
        first = queue.take(search)
        if together:
            second = queue.take(search)
            values = [[learnt(draw(trial, space(config, "clip")))] for trial in (second, first)]
            queue.end(second, values[0])
            queue.end(first, values[1])
        else:
            queue.end(first, [learnt(draw(first, space(config, "clip")))])
            second = queue.take(search)
            queue.end(second, [learnt(draw(second, space(config, "clip")))])
    return [trial.params for trial in queue.all(search)]


def test_a_batch_is_drawn_from_what_came_before_it(tmp_path):
    """So the same is drawn for any number of workers."""
    together = params_of_all(tmp_path / "a.log", True)
    assert together == params_of_all(tmp_path / "b.log", False)
    assert len({json.dumps(params) for params in together}) == 8


def test_a_batch_waits_for_the_one_before(tmp_path):
    search = Search("s", 5, ("maximize",), RandomSampler, at_once=2)
    queue = Trials(str(tmp_path / "journal.log"))
    queue.open(search, {})
    first, second = queue.take(search), queue.take(search)
    assert queue.take(search) is None
    queue.end(second, [0.5])
    assert queue.take(search) is None
    queue.give_back(first)
    again = queue.take(search)
    assert (first.number, second.number, again.number) == (0, 1, 0)
    queue.end(again, None)
    assert [queue.take(search).number, queue.take(search).number, queue.take(search)] == [2, 3, None]


def test_options_of_its_own_are_searched_where_a_spec_names_them(tmp_path):
    """Beside the same recipe space as every model's; the best are read back by --tuned."""
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from menagerie.models.networks.clip import CLIPScorer\n"
        "from menagerie.models.scorers.clip import CLIPConfig\n"
        "from menagerie.models.spec import Range, ScorerSpec\n\n"
        "@dataclass(frozen=True)\nclass Config(CLIPConfig):\n    width: int = 3\n    kind: str = 'a'\n\n"
        "class Mine(CLIPScorer):\n    config_class = Config\n"
        "    spec = ScorerSpec(name='mine', implementation='', config=Config, small={'width': 5},\n"
        "                      space={'width': Range(2, 64, log=True), 'kind': ('a', 'b')})\n"
    )
    name = f"{tmp_path}/mine.py:Mine"
    grid = replace(tune.PRESETS["smoke"].grid, models=("clip", name), scorers=scorer_options("small", [name]))
    config = replace(tune.PRESETS["smoke"], grid=grid)
    both = [space(config, model) for model in grid.models]
    assert both[1] == both[0] | {
        "option width": IntDistribution(2, 64, log=True),
        "option kind": CategoricalDistribution(("a", "b")),
    }
    assert first_point(config, name)["option width"] == 5
    point = first_point(config, name) | {"warmup": 20, "singles_share": 0.5, "option width": 7, "option kind": "b"}
    job = Runs(SearchJob(config, "", tmp_path, "store", Files()), Interruption()).job(name, point, 0)
    assert job.cell.options == {"width": 7, "kind": "b"}


class Files(dict):
    """Any split's file."""

    def __missing__(self, recipe):
        return Path("split.h5")
