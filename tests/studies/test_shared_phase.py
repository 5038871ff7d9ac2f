"""The phase that cells share gives the same bytes as if each had trained it by itself, however it is stopped."""

import contextlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.kept_states import keep_state, kept_steps, load_kept_state, state_folder, take_over_states
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.frame.adaptive import InventedResults
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.frame.checks import check_states
from menagerie.studies.frame.command import changeable_options
from menagerie.studies.runs import train as train_module
from menagerie.studies.runs.cell import CHECKPOINT, DIVERGED, STATE, Execution, Job
from menagerie.studies.runs.command_line import only_models, scorer_options
from menagerie.studies.runs.dispatch import run_interruptible
from menagerie.studies.runs.results import read_result
from menagerie.studies.runs.shared import clear_shared, phase_recipe
from menagerie.studies.runs.train import one_training, run_cell
from menagerie.studies.runs.training_log import FILE
from menagerie.studies.runs.whole_job import WAITS
from tests.grid_cells import cell_output, cells, chosen_alone, splits
from tests.helpers.scorers import STAGED, scorer

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
        patch.setattr(train_module, "start_from_shared_phase", lambda *_: None)
        jobs = jobs_in(tmp_path_factory.mktemp("alone"))
        for job in jobs:
            run_cell(job, lambda step: None)
    return {job.cell.id: made(job) for job in jobs}


def stopped_at(last, job):
    """Run a cell until it is stopped behind a step."""

    def stop(step):
        if step == last:
            raise Stopped

    with pytest.raises(Stopped):
        run_cell(job, stop)


def test_a_shared_first_phase_changes_no_byte_of_a_cell(jobs_in, alone, tmp_path):
    jobs, steps = jobs_in(tmp_path), []
    for job in jobs:
        seen = []
        run_cell(job, seen.append)
        steps.append(seen)
        assert made(job) == alone[job.cell.id]
    # The first cell of each model trains all steps, the second only those after the phase.
    assert [seen[0] for seen in steps] == [1, 1, 7, 7]
    assert len(list((tmp_path / "shared").glob("*.pt"))) == 2
    clear_shared(tmp_path)
    assert not (tmp_path / "shared").exists()


def test_a_stopped_shared_phase_goes_on_in_another_cell(jobs_in, alone, tmp_path):
    first, _, second, _ = jobs_in(tmp_path)
    stopped_at(3, first)
    assert len(list((tmp_path / "shared").glob("*.unfinished.pt"))) == 1
    seen = []
    run_cell(second, seen.append)  # another cell goes on with it
    assert seen[0] == 4
    run_cell(first, lambda step: None)
    assert [made(job) for job in (first, second)] == [alone[job.cell.id] for job in (first, second)]


def test_a_cell_stopped_after_its_shared_phase_goes_on_from_its_own_state(jobs_in, alone, tmp_path):
    job = jobs_in(tmp_path)[1]
    stopped_at(8, job)
    assert (job.folder / STATE).exists()
    seen = []
    run_cell(job, seen.append)
    assert seen == [9, 10, 11, 12]
    assert made(job) == alone[job.cell.id]


def test_a_phase_of_other_steps_is_not_shared(jobs_in, tmp_path):
    """Another rate, batch or seed is another phase; what decides later steps alone is not."""
    base = phase_recipe(RECIPE)
    assert phase_recipe(replace(RECIPE, singles_share=0.9)) == base
    for change in ({"learning_rate": 1.0}, {"batch": 4}, {"steps": 20}, {"warmup": 3}, {"augment": False}):
        assert phase_recipe(replace(RECIPE, **change)) != base
    clip, _, other, _ = jobs_in(tmp_path)
    run_cell(clip, lambda step: None)
    reseeded = replace(other, cell=replace(other.cell, seed=1))
    seen = []
    run_cell(reseeded, seen.append)
    assert seen[0] == 1
    assert len(list((tmp_path / "shared").glob("*.pt"))) == 2


def test_kept_states_are_the_same_bytes_however_a_run_is_made(jobs_in, alone, tmp_path, monkeypatch):
    """Trained by itself; after a phase that another one trained; finished or stopped before it was asked for them."""
    kept = (0, 3, 6, 9, 12)

    def job_in(name, keep=(*kept, 99), which=2):
        return replace(jobs_in(tmp_path / name)[which], execution=Execution(keep_states=keep))

    def run(job, last=99):
        seen = []

        def report(step, text):
            seen.append(step)
            if step == last:
                raise Stopped

        with contextlib.suppress(Stopped):
            job.run(report, lambda: None)
        return seen

    with monkeypatch.context() as patch:
        patch.setattr(train_module, "start_from_shared_phase", lambda *_: None)
        run(job_in("by itself"))
    run(job_in("shared", which=0))
    assert run(job_in("shared"))[0] == 7, "the phase's states are those that the first cell kept"
    run(job_in("finished", keep=()))
    before = (job_in("finished").folder / "result.json").read_bytes()
    assert job_in("finished", keep=()).ended
    assert job_in("finished").lacking == list(kept)
    run(job_in("finished", keep=(6, 9)), last=7)  # again, for the states
    assert job_in("finished").lacking == [0, 3, 9, 12]
    run(job_in("finished"))
    assert job_in("finished").lacking == []
    assert (job_in("finished").folder / "result.json").read_bytes() == before
    run(job_in("stopped", keep=()), last=8)
    run(job_in("stopped"))

    files = ("config.json", "model.safetensors", "state.json")
    states = []
    for name in ("by itself", "shared", "finished", "stopped"):
        job = job_in(name)
        assert job.ended
        assert made(job) == alone[job.id]
        assert {path.name for path in (job.folder / "states").iterdir()} == set(map(str, kept))
        states.append([(state_folder(job.folder, step) / file).read_bytes() for step in kept for file in files])
    assert states[1:] == states[:1] * 3
    assert len({weights for weights in states[0][1::3]}) == len(kept)
    assert states[0][-2] == made(job)[1], "the last one is the result's"
    shutil.copytree(state_folder(job.folder, 3), state_folder(job.folder, 6), dirs_exist_ok=True)
    with pytest.raises(UserError, match=r"states/6 can't be used .*delete this folder and run again with --keep"):
        load_kept_state(job.folder, 6, "clip")


