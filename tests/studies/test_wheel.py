"""The wheel: one name, with all that the four folders hold, and commands that run without the repository."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.command import ROOT, WAIT_SECONDS

setuptools = pytest.importorskip("setuptools", "77", reason="older ones don't read a licence as pyproject.toml has it")
FLOORS = ("envs", "generators", "models", "studies")
RUN = """
import runpy
try:
    runpy.run_module("menagerie", run_name="__main__")
except SystemExit as end:
    assert not end.code
import menagerie, menagerie.studies.tune
print(menagerie.__file__, menagerie.studies.tune.__file__)
"""
BUILD = "from setuptools import build_meta; build_meta.build_wheel('out')"


def built(folder: Path, links: bool) -> zipfile.ZipFile:
    """The wheel of a copy of the repository, with or without the links in src."""
    shutil.copytree(ROOT / "src", folder / "src", symlinks=True, ignore=shutil.ignore_patterns("*.egg-info"))
    for name in FLOORS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        if not links:  # what git leaves where there are no links
            link = folder / "src" / "menagerie" / name
            target = os.readlink(link)
            link.unlink()
            link.write_text(target)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    subprocess.run([sys.executable, "-c", BUILD], cwd=folder, capture_output=True, check=True, timeout=WAIT_SECONDS)
    (file,) = (folder / "out").glob("*.whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    return built(tmp_path_factory.mktemp("wheel"), links=True)


def test_a_copy_without_links_gives_the_same_wheel(wheel, tmp_path):
    without = built(tmp_path, links=False)
    assert sorted(without.namelist()) == sorted(wheel.namelist())


def test_a_wheel_installs_one_name_with_every_file(wheel):
    (listed,) = (name for name in wheel.namelist() if name.endswith("top_level.txt"))
    assert wheel.read(listed).split() == [b"menagerie"]
    floors = (path for floor in FLOORS for path in (ROOT / floor).rglob("*.*") if "__pycache__" not in path.parts)
    names = {f"menagerie/{path.relative_to(ROOT).as_posix()}" for path in floors}
    expected = names | {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "menagerie").glob("*.*")}
    assert expected == {name for name in wheel.namelist() if name.startswith("menagerie/") and "." in Path(name).name}


def test_commands_of_a_wheel_run_without_the_repository(wheel, tmp_path):
    wheel.extractall(tmp_path / "site")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-c", RUN, "binding-grid", "--preset", "smoke", "--dry-run"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert done.returncode == 0, done.stderr
    *said, places = done.stdout.splitlines()
    assert any("scenes" in line for line in said)
    assert len(places.split()) == 2
    assert all(path.startswith(str(tmp_path / "site")) for path in places.split()), places
