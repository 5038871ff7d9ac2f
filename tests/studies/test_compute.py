"""Accuracy against compute: which runs come next, what they share, what they cost, and what is said of them."""

import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.records import file_digest
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.checkpoint import load_checkpoint
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS as GRIDS
from menagerie.studies.compute import PRESETS, Compute, budget_outcome
from menagerie.studies.frame.arm import Arm, Course, InventedResults, has_stopped
from menagerie.studies.frame.costs import UNKNOWN, run_flops, step_flops
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.runs.cell import CHECKPOINT, STATE, Job
from menagerie.studies.runs.results import read_result
from menagerie.studies.runs.shared import SharedSteps, trunk_key
from menagerie.studies.runs.train import run_cell
from tests.command import ROOT, read_rows, run_here, succeed
from tests.grid_cells import cell_output

COMPUTE = [
    sys.executable,
    str(ROOT / "studies" / "compute.py"),
    "--preset",
    "smoke",
    "--models",
    "clip",
    "--seeds",
    "1",
]
SMOKE = PRESETS["smoke"]
STUDY = replace(SMOKE, budgets=(10, 20, 40, 80), splits=("binding",), models=("clip",), patience=2, warmup=2)
ONE_RATE = replace(STUDY, learning_rates=(1e-3,))


class Scores(InventedResults):
    """Accuracies on validation, by the names of arms."""

    def __init__(self, known: dict[str, float]) -> None:
        super().__init__()
        self.known = known

    def score(self, arm: Arm, subset: str = "validation", task: str = "swap") -> float | None:
        return self.known.get(arm.id)


def following(study: Compute, known: dict[str, float]) -> list[Arm]:
    """The runs that come next."""
    return [arm for arm in study.plan(Scores(known)) if arm.id not in known]


def ended(study: Compute, accuracy: Callable[[Arm], float]) -> list[Arm]:
    """All runs that a study makes, with the accuracy of each, as they follow from one another."""
    known, made = {}, []
    while new := following(study, known):
        known |= {arm.id: accuracy(arm) for arm in new}
        made += new
    return made


def steps(arms: list[Arm]) -> list[int]:
    """The budgets of runs."""
    return list(dict.fromkeys(arm.labels["steps"] for arm in arms))


def test_only_the_better_half_of_the_learning_rates_goes_on():
    study = replace(STUDY, learning_rates=(1.0, 2.0, 3.0, 4.0, 5.0))
    made = ended(study, lambda arm: 0.5 + arm.labels["learning_rate"] / 10)  # flat over budgets
    rates = {k: {arm.labels["learning_rate"] for arm in made if arm.labels["steps"] == k} for k in study.budgets}
    assert rates == {10: {1, 2, 3, 4, 5}, 20: {3, 4, 5}, 40: {4, 5}, 80: set()}
    assert {arm.labels["learning_rate"] for arm in made if arm.cell.seed} == {5}  # chosen with the first seed
    assert len(made) == len({arm.id for arm in made}), "each once"
    two = replace(STUDY, learning_rates=(1.0, 2.0))
    one_fails = ended(two, lambda arm: 0.7 if arm.labels["learning_rate"] == 2 else 0.0)
    assert {arm.labels["learning_rate"] for arm in one_fails if arm.labels["steps"] > 10} == {2}
    equal = ended(two, lambda arm: 0.7)
    assert {arm.labels["learning_rate"] for arm in equal if arm.cell.seed} == {1}  # of equal ones the first


def test_budgets_stop_rising_when_validation_is_flat():
    assert steps(ended(ONE_RATE, lambda arm: arm.labels["steps"] / 100)) == [10, 20, 40, 80]
    flat = ended(ONE_RATE, lambda arm: 0.9 - 0.001 * (arm.labels["steps"] == 10))
    assert steps(flat) == [10, 20, 40]  # 20 and 40 are no rise by half a point
    course = ONE_RATE.course(Scores({arm.id: 0.9 for arm in flat}), "binding", "clip")
    assert (course.stopped, course.waiting, course.means) == (True, False, (0.9,) * 3)
    assert has_stopped([0.5, 0.8, 0.7, 0.804], 2, 0.005)
    assert not has_stopped([0.5, 0.8, 0.7, 0.806], 2, 0.005)
    assert not has_stopped([0.9, 0.8], 2, 0.005)
    assert not has_stopped([0.5, 0.55, 0.5, 0.52, 0.5], 2, 0.005)  # at chance: it may not have begun
    # A stop is that of the mean over seeds, so that all seeds have all points of the curve.
    assert len(ended(ONE_RATE, lambda arm: 0.5 if arm.cell.seed else arm.labels["steps"] / 100)) == 2 * 4


