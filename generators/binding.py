"""Attribute-binding splits (OC-CLIP, section 4.1 and appendix A.5).

All lone animals are in train, in every conjunction. A fraction of the animal pairs is in
train too, each with one fixed assignment of two different textures; a fraction of those
training pairs also gets the swapped assignment, its hard negative. Choices of ours:

- A `reserve` of the pairs is never trained on in any cell of a grid and is the
  `unseen_pairs` test of all of them; a `validation` share is kept apart from train and tests.
- Fractions count the remaining, trainable pairs and are nested: the pairs at 20 % are among
  those at 40 %, with the same textures.
- Tests and validation use view numbers that train never uses.
"""

from dataclasses import dataclass
from itertools import permutations, product
from typing import ClassVar

from envs.scene import Scene, Thing
from envs.world import World, load_world
from generators.pair_roles import Pair, pair_roles
from generators.recipe import PairCounts, SplitRecipe, draw
from generators.seeds import generator

Textures = tuple[str, str]

TESTS = ("seen_pairs", "unseen_pairs", "different_bag", "train_pairs")


@dataclass(frozen=True)
class BindingRecipe(SplitRecipe):
    """Everything that decides an attribute-binding split, apart from the resolution."""

    kind: ClassVar[str] = "binding"
    template: ClassVar[str] = "conjunction"
    tests: ClassVar[tuple[str, ...]] = TESTS

    def subsets(self) -> dict[str, list[Scene]]:
        """Validation and `unseen_pairs` are the same for all fractions of a seed."""
        world = load_world(self.world)
        train_views = range(self.views)
        test_views = range(self.views, self.views + self.test_views)
        subsets = {}
        for subset, items in textured_pairs(self, world).items():
            views = train_views if subset == "train" else test_views
            scenes = [scene for pair, textures in items for scene in pair_scenes(world, pair, textures, views)]
            if subset == "train":
                subsets[subset] = list(world.singles(train_views)) + scenes
            else:
                subsets[subset] = draw(scenes, self.test_scenes, generator(self.seed, "draw", subset))
        return subsets

    def counts(self) -> PairCounts:
        """How many pairs the fractions come to."""
        roles = pair_roles(self, load_world(self.world))
        return PairCounts(len(roles.train), len(roles.swapped), roles.trainable)


def assigned_textures(world: World, pair: Pair, seed: int) -> Textures:
    """The one assignment of two different textures with which `pair` is trained."""
    choices = list(permutations(world.textures, 2))
    return choices[generator(seed, "textures", *pair).integers(len(choices))]


def pair_scenes(world: World, pair: Pair, textures: Textures, views: range) -> list[Scene]:
    """Both left/right orders of a textured pair, over all backgrounds and `views`."""
    first, second = zip(pair, textures, strict=True)
    return [
        Scene(background, (Thing(*left, "left"), Thing(*right, "right")), view)
        for view, background, (left, right) in product(views, world.backgrounds, permutations((first, second)))
    ]


def textured_pairs(recipe: BindingRecipe, world: World) -> dict[str, list[tuple[Pair, Textures]]]:
    """For each subset the textured pairs that it is made of, (a, b) with (texture a, texture b)."""
    roles = pair_roles(recipe, world)
    different = list(permutations(world.textures, 2))
    assigned = [(pair, assigned_textures(world, pair, recipe.seed)) for pair in roles.train]
    swapped = [(pair, textures[::-1]) for pair, textures in assigned]
    in_train = assigned + [item for item in swapped if item[0] in roles.swapped]
    return {
        "train": in_train,
        "validation": list(product(roles.validation, different)),
        "seen_pairs": [item for item in swapped if item[0] not in roles.swapped],
        "unseen_pairs": list(product(roles.reserve, different)),
        "different_bag": [
            (pair, textures) for pair, own in assigned for textures in different if set(textures) != set(own)
        ],
        "train_pairs": [item for item in in_train if item[0] in roles.swapped],
    }
