"""Attribute-binding splits (OC-CLIP, section 4.1 and appendix A.5).

All single-object scenes are in train, with every combination of animal and texture. A fraction of the animal pairs is
in train too, each with one fixed assignment of two different textures; a fraction of those training pairs also gets the
swapped assignment, its hard negative. What the paper leaves open is decided here:

- A share `test_pairs` of the pairs is never trained on in any cell of a grid, and is the test `unseen_pairs`
  of all cells; a `validation` share is disjoint from train and tests.
- Fractions count the remaining, trainable pairs and are nested: the pairs at 20 % are among the pairs at 40 %, with the
  same textures, and so are the pairs with hard negatives.
- Tests and validation use view numbers that train never uses.
- With `compositions` below 1, train also lacks combinations of animal and texture (`splits.latin_square`), alone and in
  pairs. Validation and the other tests then show only combinations that train shows, in their scenes and in the swaps
  of these. Two more tests show scenes with one and with two of the missing combinations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import Annotated, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SHARE
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import World
from menagerie.generators.captions.spec import CaptionSpec
from menagerie.generators.captions.templates import Content
from menagerie.generators.coverage import Composition
from menagerie.generators.rules.hold_out import leave_any
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.latin_square import COMPOSITION_TESTS, shown_compositions, unseen_in
from menagerie.generators.splits.pair_roles import Pair, PairRecipe, PairRoles, pair_roles

Textures = tuple[str, str]

TESTS = ("seen_pairs", "unseen_pairs", "different_bag", "train_pairs")


@dataclass(frozen=True)
class BindingRecipe(PairRecipe):
    """Everything that determines an attribute-binding split, apart from the resolution."""

    kind: ClassVar[str] = "binding"
    title: ClassVar[str] = "Attribute binding"
    task: ClassVar[str] = "the same words with the two textures swapped"

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

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hold_out", "negated"):
            if self.compositions < 1 and getattr(self, name):
                raise UserError(
                    f"compositions {self.compositions:g} and {name} both say what train lacks; leave one of them out"
                )

    @property
    def tests(self) -> tuple[str, ...]:
        return (*TESTS, *COMPOSITION_TESTS) if self.compositions < 1 else TESTS

    def shown(self, world: World) -> frozenset[Composition] | None:
        """The combinations of animal and texture that train may show; None for all."""
        return shown_compositions(world, self.compositions, self.seed) if self.compositions < 1 else None

    def content(self, subset: str, scene: Scene) -> Content:
        """What the caption of a scene says. A training caption may be incomplete; then there is no hard negative."""
        if subset != "train":
            return super().content(subset, scene)
        content = CaptionSpec(vars(self)).training_content(scene)
        complete = sorted(content.objects) == sorted(scene.objects)
        negative = complete and len(scene.objects) == 2 and self.swap(scene) != scene
        return content._replace(negative=negative)

    def planned(self, world: World) -> dict[str, list[Scene]]:
        """Return the scenes of all subsets except the tests of rules. For one seed, validation and `unseen_pairs` are
        the same at all fractions."""
        subsets, shown = {}, self.shown(world)
        for subset, items in textured_pairs(self, world).items():
            views = self.train_range if subset == "train" else self.test_range
            scenes = [scene for pair, textures in items for scene in pair_scenes(world, pair, textures, views)]
            if subset == "train":
                every = world.singles(range(self.singles_views or self.views))
                singles = (s for s in every if shown is None or s.objects[0][:2] in shown)
                subsets[subset] = self.kept(world, [*singles, *scenes])
            else:
                subsets[subset] = self.drawn(world, scenes, self.test_scenes, subset)
        if shown is not None:
            check_tested(self, subsets)
        return subsets

    def bare(self, world: World) -> list[Scene]:
        """The scenes of all pairs, in all assignments of two different textures."""
        items = product(world.pairs, permutations(world.textures, 2))
        return [scene for pair, textures in items for scene in pair_scenes(world, pair, textures, range(1))]

    @property
    def draws(self) -> Mapping[str, tuple[str, ...]]:
        return {"left/right": ()}

    def roles(self, world: World, relation: str) -> PairRoles:
        return roles_of(self, world)[0]


def roles_of(recipe: BindingRecipe, world: World) -> tuple[PairRoles, dict[Pair, Textures]]:
    """The roles of all pairs, and for each training pair its assignment of two different textures. Raises for a world
    with a single texture."""
    if len(world.textures) < 2:
        raise UserError(f"world {world.name!r} has a single texture; assignments of two need two or more")
    rules = recipe.rules(world)
    shown = recipe.shown(world)
    choices = {pair: free_assignments(world, pair, rules, shown) for pair in world.pairs}
    assigned = {
        pair: free[generator(recipe.seed, "textures", *pair).integers(len(free))]
        for pair, free in choices.items()
        if free
    }
    roles = pair_roles(
        recipe,
        world,
        trainable=assigned.__contains__,
        swappable=lambda pair: assigned[pair][::-1] in choices[pair],
    )
    return roles, {pair: assigned[pair] for pair in roles.train}


def free_assignments(
    world: World, pair: Pair, rules: tuple[Rule, ...], shown: frozenset[Composition] | None = None
) -> list[Textures]:
    """Return the assignments of two different textures to a pair that train may show: both compositions are in `shown`,
    if it is given, and the rules hold out only some of the assignment's scenes, or none."""
    choices = [
        textures
        for textures in permutations(world.textures, 2)
        if shown is None or shown.issuperset(zip(pair, textures, strict=True))
    ]
    if not rules:
        return choices
    return [textures for textures in choices if leave_any(rules, world, pair_scenes(world, pair, textures, range(1)))]


