"""Disks that are full, small or read-only, as far as the system lets tests have them."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.judge import outcome


@contextmanager
def mounted(place: Path, *options: str) -> Iterator[None]:
    """Something mounted at `place`; the test is skipped where it may not mount."""
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", *options, str(place)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that can't be written to: as root by a read-only disk, else by its permissions."""
    if os.geteuid():
        places = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
        try:
            for place in places:
                place.chmod(0o555)
            yield
        finally:
            for place in places:
                place.chmod(0o755)
        return
    with mounted(folder, "--bind", "-o", "ro", str(folder)):
        yield


def with_largest_file(size: int, do: Callable[[], Any], folder: Path) -> tuple[str, Any]:
    """The outcome of an action in a process of its own, which may write no file larger than `size`."""

    def act(_: Path) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        do()

    return outcome(act, folder)
