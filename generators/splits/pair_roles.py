"""The roles of animal pairs in a split: train, validation or reserve."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.recipe import PairCounts, PlacedPair, SplitRecipe, at_least_one, pair_in

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
    spared = spared_pairs(replace(recipe, pairs=0.0, hard_negatives=0.0), world) if recipe.hold_out else frozenset()
    reserve, validation, rest = dealt_pairs(recipe, world, () if shared else salt, spared)
    free = set(rest)
    usable = [pair for pair in shuffled_pairs(recipe, world, *salt) if pair in free and trainable(pair)]
    if not free:
        raise UserError(
            f"reserve {recipe.reserve:g} and validation {recipe.validation:g} leave none of the "
            f"{len(world.pairs)} pairs of world {recipe.world!r} to train on; lower one of them"
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
        validation=tuple(validation),
        reserve=tuple(reserve),
        trainable=len(usable),
    )


def dealt_pairs(
    recipe: SplitRecipe, world: World, salt: tuple[str, ...], spared: frozenset[Pair]
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Deal all pairs into the reserve, validation and the rest; those that are `spared` come last."""
    shuffled = sorted(shuffled_pairs(recipe, world, *salt), key=spared.__contains__)
    n_reserve = at_least_one(recipe.reserve, len(shuffled))
    n_apart = n_reserve + at_least_one(recipe.validation, len(shuffled))
    return shuffled[:n_reserve], shuffled[n_reserve:n_apart], shuffled[n_apart:]


@lru_cache(maxsize=64)
def spared_pairs(recipe: SplitRecipe, world: World) -> frozenset[Pair]:
    """The pairs that rules keep out of validation. Tests show none of its pairs, so that a rule which matches scenes of
    these alone could not be tested."""
    scenes, spared = recipe.testable(world), frozenset[Pair]()
    most = at_least_one(recipe.validation, len(world.pairs)) * len(recipe.draws)
    of_rules = [pairs_of(rule, scenes, most) for rule in recipe.rules(world)]
    while True:
        apart = {
            (relation, frozenset(pair))
            for relation, salt in recipe.draws.items()
            for pair in dealt_pairs(recipe, world, salt, spared)[1]
        }
        needed = {animals for pairs in of_rules if pairs <= apart for _, animals in pairs}
        if (more := spared.union(pair for pair in world.pairs if frozenset(pair) in needed)) == spared:
            return spared
        spared = more


def pairs_of(rule: Rule, scenes: Iterable[Scene], most: int) -> set[PlacedPair]:
    """The pairs of the scenes that a rule matches; of more than `most` only some."""
    found: set[PlacedPair] = set()
    for scene in scenes:
        if rule.matches(scene):
            found.add(pair_in(scene))
            if len(found) > most:
                break
    return found


def left_by(recipe: SplitRecipe) -> str:
    """Return the field that makes pairs untrainable, with its value, for messages."""
    return f"hold_out {' or '.join(recipe.hold_out)!r}" if recipe.hold_out else f"objects {vars(recipe)['objects']:g}"


def shuffled_pairs(recipe: SplitRecipe, world: World, *salt: str) -> list[Pair]:
    """All pairs of a world in an order drawn with the recipe's seed and `salt`."""
    order = generator(recipe.seed, "pairs", *salt).permutation(len(world.pairs))
    return [world.pairs[i] for i in order]
