"""The roles of animal pairs in a split: train, validation or reserve."""

from collections.abc import Callable
from dataclasses import dataclass

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.world import World
from menagerie.generators.splits.recipe import PairCounts, SplitRecipe, at_least_one

Pair = tuple[str, str]


@dataclass(frozen=True)
class PairRoles:
    """The role of every pair. A larger fraction adds pairs to train, or to the swapped pairs, and removes none."""

    train: tuple[Pair, ...]
    swapped: frozenset[Pair]  # training pairs whose swap is in train too
    validation: tuple[Pair, ...]
    reserve: tuple[Pair, ...]
    trainable: int  # number of training pairs at fraction 1

    @property
    def counts(self) -> PairCounts:
        """The numbers of pairs that the recipe's fractions amount to."""
        return PairCounts(len(self.train), len(self.swapped), self.trainable)


def pair_roles(
    recipe: SplitRecipe,
    world: World,
    *salt: str,
    shared: bool = False,
    trainable: Callable[[Pair], bool] = lambda pair: True,
    swappable: Callable[[Pair], bool] = lambda pair: True,
) -> PairRoles:
    """Draw the roles of all pairs of a world; `salt` is added to the seed.

    With `shared`, reserve and validation are drawn without `salt`. `trainable` says whether the recipe leaves train a
    scene of a pair, and `swappable` whether it leaves one of the pair's swap.
    """
    shuffled = shuffled_pairs(recipe, world, *(() if shared else salt))
    n_reserve = at_least_one(recipe.reserve, len(shuffled))
    n_apart = n_reserve + at_least_one(recipe.validation, len(shuffled))
    free = set(shuffled[n_apart:])
    usable = [pair for pair in shuffled_pairs(recipe, world, *salt) if pair in free and trainable(pair)]
    if not free:
        raise UserError(
            f"reserve {recipe.reserve:g} and validation {recipe.validation:g} leave none of the "
            f"{len(shuffled)} pairs of world {recipe.world!r} to train on; lower one of them"
        )
    if not usable and recipe.pairs:
        raise UserError(
            f"{left_by(recipe)} leaves none of the {len(free)} trainable pairs of world {recipe.world!r}; "
            f"{'narrow' if recipe.hold_out else 'raise'} it"
        )
    train = usable[: round(recipe.pairs * len(usable))]
    # Taken in the order of train, so that swapped pairs are nested in both fractions: those at 20 % of the pairs are
    # among those at 40 %.
    candidates = list(filter(swappable, train))
    n_swapped = round(recipe.hard_negatives * len(train))
    if n_swapped > len(candidates):
        possible = int(100 * len(candidates) / len(train)) / 100
        raise UserError(
            f"hard_negatives {recipe.hard_negatives:g} requests {n_swapped} of {len(train)} training pairs, but "
            f"{left_by(recipe).split()[0]} leaves the swap of {len(candidates)} only; lower it to {possible:g}"
        )
    return PairRoles(
        train=tuple(train),
        swapped=frozenset(candidates[:n_swapped]),
        validation=tuple(shuffled[n_reserve:n_apart]),
        reserve=tuple(shuffled[:n_reserve]),
        trainable=len(usable),
    )


def left_by(recipe: SplitRecipe) -> str:
    """Return the field that makes pairs untrainable, with its value, for messages."""
    return f"hold_out {' or '.join(recipe.hold_out)!r}" if recipe.hold_out else f"objects {vars(recipe)['objects']:g}"


def shuffled_pairs(recipe: SplitRecipe, world: World, *salt: str) -> list[Pair]:
    """All pairs of a world in an order drawn with the recipe's seed and `salt`."""
    order = generator(recipe.seed, "pairs", *salt).permutation(len(world.pairs))
    return [world.pairs[i] for i in order]
