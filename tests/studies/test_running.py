"""What a study knows of its plan while it runs: when it is asked, whether it may grow, which arm is impossible."""

import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import Sparing
from menagerie.studies import capacity
from menagerie.studies.frame.grids import SMOKE
from menagerie.studies.frame.run import Running, run_study
from menagerie.studies.frame.study import SplitStudy
from tests.command import read_rows
from tests.studies.browser import plain
from tests.studies.stored import stored_run


@dataclass(frozen=True)
class Rising(SplitStudy):
    """Another run follows where the first is good."""

    asked: ClassVar[list] = []

    def plan(self, known):
        self.asked.append(known)
        first = self.at("clip", 0, steps=10)
        yield first
        if (known.score(first) or 0) > 0.5:
            yield self.at("clip", 0, steps=20)

    def page(self, records):
        return ()


def end(running, arm):
    stored_run(running.out, "clip", 0, {}, 0.9, name=arm.id)


def test_a_plan_is_asked_again_when_a_run_has_ended(tmp_path):
    Rising.asked.clear()
    running = Running(Rising(**SMOKE), tmp_path)
    for count, asked, grows in ((1, 1, True), (2, 2, False), (2, 3, False)):
        for _ in range(3):
            assert len(running.arms()) == count
            running.records()
        assert (len(running.study.asked), running.grows) == (asked, grows)
        end(running, running.arms()[-1]) if running.waiting() else None


def test_the_page_of_a_stopped_study_has_its_finished_run(tmp_path, monkeypatch):
    def stopped(jobs, *_, grows):
        stored_run(tmp_path, "clip", 0, {}, 0.9, name=jobs[0].id)
        _[-1](jobs[0])
        raise KeyboardInterrupt

    monkeypatch.setattr("menagerie.studies.runs.executor.run_jobs", stopped)
    monkeypatch.setattr(Running, "render", lambda self, arms: None)
    monkeypatch.setattr(Running, "job", lambda self, arm: arm)
    monkeypatch.setattr(Sparing, "__call__", lambda self, action: False)
    with pytest.raises(KeyboardInterrupt):
        run_study(Rising(**SMOKE), tmp_path)
    assert "1 of 2 runs are finished" in plain(tmp_path / "report.html")


def test_without_altair_a_study_ends_with_its_results_and_the_command_of_its_page(tmp_path, monkeypatch, capsys):
    for name in ("page", "draw", "figures", "charts", "curves"):
        monkeypatch.delitem(sys.modules, f"menagerie.studies.frame.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.setattr(Running, "render", lambda self, arms: None)
    monkeypatch.setattr("sys.argv", ["rising.py", "--seeds", "1"])
    study = Rising(**SMOKE)
    for steps in (10, 20):
        stored_run(tmp_path, "clip", 0, {}, 0.9, name=study.at("clip", 0, steps=steps).id)
    run_study(study, tmp_path)
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("no page, because altair isn't installed here")
    assert last.endswith("python rising.py --seeds 1")
    assert {row["steps"] for row in read_rows(tmp_path / "results.csv")} == {"10", "20"}
    assert not (tmp_path / "report.html").exists()


def test_an_impossible_split_names_its_arm(tmp_path):
    running = Running(replace(capacity.PRESETS["smoke"], train_scenes=100_000, store=tmp_path), tmp_path)
    with pytest.raises(UserError, match=r"^clip, objects .*seed 0: train_scenes 100000 asks for 50000 scenes"):
        running.render(running.arms())
