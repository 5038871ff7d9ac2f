"""Compositions held out: combinations of an animal and a texture that train shows nowhere, neither alone nor in a pair.

A Latin square decides: animals are its rows and textures its columns, and train shows its compositions diagonal by
diagonal, up to the share. So all animals keep nearly the same number of textures, and all textures nearly the same
number of animals. What train shows at one share, it shows at every higher one."""

from collections.abc import Sequence

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.world import World
from menagerie.generators.coverage import Composition

ONE_UNSEEN, TWO_UNSEEN = "one_unseen_composition", "two_unseen_compositions"
COMPOSITION_TESTS = {ONE_UNSEEN: 1, TWO_UNSEEN: 2}  # with the number of unseen compositions, in the scene or its swap


def shown_compositions(world: World, share: float, seed: int) -> frozenset[Composition]:
    """Return the compositions that train shows. Raises if an animal or a texture would have none."""
    animals, textures = (
        [names[i] for i in generator(seed, "objects", kind).permutation(len(names))]
        for kind, names in (("animals", world.animals), ("textures", world.textures))
    )
    shown = frozenset(in_order(animals, textures)[: round(share * len(animals) * len(textures))])
    lacking = {*animals, *textures}.difference(*shown)
    if lacking:
        raise UserError(
            f"compositions {share:g} leaves {len(shown)} combinations of {len(animals)} animals and {len(textures)} "
            f"textures in train, and none with {min(lacking)}; raise it"
        )
    return shown


def in_order(animals: Sequence[str], textures: Sequence[str]) -> list[Composition]:
    """Return all compositions, diagonal by diagonal. Within a diagonal, each texture comes once before any comes
    again."""
    n, number = len(textures), len(animals)
    starts = [i * n // number for i in range(number)]
    turns = [starts[:i].count(start) for i, start in enumerate(starts)]
    rows = sorted(range(number), key=lambda i: (turns[i], starts[i]))
    return [(animals[i], textures[(starts[i] + diagonal) % n]) for diagonal in range(n) for i in rows]


def unseen_in(shown: frozenset[Composition], pair: tuple[str, str], textures: tuple[str, str]) -> int:
    """Return how many compositions of a pair train doesn't show: in these textures or in the swapped ones, whichever
    has more.

    So a scene and its swap are in the same test, and unseen compositions don't tell which caption is true.
    """
    return max(
        sum(composition not in shown for composition in zip(pair, worn, strict=True))
        for worn in (textures, textures[::-1])
    )
