"""Runs commands as a user types them."""

import csv
import io
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[1]
GRID = [sys.executable, str(ROOT / "studies" / "binding_grid.py")]
WAIT_SECONDS = 600  # for a command: a machine may be four times slower than ours
# The smoke preset, smaller still: two cells of a few steps.
QUICK = ["--preset", "smoke", "--hard-negatives", "0", "--steps", "130", "--batch", "8", "--views", "1"]


# The environment of scripts that import tests, which an installed package doesn't have.
WITH_TESTS = os.environ | {"PYTHONPATH": str(ROOT)}


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by column."""
    return list(csv.DictReader(path.open()))


def run(
    command: list[str], folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to the end in `folder`."""
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=WAIT_SECONDS
    )


def run_here(
    command: list[str], folder: Path, page: bool = True, figures: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process: nothing is loaded again, workers are forks of one server, and types are checked.

    What a command changes in this process is undone. Split folders share one atlas, so that each entry is rendered
    once. Without `page` a study draws no page, which saves a third of the time of a small one. Without `figures` those
    of the page are one grey pixel each, which halves the time of the page.
    """
    out, errors = io.StringIO(), io.StringIO()
    with (
        as_before(),
        one_atlas(),
        nullcontext() if page else no_page(),
        nullcontext() if figures else no_figures(),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        status = execute(command, folder)
    return subprocess.CompletedProcess(command, status, out.getvalue(), errors.getvalue())


def succeed(
    command: list[str], folder: Path, page: bool = True, figures: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process that has to end without an error."""
    result = run_here(command, folder, page, figures)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def execute(command: list[str], folder: Path) -> int:
    """Run a command of Python in this process, and give its exit status."""
    script, *arguments = command[1:]
    if script == "-m":
        script, *arguments = arguments
    os.chdir(folder)
    with mock.patch.object(sys, "argv", [script, *arguments]):
        try:
            if command[1] == "-m":
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            return int(end.code or 0)
    return 0


FILE = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END\n", re.MULTILINE | re.DOTALL)


def paste(code: str, folder: Path) -> str:
    """Write the files and run the commands of a block of a page in `folder`; returns what they print."""
    for name, text in FILE.findall(code):
        (folder / name).write_text(text)
    printed = ""
    for line in FILE.sub("", code).replace("\\\n", "").splitlines():
        program, *words = shlex.split(line, comments=True)
        words = [found for word in words for found in (matches(folder, word) if "*" in word else [word])]
        start = {"menagerie": ["-m", "menagerie"], "python": [str(ROOT / words[0])]}[program]
        result = run_here([sys.executable, *start, *words[program == "python" :]], folder, figures=False)
        assert result.returncode == 0, (line, result.stdout, result.stderr)
        printed += result.stdout
    return printed


def matches(folder: Path, pattern: str) -> list[str]:
    """The files that match a pattern, as a shell lists them."""
    return sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))


@contextmanager
def no_page() -> Iterator[None]:
    """Let studies write tables, but no page."""
    from menagerie.studies.frame import page

    with mock.patch.object(page, "write_report", lambda study, records: records.out / "report.html"):
        yield


@contextmanager
def no_figures() -> Iterator[None]:
    """Let pages have one pixel for each figure, and no script that draws charts."""
    import numpy as np
    import vl_convert
    from PIL import Image

    from menagerie.studies.analysis import pictures

    pixel = io.BytesIO()
    Image.fromarray(np.full((1, 1), 128, np.uint8)).save(pixel, format="png")
    with ExitStack() as without:
        without.enter_context(mock.patch.object(pictures, "figure_bytes", return_value=pixel.getvalue()))
        for name, made in (("vegalite_to_png", pixel.getvalue()), ("vegalite_to_svg", ""), ("javascript_bundle", "")):
            without.enter_context(mock.patch.object(vl_convert, name, return_value=made))
        yield


@contextmanager
def one_atlas() -> Iterator[None]:
    """Let commands and their processes use the atlases of all tests."""
    from menagerie.generators.storage.folder import SplitFolder
    from tests.helpers.splits import lend

    renderer = SplitFolder.renderer

    def lent(folder: SplitFolder, workers: int = 1) -> object:
        if folder.folder.exists():
            lend(folder.root)
        return renderer(folder, workers)

    with mock.patch.object(SplitFolder, "renderer", lent):
        yield


@contextmanager
def as_before() -> Iterator[None]:
    """Restore folder, environment, signals, warnings and torch's threads, and forget what was read of files."""
    import torch

    folder, environment, handler = Path.cwd(), dict(os.environ), signal.getsignal(signal.SIGTERM)
    threads, path = torch.get_num_threads(), list(sys.path)
    forget()
    try:
        with warnings.catch_warnings():
            yield
    finally:
        forget()
        torch.set_num_threads(threads)
        sys.path[:] = path
        signal.signal(signal.SIGTERM, handler)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)


def forget() -> None:
    """Clear caches of files and of users' classes, because other folders have files of the same names."""
    for name in list(sys.modules):
        if name.startswith("menagerie.studies.") or name == "menagerie.models.registry":
            for clear in clearing(name):
                clear()


@cache
def clearing(name: str) -> list[Callable[[], None]]:
    """Functions that clear the caches of a module."""
    values = list(vars(sys.modules[name]).values())
    return [value.cache_clear for value in values if hasattr(value, "cache_clear")]


def started(command: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command in `folder`. OMP_NUM_THREADS must change no result."""
    environment = os.environ | {"OMP_NUM_THREADS": "3"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for the end of a command that was `started`."""
    output, errors = process.communicate(timeout=WAIT_SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def until(reached: Callable[[], bool], process: Any, seconds: float = WAIT_SECONDS, often: float = 0.05) -> None:
    """Wait until something is reached while a command (`Popen` or `Forked`) runs, looking every `often` seconds."""
    end = time.monotonic() + seconds
    while not reached():
        assert process.poll() is None, ("it ended before that moment", process.communicate())
        assert time.monotonic() < end, "the moment never came"
        time.sleep(often)
