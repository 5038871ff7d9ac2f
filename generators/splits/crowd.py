"""Crowd splits: scenes of one to six different animals in different textures.

Train shows `train_scenes` images, less those in which too little of a thing shows (`least_visible`), each number of
`things` equally often, and only the cells (combinations of animal and texture) that `coverage` leaves it. There are
tests for each number n of `test_things`: `seen_n`, whose cells train shows, and below full coverage `unseen_n`. A hard
negative exchanges the textures of two things. Their two cells and the two after the exchange are all seen or all
unseen; otherwise a cell could give the hard negative away. In `unseen_n` the exchanged things have the same cells at
every coverage, and all others have cells that train shows at every coverage.

A search shows a target, such as a red cat, among k others. One of them exchanges textures with it. The rest share by
turns its texture and its animal (`search_conjunction_k`), or nothing (`search_feature_k`). `triplets_t` shows four
things with t triplets, which share an animal and a texture. All scenes are dealt from shuffled decks (`dealing`).
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
from menagerie.generators.captions.crowds import SEARCH, target, tested_things, trained_things
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.incomplete import Chances
from menagerie.generators.captions.templates import Content, content_of
from menagerie.generators.cells import Cell
from menagerie.generators.rules.hold_out import matched
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.crowd_options import CrowdOptions, cells_in, check_names
from menagerie.generators.splits.crowd_tests import (
    Chooser,
    deal_from,
    named_in,
    of_names,
    of_pairs,
    searched,
    things_of,
    with_triplets,
)
from menagerie.generators.splits.dealing import Table, collect
from menagerie.generators.splits.recipe import PairCounts


@dataclass(frozen=True)
class CrowdRecipe(CrowdOptions):
    """Everything that determines a crowd split, apart from the resolution."""

    def content(self, subset: str, scene: Scene) -> Content:
        """What a scene's caption says. A training scene has a hard negative only if its caption mentions both exchanged
        things with their textures, and train may show the swap."""
        if subset == "train":
            chances = Chances(self.mentioned, self.attributes, self.salient)
            things = trained_things(scene, self.telling, chances)
            negative = self.has_negative(scene, {thing.slot for thing in things if thing.texture})
        else:
            searched = subset.startswith(SEARCH)
            things, negative = (target(scene)[0],) if searched else tested_things(scene, self.telling), True
        return content_of(scene, self.seed, self.wording, things)._replace(negative=negative)

    def has_negative(self, scene: Scene, textured: set[str]) -> bool:
        """Return whether a training scene has a hard negative. `textured` has the slots of the things that its caption
        mentions with their textures."""
        if len(scene.things) < 2 or not {scene.things[i].slot for i in exchanged(scene)} <= textured:
            return False
        world = load_world(self.world)
        return self.shows(world, self.swap(scene)) and self.free(world)(self.swap(scene))

    def shows(self, world: World, scene: Scene) -> bool:
        """Whether train may show all cells of a scene."""
        cells = cells_in(self, world)
        return all(cells.seen(thing.animal, thing.texture) for thing in scene.things)

    def planned(self, world: World) -> dict[str, list[Scene]]:
        check_names(self, world)
        subsets = {"train": self.trained(world)}
        tested = {name: self.dealt(world, name, self.chooser(world, name)) for name in self.tests}
        taken = {one for scenes in tested.values() for scene in scenes for one in (scene, self.swap(scene))}
        return subsets | {"validation": self.validated(world, taken)} | tested

    def trained(self, world: World) -> list[Scene]:
        """Return the scenes of train, one number of things after the other. Raises if they don't show every cell of the
        coverage, unless there are rules."""
        each, more = divmod(self.train_scenes, len(self.things))
        scenes = [scene for i, n in enumerate(self.things) for scene in self.trained_of(world, n, each + (i < more))]
        cells = cells_in(self, world)
        asked = cells.at(*range(cells.shown))
        shown = {thing[:2] for scene in scenes for thing in scene.things}
        if len(shown) < len(asked) and not self.hold_out:  # rules may hold out a cell
            raise UserError(
                f"train_scenes {self.train_scenes} is too low: train would show {len(shown)} of the {len(asked)} "
                f"combinations of animal and texture that coverage {self.coverage:g} means; raise it, or take a world "
                "with fewer names"
            )
        return scenes

    def trained_of(self, world: World, things: int, number: int) -> list[Scene]:
        """Return the `number` scenes of train with this many things. If these are two or more, the last scenes, a share
        `hard_negatives`, are swaps of others."""
        swaps = round(self.hard_negatives * number) if things > 1 else 0
        cells, free = cells_in(self, world), self.free(world)
        random = generator(self.seed, "train", things)
        table = Table(world, LAYOUTS[self.layout], things, range(self.views), cells.at(*range(cells.shown)), random)
        scenes = collect(number - swaps, table.scene, free, like=lambda scene: scene)
        if len(scenes) < number - swaps:
            raise UserError(
                f"train_scenes {self.train_scenes} asks for {number - swaps} scenes of {things} things, but world "
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
                f"hard_negatives {self.hard_negatives:g} asks for {swaps} swaps of scenes of {things} things, but "
                f"train may show the swaps of only {len(usable)}; lower it to {most:g}"
            )
        return scenes + usable[:swaps]

    def chooser(self, world: World, name: str) -> Chooser:
        """Return the function that chooses the cells of a test's scenes."""
        cells, random = cells_in(self, world), generator(self.seed, "cells", name)
        seen = cells.at(*range(cells.shown))
        kind, _, rest = name.partition("_")
        if kind == SEARCH:
            return searched(cells, seen, random, conjunction=rest.startswith("conjunction"))
        if kind == "triplets":
            return with_triplets(cells, seen, random, int(rest))
        return of_pairs(cells, seen if kind == "seen" else cells.at(cells.classes - 1), random)

    def dealt(self, world: World, name: str, choose: Chooser) -> list[Scene]:
        """The scenes of a test: at most `test_scenes`, none of them the swap of another."""
        things = things_of(name)
        cells, free = cells_in(self, world), self.free(world)
        others = cells.at(0) if name.startswith("unseen") else cells.at(*range(cells.shown))
        table = self.table(world, things, others, name)
        deal = partial(deal_from, table, choose, things)
        scenes = collect(self.test_scenes, deal, lambda scene: free(scene) and free(self.swap(scene)), self.swap)
        if not scenes:
            raise UserError(
                f"world {self.world!r} gives no scene of the test {name}; leave that test out, or raise views"
            )
        return scenes

    def table(self, world: World, things: int, others: list[Cell], name: str) -> Table:
        """Make a table that deals scenes in test views."""
        views = range(self.views, self.views + self.test_views)
        layout = LAYOUTS[self.test_layout or self.layout]
        return Table(world, layout, things, views, others, generator(self.seed, "test", name, things))

    def validated(self, world: World, taken: set[Scene]) -> list[Scene]:
        """Return the scenes of validation. They have the numbers of things of train, but at least two. None is in a
        test, and neither is its swap."""
        numbers = [n for n in self.things if n > 1] or [2]
        free, cells = self.free(world), cells_in(self, world)
        scenes = []
        for i, n in enumerate(numbers):
            number = self.test_scenes // len(numbers) + (i < self.test_scenes % len(numbers))
            choose = of_pairs(cells, cells.at(*range(cells.shown)), generator(self.seed, "cells", "validation", n))
            table = self.table(world, n, cells.at(*range(cells.shown)), "validation")
            deal = partial(deal_from, table, choose, n)
            scenes += collect(number, deal, partial(self.untested, free, taken), self.swap)
        return scenes

    def untested(self, free: Callable[[Scene], bool], taken: set[Scene], scene: Scene) -> bool:
        """Return whether a scene isn't in `taken`, and no rule holds out the scene or its swap."""
        return scene not in taken and free(scene) and free(self.swap(scene))

    def tests_of_rules(
        self, world: World, rules: tuple[Rule, ...], subsets: Mapping[str, list[Scene]]
    ) -> dict[str, list[Scene]]:
        """Return the scenes of the tests of rules. They have the numbers of things of the other tests, as far as the
        rules match such scenes. Raises for a test without scenes."""
        tests = {}
        for name, texts in self.held_out_tests.items():
            tested = self.matching(world, name, [rule for rule in rules if rule.text in texts])
            if not tested:
                shown = " or ".join(texts)
                raise UserError(f"hold_out {shown!r} matches no scene that was dealt for a test; widen it")
            tests[name] = tested
        return tests

    def matching(self, world: World, name: str, rules: Sequence[Rule]) -> list[Scene]:
        """Return the scenes of a test of rules. The names in the rules are dealt more often; otherwise few scenes would
        match."""
        cells, scenes = cells_in(self, world), []
        seen = cells.at(*range(cells.shown))
        for i, n in enumerate(self.test_things):
            number = self.test_scenes // len(self.test_things) + (i < self.test_scenes % len(self.test_things))
            choose = of_names(cells, seen, named_in(rules, world), generator(self.seed, "cells", name, n))
            deal = partial(deal_from, self.table(world, n, seen, name), choose, n)
            scenes += collect(number, deal, partial(matched, rules), self.swap)
        return scenes

    def free(self, world: World) -> Callable[[Scene], bool]:
        """Make a function that says whether no rule holds out a scene."""
        rules = self.rules(world)
        return lambda scene: not matched(rules, scene)

    def counts(self) -> PairCounts:
        """Return the numbers of pairs. All pairs are in train. `hard_negatives`, here a share of scenes, is counted as
        that share of the pairs. Raises for a world with too few names."""
        world = load_world(self.world)
        check_names(self, world)
        number = len(world.pairs)
        return PairCounts(number, round(self.hard_negatives * number), number)
