"""Types and shapes in signatures are enforced while tests run, and nowhere else."""

import gc
import inspect
import os
import signal
from collections.abc import Iterator
from functools import cache

import pytest

from menagerie.envs.core.server_start import quick_imports
from tests.enforced_types import install
from tests.slurm import slurm  # noqa: F401, a fixture for all tests

# A shell that starts pytest in the background has it ignore Ctrl-C, and so would the commands under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# numba compiles functions as they are written: modules with kernels stay outside.
install(("menagerie.generators", "menagerie.models", "menagerie.studies"))
inspect.getsource = cache(inspect.getsource)  # tyro reads those of all classes of options at each command line
# Modules that list scorers as they are loaded aren't among them: scripts of tests register their own first.
FOR_COMMANDS = (
    "menagerie.studies.frame.command",
    "menagerie.studies.frame.page",
    "menagerie.studies.measures.bits",
    "menagerie.studies.scoring.benchmarks",
    "pytest",
    "scipy.stats",
    "trimesh",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with studies, whose files take longest, so that all processes end at about the same time."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/studies/"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    with quick_imports():
        return (yield)


def pytest_collection_finish() -> None:
    """Keep modules out of garbage collection: they are many objects, and none of them is garbage."""
    gc.freeze()
    gc.set_threshold(10_000)  # seldom, because little of what tests make is garbage


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # else libraries complain at exit of what was never freed


@pytest.fixture(scope="session", autouse=True)
def atlas_of_all(tmp_path_factory) -> None:
    """Let all processes that run tests render into the same atlas."""
    base = tmp_path_factory.getbasetemp()
    os.environ["MENAGERIE_TESTS_ATLAS"] = str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "atlas")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Give tests one thread each, as training runs have."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def loaded_server() -> None:
    """Import what many commands and workers need once, in the server of which they are forks."""
    from menagerie.studies.runs import machine

    machine.MODULES = (*machine.MODULES, *FOR_COMMANDS)
