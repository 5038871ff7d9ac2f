"""The hard negative of a scene: the caption of its swap, which has two textures, two places or the number changed."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

from menagerie.envs.scene import Scene
from menagerie.envs.slots import COUNTING, place_of


def swap_textures(scene: Scene) -> Scene:
    """The scene with the textures of its two objects exchanged; sizes stay."""
    return with_exchanged(scene, range(len(scene.objects)), "texture")


def swap_places(scene: Scene) -> Scene:
    """The scene with the slots of its two objects exchanged; sizes stay."""
    return with_exchanged(scene, range(len(scene.objects)), "slot")


def other_number(scene: Scene) -> Scene:
    """Return the scene with another number of its equal objects, from one to four. The scene's key decides which."""
    objects, numbers = scene.objects, [n for n in range(1, len(COUNTING) + 1) if n != len(scene.objects)]
    number = numbers[zlib.crc32(scene.key.encode()) % len(numbers)]
    free = [slot for slot in COUNTING if slot not in {obj.slot for obj in objects}]
    more = tuple(objects[0]._replace(slot=slot) for slot in free[: max(number - len(objects), 0)])
    return replace(scene, objects=objects[:number] + more)


def exchanged(scene: Scene) -> tuple[int, int]:
    """Return the indices of the two objects of a scene whose textures a hard negative exchanges.

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


def swap_exchanged(scene: Scene) -> Scene:
    """The scene with the textures of two of its objects exchanged; sizes stay."""
    return with_exchanged(scene, exchanged(scene), "texture")


def probed(scene: Scene) -> tuple[int, int]:
    """Return the indices of the two objects of a probe set's scene that swap and mirror exchange.

    They depend on places alone, and are the same in all views and on all backgrounds. Raises `ValueError` for a single
    object.
    """
    return exchanged_places(tuple(place_of(obj.slot) for obj in scene.objects), "", 0)


def swap_probed(scene: Scene) -> Scene:
    """The scene of a probe set with the textures of the two objects exchanged; sizes stay."""
    return with_exchanged(scene, probed(scene), "texture")


def mirror_probed(scene: Scene) -> Scene:
    """The scene of a probe set with the slots of the two objects exchanged; textures and sizes go along."""
    return with_exchanged(scene, probed(scene), "slot")


def with_exchanged(scene: Scene, pair: Sequence[int], field: str) -> Scene:
    """Return the scene with the values of a field exchanged between two of its objects. Raises `ValueError` unless they
    are two."""
    one, other = pair
    objects = list(scene.objects)
    objects[one] = scene.objects[one]._replace(**{field: getattr(scene.objects[other], field)})
    objects[other] = scene.objects[other]._replace(**{field: getattr(scene.objects[one], field)})
    return replace(scene, objects=tuple(objects))


# Kind of split -> function from a scene to the one that its hard negative describes.
SWAPS: dict[str, Callable[[Scene], Scene]] = {
    "binding": swap_textures,
    "spatial": swap_places,
    "dependence": swap_textures,
    "counting": other_number,
    "multi-object": swap_exchanged,
    "probe": swap_probed,
}
