"""The hard negative of a scene: the caption of its swap, which has two textures, two places or the number changed."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

from menagerie.envs.scene import Scene
from menagerie.envs.slots import COUNTING, place_of


def swap_textures(scene: Scene) -> Scene:
    """The scene with the textures of its two things exchanged; sizes stay."""
    return with_exchanged(scene, range(len(scene.things)), "texture")


def swap_places(scene: Scene) -> Scene:
    """The scene with the slots of its two things exchanged; sizes stay."""
    return with_exchanged(scene, range(len(scene.things)), "slot")


def other_number(scene: Scene) -> Scene:
    """Return the scene with another number of its equal things, from one to four. The scene's key decides which."""
    things, numbers = scene.things, [n for n in range(1, len(COUNTING) + 1) if n != len(scene.things)]
    number = numbers[zlib.crc32(scene.key.encode()) % len(numbers)]
    free = [slot for slot in COUNTING if slot not in {thing.slot for thing in things}]
    more = tuple(things[0]._replace(slot=slot) for slot in free[: max(number - len(things), 0)])
    return replace(scene, things=things[:number] + more)


def exchanged(scene: Scene) -> tuple[int, int]:
    """Return the indices of the two things of a scene whose textures a hard negative exchanges.

    They depend on slots, background and view, and are the same for a scene and its swap. Raises `ValueError` for a
    single thing.
    """
    return exchanged_places(tuple(thing.slot for thing in scene.things), scene.background, scene.view)


def exchanged_places(slots: tuple[str, ...], background: str, view: int) -> tuple[int, int]:
    """Return the indices of the two exchanged things in a scene with these slots, sorted by name."""
    pairs = list(combinations(range(len(slots)), 2))
    if not pairs:
        raise ValueError("a single thing has nothing to exchange")
    return pairs[zlib.crc32(f"{'+'.join(slots)}|{background}|{view}".encode()) % len(pairs)]


def swap_exchanged(scene: Scene) -> Scene:
    """The scene with the textures of two of its things exchanged; sizes stay."""
    return with_exchanged(scene, exchanged(scene), "texture")


def probed(scene: Scene) -> tuple[int, int]:
    """Return the indices of the two things of a probe set's scene that swap and mirror exchange.

    They depend on places alone, and are the same in all views and on all backgrounds. Raises `ValueError` for a single
    thing.
    """
    return exchanged_places(tuple(place_of(thing.slot) for thing in scene.things), "", 0)


def swap_probed(scene: Scene) -> Scene:
    """The scene of a probe set with the textures of the two things exchanged; sizes stay."""
    return with_exchanged(scene, probed(scene), "texture")


def mirror_probed(scene: Scene) -> Scene:
    """The scene of a probe set with the slots of the two things exchanged; textures and sizes go along."""
    return with_exchanged(scene, probed(scene), "slot")


def with_exchanged(scene: Scene, pair: Sequence[int], field: str) -> Scene:
    """Return the scene with the values of a field exchanged between two of its things. Raises `ValueError` unless they
    are two."""
    one, other = pair
    things = list(scene.things)
    things[one] = scene.things[one]._replace(**{field: getattr(scene.things[other], field)})
    things[other] = scene.things[other]._replace(**{field: getattr(scene.things[one], field)})
    return replace(scene, things=tuple(things))


# Kind of split -> function from a scene to the one that its hard negative describes.
SWAPS: dict[str, Callable[[Scene], Scene]] = {
    "binding": swap_textures,
    "spatial": swap_places,
    "dependence": swap_textures,
    "counting": other_number,
    "crowd": swap_exchanged,
    "probe": swap_probed,
}
