"""A search whose trials come free while a command writes its last page. Its runs take no time."""

from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import pytest

from menagerie.studies.frame import page
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.run import Running, run
from menagerie.studies.frame.search import Tried
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.results import write_result
from tests.searching import cheap


@dataclass(frozen=True)
class Searching(AnyStudy):
    """A study of one search. Each moment of its course is noted, and `free` is called at one of them."""

    journal: str = ""
    at: str = ""
    free: object = None
    course: list = field(default_factory=list)

    def note(self, moment):
        self.course.append(moment)
        if moment == self.at and self.course.count(moment) == 1:
            self.free()

    def tried(self, known, trial):
        arm = Arm(SimpleNamespace(id=f"{trial.number:012d}", model="m", seed=0, tests=(), below="pieces"), {})
        return Tried([arm], (trial.params["x"],) if known.over(arm) else None)

    def plan(self, known):
        for _, tried in cheap(4, at_once=1).follow(known, self.journal, partial(self.tried, known)):
            yield from tried.arms

    def page(self, records):
        return ()

    def tables(self, records):
        pass

    def measurements(self, arm):
        self.note("measure")
        return ()

    def export(self, records):
        self.note("last page" if "measure" in self.course else "page")

    def conclude(self, records):
        self.note("end")
        self.course.append(len(records.results))


def trained(running, arms):
    for arm in arms:
        write_result(running.out / "pieces" / arm.id, {"id": arm.id, "model": "m", "subsets": {}})


@pytest.mark.parametrize("moment", ["measure", "last page"])
def test_a_trial_that_comes_free_at_the_end_is_trained(moment, tmp_path, monkeypatch):
    """Another machine, which had one of four, is given up."""
    journal, search = str(tmp_path / "journal.log"), cheap(4, at_once=1)
    monkeypatch.setattr(Running, "train", trained)
    monkeypatch.setattr(page, "write_report", lambda study, records: records.out / "report.html")
    other, here = (SimpleNamespace(owner=name, storage=lambda given: journal) for name in ("other", "judge"))
    search.follow(other, journal, lambda trial: Tried(()))
    study = Searching(journal=journal, at=moment, free=lambda: search.abandon(here, journal))
    run(study, tmp_path)
    trials = search.found(here, journal)
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 4
    assert study.course[-2:] == ["end", 4], "what it says in the end is of all trials"
