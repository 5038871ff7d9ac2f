"""Which captions are true of which images, in a small world that is enumerable.

A world's images are all scenes of n different animals in different textures; its captions say the whole scene, some of
its objects, where two animals stand, or what is absent. So the matrix that says which caption is true of which image is
known.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

PRESENT, ABSENT, LEFT, RIGHT, FIRST_PLACE = range(5)
"""The role of a mention: what it says of its object; from `FIRST_PLACE` on, in which place from the left it stands."""
UNNAMED = -1  # an animal or a texture that a mention leaves out
Mention = tuple[int, int, int]
"""An animal, a texture, and the mention's role."""
Text = tuple[Mention, ...]


class TruthMatrix(NamedTuple):
    """A world: what images show and captions say, and which caption is true of which image."""

    images: list[Text]
    captions: list[Text]
    truth: Bool[np.ndarray, "captions images"]


def truth_matrix(objects: int, animals: int, textures: int, kind: str) -> TruthMatrix:
    """Return the world of scenes of `objects` different animals in different textures, with the captions of a `kind`
    that are true of some images and false of others. Left and right are told apart where captions state places."""
    placed = kind in ("relations", "all")
    images = [tuple(scene) for scene in scenes(objects, animals, textures, placed)]
    captions = [*images, *further_captions(objects, animals, textures, kind)]
    truth = truth_of(images, captions)
    kept = truth.any(1) & ~truth.all(1)
    return TruthMatrix(images, [text for text, keep in zip(captions, kept, strict=True) if keep], truth[kept])


def scenes(objects: int, animals: int, textures: int, placed: bool) -> Iterator[Text]:
    """Yield all sets (rows, if `placed`) of different animals in different textures."""
    chosen = (permutations if placed else combinations)(range(animals), objects)
    for names, textures_of_objects in product(chosen, permutations(range(textures), objects)):
        both = zip(names, textures_of_objects, strict=True)
        yield tuple((a, t, FIRST_PLACE + k if placed else PRESENT) for k, (a, t) in enumerate(both))


def image_count(objects: int, animals: int, textures: int, kind: str) -> int:
    ways = math.perm if kind in ("relations", "all") else math.comb
    return ways(animals, objects) * math.perm(textures, objects)


def further_captions(objects: int, animals: int, textures: int, kind: str) -> Iterator[Text]:
    """Yield the captions besides those of whole scenes: of 1 to n - 1 objects (all kinds but "whole"), "x left of y",
    "no x"; of "all" kinds also those of an animal or a texture alone."""
    if kind != "whole":
        for count in range(1, objects):
            yield from scenes(count, animals, textures, placed=False)
    if kind in ("relations", "all"):
        yield from (((x, UNNAMED, LEFT), (y, UNNAMED, RIGHT)) for x, y in permutations(range(animals), 2))
    if kind in ("negation", "all"):
        yield from (((x, t, ABSENT),) for x in range(animals) for t in (UNNAMED, *range(textures)))
    if kind == "all":
        yield from (((x, UNNAMED, PRESENT),) for x in range(animals))
        yield from (((UNNAMED, t, PRESENT),) for t in range(textures))


def truth_of(images: Sequence[Text], captions: Sequence[Text]) -> Bool[np.ndarray, "captions images"]:
    shown = np.array(images)
    truth = np.ones((len(captions), len(images)), bool)
    for row, text in zip(truth, captions, strict=True):
        stands = {}
        for animal, texture, role in text:
            named = ((animal, 0), (texture, 1))
            fits = np.all([shown[..., k] == name for name, k in named if name != UNNAMED], axis=0)
            row &= fits.any(1) if role != ABSENT else ~fits.any(1)
            if role >= FIRST_PLACE:
                row &= fits[:, role - FIRST_PLACE]
            stands[role] = fits.argmax(1)
        if LEFT in stands:
            row &= stands[LEFT] < stands[RIGHT]
    return truth


def exchanges(world: TruthMatrix) -> dict[str, Int[np.ndarray, "tests 3"]]:
    """Return for each test rows of an image, its true caption and a false one. "swaps": two textures exchanged, or two
    places; "one object": the texture is that of another object of the image."""
    number = {text: k for k, text in enumerate(world.captions)}
    found: dict[str, list[tuple[int, int, int]]] = {"swaps": [], "one object": []}
    for image, scene in enumerate(world.images):
        for i, j in combinations(range(len(scene)), 2):
            for k in range(1 if scene[0][2] == PRESENT else 2):  # animals exchanged are places exchanged, and textures
                other = exchange_parts(scene, i, j, (1,) if not k else (0, 1))
                found["swaps"].append((image, number[scene], number[other]))
        for (a, t, _), (_, other, _) in permutations(scene, 2):
            pair = [((a, its, PRESENT),) for its in (t, other)]
            if pair[0] in number:
                found["one object"].append((image, *(number[text] for text in pair)))
    return {name: np.array(its) for name, its in found.items() if its}


def exchange_parts(scene: Text, i: int, j: int, parts: Iterable[int]) -> Text:
    new = [list(its) for its in scene]
    for part in parts:
        new[i][part], new[j][part] = scene[j][part], scene[i][part]
    return tuple(tuple(its) for its in new)
