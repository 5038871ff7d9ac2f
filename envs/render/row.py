"""Draws scenes as a row of columns; each column is empty or has the pattern of one object.

These are one-dimensional images as in Yamamoto, Noguchi and Tanizawa (ICML 2026, arXiv 2601.12809), whose image is a
row of ten positions, each a label or empty. Here a label is a fixed random pattern over the height of its column, so
that an image tower whose patches are the columns embeds it linearly, and any other tower can read it too. The pattern
of an object is the mean of its animal's and its texture's patterns; the rest of the image has the background's.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np
from jaxtyping import Float64, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.core.validation import SIDE, check_number
from menagerie.envs.render.renderables import EntryKey
from menagerie.envs.render.renderer import Pictures, Renderer, empty_pictures
from menagerie.envs.scene import Scene
from menagerie.envs.world import ObjectRow, World

BLOCKS = 20  # colours of a pattern, one below the other
NOISE = 3  # of 255: views of one scene in one layout differ, as checks of splits want, and look the same
PARTS = 4  # an object covers the inner half of its column, because nothing may touch the frame


def renderer_of(world: World, resolution: int, cache: Path | None = None, workers: int = 1) -> "Renderer | RowRenderer":
    """Return the renderer of a world's scenes, on a stage or in a row."""
    return Renderer(world, resolution, cache, workers) if world.row is None else RowRenderer(world, resolution)


class RowRenderer:
    """Draws the scenes of a world whose objects stand in a row, with the methods of `Renderer` that splits use.

    A picture depends only on the scene, the world's row and the resolution. The animals and the view seed the random
    choice of columns, so that a scene and its swap have the same columns.
    """

    def __init__(self, world: World, resolution: int) -> None:
        check_number("resolution", resolution, SIDE)
        if world.row is None:
            raise UserError(f"world {world.name!r} has no row; take one such as 'row'")
        step = np.lcm(PARTS * world.row.columns, BLOCKS)
        if resolution % step:
            raise UserError(
                f"images of world {world.name!r} need a side that is a multiple of {step}, got {resolution}"
            )
        self.world, self.row, self.resolution = world, world.row, resolution

    def prepare(self, scenes: Sequence[Scene], progress: Callable[[int, int], None] | None = None) -> None:
        """Raise for scenes that a row can't show, before any is drawn. Nothing needs to be built."""
        for scene in scenes:
            check_scene(scene)

    def missing(self, scenes: Sequence[Scene]) -> list[EntryKey]:
        """Return no keys: scenes in a row need no atlas entries."""
        return []

    def render(self, scenes: Sequence[Scene], out: Pictures | None = None) -> Pictures:
        """Return images, and masks as those of `Renderer.render`."""
        images, masks = out or empty_pictures(len(scenes), self.resolution)
        masks[:] = 0
        for scene, image, mask in zip(scenes, images, masks, strict=True):
            self._draw(self.world.check(scene), image, mask)
        return Pictures(images, masks)

    def areas(self, scenes: Sequence[Scene]) -> list[list[int]]:
        """Return the number of pixels of each object; none hides another."""
        width = self.resolution // self.row.columns // 2
        return [[width * (self.resolution - 2)] * len(scene.objects) for scene in scenes]

    def _draw(self, scene: Scene, image: UInt8[np.ndarray, "h w 3"], mask: UInt8[np.ndarray, "h w"]) -> None:
        width = self.resolution // self.row.columns
        picture = np.repeat(name_pattern("background", scene.background, self.resolution)[:, None], self.resolution, 1)
        for number, (obj, column) in enumerate(
            zip(scene.objects, object_columns(scene, self.row), strict=True), start=1
        ):
            animal = name_pattern("animal", obj.animal, self.resolution)
            texture = name_pattern("texture", obj.texture, self.resolution)
            start = column * width + width // PARTS
            here = np.s_[1:-1, start : start + width // 2]
            picture[here] = ((animal + texture) / 2)[1:-1, None]
            mask[here] = number
        noise = generator(0, "row noise", scene.key).integers(-NOISE, NOISE + 1, picture.shape)
        image[:] = (picture + noise).round().clip(0, 255)


def object_columns(scene: Scene, row: ObjectRow) -> tuple[int, ...]:
    """Return the column of each object, chosen at random with the animals and the view as the seed, or by the view
    alone if the row's layouts are in turn; raises for a scene that `check_scene` refuses."""
    random = generator(0, "row", *sorted(obj.animal for obj in scene.objects), scene.view)
    if row.in_turn:
        check_scene(scene)
        layouts = layouts_in_turn(row)
        both = layouts[scene.view % len(layouts)]
        return both if len(scene.objects) == 2 else (both[random.integers(2)],)
    if len(scene.objects) == 1:
        return (row.places[random.integers(len(row.places))],)
    check_scene(scene)
    layouts = list(combinations(sorted(row.places), 2))
    return layouts[random.integers(len(layouts))]


@cache
def layouts_in_turn(row: ObjectRow) -> tuple[tuple[int, int], ...]:
    """Return all choices of two columns, in the order in which the views of a row with layouts in turn show them."""
    layouts = list(combinations(sorted(row.places), 2))
    return tuple(layouts[i] for i in generator(0, "layouts in turn").permutation(len(layouts)))


def check_scene(scene: Scene) -> None:
    """Raise unless a scene is of one object, or of two that are left and right of each other."""
    if len(scene.objects) > 1 and scene.relation != "left/right":
        raise UserError(
            f"{scene.key}: in a row there is one object, or one to the left of another; give --relations "
            "left/right, or another world"
        )


@lru_cache(maxsize=1024)
def name_pattern(kind: str, name: str, resolution: int) -> Float64[np.ndarray, "h 3"]:
    """Return the colours of a name's pattern, from the top to the bottom of an image."""
    blocks = generator(0, "row pattern", kind, name).uniform(0, 255, (BLOCKS, 3))
    return np.repeat(blocks, resolution // BLOCKS, 0)
