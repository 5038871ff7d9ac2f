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
from menagerie.envs.slots import SLOTS, facings
from menagerie.envs.world import World
from menagerie.generators.captions.hard_negatives.swaps import mirror_probed, swap_probed
from menagerie.generators.coverage import Composition
from menagerie.generators.splits.dealing import TRIES, Deck

Names = tuple[str, ...]
Bag = tuple[frozenset[str], frozenset[str]]  # animals and textures of a scene
DEPTH = ("", "front", "near", "back", "high")


@cache
def draws(
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
    background, sizes, slots = draws(world, seed, bool(places), view, animals, textures)
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
    for view, pair, worn in product(views, permutations(animals, 2), permutations(textures, 2)):
        yield scene_of(world, seed, view, list(zip(pair, worn, strict=True)))


def in_layout(
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


def arrangements(
    animals: Sequence[str], textures: Sequence[str], seed: int, layout: str, objects: int, number: int
) -> list[tuple[list[Composition], Names]]:
    """Return `number` lists of compositions, each with the places of its objects, dealt from shuffled decks. All have
    different bags. Raises `UserError` if there are fewer bags."""
    most = comb(len(animals), objects) * comb(len(textures), objects)
    random = generator(seed, "probe crowds", layout, objects)
    decks = Deck(animals, random), Deck(textures, random)
    places = Deck(LAYOUTS[layout].choices(objects), random)
    found: dict[Bag, tuple[list[Composition], Names]] = {}
    vain = 0
    while len(found) < min(number, most) and vain < TRIES:
        names = [dealt(deck, objects) for deck in decks]
        bag = frozenset(names[0]), frozenset(names[1])
        vain = vain + 1 if bag in found else 0
        if bag not in found:
            found[bag] = list(zip(*names, strict=True)), places.deal()
    if len(found) < number:
        raise UserError(
            f"quartets {number} asks for more than the {len(found)} combinations of {objects} of {len(animals)} "
            f"animals and of {len(textures)} textures; lower it, or take more animals and textures"
        )
    return list(found.values())


def dealt(deck: Deck[str], number: int) -> list[str]:
    """Deal `number` different cards of a deck, in random order."""
    cards: list[str] = []
    while len(cards) < number:
        cards.append(deck.deal(lambda card: card not in cards))
    return [cards[i] for i in deck.random.permutation(number)]


def from_left(scene: Scene) -> list[Object]:
    """Return the objects of a scene from left to right. Those of one column go from front to back, the upper one
    last."""

    return sorted(scene.objects, key=lambda obj: (SLOTS[obj.slot].column, DEPTH.index(SLOTS[obj.slot].row)))


def bag_of(scene: Scene) -> Bag:
    return frozenset(obj.animal for obj in scene.objects), frozenset(obj.texture for obj in scene.objects)
