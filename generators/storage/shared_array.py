"""An array in memory that processes share: sending it to another process copies nothing.

Forked processes share any memory, but what is pickled for a spawned process is copied. So only the array's address is
pickled. The memory belongs to no file and needs no room in /dev/shm; the system frees it when the last process lets go
of it.
"""

import contextlib
import errno
import mmap
import os
import secrets
import weakref
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

CANT_RESERVE = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV}


class Address(NamedTuple):
    """Where another process finds the memory: a process that holds it, its handle there, and the name it must have."""

    process: int
    handle: int
    name: str
    shape: tuple[int, ...]


class SharedArray:
    """An array of bytes that is pickled as an address; if the memory is gone at unpickling, `array` is None."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.address: Address | None = None
        try:
            name = f"menagerie-{secrets.token_hex(8)}"
            handle = os.memfd_create(name)
        except (AttributeError, OSError):  # another system, or no file handle left
            self.array: UInt8[np.ndarray, ...] | None = np.empty(shape, np.uint8)
            return
        self._hold(handle, Address(os.getpid(), handle, name, shape), reserve=True)

    def _hold(self, handle: int, address: Address, reserve: bool = False) -> None:
        """Map the memory behind a handle, which is closed together with this object."""
        weakref.finalize(self, os.close, handle).atexit = False
        size = int(np.prod(address.shape))
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if reserve else 0)
        try:
            if reserve:
                reserve_memory(handle, max(size, 1))
            shared = mmap.mmap(handle, max(size, 1), mmap.MAP_SHARED, protection)
        except OSError as error:
            raise MemoryError(f"{size} bytes of shared memory: {error}") from error
        self.array = np.frombuffer(shared, np.uint8, size).reshape(address.shape)
        self.address = address._replace(process=os.getpid(), handle=handle)

    def __reduce__(self) -> tuple:
        """Pickle only the address, with this process in it: after a fork, the process that made the memory may end
        before this one."""
        return attached, (self.address and self.address._replace(process=os.getpid()),)


def reserve_memory(handle: int, size: int) -> None:
    """Give the memory behind a handle its size and reserve its pages: a page that finds no room only when it is written
    would end the process."""
    os.ftruncate(handle, size)
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        if error.errno not in CANT_RESERVE:
            raise


def attached(address: Address | None) -> SharedArray:
    """The shared array at an address, read-only; its `array` is None if the memory isn't there."""
    found = SharedArray.__new__(SharedArray)
    found.array, found.address = None, None
    if address is not None:
        place = f"/proc/{address.process}/fd/{address.handle}"
        with contextlib.suppress(OSError):  # another machine, or a process that has ended
            if os.readlink(place).startswith(f"/memfd:{address.name}"):
                found._hold(os.open(place, os.O_RDONLY | os.O_CLOEXEC), address)
    return found
