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

import numpy as np

from envs.errors import UserError
from envs.scene import Scene, Thing
from envs.world import World, load_world
from generators.captions import swap_textures
from generators.seeds import generator

Pair = tuple[str, str]
Textures = tuple[str, str]

TESTS = ("seen_pairs", "unseen_pairs", "different_bag", "train_pairs")
SUBSETS = ("train", "validation", *TESTS)


@dataclass(frozen=True)
class BindingRecipe:
    """Everything that decides an attribute-binding split, apart from the resolution."""

    world: str = "pug"
    """Vocabulary of the scenes."""
    pairs: float = 0.2
    """Fraction of the trainable animal pairs that are in train."""
    hard_negatives: float = 0.0
    """Fraction of the training pairs whose texture-swapped scenes are in train too."""
    views: int = 16
    """Views of each training scene."""
    test_views: int = 4
    """Views of each test and validation scene, none of them used in train."""
    test_scenes: int = 400
    """The most scenes of one test or validation subset, drawn at random from all."""
    reserve: float = 0.1
    """Share of all pairs that no cell trains on: the unseen pairs of every test."""
    validation: float = 0.1
    """Share of all pairs kept for validation."""
    seed: int = 0
    """Decides which pairs, which textures and which mention orders."""

    def __post_init__(self) -> None:
        for name in ("pairs", "hard_negatives", "reserve", "validation"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise UserError(f"{name} is a fraction from 0 to 1, got {value:g}")
        for name in ("views", "test_views", "test_scenes"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class PairRoles:
    """Which pairs a recipe trains on, which also swapped, and which it holds out."""

    train: dict[Pair, Textures]
    swapped: frozenset[Pair]
    validation: tuple[Pair, ...]
    reserve: tuple[Pair, ...]
    trainable: int  # pairs that a fraction of 1 would train on


def assigned_textures(world: World, pair: Pair, seed: int) -> Textures:
    """The one assignment of two different textures with which `pair` is trained."""
    choices = list(permutations(world.textures, 2))
    return choices[generator(seed, "textures", *pair).integers(len(choices))]


def at_least_one(share: float, total: int) -> int:
    """`share` of `total`, rounded, and not nothing unless the share is nothing."""
    return max(round(share * total), 1) if share > 0 else 0


def pair_roles(recipe: BindingRecipe) -> PairRoles:
    """Draw the roles of all pairs; pairs keep their roles when only the fractions change."""
    world = load_world(recipe.world)
    order = generator(recipe.seed, "pairs").permutation(len(world.pairs))
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
    by_priority = sorted(train, key=lambda pair: generator(recipe.seed, "swapped", *pair).random())
    return PairRoles(
        train={pair: assigned_textures(world, pair, recipe.seed) for pair in train},
        swapped=frozenset(by_priority[: round(recipe.hard_negatives * len(train))]),
        validation=tuple(shuffled[n_reserve:n_held]),
        reserve=tuple(shuffled[:n_reserve]),
        trainable=len(trainable),
    )


def pair_scenes(world: World, pair: Pair, textures: Textures, views: range) -> list[Scene]:
    """Both left/right orders of a textured pair, over all backgrounds and `views`."""
    first, second = zip(pair, textures, strict=True)
    return [
        Scene(background, (Thing(*left, "left"), Thing(*right, "right")), view)
        for view, background, (left, right) in product(views, world.backgrounds, permutations((first, second)))
    ]


def textured_pairs(recipe: BindingRecipe, world: World) -> dict[str, list[tuple[Pair, Textures]]]:
    """For each subset the textured pairs that it is made of, (a, b) with (texture a, texture b)."""
    roles = pair_roles(recipe)
    different = list(permutations(world.textures, 2))
    assigned = list(roles.train.items())
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


def draw(scenes: list[Scene], most: int, rng: np.random.Generator) -> list[Scene]:
    """At most `most` of `scenes`, in their own order."""
    if len(scenes) <= most:
        return scenes
    return [scenes[i] for i in sorted(rng.choice(len(scenes), most, replace=False))]


def scenes_to_render(recipe: BindingRecipe) -> list[Scene]:
    """All scenes of a split, each once, and the partners of tests and validation (see `Records`)."""
    subsets = binding_scenes(recipe)
    partners = {swap_textures(scene) for name, scenes in subsets.items() if name != "train" for scene in scenes}
    return sorted(partners.union(*subsets.values()))


def binding_scenes(recipe: BindingRecipe) -> dict[str, list[Scene]]:
    """The scenes of every subset in `SUBSETS`; a subset may be empty.

    Validation and `unseen_pairs` are the same for all fractions of a seed.
    """
    world = load_world(recipe.world)
    train_views = range(recipe.views)
    test_views = range(recipe.views, recipe.views + recipe.test_views)
    subsets = {}
    for subset, items in textured_pairs(recipe, world).items():
        views = train_views if subset == "train" else test_views
        scenes = [scene for pair, textures in items for scene in pair_scenes(world, pair, textures, views)]
        if subset == "train":
            subsets[subset] = list(world.singles(train_views)) + scenes
        else:
            subsets[subset] = draw(scenes, recipe.test_scenes, generator(recipe.seed, "draw", subset))
    return subsets
