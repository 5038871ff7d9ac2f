"""However a command ends, its processes end within seconds, and the next command clears what it left."""

import multiprocessing
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from menagerie.envs.core.files import clear_leftovers, scratch_folder, whole_file
from menagerie.envs.core.machine import system_name
from tests.command import ROOT, until
from tests.faults.kills import COMMANDS, MARK, attack, contents, differences, kill, processes, victims

EXAMPLES = int(os.environ.get("MENAGERIE_EXAMPLES", "0"))
SECONDS = 5.0  # from the end of a command to the end of its last process
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")

# Starts idle processes of one kind, and makes a file once they run.
IDLE = """
import sys, time
from pathlib import Path

from menagerie.envs.core import processes
from menagerie.studies.runs.runners import ClusterTasks
from menagerie.studies.runs.slurm import Cluster, submit

def wait(*_):
    Path("ready").touch()
    time.sleep(600)

def loader():
    from menagerie.models.training.loaders import start_loader
    import torch
    class Slow:
        def __getitem__(self, key):
            wait()
    loaders = torch.utils.data.DataLoader(Slow(), batch_size=None, sampler=range(4), num_workers=2,
                                          worker_init_fn=start_loader)
    next(iter(loaders))

if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "server that loads":
        processes.serve(["slow"])
        wait()
    if kind == "served":
        processes.serve(["colorsys"])
    if kind in ("served", "spawned"):
        processes.call_in_child(wait)
    if kind == "loaders":
        loader()
    if kind == "tasks":
        import idle
        tasks = ClusterTasks(Cluster("local"), Path("tasks").absolute(), 2, idle.wait)
        submit(tasks.task, [0, 1], tasks.cluster, tasks.folder)
        time.sleep(600)
"""


def started(kind: str, folder: Path) -> subprocess.Popen:
    """Start a command with idle processes of a kind."""
    (folder / "idle.py").write_text(IDLE)
    (folder / "slow.py").write_text("import time\ntime.sleep(600)\n")
    environment = os.environ | {MARK: str(folder), "PYTHONPATH": f"{ROOT}:{folder}", "TMPDIR": str(folder)}
    command = subprocess.Popen([sys.executable, "idle.py", kind], cwd=folder, env=environment)
    until((folder / "ready").exists, command, 120)
    return command


@linux
@pytest.mark.parametrize("kind", ["served", "spawned", "server that loads", "loaders", "tasks"])
def test_idle_processes_end_with_a_command_that_is_killed(kind, tmp_path):
    command = started(kind, tmp_path)
    assert len(processes(tmp_path)) >= 2
    command.kill()
    command.wait()
    end = time.monotonic() + SECONDS
    while left := processes(tmp_path):
        assert time.monotonic() < end, [Path(f"/proc/{pid}/cmdline").read_text() for pid in left]
        time.sleep(0.05)


@linux
@pytest.mark.parametrize("name", COMMANDS if EXAMPLES else ["make"])
def test_a_command_killed_at_random_moments_leaves_the_same_files(name, tmp_path):
    """Three kills of one command; with MENAGERIE_EXAMPLES as many of each command."""
    problems = attack(name, tmp_path, EXAMPLES or 3, seed=18)
    assert not problems, "\n".join(problems)


@linux
def test_an_attack_finds_processes_and_differences(tmp_path):
    command = started("served", tmp_path)
    every = processes(tmp_path)
    chance = random.Random(0)
    assert victims(tmp_path, command.pid, "parent", chance) == [command.pid]
    assert victims(tmp_path, command.pid, "one", chance)[0] in {*every} - {command.pid}
    assert sorted(victims(tmp_path, command.pid, "all", chance)) == sorted(every)
    kill(every)
    command.wait()
    assert len(every) >= 2
    for name, text in (("one", "1"), ("other", "2")):
        (tmp_path / name / "tmp/left").mkdir(parents=True)
        (tmp_path / name / "results.csv").write_text(text)
    (tmp_path / "other/tmp/left").rmdir()
    (tmp_path / "one/.x.0-1.tmp.csv").write_text("")
    assert differences(tmp_path / "other", tmp_path / "one") == [
        "left over: .x.0-1.tmp.csv",
        "left over: tmp/left",
        "differs: results.csv",
    ]
    assert dict(contents(tmp_path / "other")) == {"results.csv": b"2"}


@pytest.fixture
def ended() -> int:
    """The id of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_only_temporary_files_of_killed_processes_are_deleted(tmp_path, ended):
    here = system_name()
    names = [f".a.{here}-{ended}.tmp.csv", f".a.{here}-{os.getppid()}.tmp.csv", f".a.elsewhere-{ended}.tmp.csv"]
    own, *_ = [*names, ".kept.csv", ".a.old-machine-5.tmp"]
    for name in (*names, ".kept.csv", ".a.old-machine-5.tmp"):
        (tmp_path / name).write_text("")
    with whole_file(tmp_path / "b.csv") as temporary:
        temporary.write_text("b")
        clear_leftovers(tmp_path, alone=True)
        assert temporary.exists()
    assert not (tmp_path / own).exists()
    assert {path.name for path in tmp_path.iterdir()} == {names[1], ".kept.csv", "b.csv"}


def test_writing_into_a_folder_deletes_what_killed_processes_left(tmp_path, ended):
    left, other = (tmp_path / f".a.{system}-{ended}.tmp.csv" for system in (system_name(), "elsewhere"))
    left.touch()
    other.touch()
    with whole_file(tmp_path / "b.csv") as temporary:
        temporary.touch()
    assert not left.exists()
    assert other.exists()  # it may still be written


def test_scratch_folders_of_killed_processes_are_deleted(tmp_path, ended):
    left, living = (tmp_path / f"menagerie-{system_name()}-{pid}-x" for pid in (ended, os.getppid()))
    for folder in (left, living):
        folder.mkdir()
    with scratch_folder(tmp_path) as scratch:
        assert scratch.is_dir()
        assert not left.exists()
    assert [path.name for path in tmp_path.iterdir()] == [living.name]


def test_a_fork_keeps_its_parents_scratch_folder(tmp_path):
    """Finalizers that delete the folder at the end of the parent must not run in a fork."""
    generator = scratch_folder.__wrapped__(tmp_path)
    folder = next(generator)
    fork = multiprocessing.get_context("fork").Process(target=generator.close)
    fork.start()
    fork.join()
    assert folder.is_dir()
    generator.close()
    assert not folder.exists()


LISTEN = """
from multiprocessing.connection import Listener
from menagerie.envs.core.processes import keep_sockets_short
keep_sockets_short()
listener = Listener(family="AF_UNIX")
print(listener.address)
"""


def test_sockets_can_be_made_where_temporary_files_have_long_paths(tmp_path):
    place = tmp_path / ("long" * 25)
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    code = LISTEN.replace("\nkeep_sockets_short()", "")
    spoilt = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "AF_UNIX path too long" in spoilt.stderr, "else this test shows nothing"
    done = subprocess.run([sys.executable, "-c", LISTEN], env=environment, capture_output=True, text=True, check=True)
    folder = Path(done.stdout.strip()).parent
    assert len(done.stdout) < 100
    assert folder.name.startswith(f"menagerie-{system_name()}-"), "else the next command couldn't delete it"
    assert not folder.exists()
