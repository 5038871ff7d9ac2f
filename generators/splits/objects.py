"""Objects held out: combinations of an animal and a texture that train shows nowhere, neither alone nor in a pair.

A Latin square decides: animals are rows, textures columns, and the cells of a share of the diagonals are in train. So
every animal keeps nearly the same number of textures, and every texture of animals; what train shows at one share it
shows at every higher one.
"""

from collections.abc import Sequence

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.world import World
from menagerie.generators.cells import Cell

ONE_UNSEEN, TWO_UNSEEN = "one_unseen_object", "two_unseen_objects"
OBJECT_TESTS = {ONE_UNSEEN: 1, TWO_UNSEEN: 2}  # with the number of unseen objects, in the scene or its swap


def shown_objects(world: World, share: float, seed: int) -> frozenset[Cell]:
    """The objects that train shows; raises if some animal or texture would have none."""
    animals, textures = (
        [names[i] for i in generator(seed, "objects", kind).permutation(len(names))]
        for kind, names in (("animals", world.animals), ("textures", world.textures))
    )
    shown = frozenset(in_order(animals, textures)[: round(share * len(animals) * len(textures))])
    lacking = {*animals, *textures}.difference(*shown)
    if lacking:
        raise UserError(
            f"objects {share:g} leaves {len(shown)} combinations of {len(animals)} animals and {len(textures)} "
            f"textures in train, and none with {min(lacking)}; raise it"
        )
    return shown


def in_order(animals: Sequence[str], textures: Sequence[str]) -> list[Cell]:
    """All objects, diagonal by diagonal; within a diagonal each texture comes once before any comes again."""
    n, number = len(textures), len(animals)
    starts = [i * n // number for i in range(number)]
    turns = [starts[:i].count(start) for i, start in enumerate(starts)]
    rows = sorted(range(number), key=lambda i: (turns[i], starts[i]))
    return [(animals[i], textures[(starts[i] + diagonal) % n]) for diagonal in range(n) for i in rows]


def unseen_in(shown: frozenset[Cell], pair: tuple[str, str], textures: tuple[str, str]) -> int:
    """The number of objects that train doesn't show, of a pair in these textures or with them swapped, whichever has
    more.

    A test has both, so that nobody can tell a true caption by its unseen objects.
    """
    return max(sum(cell not in shown for cell in zip(pair, worn, strict=True)) for worn in (textures, textures[::-1]))
