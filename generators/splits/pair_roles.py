"""Which animal pairs a split trains on, and which it holds out."""

from collections.abc import Callable
from dataclasses import dataclass

from envs.common.errors import UserError
from envs.common.seeds import generator
from envs.world import World
from generators.splits.recipe import SplitRecipe, at_least_one

Pair = tuple[str, str]


@dataclass(frozen=True)
class PairRoles:
    """The role of every pair; pairs keep theirs when only the fractions change."""

    train: tuple[Pair, ...]
    swapped: frozenset[Pair]  # those of train that are also trained on the other way round
    validation: tuple[Pair, ...]
    reserve: tuple[Pair, ...]
    trainable: int  # pairs that a fraction of 1 would train on


def pair_roles(
    recipe: SplitRecipe,
    world: World,
    *salt: str,
    trainable: Callable[[Pair], bool] = lambda pair: True,
    swappable: Callable[[Pair], bool] = lambda pair: True,
) -> PairRoles:
    """Draw the roles of all pairs of a world; another `salt` draws others.

    Pairs of which hold-out rules leave nothing aren't `trainable`, or not `swappable`.
    """
    order = generator(recipe.seed, "pairs", *salt).permutation(len(world.pairs))
    shuffled = [world.pairs[i] for i in order]
    n_reserve = at_least_one(recipe.reserve, len(shuffled))
    n_held = n_reserve + at_least_one(recipe.validation, len(shuffled))
    usable = [pair for pair in shuffled[n_held:] if trainable(pair)]
    if not shuffled[n_held:]:
        raise UserError(
            f"reserve {recipe.reserve:g} and validation {recipe.validation:g} leave none of the "
            f"{len(shuffled)} pairs of world {recipe.world!r} to train on; lower one of them"
        )
    if not usable and recipe.pairs:
        raise UserError(
            f"hold_out {' or '.join(recipe.hold_out)!r} leaves none of the {len(shuffled) - n_held} trainable pairs of "
            f"world {recipe.world!r}; narrow it"
        )
    train = usable[: round(recipe.pairs * len(usable))]
    candidates = sorted(
        filter(swappable, train), key=lambda pair: generator(recipe.seed, "swapped", *salt, *pair).random()
    )
    n_swapped = round(recipe.hard_negatives * len(train))
    if n_swapped > len(candidates):
        possible = int(100 * len(candidates) / len(train)) / 100
        raise UserError(
            f"hard_negatives {recipe.hard_negatives:g} asks for {n_swapped} of {len(train)} training pairs, but "
            f"hold_out leaves the swap of {len(candidates)} only; lower it to {possible:g}"
        )
    return PairRoles(
        train=tuple(train),
        swapped=frozenset(candidates[:n_swapped]),
        validation=tuple(shuffled[n_reserve:n_held]),
        reserve=tuple(shuffled[:n_reserve]),
        trainable=len(usable),
    )
