"""Kills random processes of a command at random moments, and checks what the command leaves.

`attack` starts a command again and again, kills its parent, one of its other processes or all of them, and waits until
no process is left without a parent. At last the command runs undisturbed. It must leave the same files as one that was
never killed, with the same content where that is seeded, and no temporary files.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.command import QUICK, ROOT

MARK = "MENAGERIE_ATTACKED"  # in the environment of a command and of all processes that it starts
WHOM = ("parent", "one", "all")
MOST_SECONDS = 10.0  # until the last process of a killed command has ended
MEAN_SECONDS = 8.0  # between the start of a command and a kill
# Fields of a cell's result that no seed decides.
UNSEEDED = ("seconds", "provenance", "digest")

STUDIES = ROOT / "studies"
SMALL = ["--models", "clip", "--seeds", "2", "--workers", "2", "--loaders", "1"]
SWEEP = ["--preset", "smoke", "--models", "clip", "--trials", "2", "--seeds", "1", "--workers", "1"]
MADE = ["--world", "tiny", "--resolution", "32", "--views", "4", "--test-scenes", "48", "--workers", "2"]
BOTH = f"{sys.executable} -m menagerie make binding {' '.join(MADE)}"
COMMANDS: dict[str, list[str]] = {
    "make": [sys.executable, "-m", "menagerie", "make", "binding", *MADE],
    "atlas": ["bash", "-c", f"{BOTH} & first=$!; {BOTH.replace('binding', 'spatial')} & wait $first && wait $!"],
    "grid": [sys.executable, str(STUDIES / "binding_grid.py"), *QUICK, *SMALL, "--out", "run"],
    "local": [sys.executable, str(STUDIES / "binding_grid.py"), *QUICK, *SMALL, "--out", "run", "--cluster", "local"],
    "sweep": [sys.executable, str(STUDIES / "sample_efficiency.py"), *SWEEP, "--out", "run"],
}


def start(name: str, folder: Path) -> subprocess.Popen:
    """Start a command in a folder, with a folder of its own for temporary files."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    environment = os.environ | {MARK: str(folder), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT)}
    with (folder / "said.txt").open("ab") as said:
        return subprocess.Popen(COMMANDS[name], cwd=folder, env=environment, stdout=said, stderr=said)


def processes(folder: Path) -> list[int]:
    """The living processes of commands started in a folder, without Python's tracker of semaphores, which ends last."""
    mark = f"{MARK}={folder}".encode()
    return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if is_ours(pid, mark)]


def is_ours(pid: int, mark: bytes) -> bool:
    """Whether a process has the mark in its environment."""
    place = Path(f"/proc/{pid}")
    try:
        if (place / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
            return False
        marked = mark in (place / "environ").read_bytes().split(b"\0")
        return marked and b"resource_tracker" not in (place / "cmdline").read_bytes()
    except OSError:
        return False


def victims(folder: Path, parent: int, whom: str, chance: random.Random) -> list[int]:
    """Choose which processes to kill."""
    every = processes(folder)
    others = [pid for pid in every if pid != parent]
    return {"parent": [parent], "one": [chance.choice(others or [parent])], "all": every}[whom]


def kill(pids: list[int]) -> None:
    """Kill processes, of which some may have ended."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def seconds_until_gone(folder: Path) -> float:
    """Measure how long processes still live; those that live twice too long are killed."""
    begin = time.monotonic()
    while processes(folder) and time.monotonic() - begin < 2 * MOST_SECONDS:
        time.sleep(0.05)
    took = time.monotonic() - begin
    kill(processes(folder))
    return took


def attack(name: str, folder: Path, count: int, seed: int) -> list[str]:
    """Kill a command `count` times, then let it end; returns what is wrong, compared with one that was never killed."""
    chance, kills, problems = random.Random(seed), 0, []
    expected, place = folder / "undisturbed", folder / "attacked"
    if start(name, expected).wait():
        return [f"fails undisturbed: {last_line(expected)}"]
    while kills < count:
        command, moment = start(name, place), chance.expovariate(1 / MEAN_SECONDS)
        whom = chance.choice(WHOM[name == "atlas" :])  # the parent of "atlas" is a shell
        try:
            if command.wait(moment):
                problems.append(f"failed before it was killed: {last_line(place)}")
            problems += differences(expected, place)
            clear(place)
            continue
        except subprocess.TimeoutExpired:
            kill(victims(place, command.pid, whom, chance))
            kills += 1
        try:
            command.wait(MEAN_SECONDS)  # if one process was killed, it may go on, or end with what is wrong
        except subprocess.TimeoutExpired:
            kill([command.pid])
            command.wait()
        if (gone := seconds_until_gone(place)) > MOST_SECONDS:
            problems.append(f"{gone:.0f} s after {whom} was killed processes were left")
    if start(name, place).wait():
        problems.append(f"doesn't go on: {last_line(place)}")
    seconds_until_gone(place)
    if b"Traceback" in (place / "said.txt").read_bytes():
        problems.append(f"a traceback in {place / 'said.txt'}")
    return problems + differences(expected, place)


def last_line(place: Path) -> list[str]:
    """The last line that commands in a folder printed."""
    return (place / "said.txt").read_text(errors="replace").strip().splitlines()[-1:]


def clear(place: Path) -> None:
    """Put a folder aside, with what commands printed."""
    place.rename(place.with_name(f"{place.name}-{time.monotonic_ns()}"))


def differences(expected: Path, place: Path) -> list[str]:
    """List how the files of a command differ from those of one that was never killed."""
    there, here = (dict(contents(folder)) for folder in (expected, place))
    lines = [f"left over: {path}" for path in sorted(here.keys() - there.keys())]
    lines += [f"missing: {path}" for path in sorted(there.keys() - here.keys())]
    return lines + [f"differs: {path}" for path in sorted(there.keys() & here.keys()) if there[path] != here[path]]


def contents(folder: Path) -> Iterator[tuple[str, object]]:
    """Yield the paths of files, with the content of those whose content is seeded."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "wandb" in name:
            continue  # it leaves temporary folders of its own
        if path.is_dir():
            if name.startswith("tmp/"):
                yield name, None
        elif name.split("/")[0] != "said.txt" and not is_log(name):
            yield name, seeded(path)


def is_log(name: str) -> bool:
    """Whether the process that wrote a file decides its name, as of logs of tasks and locks of trials."""
    return "/cluster/" in name or ".locks/" in name


def seeded(path: Path) -> object:
    """The content of a file without measurements; None for a file of measurements."""
    if path.name == "result.json":
        return {key: value for key, value in json.loads(path.read_text()).items() if key not in UNSEEDED}
    if path.name in ("predictions.csv", "model.safetensors", "results.csv") or path.suffix in (".h5", ".npz"):
        return path.read_bytes()
    return None
