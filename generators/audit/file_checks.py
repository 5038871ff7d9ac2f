"""Checks of the file itself: its checksum, its shards and its links to them."""

import re
from collections.abc import Iterator

import h5py

from menagerie.envs.core.errors import UserError
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.regeneration import Incomparable, recipe_of
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.image_store import check_shard
from menagerie.generators.storage.split_file import REMEDY, Split, check_store, recipe_version, split_name
from menagerie.generators.storage.tables import open_to_read

NAMED = re.compile(r"[a-z]+-p[\d.e+-]+-n[\d.e+-]+-s-?\d+-[0-9a-f]{8}\.h5")
FITS = "the store shows the scenes that the split lists"


def check_file(split: Split) -> Iterator[Finding]:
    """The file is as it was written, and the shards of its store hold its scenes."""
    yield Finding("the file has the checksum that it was written with", split.intact, "" if split.intact else REMEDY)
    try:
        check_store(split)
    except UserError as error:
        yield Finding(FITS, False, str(error))
    else:
        yield Finding(FITS, True, f"{len(split.shards)} shards")
        yield from check_shards(split)


def check_shards(split: Split) -> Iterator[Finding]:
    """The table of shards numbers their rows without a gap, and each link leads to its own shard."""
    start, strange = 0, ""
    for i, shard in enumerate(split.shards):
        rows = len(check_shard(split.location(i), split.identity))
        if (shard.start, shard.rows) != (start, rows):
            own = f"{shard.rows} rows from {shard.start}"
            strange = (
                strange or f"shard {i} ({shard.file or 'inside'}) is listed with {own}, it has {rows} from {start}"
            )
        start += rows
    yield Finding("shards are listed with their rows", not strange, f"{strange}; {REMEDY}" if strange else "")
    with open_to_read(split.path) as file:
        links = [file.get(f"shards/{i}", getlink=True) for i in range(len(split.shards))]
    wrong = [
        f"shards/{i} leads to {link.filename}:{link.path}, not to {shard.file}"
        for i, (shard, link) in enumerate(zip(split.shards, links, strict=True))
        if isinstance(link, h5py.ExternalLink) and (link.filename, link.path) != (shard.file, "/")
    ]
    missing = [f"shards/{i} is missing" for i, link in enumerate(links) if link is None]
    strange = next(iter([*wrong, *missing]), "")
    yield Finding("every link leads to its own shard", not strange, f"{strange}; {REMEDY}" if strange else "")


def check_name(split: Split) -> Iterator[Finding]:
    """A file that is named as `make` names them has the recipe of that name; other names say nothing."""
    if not NAMED.fullmatch(split.path.name) or split.recipe_version != version_now(split):
        return
    try:
        own = split_name(recipe_of(split))
    except (Incomparable, UserError):  # other checks say why
        return
    wrong = "" if own == split.path.name else f"its recipe is that of {own}: another file was copied here; {REMEDY}"
    yield Finding("the recipe is the one that the file is named by", not wrong, wrong)


def version_now(split: Split) -> str:
    """The version that a recipe of the split's kind has by now: of another one the same recipe has another name."""
    return recipe_version(KINDS[split.recipe["kind"]])


CHECKS = (check_file, check_name)
