"""Sample efficiency without its runs: what counts as an image, what the searches draw, what watching leaves."""

import contextlib
import json
import statistics
import threading
from dataclasses import asdict, replace
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.image_store import ImageStore
from menagerie.models.recipe import Recipe
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.results import finished
from menagerie.studies.runs.shared import trunk_key
from menagerie.studies.runs.train import Watch, run_cell
from menagerie.studies.sample_efficiency import PRESETS
from menagerie.studies.sample_search.budget import (
    Setting,
    cell_of,
    distinct_images,
    equal_steps,
    everything,
    images_of,
    job_of,
    least,
    out_of_reach,
    setting_of,
)
from menagerie.studies.sample_search.objectives import Runs, report
from menagerie.studies.sample_search.ratios import capped_of, on_the_test, ratio_table
from menagerie.studies.sample_search.report import SEARCHES, state_of, trial_rows, trial_texts
from menagerie.studies.sample_search.samplers import first_points, space
from menagerie.studies.sample_search.study import identity, searches
from menagerie.studies.sample_search.tables import HEADER, Point, importances
from menagerie.studies.trials.queue import Trials
from menagerie.studies.trials.space import draw, from_cube, to_cube
from menagerie.studies.trials.workers import work
from tests.generators.conftest import failed, make_split

SMOKE, FIXED = PRESETS["smoke"], PRESETS["fixed"]


@pytest.mark.parametrize("params", [(0.5, 0.5, 1, 0.5), (1.0, 1.0, 2, 0.5), (0.0, 0.5, 2, 0.3)], ids=str)
def test_images_are_counted_as_the_split_file_has_them(params, tmp_path):
    config = replace(SMOKE, test_scenes=4)
    setting = setting_of(config, dict(zip(asdict(least(config)), params, strict=True)))
    recipe = cell_of(config, "store", "clip", setting, seed=1).data.recipe
    path = make_split(tmp_path, recipe)
    train = SplitDataset(path, "train").records.scenes
    assert len(set(train)) == len(train) == images_of(config, setting) == distinct_images(recipe)
    lone = [scene for scene in train if len(scene.things) == 1]
    assert {scene.view for scene in lone} == set(range(setting.singles_views))
    assert failed(path) == []


def test_views_of_lone_animals_are_at_most_all():
    with pytest.raises(UserError, match="singles_views must be from 0 to views, 16, got 17"):
        BindingRecipe(singles_views=17)


def test_the_same_data_has_one_name():
    few, same = (
        {"pairs": pairs, "hard_negatives": 0.1, "singles_views": 1, "singles_share": 0.5} for pairs in (0.1, 0.15)
    )
    assert setting_of(FIXED, few) == setting_of(FIXED, same) == Setting(2 / 16, 0.0, 1, 0.5)
    assert setting_of(FIXED, few | {"pairs": 0.0, "hard_negatives": 1.0}).hard_negatives == 0


def test_every_setting_trains_alike_and_is_tested_alike():
    """As many steps; the same tests and validation, whatever the data."""
    recipes = [cell_of(FIXED, "store", "clip", setting, 0) for setting in (least(FIXED), everything(FIXED))]
    assert {cell.recipe for cell in recipes} == {recipes[0].recipe}
    assert (recipes[0].recipe.steps, recipes[0].recipe.warmup) == (700, round(389 * 700 / 2000))
    subsets = [cell.data.recipe.subsets() for cell in recipes]
    for name in ("unseen_pairs", "validation"):
        assert subsets[0][name] == subsets[1][name]
    assert set(subsets[0]["train"]) < set(subsets[1]["train"])


def test_points_of_the_cube_are_settings():
    ranges = space(FIXED)
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
    config = replace(FIXED, trials=9)
    once, _ = run_known(tmp_path / "a.log", config, question)
    stopped, _ = run_known(tmp_path / "b.log", config, question, stop_after=6)
    assert stopped == once
    assert len({json.dumps(params) for params, _, _ in once}) >= 8


def test_the_boundary_is_found_and_trials_are_spent_there(tmp_path):
    config = replace(FIXED, trials=16, target=0.9)
    _, trials = run_known(tmp_path / "j.log", config, "target")
    reached = min(trial.user_attrs["images"] for trial in trials if trial.user_attrs["accuracy"] >= 0.9)
    grid = [
        setting_of(config, from_cube([p / 20, h / 4, v / 8, 2 / 3], space(config)))
        for p in range(21)
        for h in range(5)
        for v in range(9)
    ]
    fewest = min(images_of(config, setting) for setting in grid if known_accuracy(setting) >= 0.9)
    assert fewest <= reached <= 1.3 * fewest
    late = [abs(trial.user_attrs["accuracy"] - 0.9) for trial in trials[5:]]
    assert statistics.median(late) < 0.05


