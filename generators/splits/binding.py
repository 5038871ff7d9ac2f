"""Attribute-binding splits (OC-CLIP, section 4.1 and appendix A.5).

All single-object scenes are in train, with every combination of animal and texture. A fraction of the animal pairs is
in train too, each with one fixed assignment of two different textures; a fraction of those training pairs also gets the
swapped assignment, its hard negative. What the paper leaves open is decided here:

- A share `test_pairs` of the pairs is never trained on in any cell of a grid, and is the test `unseen_pairs`
  of all cells; a `validation` share is disjoint from train and tests.
- Fractions count the remaining, trainable pairs and are nested: the pairs at 20 % are among the pairs at 40 %, with the
  same textures, and so are the pairs with hard negatives.
- Tests and validation use view numbers that train never uses.
- With `compositions` below 1, train also lacks combinations of animal and texture (`generators.coverage`), alone and in
  pairs. Validation and the other tests then show only combinations that train shows, in their scenes and in the swaps
  of these. Two more tests show scenes with one and with two of the missing combinations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Annotated, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SHARE
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import World
from menagerie.generators.captions.hard_negatives.tasks import tasks_named
from menagerie.generators.coverage import Coverage
from menagerie.generators.splits.facts import (
    Claim,
    Fact,
    arrangement_facts,
    claim_has_all,
    claim_has_none,
    composition_facts,
    pair_facts,
)
from menagerie.generators.splits.pair_roles import Pair, PairRecipe, SeedWords

Textures = tuple[str, str]

TESTS = ("seen_pairs", "unseen_pairs", "different_bag", "train_pairs")
SEEN = "seen_arrangements"
COMPOSITION_TESTS = {"one_unseen_composition": 1, "two_unseen_compositions": 2}
"""Tests with their number of unseen compositions: in a scene or in its swap, whichever has more. So a scene and its
swap are in the same test, and unseen compositions don't tell which caption is true."""


@dataclass(frozen=True)
class BindingRecipe(PairRecipe):
    """Everything that determines an attribute-binding split, apart from the resolution."""

    kind: ClassVar[str] = "binding"
    title: ClassVar[str] = "Attribute binding"
    swap_words: ClassVar[str] = "the same words with the two textures swapped"
    swapped_pairs: ClassVar[str] = "with hard negatives in train"
    seed_words: ClassVar[Mapping[str, SeedWords]] = {"left/right": ((), ())}
    apart = staticmethod(pair_facts)
    tasks = tasks_named(
        *("swap size", "one animal", "replace texture", "replace animal", "replace size", "add animal"),
        *("add attribute", "negation", "pure negation"),
    )

    mentioned: Annotated[float, FIRST, SHARE] = 1.0
    """Probability that an animal of a training pair is mentioned in its caption; one always is."""
    attributes: Annotated[float, FIRST, SHARE] = 1.0
    """Probability that a training caption includes the texture of an animal that it mentions."""
    salient: Annotated[float, FIRST, SHARE] = 0.0
    """Probability that the caption of a training pair mentions only its salient animal, whatever `mentioned` is: the
    bigger one, or the left one if both have one size."""
    negated: Annotated[float, FIRST, SHARE] = 0.0
    """Probability that a training caption also negates an absent object: "and no white caribou"."""
    singles_views: Annotated[int, FIRST] = 0
    """Views of each single-object scene in train, at most `views`; 0: as many as `views`."""
    compositions: Annotated[float, FIRST, SHARE] = 1.0
    """Share of the combinations of animal and texture that train shows, alone or in a pair; below 1, two more tests
    show the others."""

    seen_arrangements: Annotated[bool, FIRST] = False
    """Also test the arrangements of training, in test views: a test `seen_arrangements`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hold_out", "negated"):
            if self.compositions < 1 and getattr(self, name):
                raise UserError(
                    f"compositions {self.compositions:g} and {name} both say what train lacks; leave one of them out"
                )

    @property
    def tests(self) -> tuple[str, ...]:
        return (*TESTS, *([SEEN] * self.seen_arrangements), *(COMPOSITION_TESTS if self.compositions < 1 else ()))

    def lacks(self, subset: str) -> Claim | None:
        """The pair; in tests of textures the pair in its textures, or as many compositions as the test's name says."""
        if number := COMPOSITION_TESTS.get(subset):
            return lambda scene, known: self.unseen(scene, known) >= number
        if subset in ("unseen_pairs", "validation"):
            return claim_has_none(pair_facts)
        own = {"seen_pairs": [arrangement_facts], "different_bag": [arrangement_facts, self.swapped_arrangement]}
        return claim_has_none(*own[subset]) if subset in own else None

    def has(self, subset: str) -> Claim | None:
        """The pair, in its textures or in the swapped ones; below full coverage, all other compositions."""
        own = {"seen_pairs": self.swapped_arrangement, "different_bag": pair_facts}
        own |= dict.fromkeys(("train_pairs", SEEN), arrangement_facts)
        claim, number = claim_has_all(own[subset]) if subset in own else None, COMPOSITION_TESTS.get(subset, 0)
        if self.compositions == 1:
            return claim
        return lambda scene, known: (not claim or claim(scene, known)) and self.unseen(scene, known) <= number

    def swapped_arrangement(self, scene: Scene) -> Iterable[Fact]:
        """The arrangement of a scene's swap."""
        return arrangement_facts(self.swap(scene))

    def unseen(self, scene: Scene, known: frozenset[Fact]) -> int:
        """How many compositions of a scene or of its swap, whichever has more, aren't `known`."""
        return max(sum(fact not in known for fact in composition_facts(one)) for one in (scene, self.swap(scene)))

    def plan(self, world: World) -> dict[str, list[Scene]]:
        """Return the scenes of all subsets except the tests of rules. For one seed, validation and `unseen_pairs` are
        the same at all fractions."""
        subsets, coverage = {}, self.coverage_in(world)
        for subset, items in textured_pairs(self, world).items():
            views = self.train_range if subset == "train" else self.test_range
            scenes = [scene for pair, textures in items for scene in pair_scenes(world, pair, textures, views)]
            if subset == "train":
                every = world.singles(range(self.singles_views or self.views))
                singles = (scene for scene in every if coverage.seen(*scene.objects[0][:2]))
                subsets[subset] = self.keep(world, [*singles, *scenes])
            else:
                subsets[subset] = self.sample(world, scenes, self.test_scenes, subset)
        if self.compositions < 1:
            check_tested(self, subsets)
        return subsets

    def scenes_in_one_view(self, world: World) -> list[Scene]:
        """The scenes of all pairs, in all assignments of two different textures."""
        items = product(world.pairs, permutations(world.textures, 2))
        return [scene for item in items for scene in pair_scenes(world, *item, range(1))]

    def variants(self, world: World, pair: Pair, relation: str) -> list[Textures]:
        """The assignments of two different textures to a pair."""
        if len(world.textures) < 2:
            raise UserError(f"world {world.name!r} has a single texture; assignments of two need two or more")
        coverage = self.coverage_in(world)
        return [its for its in permutations(world.textures, 2) if all(map(coverage.seen, pair, its))]

    def draw_variant(self, pair: Pair, relation: str, variants: Sequence[Textures]) -> Textures:
        return variants[generator(self.seed, "textures", *pair).integers(len(variants))]

    def variant_scenes(self, world: World, pair: Pair, relation: str, textures: Textures) -> list[Scene]:
        return pair_scenes(world, pair, textures, range(1))


