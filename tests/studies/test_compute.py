"""Accuracy against compute: which runs come next, what they share, what they cost, and what is said of them."""

import csv
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.records import file_digest
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.split_file import make_split
from menagerie.models.checkpoint import load_checkpoint
from menagerie.models.recipe import Recipe
from menagerie.studies.analysis.paired_bootstrap import RecordScore
from menagerie.studies.binding_grid import PRESETS as GRIDS
from menagerie.studies.budgets.costs import Cost, run_flops, step_flops
from menagerie.studies.budgets.courses import (
    Course,
    Run,
    Setup,
    best_half,
    course_of,
    has_stopped,
    next_runs,
    setups_of,
)
from menagerie.studies.budgets.figures import all_tests
from menagerie.studies.budgets.points import Line, Point, level, sentences, verdict
from menagerie.studies.budgets.run import all_runs, steps_taken
from menagerie.studies.compute import PRESETS, check
from menagerie.studies.grids.grid import cells, chosen_alone, splits
from menagerie.studies.runs.cell import CHECKPOINT, STATE, Job
from menagerie.studies.runs.results import finished
from menagerie.studies.runs.shared import folder_of, keep, states
from menagerie.studies.runs.train import run_cell
from menagerie.studies.runs.training_log import FILE, StepClock
from tests.command import ROOT, run_here

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
SMOKE = PRESETS["smoke"].scorers
OTHER_SIZE = replace(SMOKE, oc_clip=replace(SMOKE.oc_clip, dim=48))
STUDY = replace(PRESETS["laptop"], budgets=(10, 20, 40, 80), models=("clip",), patience=2, seeds=2)


def ended(config, accuracy, most=100):
    """All runs that a study makes, with the accuracy of each."""
    known = {}
    while runs := next_runs(config, known, ["binding"]):
        assert not known.keys() & set(runs)
        known |= {run: accuracy(run) for run in runs}
        assert len(known) < most
    return known


def test_the_better_half_of_the_choices_goes_on():
    config = replace(STUDY, learning_rates=(1.0, 2.0, 3.0, 4.0, 5.0))
    known = ended(config, lambda run: 0.5 + run.setup.learning_rate / 10)  # flat over budgets: two more than the first
    by_steps = {steps: {run.setup.learning_rate for run in known if run.steps == steps} for steps in config.budgets}
    assert by_steps == {10: {1, 2, 3, 4, 5}, 20: {3, 4, 5}, 40: {4, 5}, 80: set()}
    assert {run.setup.learning_rate for run in known if run.seed} == {5}  # chosen with the first seed
    assert best_half(setups_of(config, "clip")[:2], [0.5, 0.5])[0].learning_rate == 1


def test_budgets_rise_until_validation_does_not():
    one = replace(STUDY, learning_rates=(1e-3,))
    rising = {run.steps for run in ended(one, lambda run: run.steps / 100)}
    assert rising == {10, 20, 40, 80}
    early = ended(one, lambda run: 0.9 - 0.001 * (run.steps == 10))
    course = course_of(one, early, "binding", "clip")
    assert {run.steps for run in early} == {10, 20, 40}  # 20 and 40 are no rise by half a point
    assert course.stopped
    assert not course.missing
    assert has_stopped([0.5, 0.8, 0.7, 0.804], 2, 0.005)
    assert not has_stopped([0.5, 0.8, 0.7, 0.806], 2, 0.005)
    assert not has_stopped([0.9, 0.8], 2, 0.005)
    assert not has_stopped([0.5, 0.55, 0.5, 0.52, 0.5], 2, 0.005)  # at chance: it may not have begun


def test_a_stop_is_that_of_the_mean_over_seeds():
    """So that all seeds have all points of the curve."""
    known = ended(replace(STUDY, learning_rates=(1e-3,)), lambda run: 0.5 if run.seed else run.steps / 100)
    assert len(known) == 2 * 4


def test_more_budgets_go_on_where_fewer_ended():
    fewer = replace(STUDY, budgets=(10, 20), learning_rates=(1e-3, 2e-3))
    before = ended(fewer, lambda run: run.steps * run.setup.learning_rate)
    after = ended(replace(fewer, budgets=(10, 20, 40)), lambda run: run.steps * run.setup.learning_rate)
    assert before.keys() < after.keys()


