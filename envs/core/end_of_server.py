"""Ends the server of workers with the command that started it, also while it loads: it may take longer than 5 seconds.

That server imports this first, and nothing else does. It is for Linux, where alone there is a server, and where the
signal comes when the thread ends that started it: `serve` has it imported for the main thread's only.
"""

import ctypes
import os
import pickle
import signal
import sys
from types import TracebackType

SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2); forks don't inherit it

PARENT = "MENAGERIE_PARENT"  # in the environment: the number of that command's process


def complain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print what a worker failed with, unless it was what it is to do: then the command was killed while it sent that,
    and a traceback after its end would be one of nothing that went wrong here."""
    last = trace
    while last and last.tb_next:
        last = last.tb_next
    place = last.tb_frame.f_globals.get("__name__") if last else ""
    if place != "multiprocessing.spawn" or not issubclass(kind, EOFError | pickle.UnpicklingError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = complain  # of the server's forks, which are the workers
ctypes.CDLL(None).prctl(SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
if os.environ.get(PARENT, str(os.getppid())) != str(os.getppid()):  # it has ended already: no signal will come
    os._exit(1)
