"""The phase that cells share gives the same bytes as if each had trained it by itself, however it is stopped."""

import contextlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.kept_states import load_kept_state, state_folder
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.frame.arm import InventedResults
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.frame.command import changeable_options, check_states
from menagerie.studies.frame.study import all_arms
from menagerie.studies.runs import train as train_module
from menagerie.studies.runs.cell import CHECKPOINT, DIVERGED, Execution, Job, one_training
from menagerie.studies.runs.command_line import only_models, scorer_options
from menagerie.studies.runs.results import read_result
from menagerie.studies.runs.runners import run_interruptible
from menagerie.studies.runs.shared import clear_shared, hold_lock, phase_recipe
from menagerie.studies.runs.slurm import Interruption
from menagerie.studies.runs.train import WAITS, run_cell, run_with_needs
from tests.grid_cells import cell_output, cells, chosen_alone, splits
from tests.helpers.scorers import STAGED

RECIPE = Recipe(steps=12, batch=8, warmup=2, single_object_phase=0.5, singles_share=0.4)


@pytest.fixture(scope="module")
def jobs_in(tmp_path_factory):
    """Makes the jobs of a tiny grid in a folder: both models, without and with hard negatives."""
    grid = replace(chosen_alone(PRESETS["smoke"]), recipe=RECIPE, test_scenes=8)
    store = SplitFolder(tmp_path_factory.mktemp("store"), load_world(grid.world), grid.resolution)
    files = {recipe: store.make(recipe) for recipe in splits(grid)}
    return lambda out: [Job(cell, files[cell.data.recipe], out) for cell in cells(grid, store.identity)]


def made(job):
    return cell_output(job.folder)


@pytest.fixture(scope="module")
def alone(jobs_in, tmp_path_factory):
    """What every cell makes when it trains all steps by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_module, "shared_steps", lambda *_: None)
        jobs = jobs_in(tmp_path_factory.mktemp("alone"))
        for job in jobs:
            trained(job)
    return {job.cell.id: made(job) for job in jobs}


def trained(job, stop_at=None):
    """The steps that a run takes until it ends or is stopped behind a step."""
    seen = []

    def report(step, text):
        seen.append(step)
        if step == stop_at:
            raise Stopped

    with contextlib.suppress(Stopped):
        run_with_needs(job, report)
    assert not stop_at or seen[-1] == stop_at
    return seen


def test_a_shared_first_phase_changes_no_byte_of_a_cell(jobs_in, alone, tmp_path):
    jobs, steps = jobs_in(tmp_path), []
    for job in jobs:
        steps.append(trained(job))
        assert made(job) == alone[job.cell.id]
    # The first cell of each model trains all steps, the second only those after the phase.
    assert [seen[0] for seen in steps] == [1, 1, 7, 7]
    assert len(list((tmp_path / "shared").glob("*/*.pt"))) == 2
    clear_shared(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells"]


def test_a_cell_stopped_in_or_after_its_shared_phase_goes_on_from_its_own_state(jobs_in, alone, tmp_path):
    first, _, second, _ = jobs_in(tmp_path)
    assert trained(first, stop_at=3) == [1, 2, 3]
    assert not list((tmp_path / "shared").glob("*/*.pt"))
    assert trained(first, stop_at=8)[0] == 4
    assert trained(first) == [9, 10, 11, 12]
    assert trained(second)[0] == 7
    assert [made(job) for job in (first, second)] == [alone[job.cell.id] for job in (first, second)]


def test_a_cell_waits_while_another_one_trains_their_steps(jobs_in, alone, tmp_path, monkeypatch):
    first, _, second, _ = jobs_in(tmp_path)
    trained(first, stop_at=7)
    (lock,) = (tmp_path / "shared").glob("*.lock")
    said = []
    with contextlib.ExitStack() as elsewhere:
        elsewhere.enter_context(hold_lock(lock, lambda step: None))

        def report(step, text):
            if not step:
                said.append(text)
                elsewhere.close()

        run_cell(second, report)
    assert said == [WAITS]
    assert made(second) == alone[second.cell.id]


def test_a_phase_of_other_steps_is_not_shared(jobs_in, tmp_path):
    """Another rate, batch or seed is another phase; what decides later steps alone is not."""
    base = phase_recipe(RECIPE)
    assert phase_recipe(replace(RECIPE, singles_share=0.9)) == base
    for change in ({"learning_rate": 1.0}, {"batch": 4}, {"steps": 20}, {"warmup": 3}, {"augment": False}):
        assert phase_recipe(replace(RECIPE, **change)) != base
    clip, _, other, _ = jobs_in(tmp_path)
    trained(clip)
    assert trained(replace(other, cell=replace(other.cell, seed=1)))[0] == 1
    assert len(list((tmp_path / "shared").glob("*/*.pt"))) == 2


def test_kept_states_are_the_same_bytes_however_a_run_is_made(jobs_in, alone, tmp_path):
    """Each run takes all of its steps itself; one that was stopped before it was asked for them begins again."""
    kept = (0, 3, 6, 9, 12)

    def job_in(name, keep=(*kept, 99), which=2):
        return replace(jobs_in(tmp_path / name)[which], execution=Execution(keep_states=keep))

    trained(job_in("alone"))
    trained(job_in("after another", keep=(), which=0))
    assert trained(job_in("after another"))[0] == 1
    trained(job_in("stopped before", keep=(0,)), stop_at=8)
    assert trained(job_in("stopped before"))[0] == 1
    trained(job_in("stopped"), stop_at=8)
    assert trained(job_in("stopped"))[0] == 9
    files = ("config.json", "model.safetensors")
    states = []
    for name in ("alone", "after another", "stopped before", "stopped"):
        job = job_in(name)
        assert made(job) == alone[job.id]
        assert not job.lacking
        assert {path.name for path in (job.folder / "states").iterdir()} == set(map(str, kept))
        states.append([(state_folder(job.folder, step) / file).read_bytes() for step in kept for file in files])
    assert states[1:] == states[:1] * 3
    assert len({weights for weights in states[0][1::2]}) == len(kept)
    assert states[0][-1] == made(job)[1], "the last one is the result's"
    shutil.copytree(state_folder(job.folder, 3), state_folder(job.folder, 6), dirs_exist_ok=True)
    with pytest.raises(UserError, match=r"states/6 can't be used .*delete .* and run its study again with --keep"):
        load_kept_state(job.folder, 6, "clip")


def test_kept_states_change_no_identity_and_no_folder(tmp_path):
    study = replace(chosen_alone(PRESETS["smoke"]), store=tmp_path)
    kept = replace(study, keep_states=(0, 60))
    assert [arm.id for arm in kept.plan(InventedResults())] == [arm.id for arm in study.plan(InventedResults())] != []
    assert "keep_states" in changeable_options(study)
    check_states(kept, all_arms(kept))
    with pytest.raises(UserError, match="--keep-states 61: no run has so many steps; the longest has 60"):
        check_states(replace(study, keep_states=(61, 0)), all_arms(study))


def staged(jobs_in, folder):
    """The job of a linear map on the first cell's CLIP."""
    (folder / "mine.py").write_text(STAGED)
    name, clip = f"{folder}/mine.py:Linear", jobs_in(folder)[0]
    grid = replace(
        PRESETS["smoke"], recipe=RECIPE, models=(name,), scorers=only_models(scorer_options("smoke"), [name])
    )
    cell = cell_of(grid, name, clip.cell.data, clip.cell.seed)
    assert cell.base.id == clip.cell.id  # so that a grid with both trains it once
    return replace(clip, cell=cell)