def test_a_longer_run_begins_when_all_shorter_ones_of_its_model_have_ended():
    """Else both would train what they share."""
    known = {}
    for seed in (0, 1):
        waiting = following(ONE_RATE, known)
        assert {arm.labels["steps"] for arm in waiting} == {10}
        known |= {arm.id: 0.7 for arm in waiting if arm.cell.seed == seed}
    assert {arm.labels["steps"] for arm in following(ONE_RATE, known)} == {20}


def test_more_budgets_and_seeds_go_on_where_fewer_ended():
    before = ended(replace(STUDY, budgets=(10, 20)), lambda arm: arm.labels["steps"] / 100)
    after = ended(replace(STUDY, budgets=(10, 20, 40), seeds=3), lambda arm: arm.labels["steps"] / 100)
    assert {arm.id for arm in before} < {arm.id for arm in after}


def test_a_recipe_replaces_both_splits():
    study = STUDY.with_recipe(BindingRecipe(world="tiny", seed=7, pairs=1.0))
    arms = following(study, {})
    assert {arm.labels["split"] for arm in arms} == {"own"}
    assert {(arm.cell.seed, arm.cell.data.recipe.pairs) for arm in arms} == {(7, 1.0)}


@pytest.fixture(scope="module")
def jobs_in(tmp_path_factory):
    """Makes two jobs in a folder that differ in their number of steps alone."""
    grid = replace(GRIDS["smoke"], test_scenes=8, store=tmp_path_factory.mktemp("store"))
    cell = grid.at("clip", 0, pairs=0.5, hard_negatives=0.0).cell
    store = SplitFolder(grid.store, load_world(grid.world), grid.resolution)
    file = store.make(cell.data.recipe)

    def jobs(out):
        recipes = [
            Recipe(steps=steps, batch=8, warmup=2, decay=0.2, single_object_phase=4 / steps, singles_share=0.4)
            for steps in (10, 20)
        ]
        return [Job(replace(cell, recipe=recipe), file, out) for recipe in recipes]

    return jobs


def made(job):
    return cell_output(job.folder, timed=3)


def trained(job, stop_at=None):
    """The steps that a run took."""
    seen = []

    def report(step, text):
        seen.append(step)
        if step == stop_at:
            raise Stopped

    with nullcontext() if stop_at is None else pytest.raises(Stopped):
        run_cell(job, report)
    return seen


def kept(job):
    """The states that cells kept for longer ones, by step."""
    return SharedSteps(job.out / "shared" / trunk_key(job.cell), 0).states()


@pytest.fixture(scope="module")
def alone(jobs_in, tmp_path_factory):
    """Each trained in a folder of its own."""
    jobs = [jobs_in(tmp_path_factory.mktemp("alone"))[k] for k in (0, 1)]
    assert [trained(job) for job in jobs] == [list(range(1, 11)), list(range(1, 21))]
    return [made(job) for job in jobs]


def test_a_longer_run_that_goes_on_from_a_shorter_one_has_the_same_bytes(jobs_in, alone, tmp_path):
    short, long = jobs_in(tmp_path)
    assert trained(short) == list(range(1, 11))
    (state,) = kept(short).values()
    copy, damaged = state.with_name("19 (1).pt"), state.with_name("16.pt")  # as a desktop names one
    copy.write_text("somebody's")
    damaged.write_text("half")
    assert list(kept(long)) == [8]  # of the longer one too
    assert trained(long) == list(range(9, 21))
    assert list(kept(short)) == [16]
    assert copy.exists()
    assert [made(short), made(long)] == alone
    for job in (short, long):
        assert read_result(job.folder)["files"][f"{CHECKPOINT}/model.safetensors"] == file_digest(
            job.folder / CHECKPOINT / "model.safetensors"
        )
    shutil.copytree(long.folder / CHECKPOINT, short.folder / CHECKPOINT, dirs_exist_ok=True)
    with pytest.raises(UserError, match="are not those of the result"):
        load_checkpoint(short.folder / CHECKPOINT)
    shutil.copy(long.folder / "result.json", short.folder)
    with pytest.raises(UserError, match=f"is the result of cell {long.cell.id}; put it back there"):
        read_result(short.folder)
    assert alone[0][1] != alone[1][1]
    assert read_result(long.folder)["provenance"]["step_cpu_seconds"] > 0


