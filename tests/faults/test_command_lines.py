"""A wrong command line is one clear error at once, which names the option and the value; nothing is written."""

import importlib
import shutil
import time
from pathlib import Path

import pytest

from menagerie.envs.core.processes import call_in_child
from menagerie.studies.runs.machine import start_server
from tests.command import run_here
from tests.faults.command_lines import Entry, entries, plain, write_files
from tests.helpers.splits import make_split

ENTRIES = list(entries())
AT_ONCE = 5.0  # seconds of processor time


def command_of(entry: Entry) -> str:
    """The file of the study, or the command after `-m menagerie`."""
    first, *rest = entry.line.split()
    return first if first != "-m" else rest[1] if len(rest) > 1 else rest[0]


COMMANDS = sorted({command_of(entry) for entry in ENTRIES})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the files that command lines name."""
    place = tmp_path_factory.mktemp("lines")
    write_files(place)
    shutil.copy(make_split(tmp_path_factory.mktemp("store")), place / "split.h5")
    start_server(1)
    call_in_child(abs, 1)  # loads what the checks of studies need
    importlib.import_module("menagerie.models.contract")  # here too, for classes of users
    return place


def files_of(folder: Path) -> set[Path]:
    """All files but those that Python compiles."""
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def fault(entry: Entry, folder: Path) -> str:
    """What is wrong with the answer to a command line; empty if nothing is."""
    files, began = files_of(folder), time.process_time()
    try:
        result = run_here(entry.command, folder)
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    took, said = time.process_time() - began, plain(result.stderr)
    if missing := [words for words in entry.words if plain(words) not in said]:
        return f"doesn't say {missing}: {said[:600]}"
    if result.returncode != 2 or "Traceback" in said or took > AT_ONCE:
        return f"ends with {result.returncode} after {took:.1f} s: {said[:600]}"
    if result.stderr.startswith("error: ") and len(result.stderr.splitlines()) > 1:
        return f"says more than a line: {said[:600]}"
    return "makes files" if files_of(folder) != files else ""


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_command_lines_are_one_clear_error_at_once(command, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # tyro breaks lines within words where they are narrow
    lines = [entry for entry in ENTRIES if command_of(entry) == command]
    faults = {entry.line: problem for entry in lines if (problem := fault(entry, folder))}
    assert not faults, "\n".join(f"{line}\n    {problem}" for line, problem in faults.items())


def test_every_study_has_wrong_command_lines():
    studies = {f"studies/{path.name}" for path in Path("studies").resolve().glob("[!_]*.py")}
    assert studies | {"gallery", "make", "scorers"} <= {*COMMANDS} or not studies


def test_a_wrong_message_and_a_wrong_status_are_noticed(folder):
    (gallery,) = (entry for entry in ENTRIES if entry.line == "-m menagerie gallery --out a.png --world pugg")
    assert not fault(gallery, folder)
    assert "doesn't say ['unknown animal']" in fault(gallery._replace(words=("unknown animal",)), folder)
    assert "ends with 0" in fault(Entry("-m menagerie --help", ()), folder)
