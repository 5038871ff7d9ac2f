"""Shapes in signatures are enforced while tests run, and nowhere else."""

import signal
from pathlib import Path

import pytest
from beartype.claw import beartype_packages
from jaxtyping import install_import_hook

from tests.slurm import slurm  # noqa: F401, a fixture for all tests

# A shell that starts pytest in the background has it ignore Ctrl-C, and so would the commands under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# numba compiles functions as they are written: modules with kernels stay outside the hook.
HOOKED = ("generators", "models", "studies")


def modules_with_shapes() -> list[str]:
    """Modules that name jaxtyping; its hook makes every call of a module ten times slower, beartype's alone doesn't."""
    root = Path(__file__).parents[1]
    files = [file for floor in HOOKED for file in (root / floor).rglob("*.py") if "jaxtyping" in file.read_text()]
    return [".".join(file.relative_to(root).with_suffix("").parts) for file in files]


beartype_packages(HOOKED)
hook = install_import_hook(modules_with_shapes(), "beartype.beartype")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Training runs have one thread each; so have the tests."""
    import torch

    torch.set_num_threads(1)
