"""Errors of the system in one line: the file, what happened, and what to do about it."""

import errno
import io
import os
import resource
import socket
import traceback

LOCKED = "; another program holds a lock on it: run this again when that has ended"
ROOM = "; make room there"
PLACE = "; choose another place"
# What to do about an error of the system.
WAYS = {
    errno.ENFILE: "; all programs together have as many files open as this machine allows: end some, or raise "
    "'sysctl fs.file-max', the file is fine",
    errno.ENOMEM: "; start fewer processes, or lift a limit on memory (ulimit -v)",
    errno.EAGAIN: LOCKED,
    errno.EDEADLK: LOCKED,
    errno.ENOLCK: "; the file system has no locks left: copy the file to a local disk",
    errno.ESTALE: "; its file server took it away: mount that disk again, and run this again",
    errno.EIO: "; its disk or file server fails: mend that, and run this again",
}
# The same where nobody said what was done with the file: mostly it was to be written.
WAYS_OF_WRITES = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EFBIG: "; raise the limit on the size of files, 'ulimit -f'",
    errno.EROFS: PLACE,
    errno.EACCES: PLACE,
    errno.EPERM: PLACE,
    errno.ENOENT: PLACE,
    errno.ENOTDIR: PLACE,
}


def way_out(number: int) -> str:
    """Say what to do about a system error, with the limit that was reached; empty if no remedy is known."""
    if number == errno.EMFILE:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"; this process may have {most} files open: raise that with 'ulimit -n', the file is fine"
    return WAYS.get(number, "")


def described(error: OSError) -> str:
    """One line about an error of the system that nobody handled; other `OSError`s as they say it themselves."""
    if not error.errno or not error.strerror or isinstance(error, ConnectionError | socket.gaierror):
        return str(error)
    path = error.filename if error.filename is not None else open_file_in(error)
    place = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else "a file"
    way = way_out(error.errno) or WAYS_OF_WRITES.get(error.errno, "")
    return f"{place} can't be used ({error.strerror}){way}; what was finished is kept"


def open_file_in(error: OSError) -> object:
    """The name of the file that the code was writing, or else reading, where an error without a name came up; None if
    it is unknown. A full disk's error has no name."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    files = [value for frame in reversed(frames) for value in frame.f_locals.values() if isinstance(value, io.IOBase)]
    named = [file for file in files if isinstance(getattr(file, "name", None), str)]
    return next((file.name for file in sorted(named, key=lambda file: not writes(file))), None)


def writes(file: io.IOBase) -> bool:
    """Whether a file, perhaps closed by now, was opened for writing."""
    return any(sign in str(getattr(file, "mode", "")) for sign in "wax+")
