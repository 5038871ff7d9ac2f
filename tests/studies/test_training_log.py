"""The training log: every step once, the same numbers however a run came about, and nothing changed by writing it."""

import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.progress import PlainLines
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.recipe import Recipe
from menagerie.models.scorer import Diverged
from menagerie.models.training.state import History, HistoryRow
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.frame.charts import RunCurve, training_curves
from menagerie.studies.runs.cell import CHECKPOINT, Execution, Job
from menagerie.studies.runs.evaluation import evaluates_after, sample_accuracy
from menagerie.studies.runs.results import read_result
from menagerie.studies.runs.train import run_cell
from menagerie.studies.runs.training_log import COLUMNS, FILE, read_training
from tests.command import GRID, QUICK, succeed
from tests.grid_cells import cells, chosen_alone

RECIPE = Recipe(steps=130, batch=4, warmup=2)


@pytest.fixture(scope="module")
def job_in(tmp_path_factory):
    """Makes the job of one CLIP in a folder, run in a way of its own."""
    grid = replace(chosen_alone(PRESETS["smoke"]), recipe=RECIPE, test_scenes=8, models=("clip",))
    store = SplitFolder(tmp_path_factory.mktemp("store"), load_world(grid.world), grid.resolution)
    cell = cells(grid, store.identity)[0]
    file = store.make(cell.data.recipe)
    return lambda out, **execution: Job(cell, file, out, execution=Execution(**execution))


@pytest.fixture(scope="module")
def undisturbed(job_in, tmp_path_factory):
    job = job_in(tmp_path_factory.mktemp("undisturbed"))
    run_cell(job, lambda step, text: None)
    return job


def log_of(job):
    """All columns but the timing, as bytes."""
    return [line.rsplit(",", 2)[0] for line in (job.folder / FILE).read_text().splitlines()]


def made(job):
    return [(job.folder / name).read_bytes() for name in ("predictions.csv", f"{CHECKPOINT}/model.safetensors")]


def stop_at(job, last, error=Stopped):
    def report(step, text):
        if step == last:
            raise error

    with pytest.raises(error):
        run_cell(job, report)


def test_the_log_has_a_row_for_every_step(undisturbed):
    table = read_training(undisturbed.folder)
    assert tuple(table) == COLUMNS == HistoryRow._fields
    assert table["step"].tolist() == list(range(1, 131))
    assert table["learning_rate"][:3] == pytest.approx(
        [RECIPE.learning_rate / 2, *2 * [RECIPE.learning_rate]], rel=1e-3
    )
    assert table["learning_rate"][-1] < 1e-3 * RECIPE.learning_rate
    assert np.isfinite(table["loss"]).all()
    assert len(set(table["loss"])) > 100
    assert (table["images_per_second"] > 0).all()
    assert ((table["waited"] > 0) & (table["waited"] < 1)).all()
    assert np.flatnonzero(~np.isnan(table["validation"])).tolist() == [99, 129]
    assert ((table["validation"][[99, 129]] >= 0) & (table["validation"][[99, 129]] <= 1)).all()


def test_validations_loaders_and_checkpointed_blocks_change_no_byte_of_a_run(job_in, undisturbed, tmp_path):
    """Validations change their own column of the log."""
    job = job_in(tmp_path, grad_checkpointing=True, loaders=2, validate_every=7)
    run_cell(job, lambda step, text: None)
    assert job.id == undisturbed.id
    assert made(job) == made(undisturbed)
    mine, theirs = read_training(job.folder), read_training(undisturbed.folder)
    assert all(np.array_equal(mine[name], theirs[name]) for name in ("step", "loss", "learning_rate"))
    assert np.flatnonzero(~np.isnan(mine["validation"])).tolist() == [*range(6, 130, 7), 129]
    assert mine["validation"][-1] == theirs["validation"][-1]


