"""Types and shapes in signatures are enforced while tests run, and nowhere else."""

import signal

import pytest

from tests.enforced_types import install
from tests.slurm import slurm  # noqa: F401, a fixture for all tests

# A shell that starts pytest in the background has it ignore Ctrl-C, and so would the commands under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# numba compiles functions as they are written: modules with kernels stay outside.
install(("menagerie.generators", "menagerie.models", "menagerie.studies"))


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Training runs have one thread each; so have the tests."""
    import torch

    torch.set_num_threads(1)
