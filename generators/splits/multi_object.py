"""Multi-object splits: scenes of one to six different animals in different textures (docs/splits.md, section 8).

A hard negative exchanges the textures of two objects. Their two compositions and the two after the exchange are all
seen or all unseen; otherwise a composition could give the hard negative away. In `unseen_n` the exchanged objects have
the same compositions at every coverage, and all others have compositions that train shows at every coverage. Scenes
are drawn from shuffled queues (`even_draws`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import and_, or_, xor
from typing import Annotated, Any, ClassVar, Literal

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SCENES, SHARE, Range, Several
from menagerie.envs.layouts import LAYOUTS, MOST
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.contents import exchanged_objects
from menagerie.generators.captions.hard_negatives.tasks import EXCHANGES, Task, tasks_named
from menagerie.generators.captions.spec import SEARCH, search_target
from menagerie.generators.captions.templates import Content, content_of
from menagerie.generators.coverage import round_coverage
from menagerie.generators.rules.hold_out import matches_any
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.even_draws import SceneSampler, distinct_scenes
from menagerie.generators.splits.facts import Claim, Fact, claim_has_all, claim_has_none, composition_facts
from menagerie.generators.splits.multi_object_tests import (
    IN_PAIRS,
    TRIPLETS,
    Chooser,
    choose_in_pairs,
    choose_named,
    choose_pairs,
    choose_search,
    choose_triplets,
    names_in_rules,
    number_of_objects,
    shares_what_test_says,
)
from menagerie.generators.splits.recipe import PairCounts, SplitRecipe

Objects = Annotated[tuple[int, ...], FIRST, Several(1), Range(1, MOST)]


@dataclass(frozen=True)
class MultiObjectRecipe(SplitRecipe):
    """Everything that determines a multi-object split, apart from the resolution."""

    kind: ClassVar[str] = "multi-object"
    title: ClassVar[str] = "Many objects"
    swap_words: ClassVar[str] = "the same words with the textures of two objects exchanged"
    names_all: ClassVar[bool] = False
    unused: ClassVar[tuple[str, ...]] = ("pairs", "test_pairs", "validation")
    exchanged_objects = staticmethod(exchanged_objects)
    tasks = tasks_named(
        *("swap all", "two mentioned", "assignment of 2", "assignment of 3", "assignment of 4", "illusion", "order"),
        *("repeated animal", "repeated texture", "paraphrase", "replace texture", "replace animal"),
        *(f"{EXCHANGES} {k}" for k in (1, 2, 3)),
    )

    world: Annotated[str, FIRST] = "pug-textures"
    """Vocabulary of the scenes: a name, or a TOML file; with as many textures as a scene has objects."""
    pairs: float = 1.0
    """Always 1: train may show every animal pair; `coverage` says in which textures."""
    test_pairs: float = 0.0
    """Always 0."""
    validation: float = 0.0
    """Always 0: the scenes of validation have seen compositions, in the views of tests."""
    layout: Annotated[Literal["apart", "rows", "overlap"], FIRST] = "apart"
    """Where objects stand in train: side by side and above, in two rows, or in front of one another."""
    test_layout: Literal["", "apart", "rows", "overlap"] = ""
    """Layout of tests and validation; empty: train's."""
    objects: Objects = (1, 2, 3)
    """Numbers of objects in scenes of train, each equally often."""
    test_objects: Annotated[tuple[int, ...], FIRST, Several(1), Range(2, MOST)] = (2, 3, 4, 5, 6)
    """Numbers of objects in tests, each a test."""
    train_scenes: Annotated[int, FIRST, SCENES] = 16_000
    """Number of training images."""
    coverage: Annotated[float, FIRST, SHARE] = 1.0
    """Share of the combinations of animal and texture that train shows, a multiple of 1 / `classes`."""
    classes: Annotated[int, Range(1, 1000)] = 4
    """Number of classes of animals, and of textures. Training leaves out combinations of a class of animals with a
    class of textures."""
    mentioned: Annotated[float, FIRST, SHARE] = 1.0
    """Probability that a training caption mentions an object; one always is."""
    attributes: Annotated[float, FIRST, SHARE] = 1.0
    """Probability that a training caption includes the texture of an object that it mentions."""
    salient: Annotated[float, FIRST, SHARE] = 0.0
    """Probability that a training caption mentions only the salient object: in the foremost row, there the biggest."""
    relations_stated: Annotated[int, FIRST, Range(0, MOST - 1)] = 0
    """Relations that a caption states, in a chain: "a red cat above a white dog that is behind a grass pig"."""
    least_visible: Annotated[float, SHARE] = 0.25
    """Least share of each object that others leave visible; scenes that show less are left out after rendering."""
    searches: Annotated[tuple[int, ...], Several(), Range(1, MOST - 1)] = ()
    """Numbers of distractors in searches, two tests each; 1: one."""
    triplets: Annotated[tuple[int, ...], Several(), Range(0, 2)] = ()
    """Numbers of triplets, which share an animal and a texture, in further tests of four objects."""
    exchanged: Annotated[tuple[int, ...], Several(), Range(2, MOST)] = ()
    """Even numbers of objects in further tests, whose objects are pairs that can exchange their textures; where a test
    is of unseen compositions, all its objects are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relations_stated and self.wording.statement:
            raise UserError(
                f"the template {self.template!r} can't state relations; take another, or relations_stated 0"
            )
        shown = round_coverage(self.coverage, self.classes)
        if odd := [n for n in self.exchanged if n % 2]:
            raise UserError(f"exchanged {odd[0]}: objects exchange their textures in pairs; give an even number")
        room = 2 * self.classes * min(ranks for ranks in (shown, self.classes - shown) if ranks)
        if (most := max(self.exchanged, default=0)) > room:
            raise UserError(
                f"exchanged {most}: coverage {self.coverage:g} with {self.classes} classes has room for {room} objects "
                "in pairs; lower it, or raise classes"
            )

    @property
    def tests(self) -> tuple[str, ...]:
        kinds = ("seen", "unseen") if self.coverage < 1 else ("seen",)
        numbered = [f"{kind}_{n}" for kind in kinds for n in self.test_objects]
        features = [f"{SEARCH}_feature_{k}" for k in self.searches]
        searches = [*features, *(f"{SEARCH}_conjunction_{k}" for k in self.searches if k > 1)]
        pairs = [f"{kind}{IN_PAIRS}{n}" for kind in kinds for n in self.exchanged]
        return (*numbered, *searches, *(f"{TRIPLETS}_{t}" for t in self.triplets), *pairs)

    @property
    def judged(self) -> tuple[str, ...]:
        """The tests by which studies judge a model: `held_out` if there are rules, else those of unseen compositions,
        else those of more objects than train shows, else all."""
        unseen = tuple(test for test in self.tests if test.startswith("unseen"))
        more = tuple(f"seen_{n}" for n in self.test_objects if n > max(self.objects))
        return super().judged if self.hold_out else unseen or more or self.tests

    @classmethod
    def tasks_of(cls, subset: str) -> Mapping[str, Task]:
        """Searches have only their swap; tests of objects in pairs have exchanges too, and nothing else."""
        if subset.startswith(SEARCH):
            return {}
        return {name: task for name, task in cls.tasks.items() if name.startswith(EXCHANGES) == (IN_PAIRS in subset)}

    @classmethod
    def same_words(cls, subset: str) -> bool:
        """Searches mention the target alone, and their hard negatives another texture."""
        return not subset.startswith(SEARCH)

    def lacks(self, subset: str) -> Claim | None:
        """The compositions of the two exchanged objects, as they are and exchanged; of objects in pairs, all."""
        if subset.startswith(f"unseen{IN_PAIRS}"):
            return claim_has_none(partial(self.compositions, or_))
        return claim_has_none(partial(self.compositions, xor)) if subset.startswith("unseen") else None

    def has(self, subset: str) -> Claim | None:
        """All compositions, those of the exchanged objects only if the test doesn't say that training lacks them."""
        if subset.startswith(f"unseen{IN_PAIRS}"):
            return None
        return claim_has_all(partial(self.compositions, and_ if subset.startswith("unseen") else or_))

    def apart(self, scene: Scene) -> Iterable[Fact]:
        """The scene, or its swap."""
        return [("scene", min(scene, self.swap(scene)))]

    def claims(self, subsets: Mapping[str, Any]) -> Iterator[tuple[str, Iterable[str]]]:
        """Scenes have as many objects as their test says, which share as many animals and textures as it says. None is
        the swap of another scene of its test."""
        for name, records in subsets.items():
            strange = (scene.key for scene in records.scenes if not shares_what_test_says(name, scene))
            yield f"objects of {name} are as many, and share as many animals and textures, as they should", strange
            swaps = set(map(self.swap, records.scenes)) if name != "train" else set()
            yield f"no scene of {name} is the swap of another", (s.key for s in records.scenes if s in swaps)

    def compositions(self, combine: Callable[..., set[Fact]], scene: Scene) -> Iterable[Fact]:
        """The compositions of a scene and of its swap: all (`or_`), those that both have (`and_`), or the four that
        only one of them has (`xor`)."""
        return combine({*composition_facts(scene)}, {*composition_facts(self.swap(scene))})

    def content(self, subset: str, scene: Scene) -> Content:
        """What a scene's caption says. A training scene has a hard negative only if its caption mentions both exchanged
        objects with their textures, and train may show the swap."""
        if subset == "train":
            content = self.caption_spec.training_content(scene)
            textured = {obj.slot for obj in content.objects if obj.texture}
            return content._replace(negative=self.has_negative(scene, textured))
        searched = subset.startswith(SEARCH)
        objects = (search_target(scene),) if searched else self.caption_spec.tested_objects(scene)
        return content_of(scene, self.seed, self.wording, objects)._replace(negative=True)

    def has_negative(self, scene: Scene, textured: set[str]) -> bool:
        """Return whether a training scene has a hard negative. `textured` has the slots of the objects that its caption
        mentions with their textures."""
        if len(scene.objects) < 2 or not {scene.objects[i].slot for i in exchanged_objects(scene)} <= textured:
            return False
        return self.shows(load_world(self.world), self.swap(scene))

    def shows(self, world: World, scene: Scene) -> bool:
        """Whether train may show a scene: all its compositions, and no rule holds it out."""
        seen = self.coverage_in(world).seen
        return all(seen(*obj[:2]) for obj in scene.objects) and self.free(world, scene)

    def plan(self, world: World) -> dict[str, list[Scene]]:
        self.check_names(world)
        subsets = {"train": self.training_scenes(world)}
        tested = {name: self.test_scenes_of(world, name) for name in self.tests}
        taken = {one for scenes in tested.values() for scene in scenes for one in (scene, self.swap(scene))}
        return subsets | {"validation": self.validation_scenes(world, taken)} | tested

    def training_scenes(self, world: World) -> list[Scene]:
        """Return the scenes of train, one number of objects after the other. Raises if they don't show every
        composition of the coverage, unless there are rules."""
        numbers = zip(self.objects, even_parts(self.train_scenes, len(self.objects)), strict=True)
        scenes = [scene for objects, number in numbers for scene in self.training_scenes_of(world, objects, number)]
        wanted = self.coverage_in(world).trained
        shown = {obj[:2] for scene in scenes for obj in scene.objects}
        if len(shown) < len(wanted) and not self.hold_out:  # rules may hold out a composition
            raise UserError(
                f"train_scenes {self.train_scenes} is too low: train would show {len(shown)} of the {len(wanted)} "
                f"combinations of animal and texture that coverage {self.coverage:g} means; raise it, or take a world "
                "with fewer names"
            )
        return scenes

    def training_scenes_of(self, world: World, objects: int, number: int) -> list[Scene]:
        """Return the `number` scenes of train with this many objects. If these are two or more, the last scenes, a
        share `hard_negatives`, are swaps of others."""
        swaps = round(self.hard_negatives * number) if objects > 1 else 0
        trained, random = self.coverage_in(world).trained, generator(self.seed, "train", objects)
        sampler = SceneSampler(world, LAYOUTS[self.layout], objects, self.train_range, trained, random)
        scenes = distinct_scenes(number - swaps, sampler.sample, partial(self.free, world), like=lambda scene: scene)
        if len(scenes) < number - swaps:
            raise UserError(
                f"train_scenes {self.train_scenes} asks for {number - swaps} scenes of {objects} objects, but world "
                f"{self.world!r} gives about {len(scenes)}; lower it, or raise views"
            )
        if not swaps:
            return scenes
        known = set(scenes)
        usable = [scene for scene in map(self.swap, scenes) if scene not in known and self.shows(world, scene)]
        if len(usable) < swaps:
            most = int(100 * len(usable) / number) / 100
            raise UserError(
                f"hard_negatives {self.hard_negatives:g} asks for {swaps} swaps of scenes of {objects} objects, but "
                f"train may show the swaps of only {len(usable)}; lower it to {most:g}"
            )
        return scenes + usable[:swaps]

    def chooser(self, world: World, name: str) -> Chooser:
        """Return the function that chooses the compositions of a test's scenes."""
        coverage, random = self.coverage_in(world), generator(self.seed, "cells", name)
        kind, _, rest = name.partition("_")
        if kind == SEARCH:
            conjunction = rest.startswith("conjunction")
            return choose_search(coverage, coverage.trained, random, number_of_objects(name), conjunction)
        if kind == TRIPLETS:
            return choose_triplets(coverage, coverage.trained, random, int(rest))
        tested = coverage.trained if kind == "seen" else coverage.with_ranks(coverage.highest)
        if IN_PAIRS in name:
            return choose_in_pairs(coverage, tested, random, number_of_objects(name))
        return choose_pairs(coverage, tested, random)

    def test_scenes_of(self, world: World, name: str) -> list[Scene]:
        """The scenes of a test: at most `test_scenes`."""
        objects, choose = number_of_objects(name), self.chooser(world, name)
        scenes = self.draw_scenes(
            world, name, objects, self.test_scenes, choose, lambda scene: self.free(world, scene, self.swap(scene))
        )
        if not scenes:
            raise UserError(
                f"world {self.world!r} gives no scene of the test {name}; leave that test out, or raise views"
            )
        return scenes

    def draw_scenes(
        self, world: World, name: str, objects: int, number: int, choose: Chooser, fits: Callable[[Scene], bool]
    ) -> list[Scene]:
        """Draw at most `number` scenes of `objects` objects in test views, none of them the swap of another. `choose`
        gives compositions of the first objects; the others are ones that train shows at every coverage, in tests of
        unseen compositions, or at this one."""
        coverage = self.coverage_in(world)
        others = coverage.with_ranks(0) if name.startswith("unseen") else coverage.trained
        layout, random = LAYOUTS[self.test_layout or self.layout], generator(self.seed, "test", name, objects)
        sampler = SceneSampler(world, layout, objects, self.test_range, others, random)
        return distinct_scenes(number, lambda: sampler.sample(choose()), fits, self.swap)

    def validation_scenes(self, world: World, taken: set[Scene]) -> list[Scene]:
        """Return the scenes of validation. They have the numbers of objects of train, but at least two. None is in a
        test, and neither is its swap."""
        coverage = self.coverage_in(world)
        numbers, scenes = [n for n in self.objects if n > 1] or [2], []

        def fits(scene: Scene) -> bool:
            return scene not in taken and self.free(world, scene, self.swap(scene))

        for n, number in zip(numbers, even_parts(self.test_scenes, len(numbers)), strict=True):
            choose = choose_pairs(coverage, coverage.trained, generator(self.seed, "cells", "validation", n))
            scenes += self.draw_scenes(world, "validation", n, number, choose, fits)
        return scenes

    def tests_of_rules(self, world: World, subsets: Mapping[str, list[Scene]]) -> dict[str, list[Scene]]:
        """The same with the numbers of objects of the other tests, as far as the rules match such scenes."""
        return self.rule_tests(world, partial(self.matching, world))

    def matching(self, world: World, name: str, rules: Sequence[Rule]) -> list[Scene]:
        """Return the scenes of a test of rules. The names in the rules are drawn more often; otherwise few scenes would
        match."""
        coverage, scenes = self.coverage_in(world), []
        for n, number in zip(self.test_objects, even_parts(self.test_scenes, len(self.test_objects)), strict=True):
            random = generator(self.seed, "cells", name, n)
            choose = choose_named(coverage, coverage.trained, names_in_rules(rules, world), random)
            scenes += self.draw_scenes(world, name, n, number, choose, partial(matches_any, rules))
        return scenes

    def free(self, world: World, *scenes: Scene) -> bool:
        """Whether no rule holds out any of some scenes."""
        return not any(matches_any(self.rules(world), scene) for scene in scenes)

    def counts(self) -> PairCounts:
        """Return the numbers of pairs. All pairs are in train. `hard_negatives`, here a share of scenes, is counted as
        that share of the pairs. Raises for a world with too few names."""
        world = load_world(self.world)
        self.check_names(world)
        number = len(world.pairs)
        return PairCounts(number, round(self.hard_negatives * number), number)

    def check_names(self, world: World) -> None:
        """Raise unless a world has enough animals and textures for scenes of different objects and for the classes."""
        further = *(4 for _ in self.triplets), *(k + 1 for k in self.searches), *self.exchanged
        most = max(*self.objects, *self.test_objects, *further)
        for names, what in ((world.animals, "animals"), (world.textures, "textures")):
            if len(names) < most:
                raise UserError(
                    f"scenes of {most} different objects need {most} {what}, but world {self.world!r} has "
                    f"{len(names)}; take another world, or lower objects and test_objects"
                )
        self.coverage_in(world)


def even_parts(total: int, number: int) -> list[int]:
    """Divide a total into whole parts that differ by at most one, the larger ones first."""
    return [total // number + (i < total % number) for i in range(number)]


KIND = MultiObjectRecipe