def test_what_all_budgets_cost():
    one = replace(PRESETS["laptop"], models=("clip",), learning_rates=(1e-3,), seeds=1)
    runs = all_runs(one, ("binding",))
    assert [run.steps for run in runs] == list(one.budgets)
    assert steps_taken(one, runs) == 4800 + sum(one.budgets) // 5
    doubling = replace(one, budgets=(500, 1000, 2000, 4000, 8000))
    assert steps_taken(doubling, all_runs(doubling, ("binding",))) < 1.2 * 8000


@pytest.fixture(scope="module")
def jobs_in(tmp_path_factory):
    """Makes two jobs in a folder that differ in their number of steps alone."""
    grid = replace(chosen_alone(GRIDS["smoke"]), test_scenes=8, hard_negatives=(0.0,), models=("clip",))
    store = ImageStore(tmp_path_factory.mktemp("store"), load_world(grid.world), grid.resolution)
    store.add([scene for recipe in splits(grid) for scene in recipe.scenes_to_render()])
    (cell,) = cells(grid, store.identity)
    file = make_split(store, cell.data.recipe)

    def jobs(out):
        recipes = [
            Recipe(steps=steps, batch=8, warmup=2, decay=0.2, single_object_phase=4 / steps, singles_share=0.4)
            for steps in (10, 20)
        ]
        return [Job(replace(cell, recipe=recipe), file, out) for recipe in recipes]

    return jobs


def made(job):
    """What a cell makes, but for timing."""
    result = {k: v for k, v in finished(job.folder).items() if k not in ("seconds", "provenance")}
    weights = (job.folder / CHECKPOINT / "model.safetensors").read_bytes()
    log = [line.rsplit(",", 2)[0] for line in (job.folder / FILE).read_text().splitlines()]
    return result, weights, (job.folder / "predictions.csv").read_bytes(), log


def trained(job, stop_at=None):
    """The steps that a run took."""
    seen = []

    def report(step):
        seen.append(step)
        if step == stop_at:
            raise Stopped

    if stop_at is None:
        run_cell(job, report)
    else:
        with pytest.raises(Stopped):
            run_cell(job, report)
    return seen


@pytest.fixture(scope="module")
def alone(jobs_in, tmp_path_factory):
    """Each trained in a folder of its own."""
    jobs = [jobs_in(tmp_path_factory.mktemp("alone"))[k] for k in (0, 1)]
    assert [trained(job) for job in jobs] == [list(range(1, 11)), list(range(1, 21))]
    return [made(job) for job in jobs]


def test_a_longer_run_goes_on_from_a_shorter_one_with_the_same_bytes(jobs_in, alone, tmp_path):
    short, long = jobs_in(tmp_path)
    assert trained(short) == list(range(1, 11))
    copy = folder_of(short) / "19 (1).pt"  # as a desktop names one
    copy.write_text("somebody's")
    assert list(states(long)) == [8]  # of the longer one too
    (damaged := tmp_path / "damaged.pt").write_text("half")
    keep(long, damaged, 16)
    assert list(states(long)) == [8], "nothing takes its place"
    assert trained(long) == list(range(9, 21))
    assert list(states(short)) == [16]
    assert copy.exists()
    assert [made(short), made(long)] == alone
    for job in (short, long):
        assert finished(job.folder)["files"][f"{CHECKPOINT}/model.safetensors"] == file_digest(
            job.folder / CHECKPOINT / "model.safetensors"
        )
    shutil.copytree(long.folder / CHECKPOINT, short.folder / CHECKPOINT, dirs_exist_ok=True)
    with pytest.raises(UserError, match="has other weights than the result"):
        load_checkpoint(short.folder / CHECKPOINT)
    shutil.copy(long.folder / "result.json", short.folder)
    with pytest.raises(UserError, match=f"is the result of cell {long.cell.id}; put it back there"):
        finished(short.folder)
    assert alone[0][1] != alone[1][1]
    assert finished(long.folder)["provenance"]["step_cpu_seconds"] > 0


