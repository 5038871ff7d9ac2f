"""Faults of tar shards and other files from elsewhere, drawn by a generator."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np

from tests.faults.damage import BYTES, CHANGES, STEPS, TEXTS, VALUES, Damage, changed_at, places_in

OF_SHARDS = ("truncated", "a bit flipped", "name", "kind", "caption", "about", "picture")
LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, b"Z")
HOSTILE_NAMES = ("/etc/x.jpg", "../../x.jpg", "a/../../x.txt", "C:\\x.jpg", "a\n.jpg", "\udcff.jpg", ".jpg", "é" * 90)


def spoil(file: Path, rng: np.random.Generator) -> str:
    """Damage a file, in its bytes or one of its values; return the kind of the fault."""
    kinds = [*BYTES, *["another value"] * 6 * bool(TEXTS.search(file.name))]
    return spoil_by(str(rng.choice(kinds)), file, rng)


def spoil_by(kind: str, file: Path, rng: np.random.Generator) -> str:
    Damage(kind, *map(int, rng.integers(STEPS, size=2))).spoil(file)
    return kind


def spoil_shard(file: Path, rng: np.random.Generator) -> str:
    """Damage a tar file, in its bytes, a header, a caption, a .json or a picture; return the kind of the fault."""
    kind = str(rng.choice(OF_SHARDS))
    if kind in BYTES:
        return spoil_by(kind, file, rng)
    with tarfile.open(file) as tar:
        members = [(info, tar.extractfile(info).read() if info.isreg() else b"") for info in tar]
    endings = {"caption": (".txt",), "about": (".json",), "picture": (".jpg", ".PNG", ".png", ".webp")}
    suited = [k for k, (info, _) in enumerate(members) if info.name.endswith(endings.get(kind, ""))]
    at = int(rng.choice(suited))
    members[at] = changed_member(*members[at], kind, rng)
    with tarfile.open(file, "w") as tar:
        for info, own in members:
            info.size = len(own) if info.isreg() else info.size
            tar.addfile(info, io.BytesIO(own))
    return kind


def changed_member(
    info: tarfile.TarInfo, own: bytes, kind: str, rng: np.random.Generator
) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a tar file with a fault."""
    if kind == "name":
        info.name = str(rng.choice(HOSTILE_NAMES))
    elif kind == "kind":
        info.type, info.linkname, own = bytes(rng.choice(np.array(LINKS, object))), "/etc/passwd", b""
        info.size = 0
    elif kind == "caption":
        texts = [str(value).encode(errors="replace") for value in VALUES] + ["é cat".encode("utf-16"), rng.bytes(9)]
        own = texts[int(rng.integers(len(texts)))]
    elif kind == "about":
        about = json.loads(own)
        places = list(places_in(about))
        changed_at(*places[int(rng.integers(len(places)))], int(rng.integers(CHANGES)))
        own = json.dumps(about).encode()
    else:
        own = own[: int(rng.integers(len(own)))]
    return info, own
