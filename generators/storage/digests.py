"""Digests of images and masks, computed where they are rendered and kept beside them.

A digest is of the scene too, so that the picture of one scene never passes for that of another, not even if both were
exchanged together with their digests.
"""

import hashlib
from collections.abc import Sequence

import h5py
import numpy as np
from jaxtyping import UInt8

from menagerie.envs.scene import Scene

PIXELS = ("images", "masks")  # in the order of a row's digests
DIGESTS = "digests"
DIGEST_BYTES = 16
DIGEST = "digest"  # of tables of scenes, beside them


def digest_of_table(*tables: np.ndarray) -> str:
    """One digest of some tables, such as the scenes of a shard."""
    hashed = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for table in tables:
        hashed.update(f"{table.shape} {table.dtype}\0".encode() + np.ascontiguousarray(table).tobytes())
    return hashed.hexdigest()


def digest_of(scene: Scene, name: str, pixels: UInt8[np.ndarray, "..."]) -> bytes:
    """The digest of a scene's image or mask; `name` is its table ("images" or "masks")."""
    hashed = hashlib.blake2b(f"{name}\0{scene.key}\0{pixels.shape}\0".encode(), digest_size=DIGEST_BYTES)
    hashed.update(np.ascontiguousarray(pixels))
    return hashed.digest()


def digests_of(
    scenes: Sequence[Scene], images: UInt8[np.ndarray, "n h w 3"], masks: UInt8[np.ndarray, "n h w"]
) -> UInt8[np.ndarray, "n 2 16"]:
    """The digests of n scenes' images and masks."""
    both = [
        digest_of(scene, name, pixels)
        for scene, *shown in zip(scenes, images, masks, strict=True)
        for name, pixels in zip(PIXELS, shown, strict=True)
    ]
    return np.frombuffer(b"".join(both), np.uint8).reshape(len(scenes), len(PIXELS), DIGEST_BYTES)


def write_digests(group: h5py.Group, digests: UInt8[np.ndarray, "n 2 16"]) -> None:
    """Keep digests in a shard, under a checksum of HDF5's like the pixels."""
    group.create_dataset(DIGESTS, data=digests, chunks=digests.shape, fletcher32=True)