def test_a_run_may_be_stopped_before_and_after_its_branch(jobs_in, alone, tmp_path):
    short, long = jobs_in(tmp_path)
    assert trained(short, 3)[-1] == 3
    assert not states(short)
    assert trained(short, 9) == list(range(4, 10))
    states(short)[8].unlink()  # then what decays isn't kept in its place
    assert trained(short) == [10]
    assert not states(short)
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


def test_the_clock_counts_steps_alone():
    clock = StepClock()
    clock.stop()  # the first step loads and compiles
    assert clock.median is None
    clock.start()
    sum(range(10**5))
    clock.stop()
    clock.start()
    clock.pause()
    clock.stop()
    assert len(clock.steps) == 1
    assert clock.median > 0


def line(model, accuracies, stopped=True, seeds=3, pairs=20):
    """A model at budgets 10, 20, ... with records of known accuracy."""
    rng = np.random.default_rng(0)
    points = []
    for number, accuracy in enumerate(accuracies):
        records = {
            (seed, "", "", f"{pair} {k}", ""): RecordScore(float(rng.random() < accuracy), f"pair {pair}")
            for seed in range(seeds)
            for pair in range(pairs)
            for k in range(10)
        }
        cost = Cost(64 * 10 * 2**number, 1e12 * 2**number, 5.0 * 2**number)
        own = tuple(np.mean([r.value for key, r in records.items() if key[0] == s]).item() for s in range(seeds))
        points.append(Point(10 * 2**number, cost, accuracy, own, level(records), records, ()))
    course = Course(Setup(model, "mini", 64, 1e-3), tuple(accuracies), (), stopped)
    return Line("binding", model, course, tuple(points))


@pytest.mark.parametrize(
    ("accuracies", "stopped", "said"),
    [
        ((0.6, 0.99, 0.99), True, "binds"),
        ((0.6, 0.7, 0.7), True, "does not bind"),
        ((0.6, 0.7, 0.8), False, "not yet"),
        ((0.5, 0.5, 0.51), False, "at chance"),
        ((0.6, 0.7, 0.7), False, "open"),  # one flat budget, where two are patience
        ((0.7,), False, "open"),
        ((0.6, 0.95), False, "undecided"),
        ((), False, "–"),
    ],
)
def test_verdicts(accuracies, stopped, said):
    assert verdict(PRESETS["laptop"], line("clip", accuracies, stopped)) == said


def test_while_budgets_are_missing_it_is_open():
    its = line("clip", (0.6, 0.7, 0.8), False)
    more = its.course._replace(missing=(Run("binding", its.course.setup, 0, 40),))
    assert verdict(PRESETS["laptop"], its._replace(course=more)) == "open"


@pytest.mark.parametrize("accuracy", [0.7, 1.0])
def test_one_seed_of_few_pairs_leaves_it_undecided(accuracy):
    """Six pairs that are all right may be so by chance."""
    its = line("clip", (0.6, accuracy), seeds=1, pairs=6 if accuracy == 1 else 2)
    assert verdict(PRESETS["laptop"], its) == "undecided"
    assert "no interval]" in sentences(PRESETS["laptop"], [its])[0]


def test_no_line_leaves_its_panel(monkeypatch):
    """Panels share their limits, whichever of them is drawn first."""
    monkeypatch.setattr(Point, "accuracies", lambda self, test: [{"high": 90.0, "low": 10.0}[test]] * 3)
    lines = [line("clip", (0.5, 0.6)), line("clip", (0.5, 0.6))._replace(split="spatial")]
    for tests in ({"binding": ["high"], "spatial": ["low"]}, {"binding": ["low"], "spatial": ["high"]}):
        for axis in all_tests(lines, tests).axes:
            least, most = axis.get_ylim()
            assert all(least <= y <= most for its in axis.get_lines() for y in its.get_ydata())