def test_a_stage_is_trained_first_and_its_passes_are_counted(tmp_path, jobs_in):
    """A linear map on a frozen CLIP: the CLIP is a cell of its own, trained once, and stays as it is."""
    from safetensors.numpy import load_file

    clip, job = jobs_in(tmp_path)[0], staged(jobs_in, tmp_path)
    assert [need.id for need in job.needs] == [clip.id]
    trained(job)
    assert read_result(job.folder)["images_seen"] == 2 * 12 * 8
    assert read_result(clip.folder)["images_seen"] == 12 * 8
    before = load_file(clip.folder / CHECKPOINT / "model.safetensors")
    after = load_file(job.folder / CHECKPOINT / "model.safetensors")
    assert all(np.array_equal(value, after[f"base.{key}"]) for key, value in before.items())
    assert json.loads((job.folder / CHECKPOINT / "config.json").read_text())["base"] == {"logit_scale": 1 / 0.07}


def test_a_cell_that_another_process_trains_is_not_trained(tmp_path, jobs_in):
    """Nor one that starts from it."""
    clip, linear = jobs_in(tmp_path)[0], staged(jobs_in, tmp_path)
    assert not clip.held
    with one_training(clip):
        assert clip.held
        for job in (clip, linear):
            with pytest.raises(UserError, match="is trained by another command; repeat this one"):
                trained(job)
    assert not clip.held
    assert trained(linear)[-1] == 12
    assert not list((tmp_path / "locks").iterdir()), "none is left of a cell that has ended"
    assert trained(clip) == []


def test_a_cell_that_starts_from_a_diverged_one_has_diverged(tmp_path, jobs_in):
    clip, linear = jobs_in(tmp_path)[0], staged(jobs_in, tmp_path)
    clip.folder.mkdir(parents=True)
    (clip.folder / DIVERGED).write_text("the loss was no number")
    with pytest.raises(UserError, match="the loss was no number"):
        trained(linear)
    assert linear.problem == "the loss was no number"


def test_temporary_files_of_a_cell_are_deleted_only_by_the_process_that_trains_it(tmp_path, jobs_in):
    """What a process on another machine writes looks like what a killed one left there."""
    job = jobs_in(tmp_path)[0]
    (job.folder / "states" / "3").mkdir(parents=True)
    files = [job.folder / ".state.elsewhere-7.tmp.pt", job.folder / "states/3/.model.elsewhere-7.tmp.safetensors"]
    with one_training(job):
        for file in files:
            file.touch()
        with pytest.raises(UserError):
            run_interruptible(job, Interruption(), lambda step, text: None)
        assert all(file.exists() for file in files)
    with pytest.raises(Stopped):
        run_interruptible(job, Interruption(requested=True), lambda step, text: None)
    assert not any(file.exists() for file in files)
