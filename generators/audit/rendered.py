"""Audits render rows again, to compare them byte for byte, and single things, to measure reference colours."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.custom.cutouts import natural_names
from menagerie.envs.render.occlusion import UNKNOWN, area_table
from menagerie.envs.render.renderer import Pictures, Renderer
from menagerie.envs.render.row import RowRenderer, renderer_of
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import CROWD
from menagerie.envs.world import World
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.rows import Problems, ShownRows, Sound
from menagerie.generators.storage.image_store import Progress
from menagerie.generators.storage.tables import PIXELS

AnyRenderer = Renderer | RowRenderer
MOST_WORKERS = 8
SAMPLE = 24  # fewest rows in a sample, which has at least one of each shard
GROUNDS = 10  # most views of backgrounds in a sample, if the shards allow: drawing one takes as long as three things
# A thing may be darker or brighter than its reference by these factors, because of views and of other things' shadows.
DARKEST, BRIGHTEST = 0.7, 1.2
# A mean colour may be farther from its own texture's than from another's by this much (of 255). Measured over all
# animals, textures, backgrounds and places in several views, at 16, 32 and 64 pixels: 3 at most.
MARGIN = 12.0
# ... and this far from its own texture's at most. Measured: 26; a black thing has more than 60.
FARTHEST = 50.0
# Fewest pixels of a thing whose colour is checked: in fewer, a highlight or an eye alone would change the colour.
FEWEST = 8


def mean_colors(
    images: UInt8[np.ndarray, "n h w 3"], masks: UInt8[np.ndarray, "n h w"], things: int, fewest: int = 1
) -> Float64[np.ndarray, "n things 3"]:
    """The mean colour of every thing; NaN if its mask has fewer than `fewest` pixels."""
    means = np.full((len(images), things, 3), np.nan)
    for n, (image, mask) in enumerate(zip(images, masks, strict=True)):  # one by one: floats take more memory
        exact = np.float32 if 255 * mask.size < 2**24 else np.float64  # for exact sums
        inside = mask.reshape(1, -1) == np.arange(1, things + 1)[:, None]
        pixels = inside.sum(1)
        shown = pixels >= fewest
        sums = inside[shown].astype(exact) @ image.reshape(-1, 3).astype(exact)
        means[n, shown] = sums.astype(np.float64) / pixels[shown, None]
    return means


class Reference(NamedTuple):
    """The mean colours of each animal alone on each background, in each texture."""

    textures: tuple[str, ...]
    colors: dict[tuple[str, str], Float64[np.ndarray, "textures 3"]]
    alone: Callable[[Scene, Thing], Pictures]
    """Renders a thing of a scene alone in its place, in each texture."""


def reference_colors(world: World, renderer: AnyRenderer, alone: Callable[[Scene, Thing], Pictures]) -> Reference:
    """The reference colours of a world by (animal, background), in one view and size."""
    places = [(animal, background) for animal in world.animals for background in world.backgrounds]
    size = world.sizes[-1] if world.sizes else ""
    scenes = [
        Scene(background, (Thing(animal, texture, "center", size),))
        for animal, background in places
        for texture in world.textures
    ]
    means = mean_colors(*renderer.render(scenes), 1).reshape(len(places), len(world.textures), 3)
    return Reference(world.textures, dict(zip(places, means, strict=True)), alone)


def wrong_colors(
    scenes: Sequence[Scene],
    images: UInt8[np.ndarray, "n h w 3"],
    masks: UInt8[np.ndarray, "n h w"],
    reference: Reference | None,
) -> Iterator[tuple[int, str]]:
    """Yield the number of each image in which a thing has the colour of another texture or of none, with a description.
    Without a reference, yield nothing.

    A thing of a crowd is looked at twice (`right_alone`), until one is proved wrong: a second look costs about one
    second per thing.
    """
    if reference is None:
        return
    means = mean_colors(images, masks, max((len(scene.things) for scene in scenes), default=0), FEWEST)
    spots = [(n, i) for n, i in np.argwhere(~np.isnan(means).any(2)).tolist() if i < len(scenes[n].things)]
    things = [scenes[n].things[i] for n, i in spots]
    colors = [reference.colors[thing.animal, scenes[n].background] for thing, (n, _) in zip(things, spots, strict=True)]
    true = np.array([reference.textures.index(thing.texture) for thing in things], np.int64)
    shown = means[tuple(np.array(spots, np.int64).reshape(-1, 2).T)]
    table, wrong = np.array(colors).reshape(-1, len(reference.textures), 3), set()
    for k, alike in miscoloured(table, shown, true, reference.textures):
        (n, i), thing, rgb = spots[k], things[k], ", ".join(f"{part:.0f}" for part in shown[k])
        if not wrong and thing.slot in CROWD and right_alone(scenes[n], i, images[n], masks[n], reference):
            continue
        if n not in wrong:  # report one thing per scene
            yield n, f"the colour of the {thing.texture} {thing.animal} is {alike} (red, green, blue {rgb})"
        wrong.add(n)


def right_alone(
    scene: Scene, i: int, image: UInt8[np.ndarray, "h w 3"], mask: UInt8[np.ndarray, "h w"], reference: Reference
) -> bool:
    """Whether what shows of a thing has the colour of its texture in pictures of it alone in its place.

    Of a thing that others hide in part, only a horn may show. And in a small picture most of its pixels lie on its edge
    and show what is behind it too: a blue caribou before something bright has the mean colour of a dotted one. So only
    pixels inside are compared, unless it has none.
    """
    images, masks = reference.alone(scene, scene.things[i])
    shown = (mask == i + 1) & (masks > 0).all(0)
    inside = shown & inside_of(mask == i + 1)
    chosen = inside if inside.any() else shown
    if not chosen.any():
        return False
    colors, mean = (pictures[:, chosen].mean(1, dtype=np.float64) for pictures in (images, image[None]))
    true = np.array([reference.textures.index(scene.things[i].texture)], np.int64)
    return not any(miscoloured(colors[None], mean, true, reference.textures))


def inside_of(shown: Bool[np.ndarray, "h w"]) -> Bool[np.ndarray, "h w"]:
    """The pixels of a thing whose four neighbours are its own."""
    around = np.pad(shown, 1)
    return shown & around[:-2, 1:-1] & around[2:, 1:-1] & around[1:-1, :-2] & around[1:-1, 2:]


def miscoloured(
    colors: Float64[np.ndarray, "n textures 3"],
    means: Float64[np.ndarray, "n 3"],
    true: Int64[np.ndarray, " n"],
    textures: Sequence[str],
) -> Iterator[tuple[int, str]]:
    """Yield the index of each thing whose colour isn't that of its texture, with words for the texture that it matches:
    "of red" or "of no texture"."""
    brightness = (np.einsum("ntc,nc->nt", colors, means) / np.maximum((colors**2).sum(2), 1)).clip(DARKEST, BRIGHTEST)
    distances = np.linalg.norm(brightness[..., None] * colors - means[:, None], axis=2)
    least, from_true = distances.min(1), np.take_along_axis(distances, true[:, None], 1)[:, 0]
    for k in np.flatnonzero(from_true > np.minimum(least + MARGIN, FARTHEST)).tolist():
        yield k, f"of {textures[distances[k].argmin()]}" if least[k] <= FARTHEST else "of no texture"


@dataclass
class Renderings:
    """The renderers of an audit, and the reference colours made with them."""

    folder: Path
    """Folder of the audit's own atlases. Atlases of a store aren't used, because they may be wrong."""
    workers: int = 1
    """Number of processes that render."""
    _made: dict[tuple[World, int], tuple[AnyRenderer, Reference | None]] = field(default_factory=dict)
    _on_one_background: dict[tuple[World, int], AnyRenderer] = field(default_factory=dict)
    _sound: dict[tuple[World, int], Sound] = field(default_factory=dict)

    def of(self, world: World, resolution: int) -> tuple[AnyRenderer, Reference | None]:
        """The renderer of a world, and its reference colours, or None if its things have colours of their own."""
        if (world, resolution) not in self._made:
            renderer = renderer_of(world, resolution, self.folder, self.workers)
            alone = partial(self.alone, world, resolution)
            reference = None if natural_names(world.cutouts) else reference_colors(world, renderer, alone)
            self._made[world, resolution] = renderer, reference
        return self._made[world, resolution]

    def alone(self, world: World, resolution: int, scene: Scene, thing: Thing) -> Pictures:
        """Render a thing of a scene alone in its place, in each texture."""
        painted = [thing._replace(texture=texture) for texture in world.textures]
        scenes = [Scene(scene.background, (one,), scene.view) for one in painted]
        return self.on(world, resolution, scene.background).render(scenes)

    def sound(self, world: World, resolution: int) -> Sound:
        """The rows of a world's shards that were found sound in other splits."""
        return self._sound.setdefault((world, resolution), Sound())

    def on(self, world: World, resolution: int, background: str) -> AnyRenderer:
        """A renderer for scenes on one background. For few images it takes a fifth of the time, because the layers for
        other backgrounds aren't drawn."""
        alone = replace(world, backgrounds=(background,))
        if (alone, resolution) not in self._on_one_background:
            self._on_one_background[alone, resolution] = renderer_of(alone, resolution, self.folder, self.workers)
        return self._on_one_background[alone, resolution]


