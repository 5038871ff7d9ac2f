"""Counting splits: one to four copies of an animal, and animals of which train shows only one.

Train shows every animal singly, in every texture, background and size. For a fraction of the animals it also shows two,
three and four copies, equally often. A caption's negative states another number.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import COUNTING
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.templates import Content
from menagerie.generators.splits.facts import Claim, claim_has_all, claim_has_none, number_facts, several_of_one
from menagerie.generators.splits.recipe import OF_RULES, PairCounts, SplitRecipe, set_apart

MANY = range(2, len(COUNTING) + 1)


@dataclass(frozen=True)
class CountingRecipe(SplitRecipe):
    """Everything that determines a counting split, apart from the resolution; its fractions are of animals."""

    kind: ClassVar[str] = "counting"
    unused: ClassVar[tuple[str, ...]] = OF_RULES
    tests: ClassVar[tuple[str, ...]] = ("seen_counts", "unseen_counts")
    title: ClassVar[str] = "Counting"
    swap_words: ClassVar[str] = "the same words with another number"
    apart = staticmethod(several_of_one)

    pairs: float = 0.5
    """Fraction of the trainable animals that train also shows in several copies."""
    views: int = 4
    """Views of each training scene; slots are drawn for each."""
    test_pairs: float = 0.25
    """Share of all animals that train shows only singly: the animals of `unseen_counts`."""

    @classmethod
    def swap(cls, scene: Scene) -> Scene:
        """Return the scene with another number of its equal objects, from one to four. The scene's key decides
        which."""
        objects, numbers = scene.objects, [n for n in range(1, len(COUNTING) + 1) if n != len(scene.objects)]
        number = numbers[zlib.crc32(scene.key.encode()) % len(numbers)]
        free = [slot for slot in COUNTING if slot not in {obj.slot for obj in objects}]
        more = tuple(objects[0]._replace(slot=slot) for slot in free[: max(number - len(objects), 0)])
        return replace(scene, objects=objects[:number] + more)

    @classmethod
    def same_words(cls, subset: str) -> bool:
        """Never: a hard negative states another number."""
        return False

    def lacks(self, subset: str) -> Claim | None:
        """Several of the animal."""
        return claim_has_none(several_of_one) if subset in ("unseen_counts", "validation") else None

    def has(self, subset: str) -> Claim | None:
        """The animal in as many copies."""
        return claim_has_all(number_facts) if subset == "seen_counts" else None

    def claims(self, subsets: Mapping[str, Any]) -> Iterator[tuple[str, Iterable[str]]]:
        """Each scene shows one to four objects of one kind, in the slots for counting."""
        for name, records in subsets.items():
            strange = (scene.key for scene in records.scenes if not is_countable(scene))
            yield f"every scene of {name} shows one to four of one object", strange

    def plan(self, world: World) -> dict[str, list[Scene]]:
        """Return the scenes of all subsets. For one seed, validation and `unseen_counts` are the same at all
        fractions."""
        train, validation, test_pairs, _ = animal_roles(self, world)
        old, new = self.train_range, self.test_range
        singles = [scene for one in self.numbers(world, world.animals, (1,), old) for scene in world.in_sizes(one)]
        subsets = {"train": singles + self.keep(world, list(self.numbers(world, train, MANY, old)))}
        # Tests include the number one, although train shows it: otherwise a text that states one would always be a
        # negative.
        for name, animals in {"validation": validation, "seen_counts": train, "unseen_counts": test_pairs}.items():
            scenes = list(self.numbers(world, animals, (1, *MANY), new))
            subsets[name] = self.sample(world, scenes, self.test_scenes, name)
        return subsets

    def numbers(
        self, world: World, animals: Sequence[str], numbers: Sequence[int], views: Sequence[int]
    ) -> Iterator[Scene]:
        """Yield each animal in these numbers of copies, each texture, background and view, in slots drawn per scene."""
        for view, background, animal, texture, number in product(
            views, world.backgrounds, animals, world.textures, numbers
        ):
            random = generator(self.seed, "slots", animal, texture, background, view, number)
            slots = [COUNTING[i] for i in random.permutation(len(COUNTING))[:number]]
            yield Scene(background, tuple(Object(animal, texture, slot) for slot in slots), view)

    def content(self, subset: str, scene: Scene) -> Content:
        """What the caption of a scene says. Its hard negative states the number of the swapped scene."""
        return super().content(subset, scene)._replace(negative=True)

    def counts(self) -> PairCounts:
        """The numbers of animals that the fractions amount to."""
        train, _, _, trainable = animal_roles(self, load_world(self.world))
        return PairCounts(len(train), 0, trainable)


def is_countable(scene: Scene) -> bool:
    """Whether all objects of a scene are alike and stand in slots for counting."""
    alike = len({obj._replace(slot="") for obj in scene.objects}) == 1
    return alike and {obj.slot for obj in scene.objects} <= set(COUNTING)


def animal_roles(recipe: CountingRecipe, world: World) -> tuple[list[str], list[str], list[str], int]:
    """Return the animals that train shows in several copies, those of validation, those of the test pairs, and the
    number of trainable ones."""
    shuffled = [world.animals[i] for i in generator(recipe.seed, "counted").permutation(len(world.animals))]
    test_pairs, validation, trainable = set_apart(recipe, shuffled, "animals")
    return trainable[: round(recipe.pairs * len(trainable))], validation, test_pairs, len(trainable)


KIND = CountingRecipe
