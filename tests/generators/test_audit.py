"""The audit holds on what we make and fails on every planted fault."""

import re
import shutil
import sys
from pathlib import Path

import h5py

from tests.command import run_here
from tests.helpers.splits import failed, overwrite


def test_holds_on_a_sound_split(split):
    assert failed(split) == []


def leaked_pair(file):
    for name in ("animal", "texture", "slot"):
        overwrite(file, f"train/{name}", -1, file[f"unseen_pairs/{name}"][0])


def run(*arguments):
    return run_here([sys.executable, "-m", "menagerie", *map(str, arguments)], Path.cwd())


def test_command_line(copied):
    sound = run("audit", copied)
    assert sound.returncode == 0, sound.stderr
    assert "0 fail" in sound.stdout
    with h5py.File(copied, "r+") as file:
        leaked_pair(file)
    assert run("audit", copied).returncode == 1
    missing = run("audit", copied.parent / "none.h5")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: there is no file")
    assert len(missing.stderr.splitlines()) == 1


def test_several_files_by_the_command_line(copied, tmp_path):
    """Each has its findings; one that can't be read or fails stops none of the others."""
    missing, broken = tmp_path / "none.h5", copied.with_name("broken.h5")
    shutil.copy(copied, broken)
    with h5py.File(broken, "r+") as file:
        leaked_pair(file)
    done = run("audit", missing, broken, copied)
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no file")
    assert len(done.stderr.splitlines()) == 1
    first, second = re.findall(r"checks hold, (\d+) fail", done.stdout)
    assert int(first) > 0 == int(second)


def test_make_then_audit(tmp_path):
    arguments = ("--world", "tiny", "--resolution", "16", "--views", "1", "--test-views", "1", "--store", tmp_path)
    made = run("make", *arguments)
    assert made.returncode == 0, made.stderr
    assert run("audit", made.stdout.splitlines()[-1]).returncode == 0
    typo = run("make", *arguments, "--pairs", "1.5")
    assert typo.returncode == 2
    assert "pairs must be at" in typo.stderr
