"""What long work shows."""

from menagerie.envs.core import progress
from menagerie.envs.core.progress import Sparing


def test_slow_reports_take_a_small_share_of_the_time(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    sparing, reports = Sparing(share=0.02, started=0.0), []

    def report() -> None:
        reports.append(clock[0])
        clock[0] += 4  # seconds

    for clock[0] in (10.0, 100.0, 201.0, 300.0, 401.0):
        sparing(report)
    assert reports == [10.0, 201.0, 401.0]
