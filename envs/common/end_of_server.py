"""Ends the server of workers with the command that started it, also while it loads: it may take longer than 5 seconds.

That server imports this first, and nothing else does. It is for Linux, where alone there is a server, and where the
signal comes when the thread ends that started it: `serve` has it imported for the main thread's only.
"""

import ctypes
import os
import signal

SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2); forks don't inherit it

PARENT = "MENAGERIE_PARENT"  # in the environment: the number of that command's process

ctypes.CDLL(None).prctl(SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
if os.environ.get(PARENT, str(os.getppid())) != str(os.getppid()):  # it has ended already: no signal will come
    os._exit(1)
