"""Finds rows of a table by their scenes. The key of a row is a hash of its scene record; keys are sorted.

A key only says where to look: the record itself is compared too. Of several equal records the one in the last row is
found. The keys of many rows are kept in a file, mapped into memory: 12 bytes per row.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8, UInt32, UInt64

from menagerie.envs.core.files import whole_file
from menagerie.envs.core.mixing import GOLDEN, mixed
from menagerie.envs.core.reading import Unreadable, check_regular, reading
from menagerie.generators.vocabulary import SCENE_TYPE

MARK = b"mgkeys01"
WORD, HEADER, DIGEST_BYTES, BLOCK = 8, 32, 16, 1 << 22
MOST_ROWS = 2**32
Records = Callable[[Int64[np.ndarray, " n"]], np.ndarray]  # gives the records of some rows


def as_bytes(records: np.ndarray) -> UInt8[np.ndarray, "n bytes"]:
    """Scene records as rows of bytes."""
    return np.ascontiguousarray(records).view(np.uint8).reshape(len(records), SCENE_TYPE.itemsize)


def keys_of(records: np.ndarray) -> UInt64[np.ndarray, " n"]:
    """A hash of each scene record."""
    packed = np.zeros((len(records), -(-SCENE_TYPE.itemsize // WORD) * WORD), np.uint8)
    packed[:, : SCENE_TYPE.itemsize] = as_bytes(records)
    keys = np.zeros(len(records), np.uint64)
    for word in packed.view("<u8").T:
        keys = mixed((keys ^ word) + GOLDEN)
    return keys


class SceneKeys:
    """The sorted keys of some rows, and the row of each."""

    def __init__(self, keys: UInt64[np.ndarray, " n"], rows: UInt32[np.ndarray, " n"]) -> None:
        self.keys, self.rows = keys, rows

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, blocks: Iterable[np.ndarray], start: int = 0) -> "SceneKeys":
        """The keys of consecutive blocks of records; the first record is in row `start`."""
        keys = np.concatenate([np.empty(0, np.uint64), *map(keys_of, blocks)])
        assert start + len(keys) <= MOST_ROWS, "rows are numbers of 32 bits"
        return cls(keys, np.arange(start, start + len(keys), dtype=np.uint32))._sorted()

    def behind(self, *earlier: "SceneKeys") -> "SceneKeys":
        """Merge these keys with those of earlier rows into one run."""
        runs = [*earlier, self]
        return SceneKeys(np.concatenate([r.keys for r in runs]), np.concatenate([r.rows for r in runs]))._sorted()

    def _sorted(self) -> "SceneKeys":
        order = np.argsort(self.keys, kind="stable")  # rows of equal keys stay in their order
        return SceneKeys(self.keys[order], self.rows[order])

    def find(self, wanted: np.ndarray, records: Records) -> Int64[np.ndarray, " n"]:
        """The last row that holds each of the `wanted` records; -1 if none does."""
        keys, found = keys_of(wanted), np.full(len(wanted), -1, np.int64)
        place, compared = np.searchsorted(self.keys, keys, side="right") - 1, as_bytes(wanted)
        left = np.arange(len(wanted))
        while True:
            left = left[place[left] >= 0]
            left = left[self.keys[place[left]] == keys[left]]
            if not len(left):
                return found
            rows = self.rows[place[left]].astype(np.int64)
            same = (as_bytes(records(rows)) == compared[left]).all(1)
            found[left[same]] = rows[same]
            left = left[~same]
            place[left] -= 1  # another record with the same key

    def save(self, path: Path, salt: bytes) -> None:
        """Write the keys, whole or not at all; `salt` identifies the records that they are of."""
        with whole_file(path) as temporary, temporary.open("wb") as file:
            file.write(MARK + len(self).to_bytes(WORD, "little") + self._digest(salt))
            file.write(self.keys.astype("<u8", copy=False).data)
            file.write(self.rows.astype("<u4", copy=False).data)

    @classmethod
    def load(cls, path: Path, salt: Callable[[int], bytes]) -> "SceneKeys | None":
        """The keys in a file, mapped into memory; None if there is no file, or if it is damaged or of other records, so
        that the keys must be computed anew."""
        with contextlib.suppress(Unreadable, ValueError), reading(path):
            if not path.exists():
                return None
            check_regular(path)
            whole = np.memmap(path, np.uint8, "r")
            rows = int.from_bytes(whole[WORD : 2 * WORD].tobytes(), "little")
            if len(whole) == HEADER + 12 * rows and whole[:WORD].tobytes() == MARK:
                parts = whole[HEADER : HEADER + 8 * rows], whole[HEADER + 8 * rows :]
                known = cls(np.asarray(parts[0]).view("<u8"), np.asarray(parts[1]).view("<u4"))
                if known._digest(salt(rows)) == whole[2 * WORD : HEADER].tobytes():
                    return known
        return None

    def _digest(self, salt: bytes) -> bytes:
        hashed = hashlib.blake2b(salt, digest_size=DIGEST_BYTES)
        for column in (self.keys, self.rows):
            for start in range(0, len(column), BLOCK):
                hashed.update(np.ascontiguousarray(column[start : start + BLOCK]).data)
        return hashed.digest()
