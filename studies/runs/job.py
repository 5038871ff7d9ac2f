"""What the executor runs, here and on clusters: training runs, measures of finished ones, pieces of evaluations."""

from collections.abc import Callable
from pathlib import Path

Report = Callable[[int, str], None]  # receives each finished step, and what there is to say of it


class AnyJob:
    """Work that leaves files in a folder. It is pickled on its way to the process that does it."""

    id: str
    """Jobs with the same id are the same job."""
    name: str
    """Short text for people who wait."""
    folder: Path
    """Where the job's files go; nobody else writes there while it runs."""
    group: str = ""
    """Jobs of one group load the same files, so one worker runs them one after another if it can; empty: no group."""
    steps: int = 1
    """Number of steps, for progress bars."""
    threads: int = 1
    """Threads of torch; 0 leaves torch the choice."""
    device: str = "cpu"
    has_processes: bool = False
    """Whether the job has processes of its own, so that it may only be ended when it reports a step."""
    problem: str = ""
    """Why the job ended without a result; empty if it has one, or hasn't ended."""

    @property
    def ended(self) -> bool:
        """Whether the job is finished, according to the files in its folder."""
        raise NotImplementedError

    def run(self, report: Report, release: Callable[[], None]) -> None:
        """Do what is left, from where it was stopped.

        After `release()` the job may be ended at any moment. A `UserError` means that the job failed (see `run_jobs`),
        unless it has `ended` with this error, for example because it diverged.
        """
        raise NotImplementedError

    @property
    def outcome(self) -> str:
        """The line that is printed when the job has ended."""
        return f"no result of {self.name}: {self.problem}" if self.problem else f"finished {self.name}"