@pytest.fixture(scope="module")
def stopped(job_in, tmp_path_factory):
    """A run that was stopped, killed while it wrote a row, stopped just after a state was saved, and that failed."""
    log = ("tensorboard",) if find_spec("tensorboard") else ()
    job = job_in(tmp_path_factory.mktemp("stopped"), log=log)
    stop_at(job, 37)
    with (job.folder / FILE).open("a") as file:
        file.write("38,9.9,0.001,,1.0,0.5\n39,9.9,0.0")
    assert read_training(job.folder)["step"].tolist() == list(range(1, 39))
    stop_at(job, 100)
    stop_at(job, 117, RuntimeError)  # it goes on from step 100
    run_cell(job, lambda step, text: None)
    return job


def test_a_run_that_was_stopped_has_each_step_once(stopped, undisturbed):
    assert log_of(stopped) == log_of(undisturbed)
    assert made(stopped) == made(undisturbed)


def test_tensorboard_has_every_point_once(stopped):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="no tensorboard here")
    (folder,) = (stopped.out / "tensorboard").iterdir()
    assert folder.name.startswith("clip-50-pairs-0-negatives-seed-0")
    found = events.EventAccumulator(str(folder), size_guidance={events.SCALARS: 0})
    found.Reload()
    table = read_training(stopped.folder)
    for name in COLUMNS[1:]:
        seen = ~np.isnan(table[name])
        points = found.Scalars(name)
        assert [point.step for point in points] == table["step"][seen].tolist()
        assert [point.value for point in points] == pytest.approx(table[name][seen], rel=1e-3)


def test_validations_are_few_and_never_in_the_shared_phase():
    def steps(recipe, every=0):
        return [step for step in range(1, recipe.steps + 1) if evaluates_after(step, recipe, every)]

    assert steps(Recipe(steps=2000)) == list(range(200, 2001, 200))
    assert steps(Recipe(steps=2000, single_object_phase=0.5)) == list(range(1200, 2001, 200))
    assert steps(Recipe(steps=60)) == [60]
    assert steps(Recipe(steps=60), every=25) == [25, 50, 60]
    assert steps(Recipe(steps=60, single_object_phase=1.0)) == []


def test_a_validation_leaves_mode_and_random_state(undisturbed, monkeypatch):
    from menagerie.models.checkpoint import load_checkpoint

    scorer = load_checkpoint(undisturbed.folder / CHECKPOINT, "clip").train()
    test = undisturbed.cell.data.open(undisturbed.data_file).tests["validation"]
    drawn = []

    def pair_similarity(images, texts):
        drawn.append(torch.rand(len(images)))
        return drawn[-1]

    monkeypatch.setattr(scorer, "pair_similarity", pair_similarity)
    before = torch.get_rng_state()
    assert 0 <= sample_accuracy(scorer, test) <= 1
    assert drawn
    assert torch.equal(torch.get_rng_state(), before)
    assert scorer.training
    monkeypatch.setattr(scorer, "pair_similarity", lambda images, texts: torch.full((len(images),), torch.nan))
    assert math.isnan(sample_accuracy(scorer, test))


def test_logging_a_step_does_not_wait_for_the_gpu():
    """On a GPU only `read` does; without one, fake CUDA tensors raise on whatever would."""
    history = History(batch=4)
    with FakeTensorMode():
        history.add(1, torch.empty((), device="cuda"), 0.1)
        assert history.rows == []
        with pytest.raises(DataDependentOutputException):
            history.read()


def test_evaluations_are_not_counted_as_training_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("menagerie.models.training.state.time.perf_counter", lambda: now[0])
    history = History(batch=10)

    def batches(seconds):
        for number in (1, 2):
            now[0] += seconds  # in which the run waits
            yield number

    for step in history.time_waiting(batches(0.25)):
        history.add(step, torch.tensor(0.5), 0.1)
        now[0] += 0.75
    history.read()
    now[0] += 100.0  # an evaluation
    history.restart()
    history.add(3, torch.tensor(0.25), 0.1)
    now[0] += 2.0
    history.read()
    assert [row.images_per_second for row in history.rows] == [10.0, 10.0, 5.0]
    assert [row.waited for row in history.rows] == [0.25, 0.25, 0.0]
    history.note(0.75)
    again = History(batch=10)
    again.take(history.table().tolist())
    assert str(again.rows) == str(history.rows)


