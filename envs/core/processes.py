"""Worker processes: how they start, and that they end with their parent.

Loading torch takes seconds and hundreds of megabytes. Where the system can, a server process loads it once, and workers
are forks of that server. It runs no threads, so forking it is safe. Forking a command that computes isn't safe, because
the command has threads.

Every worker calls `end_with_parent` first. Its parent may be killed at any moment, and a worker without a parent would
wait for work for ever: each worker holds both ends of the queue that its work comes from, so the queue never closes.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from menagerie.envs.core import server_start
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.core.machine import describe_shortage, open_file_in

WAIT_SECONDS = 1.0
# Seconds: a process without its parent may take the first to save its work; the second lie between requests to end.
SAVING_SECONDS, REQUEST_SECONDS = 3.0, 0.5
LONGEST_PLACE = 40  # characters: the path of a socket has at most 107, and two folders and its name come below
CAN_SERVE = sys.platform == "linux"  # macOS can fork too, but its system libraries don't always survive that
Result = TypeVar("Result")
_served: list[str] = []  # modules that the server of this process has loaded


def serve(modules: Sequence[str]) -> None:
    """On Linux, start this process's server, which loads `modules`, in the current environment, unless it has one."""
    if not CAN_SERVE or _served:
        return
    _served.extend(modules)
    forkserver.set_forkserver_preload([server_start.__name__])
    variables = {server_start.MODULES: ",".join(modules)}
    if threading.current_thread() is threading.main_thread():
        variables[server_start.PARENT] = str(os.getpid())
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, also while the server loads
    os.environ |= variables
    try:
        keep_sockets_short()
        forkserver.ensure_running()
    finally:
        for name in variables:
            del os.environ[name]
        signal.signal(signal.SIGINT, before)


def keep_sockets_short() -> None:
    """Let this process and its children make sockets in a scratch folder, below /tmp if the temporary folder's path is
    too long for them. If this command is killed, the next one deletes that folder.

    Otherwise code that shares tensors through sockets would wait for ever for a socket that couldn't be made.
    """
    config = multiprocessing.current_process()._config  # where `multiprocessing` notes its folder, also for children
    if not config.get("tempdir"):
        place, scratch = tempfile.gettempdir(), contextlib.ExitStack()
        folder = scratch_folder(Path(place if len(place) <= LONGEST_PLACE else "/tmp"))
        config["tempdir"] = str(scratch.enter_context(folder))
        Finalize(None, scratch.close, exitpriority=-100)  # as `multiprocessing` deletes its own


def workers_context() -> BaseContext:
    """The multiprocessing context for workers: forks of the server if there is one, else new interpreters."""
    main = sys.modules["__main__"]
    if (file := getattr(main, "__file__", None)) and not Path(file).exists():
        del main.__file__  # "<stdin>": a worker would run the file of the main module, which a piped script lacks
    return multiprocessing.get_context("forkserver" if _served else "spawn")


@contextlib.contextmanager
def keep_out_main_module() -> Iterator[None]:
    """Start workers, inside this context, that don't run the file of the main module again.

    Otherwise each does so before its task, and a script without `if __name__ == "__main__":` would do in it all that it
    did before. Such workers can't be given what the main module defines.
    """
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def call_in_child(function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function in a new process, so that this one needn't load its libraries; raises the function's
    exceptions."""
    with ProcessPoolExecutor(1, mp_context=workers_context(), initializer=end_with_parent) as child:
        try:
            return child.submit(call_in_worker, function, *arguments).result()
        except BrokenProcessPool as error:
            name = function.__name__
            raise UserError(f"the process of {name} has ended: killed, or out of memory; run it again") from error


def call_in_worker(function: Callable[..., Result], *arguments: object, **options: object) -> Result:
    """Call a function in this worker; raises the server's error if it couldn't load a module, and `UserError` if the
    machine lacks what the function or a module needs."""
    try:
        if server_start.failure:
            raise server_start.failure
        return function(*arguments, **options)
    except Exception as error:
        if reason := describe_shortage(error):
            raise UserError(reason) from error
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = open_file_in(error)  # what was open here isn't known in the parent
        raise


def end_with_parent() -> None:
    """Make this worker end when its parent has ended, for whatever reason."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        end_after(parent.join)


def end_after(wait_for_end: Callable[[], object], gently: bool = False) -> None:
    """In a thread, wait until a call returns, then end this process. With `gently`, it first gets SIGTERM and has
    `SAVING_SECONDS` to finish."""

    def watch() -> None:
        wait_for_end()
        end = time.monotonic() + SAVING_SECONDS
        while gently and time.monotonic() < end:
            # Repeat it: Python drops an exception that a handler raises while objects are freed.
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(REQUEST_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_processes(processes: Sequence[BaseProcess]) -> None:
    """Send SIGTERM to all processes until they have ended, again and again because Python sometimes drops the exception
    that a signal handler raises (while it frees objects)."""
    while running := [process for process in processes if process.is_alive()]:
        for process in running:
            process.terminate()
        wait([process.sentinel for process in running], WAIT_SECONDS)