@contextlib.contextmanager
def open_renderings(workers: int = 1) -> Iterator[Renderings]:
    """Yield renderings in a temporary folder, deleted at the end."""
    with scratch_folder() as folder:
        yield Renderings(folder, workers)


def at_once() -> int:
    """The number of processes to render with on this machine."""
    return min(usable_cores(), MOST_WORKERS)


def check_again(shown: ShownRows, renderings: Renderings, world: World, sample: bool, report: Progress) -> Finding:
    """Check that a sample of images and masks, or all of them, are byte for byte what is rendered now.

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
            areas, again = shown.areas[block.rows], area_table(renderer.areas(block.scenes))
            for n in np.flatnonzero(((areas != again) & (areas != UNKNOWN)).any(1)).tolist():
                problems.add(int(block.rows[n]), "its areas are others")
            for row in (row for row in block.rows.tolist() if row not in problems.rows):
                sound.add_again(*shown.at(row), shown.scene(row))
            done += len(block.rows) + len(block.unreadable)
            report("rendered again", done, len(rows))
    return problems.finding("again", f"{len(rows)} of {len(shown)} rows{'; --pixels all renders all' * sample}")


def sampled(shown: ShownRows, before: Bool[np.ndarray, " n"]) -> Int64[np.ndarray, " m"]:
    """Choose one row of each shard and, if these are fewer than `SAMPLE`, more rows, evenly spaced.

    In a shard, rows that were rendered again `before` (for another split) are preferred. Drawing a background is slow:
    once the sample has `GROUNDS` combinations of background and view, rows with one of these are preferred next.
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
    others = np.setdiff1d(np.arange(len(shown)), list(chosen))
    more = max(0, min(SAMPLE - len(chosen), len(others)))
    chosen.update(others[np.linspace(0, len(others) - 1, more).round().astype(int)].tolist())
    return shown.rows[sorted(chosen)]


def by_renderer(
    shown: ShownRows, rows: Int64[np.ndarray, " n"], renderings: Renderings, world: World, apart: bool
) -> Iterator[tuple[Renderer, Int64[np.ndarray, " m"]]]:
    """Yield each group of rows with its renderer: all rows together, or one group for each background (`apart`)."""

    def background(row: int) -> str:
        return shown.scene(row).background if apart else ""

    ordered = sorted((background(row), shown.scene(row).view, row) for row in rows.tolist())
    for name, group in groupby(ordered, lambda entry: entry[0]):
        renderer = renderings.on(world, shown.resolution, name) if name else renderings.of(world, shown.resolution)[0]
        yield renderer, np.array([row for *_, row in group], np.int64)