def test_losses_until_it_diverged_are_kept(job_in, tmp_path):
    job = job_in(tmp_path)
    job = replace(job, cell=replace(job.cell, recipe=replace(RECIPE, learning_rate=1000.0)))
    with pytest.raises(UserError, match="no finite number"):
        run_cell(job, lambda step, text: None)
    losses = read_training(job.folder)["loss"]
    assert np.isfinite(losses[0])
    assert not np.isfinite(losses).all()


BAD = """
from menagerie.models.networks.clip import CLIPScorer

class Gradient(CLIPScorer):
    def loss(self, *given):
        none = (self.log_scale - self.log_scale.detach()).abs().sqrt()  # 0, with a gradient of 0 / 0
        return super().loss(*given) + none

class Score(CLIPScorer):
    def pair_similarity(self, images, texts):
        return super().pair_similarity(images, texts) / 0
"""


@pytest.mark.parametrize(("name", "reason"), [("Gradient", "a weight of Gradient"), ("Score", "Score gives scores")])
def test_a_run_that_diverges_in_its_last_step_gets_no_result(name, reason, job_in, tmp_path):
    """Also where it shows in the tests alone: a resumed run would come to them again and again."""
    (tmp_path / "bad.py").write_text(BAD)
    job = job_in(tmp_path)
    job = replace(job, cell=replace(job.cell, model=f"{tmp_path}/bad.py:{name}", recipe=replace(RECIPE, steps=1)))
    with pytest.raises(Diverged, match=reason):
        run_cell(job, lambda step, text: None)
    run_cell(job, lambda step, text: pytest.fail("it isn't trained again"))
    assert reason in job.problem
    assert (job.ended, read_result(job.folder)) == (True, None)


def test_a_study_logs_to_tensorboard_if_asked(tmp_path):
    pytest.importorskip("tensorboard", reason="no tensorboard here")
    command = [*GRID, *QUICK, "--models", "clip", "--steps", "3", "--log", "tensorboard", "--out", "runs/l"]
    succeed(command, tmp_path, page=False)
    assert len(list(tmp_path.glob("runs/l/tensorboard/*/events*"))) == 1
    again = succeed([*command, "--log", "--validate-every", "5"], tmp_path, page=False)  # neither decides results
    assert "1 of them finished before" in again.stdout


def test_progress_lines_are_ten_seconds_apart(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("menagerie.envs.core.progress.time.monotonic", lambda: now[0])
    lines, due = PlainLines(last=0.0), []
    for second in range(31):
        now[0] = float(second)
        due += [second] * lines.due()
    assert due == [10, 20, 30]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    now[0] = 100.0
    assert not lines.due()


def test_curves_have_a_column_per_model_and_a_colour_per_label(undisturbed, tmp_path):
    curves = [RunCurve(model, label, undisturbed.folder) for model in ("clip", "oc-clip") for label in ("20%", "80%")]
    frame = training_curves([*curves, RunCurve("late", "20%", tmp_path)]).data  # one without a log
    assert [*frame["model"].unique()] == ["clip", "oc-clip"]
    assert [*frame["label"].unique()] == ["20%", "80%"]
    first = frame[(frame["model"] == "clip") & (frame["label"] == "20%")]
    assert first[first["panel"] == "validation (%)"]["step"].tolist() == [100, 130]
    loss = first[first["panel"] == "loss"]["value"].mean()
    assert loss == pytest.approx(read_training(undisturbed.folder)["loss"].mean())
    assert training_curves([RunCurve("late", "20%", tmp_path)]) is None


def test_seeds_are_averaged_where_a_panel_would_be_full(undisturbed):
    few = [RunCurve("clip", f"row {k % 6}", undisturbed.folder) for k in range(12)]
    assert training_curves(few).data["run"].nunique() == 12
    many = [RunCurve("clip", f"row {k % 6}", undisturbed.folder) for k in range(18)]
    frame = training_curves(many).data
    assert frame["run"].nunique() == 6
    loss = frame[(frame["panel"] == "loss") & (frame["label"] == "row 0")]["value"].mean()
    assert loss == pytest.approx(read_training(undisturbed.folder)["loss"].mean())
