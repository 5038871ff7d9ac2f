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
from menagerie.envs.core.processes import call_in_worker
from menagerie.studies.frame.options import AnyOptions


def fails(error):
    raise error


def test_usable_cores_follow_the_processs_affinity(monkeypatch):
    """As in a cluster's task, which has fewer than its machine."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert (usable_cores(), AnyOptions().cores) == (1, 1)


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
def test_closed_stream_is_replaced_by_the_null_device(number, out, errors, tmp_path):
    command = ["sh", "-c", f'"$@" {number}>&-', "sh", sys.executable, "-c", CLOSED.format(number=number)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, out, errors)
    assert (tmp_path / "said").read_text() == "True True"


def receive_from_an_ended_process():
    mine, other = multiprocessing.Pipe()
    other.close()
    mine.recv()


def send_to_an_ended_process():
    mine, other = multiprocessing.Pipe()
    other.close()
    mine.send(1)


def read_from_an_ended_loader():
    exec("receive()", {"receive": receive_from_an_ended_process, "__name__": "torch.utils.data.dataloader"})


def write_to_a_full_disk():
    with open("/dev/full", "w") as file:
        print("a", file=file)


FULL = OSError(errno.ENOSPC, "No space left on device")
NO_SHARED_MEMORY = RuntimeError("unable to allocate shared memory(shm) for file </torch_1>")
# What fails, and what the one line says.
SHORTAGES = {
    "locks": (lambda: fails(FULL), "/proc, through which"),
    "shared memory": (lambda: fails(NO_SHARED_MEMORY), "/proc, through"),
    "read-only shared memory": (lambda: fails(OSError(errno.EROFS, "Read-only file system")), "/proc, through which"),
    "memory": (lambda: fails(MemoryError("Unable to allocate 9 TiB")), "out of memory (Unable to allocate 9 TiB)"),
    "memory of a GPU": (lambda: fails(RuntimeError("CUDA out of memory. Tried\nto get 2 GiB")), "Tried to get 2 GiB"),
    "a library": (lambda: fails(ImportError("a.so: failed to map segment")), "can't be loaded (a.so"),
    "a receiver": (receive_from_an_ended_process, "error: a process of this command has ended: killed"),
    "a sender": (send_to_an_ended_process, "error: a process of this command has ended: killed"),
    "a loader": (read_from_an_ended_loader, "error: a process of this command has ended: killed"),
    "a full disk": (write_to_a_full_disk, "/dev/full can't be used (No space left on device); make room"),
    "no such place": (lambda: os.mkdir("/proc/x"), "/proc/x can't be used (No such file or directory); choose another"),
    "too many files": (lambda: fails(OSError(errno.EMFILE, "Too many", "/a/b")), "'ulimit -n'"),
    "too many files of loaders": (lambda: fails(RuntimeError("received 0 items of ancdata")), "'ulimit -n'"),
    "a server's file": (lambda: fails(OSError(errno.ESTALE, "Stale file handle", "/a/b")), "mount that disk again"),
}


@pytest.mark.parametrize("what", SHORTAGES)
def test_shortage_of_the_machine_is_one_line_also_from_a_worker(what, monkeypatch, capsys):
    act, said = SHORTAGES[what]
    if said.startswith("/proc, through"):
        monkeypatch.setattr(machine, "SHARED", "/proc")  # a place for shared memory that is full
        monkeypatch.setattr(machine, "FULL", machine.FULL.replace("/dev/shm", "/proc"))
    with pytest.raises(SystemExit, match="2"):
        run_command(act)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert "Errno" not in line
    with pytest.raises((UserError, OSError)) as in_a_worker:
        call_in_worker(act)
    if isinstance(in_a_worker.value, UserError):
        assert line == f"error: {in_a_worker.value}"


def test_worker_names_the_file_on_a_full_disk():
    """The parent doesn't see which files were open there."""
    with pytest.raises(OSError) as error:  # noqa: PT011, as a command reports it
        call_in_worker(write_to_a_full_disk)
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
def test_faults_of_code_are_raised_as_they_are(error):
    """A full disk is none of these either: shared memory has room here."""
    with pytest.raises(type(error)):
        call_in_worker(fails, error)


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
