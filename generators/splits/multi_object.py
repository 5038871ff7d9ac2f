"""Multi-object splits: scenes of one to six different animals in different textures.

Train shows `train_scenes` images, less those in which too little of an object shows (`least_visible`), each number of
`objects` equally often, and only the compositions (combinations of animal and texture) that `coverage` leaves it. There
are tests for each number n of `test_objects`: `seen_n`, whose compositions train shows, and below full coverage
`unseen_n`. A hard negative exchanges the textures of two objects. Their two compositions and the two after the exchange
are all seen or all unseen; otherwise a composition could give the hard negative away. In `unseen_n` the exchanged
objects have the same compositions at every coverage, and all others have compositions that train shows at every
coverage.

A search shows a target, such as a red cat, among k others. One of them exchanges textures with it. The rest share by
turns its texture and its animal (`search_conjunction_k`), or nothing (`search_feature_k`). `triplets_t` shows four
objects with t triplets, which share an animal and a texture. All scenes are dealt from shuffled decks (`dealing`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.layouts import LAYOUTS
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.spec import SEARCH, search_target
from menagerie.generators.captions.templates import Content, content_of
from menagerie.generators.coverage import Composition
from menagerie.generators.rules.hold_out import matches_any
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.dealing import Table, collect
from menagerie.generators.splits.multi_object_options import MultiObjectOptions, check_names, coverage_in
from menagerie.generators.splits.multi_object_tests import (
    Chooser,
    named_in,
    objects_of,
    of_names,
    of_pairs,
    searched,
    with_triplets,
)
from menagerie.generators.splits.recipe import PairCounts


@dataclass(frozen=True)
class MultiObjectRecipe(MultiObjectOptions):
    """Everything that determines a multi-object split, apart from the resolution."""

    def content(self, subset: str, scene: Scene) -> Content:
        """What a scene's caption says. A training scene has a hard negative only if its caption mentions both exchanged
        objects with their textures, and train may show the swap."""
        if subset == "train":
            content = self.caption_spec.training_content(scene)
            textured = {obj.slot for obj in content.objects if obj.texture}
            return content._replace(negative=self.has_negative(scene, textured))
        searched = subset.startswith(SEARCH)
        objects = (search_target(scene)[0],) if searched else self.caption_spec.tested_objects(scene)
        return content_of(scene, self.seed, self.wording, objects)._replace(negative=True)

    def has_negative(self, scene: Scene, textured: set[str]) -> bool:
        """Return whether a training scene has a hard negative. `textured` has the slots of the objects that its caption
        mentions with their textures."""
        if len(scene.objects) < 2 or not {scene.objects[i].slot for i in exchanged(scene)} <= textured:
            return False
        world = load_world(self.world)
        return self.shows(world, self.swap(scene)) and self.free(world)(self.swap(scene))

    def shows(self, world: World, scene: Scene) -> bool:
        """Whether train may show all compositions of a scene."""
        coverage = coverage_in(self, world)
        return all(coverage.seen(obj.animal, obj.texture) for obj in scene.objects)

    def planned(self, world: World) -> dict[str, list[Scene]]:
        check_names(self, world)
        subsets = {"train": self.trained(world)}
        tested = {name: self.dealt(world, name) for name in self.tests}
        taken = {one for scenes in tested.values() for scene in scenes for one in (scene, self.swap(scene))}
        return subsets | {"validation": self.validated(world, taken)} | tested

    def trained(self, world: World) -> list[Scene]:
        """Return the scenes of train, one number of objects after the other. Raises if they don't show every
        composition of the coverage, unless there are rules."""
        numbers = zip(self.objects, parts_of(self.train_scenes, len(self.objects)), strict=True)
        scenes = [scene for objects, number in numbers for scene in self.trained_of(world, objects, number)]
        asked = coverage_in(self, world).trained
        shown = {obj[:2] for scene in scenes for obj in scene.objects}
        if len(shown) < len(asked) and not self.hold_out:  # rules may hold out a composition
            raise UserError(
                f"train_scenes {self.train_scenes} is too low: train would show {len(shown)} of the {len(asked)} "
                f"combinations of animal and texture that coverage {self.coverage:g} means; raise it, or take a world "
                "with fewer names"
            )
        return scenes

    def trained_of(self, world: World, objects: int, number: int) -> list[Scene]:
        """Return the `number` scenes of train with this many objects. If these are two or more, the last scenes, a
        share `hard_negatives`, are swaps of others."""
        swaps = round(self.hard_negatives * number) if objects > 1 else 0
        trained, free = coverage_in(self, world).trained, self.free(world)
        random = generator(self.seed, "train", objects)
        table = Table(world, LAYOUTS[self.layout], objects, self.train_range, trained, random)
        scenes = collect(number - swaps, table.scene, free, like=lambda scene: scene)
        if len(scenes) < number - swaps:
            raise UserError(
                f"train_scenes {self.train_scenes} asks for {number - swaps} scenes of {objects} objects, but world "
                f"{self.world!r} gives about {len(scenes)}; lower it, or raise views"
            )
        if not swaps:
            return scenes
        known = set(scenes)
        swapped = (self.swap(scene) for scene in scenes)
        usable = [scene for scene in swapped if scene not in known and self.shows(world, scene) and free(scene)]
        if len(usable) < swaps:
            most = int(100 * len(usable) / number) / 100
            raise UserError(
                f"hard_negatives {self.hard_negatives:g} asks for {swaps} swaps of scenes of {objects} objects, but "
                f"train may show the swaps of only {len(usable)}; lower it to {most:g}"
            )
        return scenes + usable[:swaps]

    def chooser(self, world: World, name: str) -> Chooser:
        """Return the function that chooses the compositions of a test's scenes."""
        coverage, random = coverage_in(self, world), generator(self.seed, "cells", name)
        kind, _, rest = name.partition("_")
        if kind == SEARCH:
            return searched(coverage, coverage.trained, random, objects_of(name), rest.startswith("conjunction"))
        if kind == "triplets":
            return with_triplets(coverage, coverage.trained, random, int(rest))
        return of_pairs(coverage, coverage.trained if kind == "seen" else coverage.at(coverage.classes - 1), random)

    def dealt(self, world: World, name: str) -> list[Scene]:
        """The scenes of a test: at most `test_scenes`, none of them the swap of another."""
        coverage, choose = coverage_in(self, world), self.chooser(world, name)
        others = coverage.at(0) if name.startswith("unseen") else coverage.trained
        deal = self.dealer(world, name, objects_of(name), others, choose)
        scenes = collect(self.test_scenes, deal, self.free_both(world), self.swap)
        if not scenes:
            raise UserError(
                f"world {self.world!r} gives no scene of the test {name}; leave that test out, or raise views"
            )
        return scenes

    def dealer(
        self, world: World, name: str, objects: int, others: list[Composition], choose: Chooser
    ) -> Callable[[], Scene]:
        """Make a function that deals scenes of `objects` objects in test views. `choose` gives compositions of the
        first objects, and `others` are the compositions of the rest."""
        layout = LAYOUTS[self.test_layout or self.layout]
        table = Table(world, layout, objects, self.test_range, others, generator(self.seed, "test", name, objects))
        return lambda: table.scene(choose())

    def validated(self, world: World, taken: set[Scene]) -> list[Scene]:
        """Return the scenes of validation. They have the numbers of objects of train, but at least two. None is in a
        test, and neither is its swap."""
        coverage, free = coverage_in(self, world), self.free_both(world)
        numbers, scenes = [n for n in self.objects if n > 1] or [2], []
        for n, number in zip(numbers, parts_of(self.test_scenes, len(numbers)), strict=True):
            choose = of_pairs(coverage, coverage.trained, generator(self.seed, "cells", "validation", n))
            deal = self.dealer(world, "validation", n, coverage.trained, choose)
            scenes += collect(number, deal, lambda scene: scene not in taken and free(scene), self.swap)
        return scenes

    def tests_of_rules(self, world: World, subsets: Mapping[str, list[Scene]]) -> dict[str, list[Scene]]:
        """The same with the numbers of objects of the other tests, as far as the rules match such scenes."""
        return self.tested(world, partial(self.matching, world))

    def matching(self, world: World, name: str, rules: Sequence[Rule]) -> list[Scene]:
        """Return the scenes of a test of rules. The names in the rules are dealt more often; otherwise few scenes would
        match."""
        coverage, scenes = coverage_in(self, world), []
        for n, number in zip(self.test_objects, parts_of(self.test_scenes, len(self.test_objects)), strict=True):
            random = generator(self.seed, "cells", name, n)
            choose = of_names(coverage, coverage.trained, named_in(rules, world), random)
            deal = self.dealer(world, name, n, coverage.trained, choose)
            scenes += collect(number, deal, partial(matches_any, rules), self.swap)
        return scenes

    def free(self, world: World) -> Callable[[Scene], bool]:
        """Make a function that says whether no rule holds out a scene."""
        rules = self.rules(world)
        return lambda scene: not matches_any(rules, scene)

    def free_both(self, world: World) -> Callable[[Scene], bool]:
        """Make a function that says whether no rule holds out a scene or its swap."""
        free = self.free(world)
        return lambda scene: free(scene) and free(self.swap(scene))

    def counts(self) -> PairCounts:
        """Return the numbers of pairs. All pairs are in train. `hard_negatives`, here a share of scenes, is counted as
        that share of the pairs. Raises for a world with too few names."""
        world = load_world(self.world)
        check_names(self, world)
        number = len(world.pairs)
        return PairCounts(number, round(self.hard_negatives * number), number)


def parts_of(total: int, number: int) -> list[int]:
    """Divide a total into whole parts that differ by at most one, the larger ones first."""
    return [total // number + (i < total % number) for i in range(number)]
