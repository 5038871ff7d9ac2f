"""Checks of a split's images and masks: against their digests, their scenes and pictures rendered again.

Every row that the split shows is read. A digest says that an image is the one that was rendered; mask, colours and
pictures rendered again, that this was the right one.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from envs.common.errors import UserError, choose
from envs.render.identity import image_identity
from envs.render.renderer import Renderer
from envs.world import World
from envs.worlds import load_world
from generators.audit.colors import Reference, wrong_colors
from generators.audit.findings import Finding, skipped
from generators.audit.masks import wrong_ids, wrong_places
from generators.audit.regeneration import Incomparable, trusted_world
from generators.audit.renderings import Renderings, at_once, open_renderings
from generators.audit.shown import Block, ShownRows, spread
from generators.storage.digests import PIXELS, digest_of
from generators.storage.image_store import Progress
from generators.storage.split_file import REMEDY, Split

HOW_MANY = ("sample", "all")  # of the rows are rendered again
SAMPLE = 24  # rows of a sample at least; it has one of each shard
CLAIMS = {
    "read": "every image and mask can be read",
    "digest": "every image and mask is the one that was rendered",
    "ids": "every mask holds its scene's things",
    "places": "things stand as their places and relations say",
    "alike": "no two rows have the same picture",
    "colors": "things have the colours of their textures",
    "again": "images and masks are the same when rendered again",
}


@dataclass
class Problems:
    """The rows at which a check fails."""

    shown: ShownRows
    first: str = ""
    rows: set[int] = field(default_factory=set)

    def add(self, row: int, what: str) -> None:
        """A row at which the check fails, and how."""
        if not self.rows:
            self.first = f"{self.shown.where(row)}: {what}; {self.shown.remedy(row)}"
        self.rows.add(row)

    def finding(self, name: str, detail: str) -> Finding:
        """The check as a finding; `detail` is for one that holds."""
        return Finding(
            CLAIMS[name], not self.rows, f"{len(self.rows)} rows, first {self.first}" if self.rows else detail
        )


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
    choose("--pixels", how_many, HOW_MANY)
    shown = ShownRows(split)
    if not len(shown):
        return
    world, reason = same_world(split, shown, world_file)
    if world is None:
        yield from check_rows(shown, None, report)
        yield from (skipped(CLAIMS[name], reason) for name in ("colors", "again"))
        return
    with contextlib.ExitStack() as stack:
        renderings = renderings or stack.enter_context(open_renderings(at_once() if how_many == "all" else 1))
        renderer, reference = renderings.of(world, shown.resolution)

        def for_background(name: str) -> Renderer:
            return renderings.on(world, shown.resolution, name) if name else renderer

        yield from check_rows(shown, reference, report)
        if reference is None:
            yield skipped(CLAIMS["colors"], "things have their own colours, which differ between photographs")
        yield check_again(shown, for_background, how_many == "sample", report)


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


def check_rows(shown: ShownRows, reference: Reference | None, report: Progress) -> Iterator[Finding]:
    """What every row must hold; colours are compared if there is a reference."""
    digests = dict(zip(shown.rows.tolist(), shown.reader.digests(shown.rows), strict=True))
    problems = {name: Problems(shown) for name in CLAIMS}
    first_with: dict[bytes, int] = {}
    done = 0
    for block in shown.blocks(shown.rows):
        found = {
            "read": block.unreadable,
            "digest": wrong_digests(block, digests),
            "ids": rows_in(block, wrong_ids(block.scenes, block.masks)),
            "places": rows_in(block, wrong_places(block.scenes, block.masks)),
            "alike": repeated(shown, block, first_with),
            "colors": rows_in(block, wrong_colors(block.scenes, block.images, block.masks, reference)),
        }
        for name, its in found.items():
            for row, what in its:
                problems[name].add(row, what)
        done += len(block.rows) + len(block.unreadable)
        report("read", done, len(shown))
    without = sum(its is None for its in digests.values())
    for name in found:
        if name == "digest" and without and not problems[name].rows:
            yield skipped(CLAIMS[name], no_digests(shown, without))
        elif name != "colors" or reference is not None:
            yield problems[name].finding(name, f"{len(shown)} rows")


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


def repeated(shown: ShownRows, block: Block, first_with: dict[bytes, int]) -> Iterator[tuple[int, str]]:
    """The rows of a block whose picture is that of an earlier row; `first_with` gets those that are new."""
    for row, image in zip(block.rows.tolist(), block.images, strict=True):
        other = first_with.setdefault(hashlib.blake2b(image, digest_size=16).digest(), row)
        if other != row:
            yield row, f"the same picture as {shown.where(other)}"


def check_again(
    shown: ShownRows, renderers: Callable[[str], Renderer], by_background: bool, report: Progress
) -> Finding:
    """Images and masks are byte for byte what `renderers` give now: one for each background of a sample, or one for
    all rows, called ""."""
    rows = spread(shown.rows, shown.reader.starts, SAMPLE) if by_background else shown.rows
    problems, done = Problems(shown), 0
    for background, own in parts(shown, rows, by_background):
        renderer = renderers(background)
        renderer.prepare(shown.scenes(own), lambda built, total: report("factors", built, total))
        for block in shown.blocks(own):
            again = renderer.render(block.scenes)
            for name, stored, rendered in zip(PIXELS, (block.images, block.masks), again, strict=True):
                for n in np.flatnonzero((stored != rendered).reshape(len(stored), -1).any(1)).tolist():
                    problems.add(int(block.rows[n]), f"its {name.removesuffix('s')} is another one")
            done += len(block.rows) + len(block.unreadable)
            report("rendered again", done, len(rows))
    more = "; --pixels all renders all" if by_background else ""
    return problems.finding("again", f"{len(rows)} of {len(shown)} rows{more}")


def parts(
    shown: ShownRows, rows: Int64[np.ndarray, " n"], by_background: bool
) -> Iterator[tuple[str, Int64[np.ndarray, " m"]]]:
    """Rows by view, those of each background apart; all together are called ""."""
    keys = [(its.background if by_background else "", its.view) for its in shown.scenes(rows)]
    ordered = sorted(zip(keys, rows.tolist(), strict=True))
    for name, own in groupby(ordered, lambda its: its[0][0]):
        yield name, np.array([row for _, row in own], np.int64)
