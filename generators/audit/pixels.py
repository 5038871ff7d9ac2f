"""Checks of a split's images and masks: against their digests, their scenes and pictures rendered again.

Every row that the split shows is read. A digest says that an image is the one that was rendered; mask, colours and
pictures rendered again, that this was the right one.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.render.identity import image_identity
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.again import check_again
from menagerie.generators.audit.claims import CLAIMS, Problems
from menagerie.generators.audit.colors import Reference, wrong_colors
from menagerie.generators.audit.findings import Finding, skipped
from menagerie.generators.audit.held import Held
from menagerie.generators.audit.masks import wrong_ids, wrong_places
from menagerie.generators.audit.regeneration import Incomparable, trusted_world
from menagerie.generators.audit.renderings import Renderings, at_once, open_renderings
from menagerie.generators.audit.shown import Block, ShownRows
from menagerie.generators.storage.digests import PIXELS, digest_of
from menagerie.generators.storage.image_store import Progress
from menagerie.generators.storage.split_file import REMEDY, Split

HOW_MANY = ("sample", "all")  # of the rows are rendered again


def check_pixels(
    split: Split,
    how_many: str,
    report: Progress = lambda *its: None,
    world_file: Path | None = None,
    renderings: Renderings | None = None,
) -> Iterator[Finding]:
    """All checks of images and masks; a sample or all of the rows are rendered again.

    `world_file` is as for `trusted_world`. `report` is called with the stage ("read", "factors", "rendered again"), the
    number done and the total. `renderings` are shared by the splits of one audit.
    """
    choose("pixels", how_many, HOW_MANY)
    shown = ShownRows(split)
    if not len(shown):
        return
    world, reason = same_world(split, shown, world_file)
    if world is None:
        yield from check_rows(shown, None, report, Held())
        yield from (skipped(CLAIMS[name], reason) for name in ("colors", "again"))
        return
    with contextlib.ExitStack() as stack:
        renderings = renderings or stack.enter_context(open_renderings(at_once() if how_many == "all" else 1))
        held = renderings.held(world, shown.resolution)
        _, reference = renderings.of(world, shown.resolution)
        yield from check_rows(shown, reference, report, held)
        if reference is None:
            yield skipped(CLAIMS["colors"], "things have their own colours, which differ between photographs")
        yield check_again(shown, renderings, world, how_many == "sample", report)


def same_world(split: Split, shown: ShownRows, world_file: Path | None) -> tuple[World | None, str]:
    """The world of a split if what draws it is as it was; else None, and why."""
    try:
        world = load_world(trusted_world(split.recipe["world"], world_file))
    except Incomparable as reason:
        return None, str(reason)
    except UserError as error:
        return None, f"{error}; give the world's file by --world"
    here = image_identity(world, shown.resolution)
    if here != split.identity:
        return None, f"the images are of another renderer or world ({split.identity}, here {here}); {REMEDY}"
    return world, ""


def check_rows(shown: ShownRows, reference: Reference | None, report: Progress, held: Held) -> Iterator[Finding]:
    """What every row must hold, of those that aren't `held` yet; colours are compared if there is a reference."""
    digests = dict(zip(shown.rows.tolist(), shown.reader.digests(shown.rows), strict=True))
    problems = {name: Problems(shown) for name in CLAIMS if name != "again"}
    pictures = {row: its for row in shown.rows.tolist() if (its := held.picture(*shown.at(row), shown.scene(row)))}
    new, done = shown.rows[[row not in pictures for row in shown.rows.tolist()]], len(pictures)
    for block in shown.blocks(new):
        for name, its in wrong_in(block, digests, reference).items():
            for row, what in its:
                problems[name].add(row, what)
        pictures |= pictures_of(block)
        done += len(block.rows) + len(block.unreadable)
        report("read", done, len(shown))
    for row, what in repeated(shown, pictures):
        problems["alike"].add(row, what)
    bad = set().union(*(its.rows for its in problems.values()))
    for row in (row for row in new.tolist() if row not in bad and digests[row] is not None):
        held.add(*shown.at(row), shown.scene(row), pictures[row])
    without = sum(its is None for its in digests.values())
    for name, its in problems.items():
        if name == "digest" and without and not its.rows:
            yield skipped(CLAIMS[name], no_digests(shown, without))
        elif name != "colors" or reference is not None:
            yield its.finding(name, f"{len(shown)} rows")


def wrong_in(
    block: Block, digests: dict[int, np.ndarray | None], reference: Reference | None
) -> dict[str, Iterable[tuple[int, str]]]:
    """The rows of a block at which each check fails that compares no two rows, and how."""
    return {
        "read": block.unreadable,
        "digest": wrong_digests(block, digests),
        "ids": rows_in(block, wrong_ids(block.scenes, block.masks)),
        "places": rows_in(block, wrong_places(block.scenes, block.masks)),
        "colors": rows_in(block, wrong_colors(block.scenes, block.images, block.masks, reference)),
    }


def no_digests(shown: ShownRows, rows: int) -> str:
    """What to do about shards without digests."""
    return (
        f"{rows} of {len(shown)} rows have none, as their shards were written before there were digests; to have "
        f"them rendered anew with digests, delete the shards and {REMEDY}"
    )


def rows_in(block: Block, found: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """What was found at places of a block, by row."""
    return ((int(block.rows[n]), what) for n, what in found)


def wrong_digests(block: Block, digests: dict[int, np.ndarray | None]) -> Iterator[tuple[int, str]]:
    """The rows of a block whose image or mask has another digest than it was rendered with."""
    for n, row in enumerate(block.rows.tolist()):
        if digests[row] is None:
            continue
        for name, pixels, digest in zip(PIXELS, (block.images[n], block.masks[n]), digests[row], strict=True):
            if digest_of(block.scenes[n], name, pixels) != digest.tobytes():
                yield row, f"its {name.removesuffix('s')} is not the one that was rendered"


def pictures_of(block: Block) -> dict[int, bytes]:
    """A digest of the image of each row of a block, whatever its scene."""
    digests = (hashlib.blake2b(image, digest_size=16).digest() for image in block.images)
    return dict(zip(block.rows.tolist(), digests, strict=True))


def repeated(shown: ShownRows, pictures: dict[int, bytes]) -> Iterator[tuple[int, str]]:
    """The rows whose picture is that of an earlier row."""
    first_with: dict[bytes, int] = {}
    for row, picture in sorted(pictures.items()):
        if (other := first_with.setdefault(picture, row)) != row:
            yield row, f"the same picture as {shown.where(other)}"
