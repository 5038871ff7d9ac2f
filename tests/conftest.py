"""Types and shapes in signatures are enforced while tests run, and nowhere else."""

import gc
import inspect
import os
import signal
from collections.abc import Iterator

import pytest

from menagerie.envs.core.server_start import quick_imports
from tests.enforced_types import install
from tests.helpers.sources import kept_source
from tests.slurm import slurm  # noqa: F401, a fixture for all tests

# A shell that starts pytest in the background has it ignore Ctrl-C, and so would the commands under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# numba compiles functions as they are written: modules with kernels stay outside.
install(("menagerie.generators", "menagerie.models", "menagerie.studies"))
inspect.getsource = kept_source
# None that lists scorers as it is loaded: scripts of tests register their own first.
FOR_COMMANDS = (
    "menagerie.studies.frame.command",
    "menagerie.studies.frame.page",
    "menagerie.studies.probing.piece",
    "menagerie.studies.scoring.benchmark_piece",
    "pytest",
    "scipy.stats",
    "trimesh",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with studies, whose files take longest: at the end all processes are then busy alike."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/studies/"))


def pytest_addoption(parser) -> None:
    parser.addoption("--long", action="store_true", help="several processes train every scorer for 50 steps, not 2")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    with quick_imports():
        return (yield)


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make alone: all the modules are many objects, and none of them is garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)  # seldom: of what tests make, little is left to collections


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # else libraries complain at exit of what was never freed


@pytest.fixture(scope="session", autouse=True)
def atlas_of_all(tmp_path_factory) -> None:
    """Processes that run tests beside this one render into the same atlas."""
    base = tmp_path_factory.getbasetemp()
    os.environ["MENAGERIE_TESTS_ATLAS"] = str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "atlas")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Training runs have one thread each; so have the tests."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def loaded_server() -> None:
    """Commands and workers of the tests are forks of one server: what many of them import it imports once."""
    from menagerie.studies.runs import machine

    machine.MODULES = (*machine.MODULES, *FOR_COMMANDS)