def test_kept_states_change_no_identity_and_no_folder(tmp_path):
    study = replace(chosen_alone(PRESETS["smoke"]), store=tmp_path)
    kept = replace(study, keep_states=(0, 60))
    assert [arm.id for arm in kept.plan(InventedResults())] == [arm.id for arm in study.plan(InventedResults())] != []
    assert "keep_states" in changeable_options(study)
    check_states(kept)
    with pytest.raises(UserError, match="--keep-states 61: no run has so many steps; the longest has 60"):
        check_states(replace(study, keep_states=(61, 0)))


def test_a_damaged_state_is_not_handed_on(tmp_path):
    """Nor one of another step."""
    clip, (source, target) = scorer("clip"), (tmp_path / "shared/a", tmp_path / "cells/b")
    for step in (1, 2, 3):
        keep_state(source, step, "clip", clip)
    (state_folder(source, 1) / "model.safetensors").write_bytes(b"torn")
    shutil.copy(state_folder(source, 3) / "state.json", state_folder(source, 2))
    take_over_states(source, target, (1, 2, 3, 4), "clip", clip)
    assert kept_steps(target) == [3]
    torch.testing.assert_close(load_kept_state(target, 3, "clip").state_dict(), clip.state_dict())


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
    run_cell(job, lambda step: None)
    assert read_result(job.folder)["images_seen"] == 2 * 12 * 8
    assert read_result(clip.folder)["images_seen"] == 12 * 8
    before = load_file(clip.folder / CHECKPOINT / "model.safetensors")
    after = load_file(job.folder / CHECKPOINT / "model.safetensors")
    assert all(np.array_equal(value, after[f"base.{key}"]) for key, value in before.items())
    assert json.loads((job.folder / CHECKPOINT / "config.json").read_text())["base"] == {"logit_scale": 1 / 0.07}


def test_a_cell_that_another_process_trains_is_not_trained_twice(tmp_path, jobs_in, alone):
    """By its own job or by one that starts from it: both wait, say so, and ask again whether it is finished."""
    clip, linear = jobs_in(tmp_path)[0], staged(jobs_in, tmp_path)
    for job, steps in ((linear, list(range(1, 13))), (clip, [])):
        seen, said, written = [], [], []
        with contextlib.ExitStack() as elsewhere:
            elsewhere.enter_context(one_training(clip, lambda step: None))

            def report(step, text, seen=seen, said=said, written=written, elsewhere=elsewhere):
                if step:
                    seen.append(step)
                    return
                said.append(text)
                if not written:
                    run_cell(clip, lambda step: step or pytest.fail("it waits for the job itself"))
                    written.append((clip.folder / FILE).stat().st_ino)
                    elsewhere.close()

            job.run(report, lambda: None)
        assert (seen, said) == (steps, [WAITS])
        assert (clip.folder / FILE).stat().st_ino == written[0]
        assert made(clip) == alone[clip.id]
        (clip.folder / "result.json").unlink()


def test_a_cell_that_diverges_elsewhere_has_diverged(tmp_path, jobs_in):
    clip, linear = jobs_in(tmp_path)[0], staged(jobs_in, tmp_path)
    with contextlib.ExitStack() as elsewhere:
        elsewhere.enter_context(one_training(clip, lambda step: None))

        def report(step, text):
            assert not step
            clip.folder.mkdir(parents=True, exist_ok=True)
            (clip.folder / DIVERGED).write_text("the loss was no number")
            elsewhere.close()

        clip.run(report, lambda: None)
    assert clip.problem == "the loss was no number"
    with pytest.raises(UserError, match="the loss was no number"):
        linear.run(report, lambda: None)
    assert linear.problem == clip.problem


def test_a_job_that_waits_deletes_nothing_and_ends_when_it_is_told_to(tmp_path, jobs_in):
    """What a process on another machine writes looks like what a killed one left there."""
    job = jobs_in(tmp_path)[0]
    (job.folder / "states" / "3").mkdir(parents=True)
    files = [job.folder / ".state.elsewhere-7.tmp.pt", job.folder / "states/3/.model.elsewhere-7.tmp.safetensors"]
    with one_training(job, lambda step: None):
        for file in files:
            file.touch()
        with pytest.raises(Stopped):
            run_interruptible(job, Interruption(requested=True))
        assert all(file.exists() for file in files)
    with pytest.raises(Stopped):
        run_interruptible(job, Interruption(requested=True))
    assert not any(file.exists() for file in files)
