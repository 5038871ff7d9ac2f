"""Whether things have the colours of their textures, compared with reference pictures that are rendered for it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.world import World
from menagerie.generators.audit.masks import mean_colors

# Views and other things' shadows make a thing darker or brighter than it is in its reference: by these factors.
DARKEST, BRIGHTEST = 0.7, 1.2
# The mean colour may be so much farther from its own texture's than from another's (of 255). Measured over all
# animals, textures, backgrounds and places in several views, at 16, 32 and 64 pixels: 3 at most.
MARGIN = 12.0
# ... and so far from its own texture's at most. Measured: 26; of a black thing more than 60.
FARTHEST = 50.0
# Pixels of a thing that is compared: of fewer, a highlight or an eye alone would be another colour.
FEWEST = 8


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
    colors = [reference.colors[it.animal, scenes[n].background] for it, (n, _) in zip(things, spots, strict=True)]
    own = np.array([reference.textures.index(thing.texture) for thing in things], np.int64)
    shown = means[tuple(np.array(spots, np.int64).reshape(-1, 2).T)]
    last = -1
    for k, alike in others(np.array(colors).reshape(-1, len(reference.textures), 3), shown, own, reference.textures):
        n, thing, rgb = spots[k][0], things[k], ", ".join(f"{part:.0f}" for part in shown[k])
        if n != last:  # one of a scene is enough
            yield n, f"the colour of the {thing.texture} {thing.animal} is {alike} (red, green, blue {rgb})"
        last = n


def others(
    colors: Float64[np.ndarray, "n textures 3"],
    means: Float64[np.ndarray, "n 3"],
    own: Int64[np.ndarray, " n"],
    textures: Sequence[str],
) -> Iterator[tuple[int, str]]:
    """The things whose colour isn't their own texture's, and whose it is: "of red" or "of no texture"."""
    brightness = (np.einsum("ntc,nc->nt", colors, means) / np.maximum((colors**2).sum(2), 1)).clip(DARKEST, BRIGHTEST)
    distances = np.linalg.norm(brightness[..., None] * colors - means[:, None], axis=2)
    least, mine = distances.min(1), np.take_along_axis(distances, own[:, None], 1)[:, 0]
    for k in np.flatnonzero(mine > np.minimum(least + MARGIN, FARTHEST)).tolist():
        yield k, f"of {textures[distances[k].argmin()]}" if least[k] <= FARTHEST else "of no texture"