def check_tested(recipe: BindingRecipe, subsets: Mapping[str, list[Scene]]) -> None:
    """Raise if a test of unseen compositions has no scene, or if validation or `unseen_pairs` has none although its
    share isn't 0: then `compositions` is too low or too high."""
    asked = {"validation": recipe.validation, "unseen_pairs": recipe.test_pairs} | dict.fromkeys(COMPOSITION_TESTS, 1.0)
    if empty := next((name for name, share in asked.items() if share and not subsets[name]), None):
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
    """For each subset its pairs with textures: (a, b) with (texture a, texture b)."""
    roles, textures_of = roles_of(recipe, world)
    different = list(permutations(world.textures, 2))
    assigned = list(textures_of.items())
    swapped = [(pair, textures[::-1]) for pair, textures in assigned]
    in_train = assigned + [item for item in swapped if item[0] in roles.swapped]
    subsets = {
        "train": in_train,
        "validation": list(product(roles.validation, different)),
        "seen_pairs": [item for item in swapped if item[0] not in roles.swapped],
        "unseen_pairs": list(product(roles.test_pairs, different)),
        "different_bag": [
            (pair, textures) for pair, shown in assigned for textures in different if set(textures) != set(shown)
        ],
        "train_pairs": [item for item in in_train if item[0] in roles.swapped],
    }
    shown = recipe.shown(world)
    return subsets if shown is None else by_compositions(world, subsets, shown, set(roles.validation))


def by_compositions(
    world: World, subsets: dict[str, list[tuple[Pair, Textures]]], shown: frozenset[Composition], apart: set[Pair]
) -> dict[str, list[tuple[Pair, Textures]]]:
    """Take textured pairs with unseen compositions, in these or in swapped textures, out of all subsets but train. Add
    the tests of unseen compositions, which show all pairs except validation's."""
    whole = {
        name: items if name == "train" else [item for item in items if not unseen_in(shown, *item)]
        for name, items in subsets.items()
    }
    every = [item for item in product(world.pairs, permutations(world.textures, 2)) if item[0] not in apart]
    unseen = [unseen_in(shown, *item) for item in every]
    return whole | {
        name: [item for item, found in zip(every, unseen, strict=True) if found == number]
        for name, number in COMPOSITION_TESTS.items()
    }
