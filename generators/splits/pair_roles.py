"""The roles of animal pairs in a split (train, validation or test pairs), and recipes that give them by relation."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from menagerie.envs.core.errors import UserError, not_allowed
from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.rules.hold_out import matches_any
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.recipe import PairCounts, SplitRecipe, sample_scenes, set_apart

Pair = tuple[str, str]
PlacedPair = tuple[str | None, frozenset[str]]  # the relation of a scene of two objects, and its animals
Variant = tuple[str, str]  # textures or animals, in the order of a pair
SeedWords = tuple[tuple[str, ...], tuple[str, ...]]  # of training pairs, and of test pairs and validation


@dataclass(frozen=True)
class PairRoles:
    """The role of every pair. A larger fraction adds pairs to train, or to the swapped pairs, and removes none."""

    train: tuple[Pair, ...]
    swapped: frozenset[Pair]  # training pairs whose swap is in train too
    validation: tuple[Pair, ...]
    test_pairs: tuple[Pair, ...]
    trainable: int  # number of training pairs at fraction 1

    @property
    def counts(self) -> PairCounts:
        """The numbers of pairs that the recipe's fractions amount to."""
        return PairCounts(len(self.train), len(self.swapped), self.trainable)


class PairRecipe(SplitRecipe):
    """A recipe of scenes of two objects in a relation, with rules that may hold some out, and of single objects.

    Train shows each of its pairs in one of several variants, such as an assignment of textures, and the variant's
    reverse is its swap."""

    singles_views: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.singles_views <= self.views:
            raise not_allowed("singles_views", self.singles_views, f"from 0 to views, {self.views}")

    @property
    @abstractmethod
    def seed_words(self) -> Mapping[str, SeedWords]:
        """The relations of scenes of two objects, each with what is added to the seed when its training pairs are
        drawn, and when its test pairs and its validation are drawn."""

    @abstractmethod
    def variants(self, world: World, pair: Pair, relation: str) -> list[Variant]:
        """The variants of a pair in a relation, whatever rules hold out."""

    @abstractmethod
    def draw_variant(self, pair: Pair, relation: str, variants: Sequence[Variant]) -> Variant:
        """Draw the variant of a pair in train from those that rules leave."""

    @abstractmethod
    def variant_scenes(self, world: World, pair: Pair, relation: str, variant: Variant) -> list[Scene]:
        """The scenes of a pair in a variant, in one view and without sizes."""

    @abstractmethod
    def scenes_in_one_view(self, world: World) -> list[Scene]:
        """Every scene of two objects that a test could show, in one view and without sizes."""

    def roles(self, world: World, relation: str) -> tuple[PairRoles, dict[Pair, Variant]]:
        """The roles of all pairs in a relation, and the variant of each training pair."""
        rules, left = self.rules(world), {}
        for pair in world.pairs:
            its = self.variants(world, pair, relation)
            if rules:
                scenes_of = partial(self.variant_scenes, world, pair, relation)
                its = [one for one in its if not all(matches_any(rules, s) for s in in_sizes(world, scenes_of(one)))]
            left |= {pair: its} if its else {}
        drawn = {pair: self.draw_variant(pair, relation, its) for pair, its in left.items()}
        roles = pair_roles(
            self,
            world,
            self.seed_words[relation],
            trainable=drawn.__contains__,
            swappable=lambda pair: drawn[pair][::-1] in left[pair],
        )
        return roles, {pair: drawn[pair] for pair in roles.train}

    def counts(self) -> PairCounts:
        world = load_world(self.world)
        counts = (self.roles(world, relation)[0].counts for relation in self.seed_words)
        return PairCounts(*map(sum, zip(*counts, strict=True)))

    def validation_pairs(self, world: World) -> set[PlacedPair]:
        every = {relation: self.roles(world, relation)[0].validation for relation in self.seed_words}
        return {(relation, frozenset(pair)) for relation, pairs in every.items() for pair in pairs}

    def tests_of_rules(self, world: World, subsets: Mapping[str, list[Scene]]) -> dict[str, list[Scene]]:
        """The same without pairs of validation; raises for rules that leave nothing to train on or to test."""
        if not subsets["train"]:
            raise UserError(f"hold_out {' or '.join(self.hold_out)!r} leaves nothing in train; narrow it")
        apart, rules = self.validation_pairs(world), self.rules(world)
        tested = in_sizes(world, self.scenes_in_one_view(world))
        left = [scene for scene in tested if matches_any(rules, scene) and pair_in(scene) not in apart]
        held_out = [self.with_facings(replace(scene, view=view)) for scene in left for view in self.test_range]

        def sample(name: str, tested: tuple[Rule, ...]) -> list[Scene]:
            scenes = [scene for scene in held_out if matches_any(tested, scene)]
            return sample_scenes(scenes, self.test_scenes, generator(self.seed, "draw", name))

        return self.rule_tests(world, sample)


