"""Rows of a split rendered once more and compared byte for byte: a sample, or all of them."""

from collections.abc import Iterator
from itertools import groupby

import numpy as np
from jaxtyping import Bool, Int64

from menagerie.envs.render.renderer import Renderer
from menagerie.envs.world import World
from menagerie.generators.audit.claims import Problems
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.renderings import Renderings
from menagerie.generators.audit.shown import ShownRows
from menagerie.generators.storage.digests import PIXELS
from menagerie.generators.storage.image_store import Progress

SAMPLE = 24  # rows of a sample at least; it has one of each shard
GROUNDS = 10  # views of backgrounds in a sample, if shards leave the choice: drawing one takes as long as three things


def check_again(shown: ShownRows, renderings: Renderings, world: World, sample: bool, report: Progress) -> Finding:
    """Images and masks are byte for byte what is rendered now, those of a sample or of all rows.

    Rows that were rendered again for another split of the audit count, too.
    """
    held = renderings.held(world, shown.resolution)
    before = np.array([held.again(*shown.at(row), shown.scene(row)) for row in shown.rows.tolist()])
    rows = sampled(shown, before) if sample else shown.rows
    new = rows[~before[np.searchsorted(shown.rows, rows)]]
    problems, done = Problems(shown), len(rows) - len(new)
    for renderer, own in parts(shown, new, renderings, world, sample):
        renderer.prepare(shown.scenes(own), lambda built, total: report("factors", built, total))
        for block in shown.blocks(own):
            pictures = renderer.render(block.scenes)
            for name, stored, again in zip(PIXELS, (block.images, block.masks), pictures, strict=True):
                for n in np.flatnonzero((stored != again).reshape(len(stored), -1).any(1)).tolist():
                    problems.add(int(block.rows[n]), f"its {name.removesuffix('s')} is another one")
            for row in (row for row in block.rows.tolist() if row not in problems.rows):
                held.add_again(*shown.at(row), shown.scene(row))
            done += len(block.rows) + len(block.unreadable)
            report("rendered again", done, len(rows))
    return problems.finding("again", f"{len(rows)} of {len(shown)} rows{'; --pixels all renders all' * sample}")


def sampled(shown: ShownRows, before: Bool[np.ndarray, " n"]) -> Int64[np.ndarray, " m"]:
    """One row of each shard, and others evenly among all until there are `SAMPLE`, or all of them.

    Of a shard's rows the first choice is one that was rendered again `before`, the next one, once there are `GROUNDS`,
    whose background is in a view that is in the sample already.
    """
    grounds = [(scene.background, scene.view) for scene in shown.scenes(shown.rows)]
    chosen, drawn = set(), set()
    shards = np.searchsorted(shown.reader.starts, shown.rows, side="right")
    for own in np.split(np.arange(len(shards)), np.flatnonzero(np.diff(shards)) + 1):
        its = own[before[own]].tolist()
        if not its and len(drawn) >= GROUNDS:
            its = [i for i in own.tolist() if grounds[i] in drawn]
        its = its or own.tolist()
        chosen.add(its[len(its) // 2])
        drawn.add(grounds[its[len(its) // 2]])
    more = max(0, min(SAMPLE, len(shown)) - len(chosen))
    chosen.update(np.linspace(0, len(shown) - 1, more).round().astype(int).tolist())
    return shown.rows[sorted(chosen)]


def parts(
    shown: ShownRows, rows: Int64[np.ndarray, " n"], renderings: Renderings, world: World, apart: bool
) -> Iterator[tuple[Renderer, Int64[np.ndarray, " m"]]]:
    """Rows by view, all of them or those of each background `apart`, and what renders them."""

    def background(row: int) -> str:
        return shown.scene(row).background if apart else ""

    ordered = sorted((background(row), shown.scene(row).view, row) for row in rows.tolist())
    for name, own in groupby(ordered, lambda its: its[0]):
        renderer = renderings.on(world, shown.resolution, name) if name else renderings.of(world, shown.resolution)[0]
        yield renderer, np.array([row for *_, row in own], np.int64)
