"""Which animal pairs a split trains on, and which it holds out."""

from dataclasses import dataclass

from envs.errors import UserError
from envs.world import World
from generators.recipe import SplitRecipe, at_least_one
from generators.seeds import generator

Pair = tuple[str, str]


@dataclass(frozen=True)
class PairRoles:
    """The role of every pair; pairs keep theirs when only the fractions change."""

    train: tuple[Pair, ...]
    swapped: frozenset[Pair]  # those of train that are also trained on the other way round
    validation: tuple[Pair, ...]
    reserve: tuple[Pair, ...]
    trainable: int  # pairs that a fraction of 1 would train on


def pair_roles(recipe: SplitRecipe, world: World, *salt: str) -> PairRoles:
    """Draw the roles of all pairs of a world; another `salt` draws others."""
    order = generator(recipe.seed, "pairs", *salt).permutation(len(world.pairs))
    shuffled = [world.pairs[i] for i in order]
    n_reserve = at_least_one(recipe.reserve, len(shuffled))
    n_held = n_reserve + at_least_one(recipe.validation, len(shuffled))
    trainable = shuffled[n_held:]
    if not trainable:
        raise UserError(
            f"reserve {recipe.reserve:g} and validation {recipe.validation:g} leave none of the "
            f"{len(shuffled)} pairs of world {recipe.world!r} to train on; lower one of them"
        )
    train = trainable[: round(recipe.pairs * len(trainable))]
    by_priority = sorted(train, key=lambda pair: generator(recipe.seed, "swapped", *salt, *pair).random())
    return PairRoles(
        train=tuple(train),
        swapped=frozenset(by_priority[: round(recipe.hard_negatives * len(train))]),
        validation=tuple(shuffled[n_reserve:n_held]),
        reserve=tuple(shuffled[:n_reserve]),
        trainable=len(trainable),
    )