def test_validation_is_watched_without_a_trace(tmp_path):
    """A run whose validation is computed in the middle ends with the same bytes."""
    config = replace(SMOKE, seeds=1, test_scenes=4, recipe=Recipe(steps=6, batch=8))
    store = ImageStore(tmp_path, load_world("tiny"), 32)
    job = job_of(store, cell_of(config, store.identity, "oc-clip", least(config), 0), tmp_path, Execution())
    seen, watched = [], replace(job, out=tmp_path / "watched")
    run_cell(job, lambda step: None)
    run_cell(watched, lambda step: None, Watch(lambda step, accuracy: seen.append(accuracy()), 1))
    assert len(seen) == 6
    assert seen[-1] == finished(job.folder)["subsets"]["validation"]["swap"]["accuracy"]
    for name in ("predictions.csv", "checkpoint/model.safetensors"):
        assert (watched.folder / name).read_bytes() == (job.folder / name).read_bytes()


def test_a_trial_whose_seeds_were_all_trained_was_not_pruned():
    """Whose median misses the target: it cost as much as one that reached it."""
    config = replace(SMOKE, seeds=2)
    states = [
        state_of(config, optuna.trial.create_trial(state=state, user_attrs={"validations": seeds}, values=values))
        for state, seeds, values in (
            (TrialState.COMPLETE, [0.9, 0.9], [100.0]),
            (TrialState.PRUNED, [0.1, 0.2], None),
            (TrialState.PRUNED, [0.1], None),
        )
    ]
    assert states == ["complete", "missed", "pruned"]


def test_all_trials_have_the_words_and_units_of_the_other_tables():
    config = replace(SMOKE, seeds=2)
    known = {"setting": asdict(least(config)) | {"pairs": 0.25}, "images": 24, "accuracy": 0.5625, "validations": [0.5]}
    early = {5: 0.625}  # the first check of the second seed
    trial = optuna.trial.create_trial(state=TrialState.PRUNED, user_attrs=known, intermediate_values=early)
    rows = trial_rows(config, [Point("clip", "target", trial)])
    header, texts = trial_texts(config, rows)
    shown = dict(zip(header, texts, strict=True))
    assert (shown["search"], shown["state"], shown["pairs"], shown["images"]) == ("second", "pruned", "25%", "24")
    assert (shown["validation (%)"], shown["seed 0 (%)"], shown["seed 1 (%)"]) == (
        *("56.2 (so far)", "50.0"),
        "62.5 (ended early)",
    )
    assert rows[0]["ended_early"] == 0.625
    assert rows[0]["validation_1"] == "", "nobody takes it for a seed's result"
    assert SEARCHES.keys() == {"front", "target"}
    assert all(name in header for name in HEADER[2:])


CONVERGED = replace(PRESETS["laptop"], budgets=(500, 1000, 2000, 4000))


def test_budgets_of_a_setting_share_their_first_steps():
    """So that a longer run goes on from a shorter one; the first is the study's own."""
    recipes = [cell_of(CONVERGED, "store", "oc-clip", everything(CONVERGED), 0, steps).recipe for steps in (500, 2000)]
    assert [recipe.steps for recipe in recipes] == [500, 2000]
    assert {round(recipe.single_object_phase * recipe.steps) for recipe in recipes} == {125}
    assert len({recipe.warmup for recipe in recipes}) == 1
    cells = [cell_of(CONVERGED, "store", "oc-clip", everything(CONVERGED), 0, steps) for steps in (500, 2000)]
    assert trunk_key(cells[0]) == trunk_key(cells[1])
    assert equal_steps(CONVERGED) == 1000


def cell(seed, steps):
    return cell_of(CONVERGED, "store", "clip", everything(CONVERGED), seed, steps)


def without_data(monkeypatch, accuracy):
    """Runs whose jobs have no split, and an accuracy on validation by seed and steps."""

    def job(self, model, setting, seed, steps=0):
        return Job(cell(seed, steps), Path(), self.out)

    monkeypatch.setattr(Runs, "job", job)
    objectives = "menagerie.studies.sample_search.objectives"
    monkeypatch.setattr(f"{objectives}.validation", lambda job: accuracy(job.cell.seed, job.cell.recipe.steps))
    monkeypatch.setattr(f"{objectives}.tally_of", lambda job, tests=(): {})


