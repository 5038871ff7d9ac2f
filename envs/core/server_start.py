"""Imported by the server of workers when it starts: ends it with the command that started it, and loads modules.

The server ends also while it loads, which may take longer than 5 seconds. It is for Linux, where alone there is a
server. The signal comes when the thread ends that started the server, so that `serve` asks for it in the main thread.
It is imported first, before what takes long to load.
"""

import ctypes
import importlib
import os
import pickle
import signal
import sys
from types import TracebackType

# In the environment of the server alone: the number of the command's process, and what to load, with commas between.
PARENT, MODULES = "MENAGERIE_PARENT", "MENAGERIE_MODULES"
SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2); forks don't inherit it
# multiprocessing's server passes over what it can't import. Workers would then try it again, and torch says only that
# it can't be loaded twice; so the first error is kept for them.
failure: Exception | None = None


def complain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print what a worker failed with; stay silent if the command was killed while the worker received its task."""
    last = trace
    while last and last.tb_next:
        last = last.tb_next
    module = last.tb_frame.f_globals.get("__name__") if last else ""
    if module != "multiprocessing.spawn" or not issubclass(kind, EOFError | pickle.UnpicklingError):
        sys.__excepthook__(kind, error, trace)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; it may have ended already."""
    ctypes.CDLL(None).prctl(SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
    if parent != os.getppid():
        os._exit(1)


if PARENT in os.environ:
    sys.excepthook = complain  # of the server's forks, which are the workers
    end_with(int(os.environ.pop(PARENT)))
try:
    for name in filter(None, os.environ.pop(MODULES, "").split(",")):
        importlib.import_module(name)
except Exception as error:  # of any library: whoever needs it raises it
    failure = error
