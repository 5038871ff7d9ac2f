"""Imported first by the server of workers: loads modules, and ends the server with the command that started it.

The server, which exists on Linux only, ends even while it loads modules, because the kernel kills it when the thread
that started it ends. So `serve` requests this on the main thread alone. This module is imported before anything that
takes long to load.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator

# Environment variables of the server alone: the number of the command's process, and the modules to load, with commas
# between.
PARENT, MODULES = "MENAGERIE_PARENT", "MENAGERIE_MODULES"
SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2); forks don't inherit it
# timm imports it for logs of its trainer, which nobody calls here; that takes a second or more of each command.
UNUSED = "wandb"
# multiprocessing's server ignores modules that it can't import. Workers would then import them again, and torch would
# only say that it can't be loaded twice; so the first error is kept for them.
failure: Exception | None = None


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Let modules be imported inside this context without `UNUSED`, which can be imported as usual afterwards, and
    without garbage collection: what modules make stays, and scanning it takes long."""
    absent = sys.modules.setdefault(UNUSED, None) is None  # type: ignore[arg-type]
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        if absent:
            del sys.modules[UNUSED]


def import_modules(names: Iterable[str]) -> None:
    with quick_imports():
        for name in names:
            importlib.import_module(name)


def end_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends; end it at once if the parent has ended already."""
    ctypes.CDLL(None).prctl(SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
    if parent != os.getppid():
        os._exit(1)


serving = MODULES in os.environ
if PARENT in os.environ:
    end_with(int(os.environ.pop(PARENT)))
try:
    import_modules(filter(None, os.environ.pop(MODULES, "").split(",")))
except Exception as error:  # a library may raise anything; a worker that needs the module raises it again
    failure = error
if serving:
    gc.freeze()  # else each worker's collections look at all that was loaded, and so copy the memory that forks share
