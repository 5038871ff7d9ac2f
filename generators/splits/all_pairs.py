"""Splits that keep no pair from train: how far an attribute-binding test is due to what training shows.

Train has the single-object scenes of the binding split with the same fields and, in place of its scenes of two animals,
as many of all pairs, those of tests and validation among them, in all assignments of two different textures. The test
`shown_pairs` has the scenes of that split's `unseen_pairs`: the same images, in views that neither training has.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe, pair_scenes
from menagerie.generators.splits.facts import Claim, Fact, claim_has_all, pair_facts
from menagerie.generators.splits.recipe import PairCounts


@dataclass(frozen=True)
class AllPairsRecipe(BindingRecipe):
    """Attribute binding with all pairs in train, the tests' too, in as many images as without them."""

    kind: ClassVar[str] = "all-pairs"
    title: ClassVar[str] = "Attribute binding, all pairs shown"
    swapped_pairs: ClassVar[str] = ""
    unused: ClassVar[tuple[str, ...]] = ("hold_out", "compositions", "seen_arrangements")

    @property
    def tests(self) -> tuple[str, ...]:
        return ("shown_pairs",)

    def lacks(self, subset: str) -> Claim | None:
        """Nothing but the images."""
        return None

    def has(self, subset: str) -> Claim | None:
        """The pair."""
        return claim_has_all(pair_facts)

    def apart(self, scene: Scene) -> Iterable[Fact]:
        """Nothing: train shows validation's pairs too."""
        return ()

    def plan(self, world: World) -> dict[str, list[Scene]]:
        self.counts()  # raises for too few scenes
        own = super().plan(world)
        alone = [scene for scene in own["train"] if len(scene.objects) == 1]
        number = len(own["train"]) - len(alone)
        train = [*alone, *self.keep(world, self.even_scenes(world, number))]
        return {"train": train, "validation": own["validation"], "shown_pairs": own["unseen_pairs"]}

    def even_scenes(self, world: World, number: int) -> list[Scene]:
        """Draw different scenes of two animals. Pairs, and the assignments of each, are equally frequent."""
        different, random = list(permutations(world.textures, 2)), generator(self.seed, "all pairs")
        places = 2 * len(world.backgrounds)  # both orders on each background
        turns = {pair: random.permutation(len(different)) for pair in world.pairs}
        drawn = {(p, t): random.permutation(self.views * places) for p in world.pairs for t in different}
        order, found = random.permutation(len(world.pairs)), []
        for k in range(number):
            turn, pair = k // len(order), world.pairs[order[k % len(order)]]
            again, which = divmod(turn, len(different))
            textures = different[turns[pair][which]]
            view, place = divmod(int(drawn[pair, textures][again]), places)
            found.append(pair_scenes(world, pair, textures, range(view, view + 1))[place])
        return found

    def counts(self) -> PairCounts:
        """Return the numbers of pairs: all are in train, in swapped textures too. Raises if train has fewer scenes of
        two animals than there are pairs."""
        world, own = load_world(self.world), super().counts()
        number, scenes = len(world.pairs), 2 * len(world.backgrounds) * self.views * (own.train + own.swapped)
        if scenes < number:
            raise UserError(
                f"pairs {self.pairs:g} and views {self.views} give {scenes} scenes of two animals, too few for all "
                f"{number} pairs of world {self.world!r}; raise one of them"
            )
        return PairCounts(number, number, number)


KIND = AllPairsRecipe