def test_a_run_may_be_stopped_before_and_after_its_branch(jobs_in, alone, tmp_path):
    short, long = jobs_in(tmp_path)
    assert trained(short, 3)[-1] == 3
    assert not kept(short)
    assert trained(short, 9) == list(range(4, 10))
    kept(short)[8].unlink()  # then what decays isn't kept in its place
    assert trained(short) == [10]
    assert not kept(short)
    assert trained(long, 12) == list(range(1, 13))
    assert trained(long) == list(range(13, 21))
    assert [made(short), made(long)] == alone
    assert not (long.folder / STATE).exists()


def test_a_step_costs_as_much_as_its_products(jobs_in, tmp_path):
    """Twice the images cost twice as much, but for the similarities, of which there are four times as many."""
    cell = jobs_in(tmp_path)[1].cell
    single, rest = step_flops(cell)
    double = step_flops(replace(cell, recipe=replace(cell.recipe, batch=16)))[1]
    assert 2 * rest < double < 2.01 * rest
    assert single == rest  # CLIP's texts are as long
    assert run_flops(cell) == 20 * rest
    before = torch.random.get_rng_state()
    step_flops(replace(cell, recipe=replace(cell.recipe, batch=4)))
    assert torch.equal(before, torch.random.get_rng_state())


OUTCOMES = [
    ((0.6, 0.99, 0.99), (0.97, 1.0), {"stopped": True}, "binds"),
    ((0.6, 0.7, 0.7), (0.6, 0.8), {"stopped": True}, "does not bind"),
    ((0.6, 0.7, 0.8), (0.7, 0.9), {}, "not yet"),
    ((0.5, 0.5, 0.51), (0.4, 0.6), {}, "at chance"),
    ((0.6, 0.7, 0.7), (0.6, 0.8), {}, "open"),  # one flat budget, where two are patience
    ((0.7,), (0.6, 0.8), {}, "open"),
    ((0.6, 0.7, 0.8), (0.7, 0.9), {"waiting": True}, "open"),
    ((0.6, 0.95), (0.9, 0.99), {}, "undecided"),
    ((0.6, 0.7), (np.nan, np.nan), {"stopped": True}, "undecided"),  # two seeds have no interval
    ((), None, {"waiting": True}, UNKNOWN),
]


@pytest.mark.parametrize(("means", "interval", "state", "said"), OUTCOMES)
def test_verdicts_follow_from_means_and_intervals(means, interval, state, said):
    study = PRESETS["laptop"]
    outlook = Course("a choice", [], means, **state).outlook(study.rise)
    level = Estimate(means[-1], *interval, 900, 60, 3, 0.1) if means else None
    assert budget_outcome(level, outlook, study.bar) == said


def test_few_pairs_that_are_all_right_by_chance_leave_a_verdict_undecided():
    few, many = (Estimate(1.0, 1.0, 1.0, 90, pairs, 1, 0.0) for pairs in (6, 60))
    assert budget_outcome(few, "stopped", 0.95) == "undecided"
    assert budget_outcome(many, "stopped", 0.95) == "binds"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compute")
    succeed([*COMPUTE, "--budgets", "12", "24", "--patience", "2"], folder, figures=False)
    return folder


def test_a_compute_run_has_its_page_figures_and_tables(folder):
    out = folder / "runs/compute-smoke"
    assert {row["budgets"] for row in read_rows(out / "best.csv")} <= {"at chance", "rising", "flat"}
    for name in ("operations", "training"):
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = read_rows(out / "results.csv")
    assert {(row["split"], row["steps"]) for row in rows} == {
        (s, b) for s in ("binding", "spatial") for b in ("12", "24")
    }
    flops = {(row["split"], row["steps"]): float(row["flops"]) for row in rows}
    assert flops["binding", "24"] == 2 * flops["binding", "12"] > 0
    assert all(float(row["cpu_seconds"]) > 0 for row in rows)
    choices = read_rows(out / "choices.csv")
    assert sum(row["steps"] == "24" for row in choices) == 2  # one of two rates at each split


def accuracies(folder: Path) -> list[tuple[str, ...]]:
    """The results but for processor times."""
    rows = read_rows(folder / "runs/compute-smoke/results.csv")
    return [tuple(value for name, value in row.items() if name != "cpu_seconds") for row in rows]


def test_the_same_folder_goes_on_with_more_budgets(folder):
    before = accuracies(folder)
    more = run_here([*COMPUTE, "--budgets", "12", "24", "30", "--patience", "2"], folder, page=False)
    assert "8 runs, 6 of them finished before" in more.stdout, more.stderr
    assert {*before} < {*accuracies(folder)}
    other = run_here([*COMPUTE, "--budgets", "12", "24", "--weight-decay", "0.1"], folder, figures=False)
    assert "belongs to another configuration: weight_decay" in other.stderr
