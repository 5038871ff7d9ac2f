"""Jobs, which the executor runs here or on clusters: training runs, measures of finished ones, evaluations."""

from collections.abc import Callable, Sequence
from pathlib import Path

Report = Callable[[int, str], None]  # receives each finished step with a text on it


class AnyJob:
    """Work that writes files into a folder. A job is pickled to reach the process that does it."""

    id: str
    """Jobs with the same id are the same job."""
    name: str
    """Short text for progress messages."""
    folder: Path
    """Folder of the job's files, to which nothing else writes while it runs."""
    group: str = ""
    """Jobs of one group load the same files, so one worker runs them one after another if it can; empty: no group."""
    steps: int = 1
    """Number of steps, for progress bars."""
    threads: int = 1
    """Threads of torch; 0 leaves torch the choice."""
    device: str = "cpu"
    has_processes: bool = False
    """Whether the job has child processes, so that it may be ended only when it reports a step."""
    needs: "Sequence[AnyJob]" = ()
    """Jobs that must have ended before this one can run."""
    problem: str = ""
    """Why the job ended without a result; empty if it has one, or hasn't ended."""

    @property
    def ended(self) -> bool:
        """Whether the job is finished, according to the files in its folder."""
        raise NotImplementedError

    @property
    def held(self) -> bool:
        """Whether another command runs the job now."""
        return False

    def run(self, report: Report, release: Callable[[], None]) -> None:
        """Do what is left, from where it was stopped.

        After `release()` the job may be ended at any moment. It has failed if it raises a `UserError` (see `run_jobs`),
        unless it has `ended` with that, for example because it diverged.
        """
        raise NotImplementedError

    @property
    def outcome(self) -> str:
        """The line that is printed when the job has ended."""
        return f"no result of {self.name}: {self.problem}" if self.problem else f"finished {self.name}"
