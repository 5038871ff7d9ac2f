"""The shards that this process has open: some tens at most, the ones used last."""

import os
import resource
import threading
from collections import OrderedDict
from itertools import count
from typing import NamedTuple

import h5py

from menagerie.envs.core.reading import check_regular
from menagerie.generators.storage.shards import ShardLocation
from menagerie.generators.storage.tables import NO_HANDLE, open_to_read

MOST_OPEN = 32
Key = tuple[int, int]  # whose it is, and the number of the shard


class OpenShard(NamedTuple):
    """A shard's group in its open file, and those of its tables that were used. Dropping it closes the file."""

    group: h5py.Group
    tables: dict[str, h5py.Dataset]


class OpenShards:
    """Opens shards for all readers of a process. If more are open than `room` allows, the least recently used close.

    A file that another thread still reads stays open until it has finished.
    """

    def __init__(self, most: int = MOST_OPEN) -> None:
        self.most = most
        self._numbers = count()
        self._last: OrderedDict[Key, OpenShard] = OrderedDict()
        self._inherited: list[OrderedDict[Key, OpenShard]] = []
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._start_anew)

    def __len__(self) -> int:
        return len(self._last)

    def room(self) -> int:
        """How many shards may be open: `most`, but at most a quarter of the files that the system allows."""
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return self.most if allowed == resource.RLIM_INFINITY else max(1, min(self.most, allowed // 4))

    def reader(self) -> int:
        """A new number for a reader. Its shards are opened for it alone, so that a file that was replaced isn't mixed
        up with the new one."""
        return next(self._numbers)

    def table(self, reader: int, index: int, location: ShardLocation, name: str) -> h5py.Dataset:
        """The table called `name` of a reader's shard `index`."""
        with self._lock:
            shard = self._last.get((reader, index)) or self._opened(location)
            self._last[reader, index] = shard
            self._last.move_to_end((reader, index))
            while len(self._last) > self.room():
                self._last.popitem(last=False)
            if name not in shard.tables:
                shard.tables[name] = shard.group[name]
            return shard.tables[name]

    def forget(self, reader: int) -> None:
        """Close the shards of a reader."""
        with self._lock:
            for key in [key for key in self._last if key[0] == reader]:
                del self._last[key]

    def _opened(self, location: ShardLocation) -> OpenShard:
        """Open a shard; where no file handle is left, close others first."""
        check_regular(location.file)
        while True:
            try:
                return OpenShard(open_to_read(location.file)[location.group], {})
            except OSError as error:
                if error.errno not in NO_HANDLE or not self._last:
                    raise
                self._last.popitem(last=False)

    def _start_anew(self) -> None:
        """Start without open shards in a forked process: there the parent's handles of HDF5 must be neither used nor
        closed."""
        self._inherited.append(self._last)
        self._last, self._lock = OrderedDict(), threading.Lock()


OPEN = OpenShards()
