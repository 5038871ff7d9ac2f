"""Faults of files from elsewhere: one for each kind of object that goes wrong with them, drawn by a generator."""

import csv
import io
import json
import tarfile

import numpy as np

RUNS = "__import__('os').system('touch PWNED')"
# What stands in place of a value.
TEXTS = ("", " \n", "../../x.jpg", "/etc/passwd", "a\0b", "\ud800", "é" * 3, "9" * 5000, "²", "x" * 9000, "{c}", RUNS)
TEXTS += ("<script>alert(1)</script>", "[1, 'a']", "['a'", "['a', None]", "(" * 500, "{[]: 1}", "['\\ud800']", "-1")
NESTED = json.loads("[" * 500 + "]" * 500)
VALUES = (*TEXTS, None, True, -1, 0, 10**30, 1e308, float("inf"), float("nan"), [], {}, [[]], NESTED, {"a": {}})
ENCODINGS = ("utf-16", "latin-1", "utf-8-sig", "utf-32", "cp037")

OF_BYTES = ("truncated", "flipped", "inserted")
OF_TEXTS = (*OF_BYTES, "encoded", "line", "value", "value", "value")
OF_SHARDS = (*OF_BYTES, "name", "kind", "caption", "about", "picture")

LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, b"Z")
HOSTILE_NAMES = ("/etc/x.jpg", "../../x.jpg", "a/../../x.txt", "C:\\x.jpg", "a\n.jpg", "\udcff.jpg", ".jpg", "é" * 90)


def mutated(content: bytes, suffix: str, rng: np.random.Generator) -> tuple[str, bytes]:
    """The kind of a fault, and a text file that has it."""
    kind = str(rng.choice(OF_TEXTS))
    if kind in OF_BYTES:
        return kind, bytes_changed(content, kind, rng)
    if kind == "encoded":
        return kind, content.decode().replace("a", "é").encode(rng.choice(ENCODINGS))
    if kind == "line":
        lines = content.splitlines(keepends=True)
        at = int(rng.integers(len(lines)))
        return kind, b"".join([*lines[:at], *lines[at:][: int(rng.integers(2))] * 2, *lines[at + 1 :]])
    return kind, other_value(content.decode(), suffix, rng)


def bytes_changed(content: bytes, kind: str, rng: np.random.Generator) -> bytes:
    """A file that was cut, or of which some bits or bytes are others."""
    size = len(content.rstrip(b"\0"))  # a tar ends in many zeros
    place = int(rng.integers(size))
    if kind == "truncated":
        return content[:place]
    if kind == "inserted":
        return content[:place] + rng.bytes(int(rng.integers(1, 9))) + content[place:]
    flipped = bytearray(content)
    for at in rng.integers(size, size=rng.integers(1, 9)):
        flipped[at] = int(rng.integers(256)) if rng.random() < 0.3 else flipped[at] ^ (1 << int(rng.integers(8)))
    return bytes(flipped)


def any_text(rng: np.random.Generator) -> str:
    """A strange text that a file can hold."""
    return TEXTS[int(rng.integers(len(TEXTS)))].encode(errors="replace").decode()


def other_value(text: str, suffix: str, rng: np.random.Generator) -> bytes:
    """A file in which one value is another, or gone, or called otherwise."""
    if suffix == ".csv":
        rows = list(csv.reader(io.StringIO(text)))
        row = rows[int(rng.integers(len(rows)))]
        row[int(rng.integers(len(row)))] = any_text(rng)
        out = io.StringIO()
        csv.writer(out).writerows(rows)
        return out.getvalue().encode()
    if suffix == ".txt":
        lines = text.splitlines()
        lines[int(rng.integers(len(lines)))] = any_text(rng)
        return "\n".join(lines).encode()
    parts = [json.loads(line) for line in text.splitlines()] if suffix == ".jsonl" else [json.loads(text)]
    change(parts, rng)
    return "\n".join(map(json.dumps, parts)).encode()


def change(content: dict | list, rng: np.random.Generator) -> None:
    """Change a value somewhere in JSON."""
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    if not keys:
        return
    key = keys[int(rng.integers(len(keys)))]
    if isinstance(content[key], dict | list) and rng.random() < 0.85:
        return change(content[key], rng)
    kind = rng.choice(["value", "value", "gone", "name"])
    value = VALUES[int(rng.integers(len(VALUES)))] if kind == "value" else content[key]
    del content[key]
    if kind == "gone":
        return
    if isinstance(content, list):
        content.insert(key, value)
    else:
        content[key if kind == "value" else str(VALUES[int(rng.integers(len(TEXTS)))])] = value


def mutated_shard(content: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """The kind of a fault, and a tar file that has it: in its bytes, a header, a caption, a .json or a picture."""
    kind = str(rng.choice(OF_SHARDS))
    if kind in OF_BYTES:
        return kind, bytes_changed(content, kind, rng)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        members = [(info, tar.extractfile(info).read() if info.isreg() else b"") for info in tar]
    endings = {"caption": (".txt",), "about": (".json",), "picture": (".jpg", ".PNG", ".png", ".webp")}
    suited = [k for k, (info, _) in enumerate(members) if info.name.endswith(endings.get(kind, ""))]
    at = int(rng.choice(suited))
    members[at] = changed_member(*members[at], kind, rng)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, own in members:
            info.size = len(own) if info.isreg() else info.size
            tar.addfile(info, io.BytesIO(own))
    return kind, out.getvalue()


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
        texts = (any_text(rng).encode(), *("é cat".encode(code) for code in ENCODINGS), rng.bytes(9), b"")
        own = texts[int(rng.integers(len(texts)))]
    elif kind == "about":
        own = other_value(own.decode(), ".json", rng)
    else:
        own = bytes_changed(own, str(rng.choice(OF_BYTES)), rng)
    return info, own
