"""Submits named tasks, and waits for them and for running tasks of an earlier command."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_record, write_record
from menagerie.studies.cluster.jobs import ENDED, Cluster, Handle, end_here, holding_stops, query_states, submit
from menagerie.studies.cluster.slurm_commands import cancel_line
from menagerie.studies.cluster.worker import Command, Interruption, Task

RECORD = "tasks.json"
Job = Annotated[str, msgspec.Meta(pattern=r"^\d+(_\d+)?(;\w[\w.-]*)?$")]
Submissions = dict[str, tuple[Literal["local", "slurm"], Job, str]]
FIRST_POLL, LONGEST_POLL = 1.0, 20.0  # seconds between two calls of squeue
# Seconds in which Slurm itself may still queue a task again: at preemption, or when its machine failed.
REQUEUE = dict.fromkeys(("PREEMPTED", "NODE_FAIL", "BOOT_FAIL"), 120.0)
# Seconds after a task's end until its result is visible on a network file system, or until it is queued again. A
# subprocess that is only just starting has no command line yet.
GRACE = {"COMPLETED": 60.0, "GONE": 60.0, "ENDED": 0.5, **REQUEUE}
OTHER_GRACE = 5.0
WHY = {
    "OUT_OF_MEMORY": "killed, because it needed more memory than it requested; raise --slurm.gigabytes",
    "TIMEOUT": "at its time limit before it could save; raise --slurm.minutes",
    "CANCELLED": "cancelled",
    "NODE_FAIL": "its machine failed",
    "PREEMPTED": "preempted, and Slurm didn't queue it again",
}


@dataclass
class Tasks:
    """Runs `function(argument, interruption)` for each of `arguments`, by the task's name, until `finished(name)` is
    true.

    `folder` has a record of submissions and the logs. `label` returns a task's name in messages.
    """

    cluster: Cluster
    folder: Path
    function: Callable[[Any, Interruption], None]
    arguments: Mapping[str, Any]
    finished: Callable[[str], bool]
    label: Callable[[str], str] = str
    cores: int = 1
    gpus: int = 0
    at_once: int = 1
    """Number of concurrent subprocesses of --cluster local; Slurm limits its arrays itself."""
    on_failed: Callable[[str, str], None] | None = None
    """Called with a failed task and the reason; None: `run` raises in the end."""
    waiting: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    """Tasks that had finished before they were submitted."""
    earlier: dict[str, Handle] = field(default_factory=dict)
    """Tasks of an earlier command that still ran when this one began, without those that ended without a result."""
    running: dict[str, Handle] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    def run(self, on_finished: Callable[[str], None], report: Callable[[str], None]) -> None:
        """Run until all tasks have ended: call `on_finished(name)` for each finished one, and `report(line)` with the
        states of the rest.

        `on_finished` may `add` further tasks. If tasks failed and there is no `on_failed`, raise after all have ended.
        An interruption doesn't cancel Slurm's tasks.
        """
        self.earlier = still_running(self.folder)
        self.add(self.arguments)
        started, polled, line = time.monotonic(), float("-inf"), ""
        try:
            while self.waiting or self.running or self.over:
                self.submit_some()
                for name in self.take_ended():
                    on_finished(name)
                now = time.monotonic()
                if now - polled > min(LONGEST_POLL, FIRST_POLL + (now - started) / 20):
                    polled, line = now, self.look()
                report(line)
                time.sleep(0.2)
        except (KeyboardInterrupt, Stopped):
            self.interrupt()
            raise
        if self.failed:
            raise UserError(
                f"{len(self.failed)} of {len(self.arguments)} tasks failed: {next(iter(self.failed.values()))} "
                "(finished ones are kept; the same command tries the others again)"
            )

    def add(self, arguments: Mapping[str, Any]) -> None:
        """Add tasks; may be called while others run."""
        self.arguments = {**self.arguments, **arguments}
        for name in arguments:
            if name in self.earlier:
                self.running[name] = self.earlier[name]
            else:  # tasks of an earlier command may have ended during the query
                (self.over if self.finished(name) else self.waiting).append(name)

    def take_ended(self) -> list[str]:
        """Return the tasks that finished since the last call."""
        ended = [*self.over, *(name for name in self.running if self.finished(name))]
        for name in ended:
            self.forget(name)
        self.over.clear()
        return ended

    def submit_some(self) -> None:
        """Submit as many waiting tasks as may run now."""
        room = self.at_once - len(self.running) if self.cluster.engine == "local" else len(self.waiting)
        if not self.waiting or room < 1:
            return
        names, self.waiting = self.waiting[:room], self.waiting[room:]
        arguments = [self.arguments[name] for name in names]
        task = Task(Command(), self.function)
        with holding_stops(self.cluster.engine):
            handles = submit(self.cluster, self.folder, task, arguments, self.cores, self.gpus)
            self.running |= dict(zip(names, handles, strict=True))
            write_record(self.folder / RECORD, read_tasks(self.folder) | self.running, indent=1)

    def look(self) -> str:
        """Query the states of running tasks, and drop those that ended without a result; returns the states as a
        line."""
        state_of = query_states(self.running.values())
        for name, handle in list(self.running.items()):
            state = state_of[handle.job].state
            if state not in ENDED:
                self.ended.pop(name, None)
                continue
            since = self.ended.setdefault(name, time.monotonic())
            if time.monotonic() - since >= GRACE.get(state, OTHER_GRACE) and not self.finished(name):
                self.end_without_result(name, state, handle)
        counts = Counter(
            f"{status.state.lower()} {f'({status.reason})' if status.reason else ''}".strip()
            for status in state_of.values()
        )
        return ", ".join(f"{count} {what}" for what, count in counts.items())

    def end_without_result(self, name: str, state: str, handle: Handle) -> None:
        """Record a task as failed. One of an earlier command, which may have requested fewer resources, is submitted
        again instead, unless it was cancelled."""
        reason = f"{reason_of_end(state, handle)}; its log: {handle.log}"
        if not self.earlier.pop(name, None) or state == "CANCELLED":
            self.fail(name, reason)
            return
        print(f"submitted again: {self.label(name)}: {reason}", flush=True)
        self.forget(name)
        self.waiting.append(name)

    def fail(self, name: str, reason: str) -> None:
        """Drop a task that ended without a result; call `on_failed` or record the reason."""
        self.forget(name)
        if self.on_failed:
            self.on_failed(name, reason)
            return
        self.failed[name] = f"{self.label(name)}: {reason}"
        print(f"failed: {self.failed[name]}", flush=True)

    def forget(self, name: str) -> None:
        self.running.pop(name, None)
        self.ended.pop(name, None)

    def interrupt(self) -> None:
        """End the tasks on this machine. Slurm's tasks continue; print the command that cancels them."""
        end_here(self.running.values())
        if command := cancel_command(self.running):
            print(
                f"{len(self.running)} tasks continue in Slurm: the same command waits for them again, "
                f"`{command}` cancels them",
                flush=True,
            )