@pytest.mark.parametrize(
    ("rises", "trained", "best", "at_cap"),
    [
        ({500: 0.7, 1000: 0.75, 2000: 0.752, 4000: 0.9}, 3, 2000, False),  # no point more after 2000
        ({500: 0.7, 1000: 0.8, 2000: 0.85, 4000: 0.9}, 4, 4000, True),
        ({500: 0.7, 1000: 0.65, 2000: 0.9, 4000: 0.9}, 2, 500, False),
        ({500: 0.5, 1000: 0.5, 2000: 0.5, 4000: 0.8}, 4, 4000, True),  # at chance: it may not have begun to rise
        ({500: 0.7, 1000: 0.995, 2000: 1.0, 4000: 1.0}, 2, 1000, False),  # no room for a point more
        ({500: 0.995, 1000: 0.995, 2000: 1.0, 4000: 1.0}, 2, 500, False),
    ],
)
def test_a_setting_gets_budgets_until_the_mean_of_its_seeds_stops_rising(rises, trained, best, at_cap, monkeypatch):
    """A single seed's course, here up or down by 5 points at every second budget, decides nothing."""
    ran = []

    def accuracy(seed, steps):
        return rises[steps] + 0.05 * (seed - 2) * (-1) ** CONVERGED.budgets.index(steps)

    without_data(monkeypatch, accuracy)
    monkeypatch.setattr(Runs, "train", lambda self, job, wait=True: ran.append(job.cell.recipe.steps) if wait else None)
    results = Runs(CONVERGED, None, Path(), Interruption()).results("clip", everything(CONVERGED))
    assert ran == [steps for steps in CONVERGED.budgets[:trained] for _ in range(5)]
    assert [its["step"] for its in results] == [best] * 5
    assert [its["equal"]["step"] for its in results] == [1000] * 5
    assert [its["cell"] for its in results] == [cell(seed, best).id for seed in range(5)]
    assert {its["at_cap"] for its in results} == {at_cap}


def test_two_workers_with_the_same_setting_share_its_seeds(tmp_path, monkeypatch):
    """The second waits only for what the first is at; both have the same results."""
    ran, results, at_once = [], [], threading.Barrier(2, timeout=60)

    def run_interruptible(job, interruption):
        first = threading.get_ident() not in {worker for worker, *_ in ran}
        ran.append((threading.get_ident(), job.cell.recipe.steps, job.cell.seed))
        if first:
            at_once.wait()  # until the other trains too
        (job.folder / "ended").touch()

    def work():
        runs = Runs(CONVERGED, None, tmp_path, Interruption())
        results.append(runs.converged("clip", everything(CONVERGED)))

    monkeypatch.setattr("menagerie.studies.sample_search.objectives.run_interruptible", run_interruptible)
    monkeypatch.setattr(
        "menagerie.studies.sample_search.objectives.finished", lambda folder: (folder / "ended").exists() or None
    )
    without_data(monkeypatch, lambda seed, steps: 0.7)
    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(its[1:] for its in ran) == [(steps, seed) for steps in (500, 1000) for seed in range(5)]
    assert len({worker for worker, *_ in ran}) == 2
    assert results[0] == results[1]
    assert [its["cell"] for its in results[0]] == [cell(seed, 500).id for seed in range(5)]


def test_the_test_of_converged_settings_has_twenty_pairs():
    for setting in (least(CONVERGED), everything(CONVERGED)):
        subsets = cell_of(CONVERGED, "store", "clip", setting, 0).data.recipe.subsets()
        pairs = {frozenset(thing.animal for thing in scene.things) for scene in subsets["unseen_pairs"]}
        assert len(pairs) >= 20


@pytest.mark.parametrize(
    ("config", "values", "lost"),
    [
        (replace(CONVERGED, target=0.9), [0.6], False),  # (0.6 + 4) / 5 = 0.92
        (replace(CONVERGED, target=0.9), [0.7, 0.7], True),
        (replace(FIXED, target=0.9), [0.1], False),  # the median of three
        (replace(FIXED, target=0.9), [0.8, 0.8], True),
    ],
)
def test_a_target_is_out_of_reach_when_no_seed_to_come_can_change_it(config, values, lost):
    assert out_of_reach(config, values) == lost


@pytest.mark.parametrize(("values", "pruned"), [([0.97, 0.97], False), ([0.97], True), ([0.97, 0.7], True)])
def test_a_run_that_can_change_nothing_any_more_is_no_reason_to_prune(values, pruned):
    """The median of three is above the target whatever the last seed gets."""

    class Slow:
        user_attrs = {"images": 10}  # noqa: RUF012
        should_prune = staticmethod(lambda: True)
        report = staticmethod(lambda accuracy, step: None)
        set_user_attr = staticmethod(lambda name, value: None)

    results = [{"validation": value, "cell": "", "test": {}} for value in values]
    with pytest.raises(optuna.TrialPruned) if pruned else contextlib.nullcontext():
        report(replace(FIXED, target=0.9), Slow(), results, 3, 0.1)


