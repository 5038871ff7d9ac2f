"""One small split for all tests that read; those that damage a file copy it first."""

import shutil
from pathlib import Path

import pytest

from tests.helpers.splits import make_split, shared_entries  # noqa: F401, a fixture for all tests here


@pytest.fixture(scope="session")
def split(tmp_path_factory) -> Path:
    """A split file that nobody may change."""
    return make_split(tmp_path_factory.mktemp("store"))


@pytest.fixture
def copied(split, tmp_path) -> Path:
    """The same split with its store, to be damaged."""
    folder = tmp_path / split.parent.name
    shutil.copytree(split.parent, folder)
    return folder / split.name