def cancel_command(running: Mapping[str, Handle]) -> str:
    """Return the command line that cancels Slurm's tasks among these; empty if there are none."""
    return cancel_line(handle.job for handle in running.values() if handle.engine == "slurm")


# Lines of a log that don't give the reason of a task's end.
NOTES = re.compile(r"submitit |srun: (?!error|fatal)|srun: error: .*: tasks? [\d,-]+: Exited with exit code ")


def reason_of_end(state: str, handle: Handle) -> str:
    """Return why a task ended: from its state or, if that gives no reason, from the last line of its log."""
    if state in WHY:
        return WHY[state]
    try:
        lines = [line.strip() for line in Path(handle.log).read_text("utf-8", errors="replace").splitlines()]
    except OSError:
        return f"no log was written ({state.lower()}); is its folder on a file system that all machines share?"
    reasons = [line for line in lines if line and not NOTES.match(line)]
    return reasons[-1].removeprefix("error: ") if reasons else f"it ended without a result ({state.lower()})"


def read_tasks(folder: Path) -> dict[str, Handle]:
    """Read all tasks that were ever submitted with this `folder`."""
    file = folder / RECORD
    try:
        record = read_record(file, Submissions) if file.exists() else {}
    except Unreadable as error:
        raise UserError(f"{file} is damaged ({error}); end the run's tasks, if any, and delete it") from error
    return {name: Handle(*values) for name, values in record.items()}


def belongs(handle: Handle, folder: Path) -> bool:
    """Whether a task's log is in this folder. A copied or manipulated record may list tasks of others."""
    return os.path.isabs(handle.log) and Path(handle.folder).resolve() == folder.resolve()


def still_running(folder: Path) -> dict[str, Handle]:
    """Return the tasks submitted with this `folder` by an earlier command that are still queued or running.

    Waits while Slurm may queue a task again that has just ended.
    """
    record = {name: handle for name, handle in read_tasks(folder).items() if belongs(handle, folder)}
    started, show = time.monotonic(), print_changes()
    while True:
        state_of = query_states(record.values())
        over = {name: state for name, handle in record.items() if (state := state_of[handle.job].state) in ENDED}
        waited = time.monotonic() - started  # clocks of two machines differ
        fresh = {  # they may be queued again
            name: state
            for name, state in over.items()
            if max(age(record[name]), waited) < REQUEUE.get(state, OTHER_GRACE)
        }
        if not fresh:
            return {name: handle for name, handle in record.items() if name not in over}
        if again := sum(state in REQUEUE for state in fresh.values()):
            show(f"waiting for Slurm to queue {again} tasks again, up to {max(REQUEUE.values()):.0f} seconds")
        time.sleep(FIRST_POLL)


def age(handle: Handle) -> float:
    """Return the seconds since a Slurm task wrote to its log; infinite without a log, and for local tasks."""
    log = Path(handle.log)
    return time.time() - log.stat().st_mtime if handle.engine == "slurm" and log.exists() else float("inf")


def print_changes() -> Callable[[str], None]:
    """Make a function that prints a line if it differs from the last one."""
    last = [""]

    def report(line: str) -> None:
        if line not in ("", last[0]):
            print(line, flush=True)
        last[0] = line

    return report
