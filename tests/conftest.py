"""Shapes in signatures are enforced while tests run, and nowhere else."""

import os
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# numba compiles functions as they are written: modules with kernels stay outside the hook.
HOOKED = ("generators", "models", "studies")
hook = install_import_hook(HOOKED, "beartype.beartype")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Training runs have one thread each; so have the tests."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real annotation files and images, or a skip with its reason."""
    folder = Path(os.environ.get("MENAGERIE_SHARED", "../shared"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder} (set MENAGERIE_SHARED)")
    return folder
