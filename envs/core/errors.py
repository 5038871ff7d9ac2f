"""The exception for a user's mistake, and helpers that raise and report it."""

import difflib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterable
from types import FrameType

from menagerie.envs.core.machine import describe_shortage, describe_system_error


class UserError(Exception):
    """Bad input, reported in one line: what is wrong, where, and what to do about it."""

    def __init__(self, line: str = "", what: str = "") -> None:
        super().__init__(line)
        self.what = what
        """The option, field or key whose value isn't allowed; empty for other mistakes."""

    def at(self, place: object) -> "UserError":
        """A copy of the error whose line begins with a place, such as a file's path."""
        return UserError(f"{place}: {self}", self.what)


class Incomplete(UserError):
    """Raised at the end of a command that had to leave out a part of what was asked for, and finished the others. The
    exit status is 1."""


class Stopped(BaseException):
    """Raised when a task is asked to end. Like `KeyboardInterrupt`, it isn't an `Exception`, so that general error
    handlers don't catch it."""


def choose(kind: str, name: str, options: Iterable[str]) -> str:
    """Return `name` if it is among `options`; else raise a `UserError` that names the nearest option, or all."""
    known = list(options)
    if name in known:
        return name
    known = [option for option in known if option]  # the empty name stands for a default
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}" if known else "there are none"
    raise UserError(f"unknown {kind} {name!r}; {hint}", kind)


def not_allowed(what: str, value: object, allowed: str) -> UserError:
    """Make the error for a value that an option, a field or a key may not have."""
    shown = f"{value:g}" if isinstance(value, float) else repr(value)
    return UserError(f"{what} must be {allowed}, got {shown}", what)


def run_command(main: Callable[[], int | None]) -> None:
    """Run a command line's `main`, then exit; a user's mistake or a fault of the machine gives one line and status 2,
    `Incomplete` status 1.

    Ctrl-C ends with status 130, a pipe that is closed with 141, SIGTERM with 143, as shells expect.
    """
    prepare_streams()
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # would leave workers and locks behind
            signal.signal(signal.SIGTERM, raise_stopped)
        status = main()
        sys.stdout.flush()
    except Exception as error:
        status = report_error(error)
    except (KeyboardInterrupt, Stopped) as stopped:
        word, status = ("stopped", 143) if isinstance(stopped, Stopped) else ("interrupted", 130)
        print(f"{word}: what was finished is kept; the same command goes on from there", file=sys.stderr)
    sys.exit(status or 0)


def report_error(error: Exception) -> int:
    """Print the line of a mistake or a fault, and return the exit status; other errors are raised again."""
    reason = describe_shortage(error)
    if isinstance(error, BrokenPipeError) and not reason:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still buffered
        return 141
    if not reason and not isinstance(error, UserError | OSError):  # of the system: no permission, a full disk
        raise error
    told = describe_system_error(error) if isinstance(error, OSError) and not isinstance(error, UserError) else error
    print(f"error: {reason or told}", file=sys.stderr)
    return 1 if isinstance(error, Incomplete) else 2


def prepare_streams() -> None:
    """Open /dev/null in place of standard streams that are closed (`>&-`), or a file opened later would take what is
    printed. Print any text, with escapes for characters that the output's encoding lacks, here and in children."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            os.set_inheritable(null, True)  # or children would find the stream closed
            setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    os.environ.setdefault("PYTHONIOENCODING", ":backslashreplace")


def raise_stopped(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM: raise `Stopped`."""
    raise Stopped
