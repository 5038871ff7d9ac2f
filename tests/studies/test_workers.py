"""Worker processes of a study, which end with it."""

import gc
import multiprocessing
import os
import signal
from dataclasses import replace
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import SemLock
from unittest import mock

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.processes import end_processes
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.runs import whole_job
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.dispatch import run_interruptible
from menagerie.studies.runs.local import Pool, run_one
from tests.grid_cells import cells, chosen_alone, splits


def test_an_interrupt_as_a_worker_starts_leaves_none_behind(monkeypatch):
    """The command would wait for it for ever at its own end."""
    start, before = BaseProcess.start, multiprocessing.active_children()

    def interrupted(process):
        start(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(BaseProcess, "start", interrupted)
    pool = Pool()
    with pytest.raises(KeyboardInterrupt):
        pool.start(mock.Mock(spec=Job))
    pool.stop()
    left = [process for process in multiprocessing.active_children() if process not in before]
    end_processes(left)
    assert not left


def test_a_cell_that_is_held_is_released_when_its_loaders_have_ended(tmp_path):
    """A signal that raised while Python frees their semaphores would leave one of those behind."""

    left = []

    class Watched(Interruption):
        """Counts the semaphores of this process whenever a request begins to end the cell at once,
        and looks whether that is evaluated."""

        def __setattr__(self, name, value):
            if name == "deferred" and not value:
                evaluated = any(tmp_path.rglob("result.json"))
                left.append((sum(issubclass(type(its), SemLock) for its in gc.get_objects()), evaluated))
            super().__setattr__(name, value)

    grid = replace(chosen_alone(PRESETS["smoke"]), recipe=Recipe(steps=2, batch=4), test_scenes=4)
    store = SplitFolder(tmp_path / "store", load_world(grid.world), grid.resolution)
    recipe = splits(grid)[0]
    cell = cells(grid, store.identity)[0]
    job = Job(cell, store.make(recipe), tmp_path / "run", execution=Execution(loaders=1))
    run_interruptible(job, Watched())
    (before, _), *_ = left
    assert left == [(before, False), (before, False), (before, True)]  # as it begins, between the two, and at the end


def test_steps_that_are_taken_again_for_states_are_ended_between_two(tmp_path, monkeypatch):
    """A cell is released when its loaders have ended, and takes steps with new ones for states that it lacks."""
    events, handler = [], signal.getsignal(signal.SIGTERM)

    def again(*_):
        os.kill(os.getpid(), signal.SIGTERM)  # as its loaders start
        events.append("started")
        raise UserError("they end between steps")

    def run(report, release):
        report(1, "")
        release()
        whole_job.keep_lacking(job, lambda step: report(step, ""))

    monkeypatch.setattr(whole_job, "take_steps", again)
    for name in ("settle_torch", "open_material", "read_graphs", "fresh_scorer", "give_readers", "take_over_finished"):
        monkeypatch.setattr(whole_job, name, mock.Mock())
    monkeypatch.setattr(whole_job, "keeper", mock.Mock())
    job = mock.Mock(
        spec=Job, id="it", folder=tmp_path, threads=1, lacking=[1], cell=mock.Mock(), has_processes=True, run=run
    )
    try:
        assert run_one(job, mock.Mock()) == "they end between steps"
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert events == ["started"]
