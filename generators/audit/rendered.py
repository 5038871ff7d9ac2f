"""Renders what an audit needs: some rows once more, to compare them byte for byte, and the colours of things."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.custom.cutouts import natural_names
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.world import World
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.rows import Problems, ShownRows, Sound
from menagerie.generators.storage.image_store import Progress
from menagerie.generators.storage.tables import PIXELS

MOST_WORKERS = 8
SAMPLE = 24  # rows of a sample at least; it has one of each shard
GROUNDS = 10  # views of backgrounds in a sample, if shards leave the choice: drawing one takes as long as three things
# Views and other things' shadows make a thing darker or brighter than it is in its reference: by these factors.
DARKEST, BRIGHTEST = 0.7, 1.2
# The mean colour may be so much farther from its own texture's than from another's (of 255). Measured over all
# animals, textures, backgrounds and places in several views, at 16, 32 and 64 pixels: 3 at most.
MARGIN = 12.0
# ... and so far from its own texture's at most. Measured: 26; of a black thing more than 60.
FARTHEST = 50.0
# Pixels of a thing that is compared: of fewer, a highlight or an eye alone would be another colour.
FEWEST = 8


def mean_colors(
    images: UInt8[np.ndarray, "n h w 3"], masks: UInt8[np.ndarray, "n h w"], things: int, fewest: int = 1
) -> Float64[np.ndarray, "n things 3"]:
    """The mean colour of every thing, NaN where its mask has less than `fewest` pixels."""
    means = np.full((len(images), things, 3), np.nan)
    for n, (image, mask) in enumerate(zip(images, masks, strict=True)):  # one by one, as numbers take more memory
        exact = np.float32 if 255 * mask.size < 2**24 else np.float64  # sums of whole numbers
        inside = mask.reshape(1, -1) == np.arange(1, things + 1)[:, None]
        pixels = inside.sum(1)
        shown = pixels >= fewest
        sums = inside[shown].astype(exact) @ image.reshape(-1, 3).astype(exact)
        means[n, shown] = sums.astype(np.float64) / pixels[shown, None]
    return means


class Reference(NamedTuple):
    """The mean colours of each animal on each background, alone, in each of the textures."""

    textures: tuple[str, ...]
    colors: dict[tuple[str, str], Float64[np.ndarray, "textures 3"]]


def reference_colors(world: World, renderer: Renderer) -> Reference:
    """The reference of a world, by (animal, background), in one view and size."""
    places = [(animal, background) for animal in world.animals for background in world.backgrounds]
    size = world.sizes[-1] if world.sizes else ""
    scenes = [
        Scene(background, (Thing(animal, texture, "center", size),))
        for animal, background in places
        for texture in world.textures
    ]
    means = mean_colors(*renderer.render(scenes), 1).reshape(len(places), len(world.textures), 3)
    return Reference(world.textures, dict(zip(places, means, strict=True)))


def wrong_colors(
    scenes: Sequence[Scene],
    images: UInt8[np.ndarray, "n h w 3"],
    masks: UInt8[np.ndarray, "n h w"],
    reference: Reference | None,
) -> Iterator[tuple[int, str]]:
    """The number of each image in which a thing has another texture's colour, or none's; nothing without reference."""
    if reference is None:
        return
    means = mean_colors(images, masks, max((len(scene.things) for scene in scenes), default=0), FEWEST)
    spots = [(n, i) for n, i in np.argwhere(~np.isnan(means).any(2)).tolist() if i < len(scenes[n].things)]
    things = [scenes[n].things[i] for n, i in spots]
    colors = [reference.colors[thing.animal, scenes[n].background] for thing, (n, _) in zip(things, spots, strict=True)]
    true = np.array([reference.textures.index(thing.texture) for thing in things], np.int64)
    shown = means[tuple(np.array(spots, np.int64).reshape(-1, 2).T)]
    last = -1
    for k, alike in miscoloured(
        np.array(colors).reshape(-1, len(reference.textures), 3), shown, true, reference.textures
    ):
        n, thing, rgb = spots[k][0], things[k], ", ".join(f"{part:.0f}" for part in shown[k])
        if n != last:  # one of a scene is enough
            yield n, f"the colour of the {thing.texture} {thing.animal} is {alike} (red, green, blue {rgb})"
        last = n


def miscoloured(
    colors: Float64[np.ndarray, "n textures 3"],
    means: Float64[np.ndarray, "n 3"],
    true: Int64[np.ndarray, " n"],
    textures: Sequence[str],
) -> Iterator[tuple[int, str]]:
    """The things whose colour isn't their own texture's, and whose it is: "of red" or "of no texture"."""
    brightness = (np.einsum("ntc,nc->nt", colors, means) / np.maximum((colors**2).sum(2), 1)).clip(DARKEST, BRIGHTEST)
    distances = np.linalg.norm(brightness[..., None] * colors - means[:, None], axis=2)
    least, from_true = distances.min(1), np.take_along_axis(distances, true[:, None], 1)[:, 0]
    for k in np.flatnonzero(from_true > np.minimum(least + MARGIN, FARTHEST)).tolist():
        yield k, f"of {textures[distances[k].argmin()]}" if least[k] <= FARTHEST else "of no texture"


@dataclass
class Renderings:
    """The renderers of an audit, with the colours that things have by them."""

    folder: Path
    """The folder of the audit's own atlases. It reads none from a store, because that one may be wrong."""
    workers: int = 1
    """Processes that render."""
    _made: dict[tuple[World, int], tuple[Renderer, Reference | None]] = field(default_factory=dict)
    _on_one_background: dict[tuple[World, int], Renderer] = field(default_factory=dict)
    _sound: dict[tuple[World, int], Sound] = field(default_factory=dict)

    def of(self, world: World, resolution: int) -> tuple[Renderer, Reference | None]:
        """A world's renderer, and its reference colours unless its things have colours of their own."""
        if (world, resolution) not in self._made:
            renderer = Renderer(world, resolution, self.folder, self.workers)
            reference = None if natural_names(world.cutouts) else reference_colors(world, renderer)
            self._made[world, resolution] = renderer, reference
        return self._made[world, resolution]

    def sound(self, world: World, resolution: int) -> Sound:
        """The rows of a world's shards that were found sound in other splits."""
        return self._sound.setdefault((world, resolution), Sound())

    def on(self, world: World, resolution: int, background: str) -> Renderer:
        """A renderer of scenes on one background: few images take a fifth of the time, as what things look like on the
        world's other backgrounds isn't drawn."""
        alone = replace(world, backgrounds=(background,))
        if (alone, resolution) not in self._on_one_background:
            self._on_one_background[alone, resolution] = Renderer(alone, resolution, self.folder, self.workers)
        return self._on_one_background[alone, resolution]