def test_sentences_name_cost_and_difference():
    lines = [line("clip", (0.6, 0.8, 0.7)), line("oc-clip", (0.9, 1.0))]
    first, second = sentences(PRESETS["laptop"], lines)
    assert "after the 20 steps that validation chose of up to 40 (1,280 images, 2 TFLOP, 10 CPU-seconds)" in first
    assert "more training no longer helps" in first
    assert "OC-CLIP gets 100.0 % [100.0, 100.0] after 20 steps, with 1 times the operations: +" in second
    assert second.endswith("as good as CLIP at its best after 10 steps, with 0.5 times the operations.")
    assert "at no budget" in sentences(PRESETS["laptop"], lines[::-1])[1]
    assert sentences(PRESETS["laptop"], [line("clip", ()), lines[1]]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budgets": (20, 10)}, "rising order"),
        ({"budgets": (4, 8)}, "must end before the rate"),
        ({"learning_rates": ()}, "--learning-rates needs one or more"),
        ({"batches": (8, 8)}, "different values"),
        ({"decay": 1.0}, "--decay is a share"),
        ({"splits": ()}, "--splits needs"),
        ({"splits": ("bindings",)}, "did you mean"),
        ({"base": BindingRecipe(world="tiny", validation=0.0)}, "validation of the recipe must leave pairs"),
        ({"singles_share": 2.0}, "singles-share must be at most 1"),
        ({"models": ("clip",), "scorers": OTHER_SIZE}, r"an option --oc-clip\.\* is given, but oc-clip is not among"),
    ],
)
def test_mistakes_are_named_before_anything_is_made(options, message):
    with pytest.raises(UserError, match=message):
        check(replace(PRESETS["smoke"], **options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compute")
    result = run_here([*COMPUTE, "--budgets", "12", "24", "--patience", "2"], folder)
    assert result.returncode == 0, result.stderr
    assert "4 runs of 12 steps" in result.stdout
    return folder


def test_a_run_ends_with_its_report(folder):
    out = folder / "runs/compute-smoke"
    report = (out / "report.html").read_text()
    assert "At the hardest cell of the binding split CLIP prefers the true caption in" in report
    assert "trained up to the largest budget" in report
    for name in ("compute", "scales", "tests", "training"):
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    drawn = (out / "figures/tests.svg").read_text()
    assert "Unseen pairs" in drawn
    assert "no records" not in drawn  # without hard negatives no training pair is tested
    rows = list(csv.DictReader((out / "results.csv").open()))
    assert {(row["split"], row["steps"]) for row in rows} == {
        (s, b) for s in ("binding", "spatial") for b in ("12", "24")
    }
    flops = {(row["split"], row["steps"]): float(row["flops"]) for row in rows}
    assert flops["binding", "24"] == 2 * flops["binding", "12"] > 0
    assert all(float(row["cpu_seconds"]) > 0 for row in rows)
    choices = list(csv.DictReader((out / "choices.csv").open()))
    assert sum(row["24"] != "–" for row in choices) == 2  # one of two rates at each split


def test_the_same_folder_goes_on_with_more_budgets(folder):
    again = run_here([*COMPUTE, "--budgets", "12", "24", "--patience", "2"], folder)
    assert "runs of" not in again.stdout, again.stdout
    more = run_here([*COMPUTE, "--budgets", "12", "24", "30", "--patience", "2"], folder)
    assert "2 runs of 30 steps" in more.stdout, more.stderr
    other = run_here([*COMPUTE, "--budgets", "12", "24", "--weight-decay", "0.1"], folder)
    assert "belongs to another configuration: weight_decay" in other.stderr


def test_a_run_whose_loss_is_no_number_is_left_behind(tmp_path):
    rates = ["--learning-rates", "1000", "1e-3", "--budgets", "12", "--splits", "binding", "--models", "siglip"]
    result = run_here([*COMPUTE, *rates], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "is no finite number" in result.stdout
    rows = list(csv.DictReader((tmp_path / "runs/compute-smoke/choices.csv").open()))
    assert rows[0]["12"] == "0.0"
    assert float(rows[1]["12"]) > 0
    (best,) = csv.DictReader((tmp_path / "runs/compute-smoke/compute.csv").open())
    assert best["choice"].endswith("rate 0.001")


def test_a_dry_run_trains_nothing(tmp_path):
    result = run_here([*COMPUTE, "--dry-run", "--splits", "spatial"], tmp_path)
    assert "spatial, clip (nano, batch 32, rate 0.001): 3 runs" in result.stdout, result.stderr
    assert "at most about" in result.stdout
    assert not (tmp_path / "runs").exists()


def test_runs_have_names_of_their_own():
    own = Run("binding", Setup("clip", "mini", 64, 6e-4), 0, 500)
    assert str(own.setup) == "mini, batch 64, rate 0.0006"
