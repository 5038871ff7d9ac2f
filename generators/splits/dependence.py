"""Splits with a given dependence of texture on animal.

Every animal has one texture that train never shows on it, and a main one. The distribution of its
appearances over the textures that train may show on it determines the normalised mutual information
of texture and animal: least if it is even, greatest if only the main texture is seen (20 animals and
4 textures: from 0.13 to 0.63). The number of images, the animals, pairs, backgrounds and tests are
the same at every value, so that two splits differ only in the dependence. The normaliser is the
arithmetic mean of both entropies, scikit-learn's default.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Float64, Int64, Real

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SHARE
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.hard_negatives.tasks import tasks_named
from menagerie.generators.splits.facts import Claim, claim_has_all, claim_has_none, composition_facts, pair_facts
from menagerie.generators.splits.pair_roles import Pair, PairRoles, pair_roles
from menagerie.generators.splits.recipe import OF_RULES, PairCounts, SplitRecipe

TOLERANCE = 0.01  # largest deviation of the realised information


@dataclass(frozen=True)
class DependenceRecipe(SplitRecipe):
    """Everything that determines a dependence split, apart from the resolution."""

    kind: ClassVar[str] = "dependence"
    unused: ClassVar[tuple[str, ...]] = OF_RULES
    tests: ClassVar[tuple[str, ...]] = ("seen_textures", "unseen_textures")
    title: ClassVar[str] = "Textures that depend on their animals"
    swap_words: ClassVar[str] = "the same words with the two textures swapped"
    apart = staticmethod(pair_facts)
    tasks = tasks_named(
        *("swap size", "one animal", "replace texture", "replace animal", "replace size", "add animal", "add attribute")
    )

    pairs: float = 0.5
    """Fraction of the trainable animal pairs that are in train, side by side in both orders."""
    views: int = 4
    """Views of each training scene."""
    information: Annotated[float, FIRST, SHARE] = 0.3
    """Normalised mutual information of texture and animal in train."""

    def lacks(self, subset: str) -> Claim | None:
        """Both animals in their textures."""
        return claim_has_none(composition_facts) if subset in ("unseen_textures", "validation") else None

    def has(self, subset: str) -> Claim | None:
        """Both animals in their textures."""
        return claim_has_all(composition_facts) if subset == "seen_textures" else None

    def plan(self, world: World) -> dict[str, list[Scene]]:
        """Return the scenes of all subsets. Tests show animals in their main textures (`seen_textures`) or in those
        that train never shows on them (`unseen_textures`), as validation does."""
        roles, (mains, unseen) = pair_roles(self, world), marked_textures(world, self.seed)
        tested = (*roles.train, *roles.test_pairs)
        tests = {
            "validation": (roles.validation, unseen),
            "seen_textures": (tested, mains),
            "unseen_textures": (tested, unseen),
        }
        # Draw sizes before textures, so that they are the same at any value of `information`.
        bare = self.keep(world, untextured_scenes(world, roles, self.views))
        subsets = {"train": with_textures(world, bare, quotas(world, roles, self), self.seed)}
        for name, (pairs, texture_of) in tests.items():
            scenes = list(self.in_textures(world, pairs, texture_of))
            subsets[name] = self.sample(world, scenes, self.test_scenes, name)
        return subsets

    def in_textures(self, world: World, pairs: tuple[Pair, ...], texture_of: dict[str, str]) -> Iterator[Scene]:
        """Yield scenes of the pairs with two different textures in `texture_of`, in both orders and in test views."""
        orders = [order for pair in pairs for order in permutations(pair) if len({*map(texture_of.get, pair)}) == 2]
        for view, background, (left, right) in product(self.test_range, world.backgrounds, orders):
            objects = Object(left, texture_of[left], "left"), Object(right, texture_of[right], "right")
            yield Scene(background, objects, view)

    def counts(self) -> PairCounts:
        world = load_world(self.world)
        roles = pair_roles(self, world)
        quotas(world, roles, self)  # raises if the information is impossible
        return roles.counts


def marked_textures(world: World, seed: int) -> tuple[dict[str, str], dict[str, str]]:
    """Draw the main and the unseen texture of every animal. Each texture is main, and unseen, about equally often.
    Raises for fewer than three textures."""
    if len(world.textures) < 3:
        raise UserError(
            f"world {world.name!r} has {len(world.textures)} textures; a dependence split needs three or more"
        )
    animals = [world.animals[i] for i in generator(seed, "marked").permutation(len(world.animals))]
    textures = [world.textures[i] for i in generator(seed, "marked textures").permutation(len(world.textures))]
    n = len(textures)
    # The offset between them varies too, so that the unseen texture doesn't determine the main one.
    shift = [1 + (i // n) % (n - 1) for i in range(len(animals))]
    mains = {animal: textures[i % n] for i, animal in enumerate(animals)}
    return mains, {animal: textures[(i + shift[i]) % n] for i, animal in enumerate(animals)}


def texture_shares(world: World, seed: int, main: float) -> Float64[np.ndarray, "animals textures"]:
    """Return, for each animal, the share of its appearances in each texture: `main` in its main texture, 0 in the
    unseen one, and the rest evenly in the others."""
    mains, unseen = marked_textures(world, seed)
    rest = (1 - main) / (len(world.textures) - 2)
    share_of = [{mains[animal]: main, unseen[animal]: 0.0} for animal in world.animals]
    return np.array([[shares.get(texture, rest) for texture in world.textures] for shares in share_of])


def main_texture_share(world: World, roles: PairRoles, recipe: DependenceRecipe) -> float:
    """Return the share of the main texture that gives the requested information. Raises if none does."""
    from scipy.optimize import brentq  # loads slowly, and every command knows this recipe

    shown = appearances(world, roles, recipe.views)[:, None]

    def excess(main: float) -> float:
        return normalised_mutual_information(shown * texture_shares(world, recipe.seed, main)) - recipe.information

    even = 1 / (len(world.textures) - 1)
    least, most = excess(even), excess(1.0)
    if least > 0.005 or most < -0.005:
        low, high = least + recipe.information, most + recipe.information
        raise UserError(
            f"information {recipe.information:g} can't be had in world {world.name!r}: from {low:.3f} (textures spread "
            f"evenly) to {high:.3f} (one texture an animal)"
        )
    return even if least >= 0 else 1.0 if most <= 0 else brentq(excess, even, 1.0)


def appearances(world: World, roles: PairRoles, views: int) -> Int64[np.ndarray, " animals"]:
    """Return, for each animal, its number of appearances in train. In each view and background it appears once alone
    per size, and in both orders with each animal with which it makes a training pair.
    """
    once = [max(len(world.sizes), 1) + 2 * sum(animal in pair for pair in roles.train) for animal in world.animals]
    return views * len(world.backgrounds) * np.array(once)


def quotas(world: World, roles: PairRoles, recipe: DependenceRecipe) -> Int64[np.ndarray, "animals textures"]:
    """Return how often train shows each animal in each texture. Raises if whole numbers are too coarse for the
    requested information."""
    weights = texture_shares(world, recipe.seed, main_texture_share(world, roles, recipe))
    totals = appearances(world, roles, recipe.views).tolist()
    table = np.array([divide_in_proportion(row, total) for row, total in zip(weights, totals, strict=True)])
    realised = normalised_mutual_information(table)
    if abs(realised - recipe.information) > TOLERANCE:
        raise UserError(
            f"information {recipe.information:g} would come to {realised:.3f}: some animal is in train only "
            f"{min(totals)} times; raise --views or --pairs"
        )
    return table


def untextured_scenes(world: World, roles: PairRoles, views: int) -> list[Scene]:
    """Return the scenes of train, all still in the world's first texture; `with_textures` gives them their textures."""
    bare = world.textures[0]
    scenes = []
    orders = [order for pair in roles.train for order in permutations(pair)]
    for view, background in product(range(views), world.backgrounds):
        singles = (Scene(background, (Object(animal, bare, "center"),), view) for animal in world.animals)
        scenes += [scene for one in singles for scene in world.in_sizes(one)]
        scenes += [
            Scene(background, (Object(left, bare, "left"), Object(right, bare, "right")), view)
            for left, right in orders
        ]
    return scenes


