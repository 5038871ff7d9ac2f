"""One small split for all tests that read; those that damage a file copy it first."""

import shutil
from pathlib import Path

import pytest

from tests.helpers.splits import lend, make_split


@pytest.fixture(scope="session")
def split(tmp_path_factory) -> Path:
    """A split file that nobody may change."""
    return make_split(tmp_path_factory.mktemp("store"))


@pytest.fixture
def copied(split, tmp_path) -> Path:
    """The same split, to be damaged."""
    lend(tmp_path)
    folder = tmp_path / split.parent.name
    shutil.copytree(split.parent, folder)
    return folder / split.name
