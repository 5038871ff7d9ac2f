"""The hub's own cache: `datasets--OWNER--SET/snapshots/COMMIT`, a folder of links to `datasets--OWNER--SET/blobs`."""

from pathlib import Path

SNAPSHOTS, KIND, BETWEEN = "snapshots", "datasets--", "--"


def own_name(folder: Path) -> str:
    """What a folder of the hub is called; of one in the cache, the name of its set."""
    place = folder.resolve()
    if place.parent.name != SNAPSHOTS:
        return place.name
    name = place.parents[1].name
    return name.rpartition(BETWEEN)[2] if name.startswith(KIND) else name


def is_cached(folder: Path) -> bool:
    """Whether a folder lies in the cache, where files are links."""
    return SNAPSHOTS in folder.resolve().parent.parts