@pytest.mark.parametrize("config", [FIXED, CONVERGED, SMOKE, replace(FIXED, singles_shares=(0.2, 0.7))])
def test_the_first_setting_is_all_data_where_the_space_has_it(config):
    """Of a range that is no whole number of steps its nearest."""
    ranges, most = space(config), asdict(everything(config))
    (first,) = first_points(ranges, most, 1, 0)
    assert all(ranges[name]._contains(ranges[name].to_internal_repr(value)) for name, value in first.items())
    assert first == pytest.approx(most, abs=0.06 if config.singles_shares == (0.2, 0.7) else 1e-9)


def test_settings_that_are_all_alike_have_no_importances():
    trials = [judged("front", k, 100 + k, [0.5] * 3, [0.5] * 3) for k in range(12)]
    alike = [optuna.trial.create_trial(values=[1.0, 0.5], user_attrs=trial.user_attrs) for trial in trials]
    assert importances([Point("clip", "front", trial) for trial in alike], "clip") == {}


def judged(question, number, images, validations, equals, seeds=3):
    """A trial whose runs had these scores on validation in the end, and at equal compute."""

    def tallies(values):
        return [{f"pair {p}": [10 * value, 10] for p in range(20)} for value in values]

    own = {"validations": validations, "knowns": tallies(validations), "tests": tallies(validations)}
    each = [
        {"cell": "", "validation": v, "step": 1000, "known": tallies([v])[0], "test": tallies([v])[0]} for v in equals
    ]
    attributes = own | {"images": images, "accuracy": statistics.mean(validations), "equals": each}
    attributes |= {"cells": [f"{images} {k} {validations}" for k in range(seeds)]}
    attributes |= {"steps": [2000] * seeds, "at_caps": [images > 100] * seeds, "setting": asdict(least(CONVERGED))}
    return optuna.trial.FrozenTrial(
        **{"number": number, "state": TrialState.COMPLETE, "value": None, "values": [float(images)]},
        **{"datetime_start": None, "datetime_complete": None, "params": {}, "distributions": {}},
        **{"user_attrs": attributes, "system_attrs": {}, "intermediate_values": {}, "trial_id": number},
    )


def missing(trial):
    """The same trial with a test at chance."""
    tests = [{pair: [0.5 * count, count] for pair, (_, count) in tally.items()} for tally in trial.user_attrs["tests"]]
    return optuna.trial.create_trial(value=1.0, user_attrs=trial.user_attrs | {"tests": tests})


def test_both_ratios_of_images_are_reported():
    """With enough steps CLIP needs twice the images; at equal compute four times as many."""
    config = replace(CONVERGED, seeds=3, models=("clip", "oc-clip"))
    high, low = [0.95, 0.96, 0.97], [0.7, 0.7, 0.7]
    of = {
        "clip": [(100, low, low), (200, high, low), (400, high, high)],
        "oc-clip": [(100, high, high), (200, high, high)],
    }
    points = [
        Point(model, "front", judged("front", k, *its)) for model, rows in of.items() for k, its in enumerate(rows)
    ]
    table = ratio_table(config, points)
    assert list(table.iloc[:, 1]) == ["2.00", "4.00"]
    assert list(table["compared"]) == ["at convergence", "at equal compute, 1000 steps"]
    assert list(table.iloc[:, -1]) == ["2.00 to 2.00", "4.00 to 4.00"]
    better = on_the_test(config, points)
    assert [line.split(", has ")[1].split(" %")[0] for line in better] == ["96.0", "96.0"]
    assert all(line.startswith("On the test the setting by which") for line in better)
    missed = on_the_test(config, [points[0]._replace(trial=missing(points[1].trial)), *points[3:]])
    assert ["misses it" in line for line in missed] == [True, False]
    assert capped_of(config, points) == {"clip": (2, 3), "oc-clip": (1, 2)}
    both = [*points, *(point._replace(question="target") for point in points)]
    assert capped_of(config, both) == capped_of(config, points), "a setting that both searches share is one setting"
    assert points[0].trial.user_attrs["accuracy"] == pytest.approx(0.7), "the storage's own is as it was"
    assert "compared" not in ratio_table(replace(config, budgets=()), points)
