"""The swap of a scene, which its hard negative describes: two objects exchange their textures or places.

Which two objects and what they exchange depends on the kind of split (`SplitRecipe.swap`).
"""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from menagerie.envs.scene import Scene


def with_exchanged(scene: Scene, pair: Sequence[int], field: str) -> Scene:
    """Return the scene with the values of a field exchanged between two of its objects. Raises `ValueError` unless they
    are two."""
    one, other = pair
    objects = list(scene.objects)
    objects[one] = scene.objects[one]._replace(**{field: getattr(scene.objects[other], field)})
    objects[other] = scene.objects[other]._replace(**{field: getattr(scene.objects[one], field)})
    return replace(scene, objects=tuple(objects))


def exchanged(scene: Scene) -> tuple[int, int]:
    """Return the indices of the two objects of a multi-object scene whose textures a hard negative exchanges.

    They depend on slots, background and view, and are the same for a scene and its swap. Raises `ValueError` for a
    single object.
    """
    return exchanged_places(tuple(obj.slot for obj in scene.objects), scene.background, scene.view)


def exchanged_places(slots: tuple[str, ...], background: str, view: int) -> tuple[int, int]:
    """Return the indices of the two exchanged objects in a scene with these slots, sorted by name."""
    pairs = list(combinations(range(len(slots)), 2))
    if not pairs:
        raise ValueError("a single object has nothing to exchange")
    return pairs[zlib.crc32(f"{'+'.join(slots)}|{background}|{view}".encode()) % len(pairs)]