def with_textures(
    world: World, scenes: list[Scene], table: Int64[np.ndarray, "animals textures"], seed: int
) -> list[Scene]:
    """Give textures to scenes. Each animal appears in each texture as often as its row of `table` says, in random
    order."""
    queues = {}
    for animal, row in zip(world.animals, table, strict=True):
        quota = np.repeat(world.textures, row)
        queues[animal] = iter(generator(seed, "paint", animal).permutation(quota).tolist())
    return [
        replace(scene, objects=tuple(obj._replace(texture=next(queues[obj.animal])) for obj in scene.objects))
        for scene in scenes
    ]


def divide_in_proportion(weights: Float64[np.ndarray, " k"], total: int) -> Int64[np.ndarray, " k"]:
    """Divide `total` in proportion to `weights` into whole numbers (largest remainders)."""
    exact = weights * total
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts


def entropy(shares: Float64[np.ndarray, "..."]) -> float:
    """Entropy in nats of shares that sum to 1."""
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def normalised_mutual_information(table: Real[np.ndarray, "rows columns"]) -> float:
    """Mutual information of rows and columns over the arithmetic mean of both entropies, from 0 to 1; 0 if both
    entropies are 0."""
    joint = table / max(table.sum(), 1)
    both = entropy(joint.sum(0)) + entropy(joint.sum(1))
    return max(2 * (both - entropy(joint)) / both, 0.0) if both > 0 else 0.0


KIND = DependenceRecipe
