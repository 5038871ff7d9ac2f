"""Crowd splits: scenes of one to six different animals in different textures.

Train shows `train_scenes` images, whatever else varies, with each number of `things` equally often, and only the cells
(combinations of animal and texture) that `coverage` leaves it. Tests show more things: for each number n there is
`seen_n`, whose cells train shows, and below full coverage `unseen_n`. A hard negative exchanges the textures of two
things, whose four cells are then all seen or all unseen: otherwise it would give itself away. The cells of `unseen_n`
are the same at every coverage, and the other things of its scenes have cells that every coverage shows.

Searches show a target, a red cat, among k others; half of them share its texture and half its animal
(`search_conjunction_k`), or none shares anything (`search_feature_k`). `triplets_t` shows four things that share
animals and textures. All scenes are dealt from shuffled decks (`dealing`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

from menagerie.envs.core.errors import UserError, not_allowed
from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SCENES, SHARE, Range, Several
from menagerie.envs.layouts import LAYOUTS, MOST
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.crowds import (
    SEARCH,
    Telling,
    caption_of,
    swapped,
    target_texts,
    telling_of,
    tested_things,
    trained_things,
)
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.incomplete import Chances
from menagerie.generators.captions.templates import Caption
from menagerie.generators.cells import Cell, Cells, cells_of, round_coverage
from menagerie.generators.rules.hold_out import matched
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.crowd_tests import Chooser, of_names, of_pairs, searched, with_triplets
from menagerie.generators.splits.dealing import Table, collect
from menagerie.generators.splits.recipe import PairCounts, SplitRecipe

Things = Annotated[tuple[int, ...], FIRST, Several(1), Range(1, MOST)]


@dataclass(frozen=True)
class CrowdRecipe(SplitRecipe):
    """Everything that determines a crowd split, apart from the resolution."""

    kind: ClassVar[str] = "crowd"
    title: ClassVar[str] = "Many things"
    task: ClassVar[str] = "the same words with the textures of two things exchanged"

    world: Annotated[str, FIRST] = "pug-textures"
    """Vocabulary of the scenes: a name, or a TOML file; with as many textures as a scene has things."""
    pairs: float = 1.0
    """Always 1: train shows all pairs of animals; `coverage` says in which textures."""
    reserve: float = 0.0
    """Always 0."""
    validation: float = 0.0
    """Always 0: the scenes of validation have seen cells, in views of their own."""
    layout: Annotated[Literal["apart", "rows", "overlap"], FIRST] = "apart"
    """Where things stand in train: side by side and above, in two rows, or in front of one another."""
    test_layout: Literal["", "apart", "rows", "overlap"] = ""
    """Where they stand in tests; empty: as in train."""
    things: Things = (1, 2, 3)
    """Numbers of things in scenes of train, each equally often."""
    test_things: Annotated[tuple[int, ...], FIRST, Several(1), Range(2, MOST)] = (2, 3, 4, 5, 6)
    """Numbers of things in tests, each a test."""
    train_scenes: Annotated[int, FIRST, SCENES] = 16_000
    """Images of train."""
    coverage: Annotated[float, FIRST, SHARE] = 1.0
    """Share of the combinations of animal and texture that train shows, a multiple of 1 / `classes`."""
    classes: Annotated[int, Range(1, 1000)] = 4
    """Classes of animals and of textures by which combinations are left out."""
    mentioned: Annotated[float, FIRST, SHARE] = 1.0
    """Probability that a training caption mentions a thing; one always is."""
    most_mentioned: Annotated[int, Range(0, MOST)] = 0
    """The most things that a training caption mentions; 0: all."""
    attributes: Annotated[float, FIRST, SHARE] = 1.0
    """Probability that a training caption includes the texture of a thing that it mentions."""
    salient: Annotated[float, FIRST, SHARE] = 0.0
    """Probability that a training caption mentions only the salient thing: in the foremost row, there the biggest."""
    relations_stated: Annotated[int, FIRST, Range(0, MOST - 1)] = 0
    """Relations that a caption states, in a chain: "a red cat above a white dog that is behind a grass pig"."""
    least_visible: Annotated[float, SHARE] = 0.25
    """Least share of each thing that others leave visible; scenes that show less are left out after rendering."""
    searches: Annotated[tuple[int, ...], Several(), Range(1, MOST - 1)] = ()
    """Numbers of distractors in tests of search, two tests each."""
    triplets: Annotated[tuple[int, ...], Several(), Range(0, 2)] = ()
    """Numbers of triplets, which share an animal and a texture, in further tests of four things."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, only in (("pairs", 1), ("reserve", 0), ("validation", 0)):
            if getattr(self, name) != only:
                raise UserError(f"{name} must be {only} in a crowd split, which sets no pairs of animals apart")
        if self.hard_negatives > 0.5:
            raise not_allowed("hard_negatives", self.hard_negatives, "at most 0.5: each is the swap of another scene")
        if self.relations_stated and self.wording.statement:
            raise UserError(
                f"the template {self.template!r} can't state relations; take another, or relations_stated 0"
            )
        round_coverage(self.coverage, self.classes)

    @property
    def tests(self) -> tuple[str, ...]:
        kinds = ("seen", "unseen") if self.coverage < 1 else ("seen",)
        numbered = [f"{kind}_{n}" for kind in kinds for n in self.test_things]
        features = [f"{SEARCH}_feature_{k}" for k in self.searches]
        searches = [*features, *(f"{SEARCH}_conjunction_{k}" for k in self.searches if k > 1)]
        return (*numbered, *searches, *(f"triplets_{t}" for t in self.triplets))

    @property
    def judged(self) -> tuple[str, ...]:
        """The tests that a search reports: of rules, of unseen cells, or of more things than train shows."""
        unseen = tuple(test for test in self.tests if test.startswith("unseen"))
        more = tuple(f"seen_{n}" for n in self.test_things if n > max(self.things))
        return super().judged if self.hold_out else unseen or more or self.tests

    def texts(self, subset: str, scene: Scene) -> tuple[Caption, Caption | None]:
        """The caption and the hard negative. In train there is one only if the caption mentions both exchanged things
        with their textures, and train shows all cells of the swap."""
        if subset.startswith(SEARCH):
            return target_texts(scene, self.telling)
        if subset != "train":
            things = tested_things(scene, self.telling)
        else:
            chances = Chances(self.mentioned, self.attributes, self.salient)
            things = trained_things(scene, self.telling, chances)
        true = caption_of(scene, things, self.telling)
        if subset == "train" and not self.has_negative(scene, {thing.slot for thing in things if thing.texture}):
            return true, None
        return true, caption_of(scene, swapped(scene, things), self.telling)

    @property
    def telling(self) -> Telling:
        return telling_of(vars(self))

    def has_negative(self, scene: Scene, textured: set[str]) -> bool:
        """Whether a training scene has a hard negative, if its caption mentions the things in these slots with their
        textures."""
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
        """The scenes of train: each number of things in turn."""
        each, more = divmod(self.train_scenes, len(self.things))
        return [scene for i, n in enumerate(self.things) for scene in self.trained_of(world, n, each + (i < more))]

    def trained_of(self, world: World, things: int, number: int) -> list[Scene]:
        """The scenes of train with one number of things; the last of them are swaps of the first ones."""
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
        """What decides the cells of a test."""
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
        """Deals scenes in test views."""
        views = range(self.views, self.views + self.test_views)
        layout = LAYOUTS[self.test_layout or self.layout]
        return Table(world, layout, things, views, others, generator(self.seed, "test", name, things))

    def validated(self, world: World, taken: set[Scene]) -> list[Scene]:
        """The scenes of validation: as many things as in train, but at least two, and none of a test."""
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
        """Whether no test has a scene, and no rule holds out it or its swap."""
        return scene not in taken and free(scene) and free(self.swap(scene))

    def tests_of_rules(
        self, world: World, rules: tuple[Rule, ...], subsets: Mapping[str, list[Scene]]
    ) -> dict[str, list[Scene]]:
        """The scenes of the tests of rules, with the numbers of things of the other tests as far as rules allow."""
        tests = {}
        for name, texts in self.held_out_tests.items():
            tested = self.matching(world, name, [rule for rule in rules if rule.text in texts])
            if not tested:
                shown = " or ".join(texts)
                raise UserError(f"hold_out {shown!r} matches no scene that was dealt for a test; widen it")
            tests[name] = tested
        return tests

    def matching(self, world: World, name: str, rules: Sequence[Rule]) -> list[Scene]:
        """Scenes of a test of rules. The names in the rules are dealt more often, or few scenes would match."""
        cells, scenes = cells_in(self, world), []
        seen = cells.at(*range(cells.shown))
        for i, n in enumerate(self.test_things):
            number = self.test_scenes // len(self.test_things) + (i < self.test_scenes % len(self.test_things))
            choose = of_names(cells, seen, named_in(rules, world), generator(self.seed, "cells", name, n))
            deal = partial(deal_from, self.table(world, n, seen, name), choose, n)
            scenes += collect(number, deal, partial(matched, rules), self.swap)
        return scenes

    def free(self, world: World) -> Callable[[Scene], bool]:
        """Whether no rule holds out a scene."""
        rules = self.rules(world)
        return lambda scene: not matched(rules, scene)

    def counts(self) -> PairCounts:
        """All pairs of animals, and none swapped for certain: `hard_negatives` is a share of scenes here. Raises for a
        world with too few names."""
        world = load_world(self.world)
        check_names(self, world)
        number = len(world.pairs)
        return PairCounts(number, round(self.hard_negatives * number), number)