def check_tested(recipe: BindingRecipe, subsets: Mapping[str, list[Scene]]) -> None:
    """Raise if a test of unseen compositions has no scene, or if validation or `unseen_pairs` has none although its
    share isn't 0: then `compositions` is too low or too high."""
    wanted = {"validation": recipe.validation, "unseen_pairs": recipe.test_pairs}
    wanted |= dict.fromkeys(COMPOSITION_TESTS, 1.0)
    if empty := next((name for name, share in wanted.items() if share and not subsets[name]), None):
        raise UserError(
            f"compositions {recipe.compositions:g} leaves no scene of {empty} in world {recipe.world!r}; choose "
            "another share, or a world with more textures"
        )


def pair_scenes(world: World, pair: Pair, textures: Textures, views: range) -> list[Scene]:
    """A pair in these textures, in both left/right orders, over all backgrounds and `views`."""
    first, second = zip(pair, textures, strict=True)
    return [
        Scene(background, (Object(*left, "left"), Object(*right, "right")), view)
        for view, background, (left, right) in product(views, world.backgrounds, permutations((first, second)))
    ]


def textured_pairs(recipe: BindingRecipe, world: World) -> dict[str, list[tuple[Pair, Textures]]]:
    """For each subset its pairs with textures: (a, b) with (texture a, texture b).

    Below full coverage, textured pairs with unseen compositions, in these or in swapped textures, are in train and in
    the tests of unseen compositions alone. These show all pairs except validation's."""
    roles, textures_of = recipe.roles(world, "left/right")
    different, coverage = list(permutations(world.textures, 2)), recipe.coverage_in(world)
    assigned = list(textures_of.items())
    swapped = [(pair, textures[::-1]) for pair, textures in assigned]
    in_train = assigned + [item for item in swapped if item[0] in roles.swapped]
    subsets = {
        "validation": list(product(roles.validation, different)),
        "seen_pairs": [item for item in swapped if item[0] not in roles.swapped],
        "unseen_pairs": list(product(roles.test_pairs, different)),
        "different_bag": [
            (pair, textures) for pair, used in assigned for textures in different if set(textures) != set(used)
        ],
        "train_pairs": [item for item in in_train if item[0] in roles.swapped],
        **({SEEN: in_train} if recipe.seen_arrangements else {}),
    }
    if recipe.compositions < 1:
        every = list(product([pair for pair in world.pairs if pair not in set(roles.validation)], different))
        subsets = {name: [item for item in its if not unseen_in(coverage, *item)] for name, its in subsets.items()}
        for name, number in COMPOSITION_TESTS.items():
            subsets[name] = [item for item in every if unseen_in(coverage, *item) == number]
    return {"train": in_train, **subsets}


def unseen_in(coverage: Coverage, pair: Pair, textures: Textures) -> int:
    """Return how many compositions of a pair train doesn't show: in these textures or in the swapped ones, whichever
    has more."""
    return max(2 - sum(map(coverage.seen, pair, its)) for its in (textures, textures[::-1]))


KIND = BindingRecipe
