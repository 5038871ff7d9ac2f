"""Worker processes of a study, which end with it."""

import multiprocessing
from multiprocessing.process import BaseProcess
from unittest import mock

import pytest

from envs.common.processes import end_processes
from studies.runs.cell import Job
from studies.runs.local import Pool


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
