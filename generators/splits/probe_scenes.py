"""The scenes of a probe set, in quartets: a scene, its swap, its mirror and the mirror's swap.

The background, sizes and facings of a scene depend only on the recipe's seed and on the scene's view, animals and
textures. So they are the same in all four. Side by side, the scenes of a set of fewer animals are thus
among those of a set of more.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations, product
from math import comb

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.layouts import LAYOUTS
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS, facings, place_of
from menagerie.envs.world import World
from menagerie.generators.captions.contents import exchanged_places, with_exchanged
from menagerie.generators.coverage import Composition
from menagerie.generators.splits.even_draws import TRIES, ShuffledQueue

Names = tuple[str, ...]
Bag = tuple[frozenset[str], frozenset[str]]  # animals and textures of a scene
DEPTH = ("", "front", "near", "back", "high")


@cache
def draw_shared(
    world: World, seed: int, inward: bool, view: int, animals: Names, textures: Names
) -> tuple[str, dict[str, str], Names]:
    """Draw what all scenes of a bag, whose animals and textures are sorted, have in a view: the background, the size of
    each animal ("" in a world without sizes), and the left and the right slot, each with its facing."""
    random = generator(seed, "probe", view, *animals, *textures)
    background = world.backgrounds[random.integers(len(world.backgrounds))]
    slots = tuple(facings(place)[0 if inward else random.integers(2)] for place in ("left", "right"))
    sizes = {animal: world.sizes[random.integers(len(world.sizes))] if world.sizes else "" for animal in animals}
    return background, sizes, slots


def scene_of(world: World, seed: int, view: int, compositions: Sequence[Composition], places: Names = ()) -> Scene:
    """The scene of some compositions in these places, or left and right."""
    animals, textures = (tuple(sorted(names)) for names in zip(*compositions, strict=True))
    background, sizes, slots = draw_shared(world, seed, bool(places), view, animals, textures)
    objects = (
        Object(*composition, slot, sizes[composition[0]])
        for composition, slot in zip(compositions, places or slots, strict=True)
    )
    return Scene(background, tuple(objects), view)


def side_by_side(
    world: World, animals: Sequence[str], textures: Sequence[str], views: range, seed: int
) -> Iterator[Scene]:
    """Yield every ordered pair of animals, left and right, in every ordered pair of different textures, in each view.
    The order is that of an array (views, pairs of animals, pairs of textures)."""
    for view, *both in product(views, permutations(animals, 2), permutations(textures, 2)):
        yield scene_of(world, seed, view, list(zip(*both, strict=True)))


def scenes_in_layout(
    world: World, animals: Sequence[str], textures: Sequence[str], views: range, seed: int, sample: tuple[str, int, int]
) -> Iterator[Scene]:
    """Yield the scenes of quartets of a layout, with the same compositions and places in each view. `sample` is the
    layout, the number of objects and the number of quartets in a view."""
    for view, (compositions, places) in product(views, arrangements(animals, textures, seed, *sample)):
        yield from quartet(scene_of(world, seed, view, compositions, places))


def quartet(scene: Scene) -> tuple[Scene, Scene, Scene, Scene]:
    """A scene, its swap, its mirror, and the mirror's swap."""
    mirror = mirror_probed(scene)
    return scene, swap_probed(scene), mirror, swap_probed(mirror)


def probed_pair(scene: Scene) -> tuple[int, int]:
    """Return the indices of the two objects of a probe set's scene that swap and mirror exchange.

    They depend on places alone, and are the same in all views and on all backgrounds. Raises `ValueError` for a single
    object.
    """
    return exchanged_places(tuple(place_of(obj.slot) for obj in scene.objects), "", 0)


def swap_probed(scene: Scene) -> Scene:
    """The scene with the textures of the two objects exchanged; sizes stay."""
    return with_exchanged(scene, probed_pair(scene), "texture")


def mirror_probed(scene: Scene) -> Scene:
    """The scene with the slots of the two objects exchanged; textures and sizes go along."""
    return with_exchanged(scene, probed_pair(scene), "slot")


def arrangements(
    animals: Sequence[str], textures: Sequence[str], seed: int, layout: str, objects: int, number: int
) -> list[tuple[list[Composition], Names]]:
    """Return `number` lists of compositions, each with the places of its objects, taken from shuffled queues. All have
    different bags. Raises `UserError` if there are fewer bags."""
    most = comb(len(animals), objects) * comb(len(textures), objects)
    random = generator(seed, "probe crowds", layout, objects)
    queues = ShuffledQueue(animals, random), ShuffledQueue(textures, random)
    places = ShuffledQueue(LAYOUTS[layout].choices(objects), random)
    found: dict[Bag, tuple[list[Composition], Names]] = {}
    vain = 0
    while len(found) < min(number, most) and vain < TRIES:
        names = [queue.take_different(objects) for queue in queues]
        bag = frozenset(names[0]), frozenset(names[1])
        vain = vain + 1 if bag in found else 0
        if bag not in found:
            found[bag] = list(zip(*names, strict=True)), places.take()
    if len(found) < number:
        raise UserError(
            f"quartets {number} asks for more than the {len(found)} combinations of {objects} of {len(animals)} "
            f"animals and of {len(textures)} textures; lower it, or take more animals and textures"
        )
    return list(found.values())


def objects_from_left(scene: Scene) -> list[Object]:
    """Return the objects of a scene from left to right. Those of one column go from front to back, the upper one
    last."""
    return sorted(scene.objects, key=lambda obj: (SLOTS[obj.slot].column, DEPTH.index(SLOTS[obj.slot].row)))


def bag_of(scene: Scene) -> Bag:
    return frozenset(obj.animal for obj in scene.objects), frozenset(obj.texture for obj in scene.objects)
