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
import pickle
import signal
import sys
from collections.abc import Iterable, Iterator
from types import TracebackType

# Environment variables of the server alone: the number of the command's process, and the modules to load, with commas
# between.
PARENT, MODULES = "MENAGERIE_PARENT", "MENAGERIE_MODULES"
SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2); forks don't inherit it
# timm imports it for logs of its trainer, which nobody calls here; that takes a second or more of each command.
UNUSED = "wandb"
# multiprocessing's server ignores modules that it can't import. Workers would then import them again, and torch would
# only say that it can't be loaded twice; so the first error is kept for them.
failure: Exception | None = None


def complain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the error that ended a worker; stay silent if the command was killed while the worker received its task."""
    last = trace
    while last and last.tb_next:
        last = last.tb_next
    module = last.tb_frame.f_globals.get("__name__") if last else ""
    if module != "multiprocessing.spawn" or not issubclass(kind, EOFError | pickle.UnpicklingError):
        sys.__excepthook__(kind, error, trace)


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Let modules be imported inside this context without `UNUSED`, which can be imported as usual afterwards, and
    without garbage collection: what modules make stays, and scanning it takes long."""
    absent, collects = UNUSED not in sys.modules, gc.isenabled()
    if absent:
        sys.modules[UNUSED] = None  # type: ignore[assignment]
    gc.disable()
    try:
        yield
    finally:
        if absent:
            del sys.modules[UNUSED]
        if collects:
            gc.enable()


def load(names: Iterable[str]) -> None:
    with loading():
        for name in names:
            importlib.import_module(name)


def end_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends; end it at once if the parent has ended already."""
    ctypes.CDLL(None).prctl(SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
    if parent != os.getppid():
        os._exit(1)


serving = MODULES in os.environ
if PARENT in os.environ:
    sys.excepthook = complain  # inherited by the server's forks, the workers
    end_with(int(os.environ.pop(PARENT)))
try:
    load(filter(None, os.environ.pop(MODULES, "").split(",")))
except Exception as error:  # a library may raise anything; a worker that needs the module raises it again
    failure = error
if serving:
    gc.freeze()  # else each worker's collections look at all that was loaded, and so copy the memory that forks share