@contextlib.contextmanager
def open_renderings(workers: int = 1) -> Iterator[Renderings]:
    """Renderings in a folder that is deleted at the end."""
    with scratch_folder() as folder:
        yield Renderings(folder, workers)


def at_once() -> int:
    """Processes that can render at once here."""
    return min(os.cpu_count() or 1, MOST_WORKERS)


def check_again(shown: ShownRows, renderings: Renderings, world: World, sample: bool, report: Progress) -> Finding:
    """Images and masks are byte for byte what is rendered now, those of a sample or of all rows.

    Rows that were rendered again for another split of the audit count, too.
    """
    sound = renderings.sound(world, shown.resolution)
    before = np.array([sound.again(*shown.at(row), shown.scene(row)) for row in shown.rows.tolist()])
    rows = sampled(shown, before) if sample else shown.rows
    new = rows[~before[np.searchsorted(shown.rows, rows)]]
    problems, done = Problems(shown), len(rows) - len(new)
    for renderer, group in by_renderer(shown, new, renderings, world, sample):
        renderer.prepare(shown.scenes(group), lambda built, total: report("factors", built, total))
        for block in shown.blocks(group):
            pictures = renderer.render(block.scenes)
            for name, stored, again in zip(PIXELS, (block.images, block.masks), pictures, strict=True):
                for n in np.flatnonzero((stored != again).reshape(len(stored), -1).any(1)).tolist():
                    problems.add(int(block.rows[n]), f"its {name.removesuffix('s')} is another one")
            for row in (row for row in block.rows.tolist() if row not in problems.rows):
                sound.add_again(*shown.at(row), shown.scene(row))
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
    for rows in np.split(np.arange(len(shards)), np.flatnonzero(np.diff(shards)) + 1):
        choice = rows[before[rows]].tolist()
        if not choice and len(drawn) >= GROUNDS:
            choice = [i for i in rows.tolist() if grounds[i] in drawn]
        choice = choice or rows.tolist()
        chosen.add(choice[len(choice) // 2])
        drawn.add(grounds[choice[len(choice) // 2]])
    more = max(0, min(SAMPLE, len(shown)) - len(chosen))
    chosen.update(np.linspace(0, len(shown) - 1, more).round().astype(int).tolist())
    return shown.rows[sorted(chosen)]


def by_renderer(
    shown: ShownRows, rows: Int64[np.ndarray, " n"], renderings: Renderings, world: World, apart: bool
) -> Iterator[tuple[Renderer, Int64[np.ndarray, " m"]]]:
    """Rows and the renderer of each group of them: one group, or one of each background if these are drawn `apart`."""

    def background(row: int) -> str:
        return shown.scene(row).background if apart else ""

    ordered = sorted((background(row), shown.scene(row).view, row) for row in rows.tolist())
    for name, group in groupby(ordered, lambda entry: entry[0]):
        renderer = renderings.on(world, shown.resolution, name) if name else renderings.of(world, shown.resolution)[0]
        yield renderer, np.array([row for *_, row in group], np.int64)