def cells_in(recipe: CrowdRecipe, world: World) -> Cells:
    """The cells of a recipe, in a world that is loaded."""
    return cells_of(vars(recipe), world.animals, world.textures)


def things_of(test: str) -> int:
    """The number of things in the scenes of a test of seen or unseen cells, of a search, or of triplets."""
    kind, _, rest = test.partition("_")
    number = int(rest.rpartition("_")[2])
    return {SEARCH: number + 1, "triplets": 4}.get(kind, number)


def deal_from(table: Table, choose: Chooser, things: int) -> Scene:
    """Deal a scene whose cells are chosen."""
    return table.scene(*choose(things))


def named_in(rules: Sequence[Rule], world: World) -> set[str]:
    """The animals and textures that rules name, by themselves or in groups."""
    groups = dict(world.groups)
    known = {name: (name,) for name in (*world.animals, *world.textures)} | groups
    texts = " ".join(rule.text for rule in rules)
    found = [members for name, members in known.items() if re.search(rf"\b{re.escape(name)}\b", texts)]
    return {member for members in found for member in members}


def check_names(recipe: CrowdRecipe, world: World) -> None:
    """Raise unless a world has enough animals and textures for its scenes, of which all are different."""
    most = max(*recipe.things, *recipe.test_things, *(4 for _ in recipe.triplets), *(k + 1 for k in recipe.searches))
    for names, what in ((world.animals, "animals"), (world.textures, "textures")):
        if len(names) < most:
            raise UserError(
                f"scenes of {most} different things need {most} {what}, but world {recipe.world!r} has {len(names)}; "
                "take another world, or lower things and test_things"
            )
    cells_in(recipe, world)