def in_sizes(world: World, scenes: Sequence[Scene]) -> list[Scene]:
    """The scenes with their animals in all sizes."""
    return [sized for scene in scenes for sized in world.in_sizes(scene)]


def pair_in(scene: Scene) -> PlacedPair:
    return scene.relation, frozenset(obj.animal for obj in scene.objects)


def pair_roles(
    recipe: SplitRecipe,
    world: World,
    seed_words: SeedWords = ((), ()),
    trainable: Callable[[Pair], bool] = lambda pair: True,
    swappable: Callable[[Pair], bool] = lambda pair: True,
) -> PairRoles:
    """Draw the roles of all pairs of a world; `seed_words` are added to the seed.

    `trainable` says whether the recipe leaves train a scene of a pair, and `swappable` whether it leaves one of the
    pair's swap."""
    (of_train, of_tests), cause = seed_words, "hold_out" if recipe.hold_out else "compositions"
    spared = spared_pairs(replace(recipe, pairs=0.0, hard_negatives=0.0), world) if recipe.hold_out else frozenset()
    test_pairs, validation, rest = divided_pairs(recipe, world, of_tests, spared)
    free = set(rest)
    usable = [pair for pair in shuffled_pairs(recipe, world, *of_train) if pair in free and trainable(pair)]
    if not usable and recipe.pairs:
        raise UserError(
            f"{cause} leaves none of the {len(free)} trainable pairs of world {recipe.world!r}; "
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
            f"{cause} leaves the swap of {len(candidates)} only; lower it to {possible:g}"
        )
    return PairRoles(
        train=tuple(train),
        swapped=frozenset(candidates[:n_swapped]),
        validation=tuple(validation),
        test_pairs=tuple(test_pairs),
        trainable=len(usable),
    )


def divided_pairs(
    recipe: SplitRecipe, world: World, seed_words: Sequence[str], spared: frozenset[Pair]
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Divide all pairs into the test pairs, validation and the rest; those that are `spared` come last."""
    shuffled = sorted(shuffled_pairs(recipe, world, *seed_words), key=spared.__contains__)
    return set_apart(recipe, shuffled, "pairs")


@lru_cache(maxsize=64)
def spared_pairs(recipe: PairRecipe, world: World) -> frozenset[Pair]:
    """The pairs that rules keep out of validation. Tests show none of its pairs, so that a rule which matches scenes of
    these alone could not be tested."""
    scenes, spared = in_sizes(world, recipe.scenes_in_one_view(world)), frozenset[Pair]()
    of_rules = [{pair_in(scene) for scene in scenes if rule.matches(scene)} for rule in recipe.rules(world)]
    while True:
        apart = {
            (relation, frozenset(pair))
            for relation, (_, of_tests) in recipe.seed_words.items()
            for pair in divided_pairs(recipe, world, of_tests, spared)[1]
        }
        needed = {animals for pairs in of_rules if pairs <= apart for _, animals in pairs}
        if (more := spared.union(pair for pair in world.pairs if frozenset(pair) in needed)) == spared:
            return spared
        spared = more


def shuffled_pairs(recipe: SplitRecipe, world: World, *seed_words: str) -> list[Pair]:
    """All pairs of a world in an order drawn with the recipe's seed and `seed_words`."""
    order = generator(recipe.seed, "pairs", *seed_words).permutation(len(world.pairs))
    return [world.pairs[i] for i in order]
