"""What a machine lacks, or shows otherwise, is one line and no traceback."""

import errno
import io
import multiprocessing
import os
import pickle
import subprocess
import sys

import pytest

from menagerie.envs.core import machine
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.processes import call
from menagerie.studies.runs.command_line import PlaceOptions

FULL = OSError(errno.ENOSPC, "No space left on device")
LACKS = {
    "locks": (FULL, "/proc, through which"),
    "memory that is shared": (
        RuntimeError("unable to allocate shared memory(shm) for file </torch_1>"),
        "/proc, through",
    ),
    "memory": (MemoryError("Unable to allocate 9 TiB"), "out of memory (Unable to allocate 9 TiB)"),
    "memory of a GPU": (RuntimeError("CUDA out of memory. Tried to\nallocate 2 GiB"), "Tried to allocate 2 GiB"),
    "a library": (ImportError("libtorch.so: failed to map segment from shared object"), "can't be loaded (libtorch.so"),
}


def fails(error):
    raise error


def test_cores_are_those_that_a_process_may_use(monkeypatch):
    """As in a cluster's task, which has fewer than its machine."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert (usable_cores(), PlaceOptions().cores) == (1, 1)


CLOSED = """
import os, sys
from menagerie.envs.core.errors import run_command
def main():
    print("a")
    print("b", file=sys.stderr)
    null = os.path.samestat(os.fstat({number}), os.stat(os.devnull))
    with open("said", "w") as file:
        file.write(f"{{null}} {{os.get_inheritable({number})}}")
run_command(main)
"""


@pytest.mark.parametrize(("number", "out", "errors"), [(1, "", "b\n"), (2, "a\n", "")])
def test_a_stream_that_is_closed_gets_what_is_printed_and_no_file_has_its_number(number, out, errors, tmp_path):
    command = ["sh", "-c", f'"$@" {number}>&-', "sh", sys.executable, "-c", CLOSED.format(number=number)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, out, errors)
    assert (tmp_path / "said").read_text() == "True True"


@pytest.fixture
def without_room(monkeypatch):
    """A place for shared memory that is full."""
    monkeypatch.setattr(machine, "SHARED", "/proc")
    monkeypatch.setattr(machine, "FULL", machine.FULL.replace("/dev/shm", "/proc"))


@pytest.mark.parametrize("what", LACKS)
def test_what_is_lacking_is_one_line(what, without_room, capsys):
    error, said = LACKS[what]
    with pytest.raises(SystemExit, match="2"):
        run_command(lambda: fails(error))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    with pytest.raises(UserError) as in_a_worker:
        call(fails, error)
    assert line == f"error: {in_a_worker.value}"


def ask_one_that_has_ended():
    mine, other = multiprocessing.Pipe()
    other.close()
    mine.recv()


def tell_one_that_has_ended():
    mine, other = multiprocessing.Pipe()
    other.close()
    mine.send(1)


def read_from_a_loader():
    """It has ended with a batch under way."""
    exec("ask()", {"ask": ask_one_that_has_ended, "__name__": "torch.utils.data.dataloader"})


@pytest.mark.parametrize("talk", [ask_one_that_has_ended, tell_one_that_has_ended, read_from_a_loader])
def test_processes_that_have_ended_are_one_line(talk, capsys):
    with pytest.raises(SystemExit, match="2"):
        run_command(talk)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: a process of this command has ended: killed")


def write_to_a_full_disk():
    with open("/dev/full", "w") as file:
        print("a", file=file)


OF_THE_SYSTEM = {
    "a full disk": (write_to_a_full_disk, "/dev/full can't be used (No space left on device); make room"),
    "no such place": (lambda: os.mkdir("/proc/x"), "/proc/x can't be used (No such file or directory); choose another"),
    "too many files": (lambda: fails(OSError(errno.EMFILE, "Too many", "/a/b")), "'ulimit -n'"),
    "a server's file": (lambda: fails(OSError(errno.ESTALE, "Stale file handle", "/a/b")), "mount that disk again"),
    "loaders' files": (lambda: fails(RuntimeError("received 0 items of ancdata")), "'ulimit -n'"),
    "shared memory": (lambda: fails(OSError(errno.EROFS, "Read-only file system")), "through which processes share"),
}


@pytest.mark.parametrize("kind", OF_THE_SYSTEM)
def test_an_error_of_the_system_names_the_file_and_the_way_out(kind, monkeypatch, capsys):
    act, said = OF_THE_SYSTEM[kind]
    if kind == "shared memory":
        monkeypatch.setattr(os, "access", lambda path, mode: path != machine.SHARED)
    with pytest.raises(SystemExit, match="2"):
        run_command(act)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert "Errno" not in line


def test_a_full_disk_is_named_by_a_worker_too():
    """The parent doesn't see which files were open there."""
    with pytest.raises(OSError) as error:  # noqa: PT011, as a command reports it
        call(write_to_a_full_disk)
    assert pickle.loads(pickle.dumps(error.value)).filename == "/dev/full"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a bug"),
        ModuleNotFoundError("No module named 'envs.nothing'"),
        ImportError("cannot import", name="menagerie.envs.scene"),
        ImportError("cannot import name 'no_such_name' from 'torch' (torch/__init__.py)"),
        KeyError("a"),
        FULL,
    ],
)
def test_other_errors_are_raised_as_they_are(error):
    """A full disk is none of these either: shared memory has room here."""
    with pytest.raises(type(error)):
        call(fails, error)


@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [
        ("ascii", "a …, a ü", rb"a \u2026, a \xfc"),
        ("latin-1", "a …, a ü", b"a \\u2026, a \xfc"),
        ("utf-8", "a …, a ü", "a …, a ü".encode()),
        ("utf-8", "r\udcff", rb"r\udcff"),  # a path of other bytes
        ("utf-8", "half \ud83d", rb"half \ud83d"),
    ],
)
def test_any_text_can_be_printed(encoding, text, written, monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
    with pytest.raises(SystemExit, match="0"):
        run_command(lambda: print(text, end=""))
    assert out.getvalue() == written
