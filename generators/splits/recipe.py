"""The base class of recipes: frozen values that determine the scenes, texts and counterfactuals of a split.

A kind of split is a subclass, in a file of this folder that assigns it to `KIND`. It defines the scenes of its subsets
(`plan`) and the numbers of pairs (`counts`), and whatever else is special: which tasks its tests have (`tasks`),
what a hard negative exchanges (`exchanged`, `exchanges`, `swap`), what captions say (`content`), and what a test says
that training lacks or has (`own_facts`, `lacks`, `has`, `apart`, `claims`), which the audit checks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Int64

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SCENES, SHARE, VIEWS, validate
from menagerie.envs.scene import Scene
from menagerie.envs.slots import facings
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.contents import swapped_content, with_exchanged
from menagerie.generators.captions.hard_negatives.tasks import Task
from menagerie.generators.captions.spec import CaptionSpec
from menagerie.generators.captions.templates import TEMPLATES, Caption, Content, Template, content_of, write_caption
from menagerie.generators.coverage import Coverage, coverage_of
from menagerie.generators.parsers.world_grammar import check_phrasings
from menagerie.generators.rules.hold_out import (
    HELD_OUT,
    held_out_tests,
    matches_any,
    parse_rules,
    set_texts,
    with_sets,
)
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.facts import Claim, Fact

# Increase it when recipes give other scenes or texts: names of split files and cells depend on it.
VERSION = 1
Name = TypeVar("Name")
OF_RULES = ("hard_negatives", "hold_out")  # fields that kinds with held-out scenes of their own don't use
ENTROPIES = "entropies"  # in recorded recipes of probe sets: bits that say which objects a scene shows, and as what


class PairCounts(NamedTuple):
    """Numbers of animal pairs in train, of those whose swap is in train too, and of trainable pairs."""

    train: int
    swapped: int
    trainable: int


@dataclass(frozen=True)
class SplitRecipe(ABC):
    """Everything that determines a split, apart from the resolution."""

    kind: ClassVar[str]
    relational: ClassVar[bool] = False
    """Whether captions state the relation of two objects."""
    unused: ClassVar[tuple[str, ...]] = ()
    """Fields that the kind of split doesn't use. They must keep their defaults."""
    least_visible: ClassVar[float] = 0.0
    """Least share of each object that must be visible. Scenes in which other objects hide more are left out after
    rendering."""
    tests: ClassVar[tuple[str, ...]]
    """Test subsets, besides `train`, `validation` and the tests of rules."""
    title: ClassVar[str]
    """Name for what the tests measure, in reports."""
    swap_words: ClassVar[str]
    """Words for how a caption's hard negative differs from it, in reports."""
    tasks: ClassVar[Mapping[str, Task]] = {}
    """The tasks of tests besides `swap`, by name."""
    exchanges: ClassVar[str] = "texture"
    """What of two objects a hard negative exchanges: their texture or their slot."""
    names_all: ClassVar[bool] = True
    """Whether captions of tests mention all objects with their textures."""
    swapped_pairs: ClassVar[str] = ""
    """Words of `menagerie inspect` for the training pairs whose swap is in train too, if the kind counts them."""
    trains: ClassVar[bool] = True
    """Whether the split has scenes for training and validation."""

    world: Annotated[str, FIRST] = "pug"
    """Vocabulary of the scenes: a name, or a TOML file."""
    pairs: Annotated[float, FIRST, SHARE] = 0.2
    """Fraction of the trainable animal pairs that are in train."""
    hard_negatives: Annotated[float, FIRST, SHARE] = 0.0
    """Fraction of the training pairs whose swapped scenes are in train too."""
    views: Annotated[int, VIEWS] = 16
    """Views of each training scene."""
    test_views: Annotated[int, VIEWS] = 4
    """Views of each test and validation scene, none of them used in train."""
    test_scenes: Annotated[int, SCENES] = 400
    """The most scenes of one test or validation subset, drawn at random from all."""
    test_pairs: Annotated[float, SHARE] = 0.1
    """Share of all pairs on which no cell trains: the unseen pairs of the tests."""
    validation: Annotated[float, SHARE] = 0.1
    """Share of all pairs kept for validation."""
    seed: Annotated[int, FIRST] = 0
    """Determines pairs, textures or orders, and mention orders."""
    hold_out: Annotated[tuple[str, ...], FIRST] = ()
    """Rules such as "texture=red & animal=cat" (see docs/splits.md): matching scenes are only in the
    test `held_out`, and with several rules in a test of each."""
    template: str = "conjunction"
    """Template of the captions: OC-CLIP's (conjunction, relation), in PUG's style (pug-...), or one of several
    phrasings for each scene (free-...), or "the cat is red" (statement-...); see docs/splits.md."""
    phrasings: tuple[str, ...] = ()
    """Own phrasings in place of the template's, one drawn for each scene: "{place} i see {objects}"; empty: its own."""
    conjunction: str = ""
    """What joins two objects in captions: and, while, with, but, plus, ...; empty: as in the template."""
    mention_order: str = ""
    """Which object captions mention first: random, or slots (the left or upper one); empty: as in the template."""
    article: str = ""
    """a or the; empty: as in the template."""
    sets: tuple[str, ...] = ()
    """Sets of animals for rules, such as "felines={cat, lion}", besides those of the world."""

    def __post_init__(self) -> None:
        validate(self, str)
        check_template(self)
        for field in fields(self):
            if field.name in self.unused and getattr(self, field.name) != field.default:
                raise UserError(f"a {self.kind} split doesn't use {field.name}; leave it out")

    def texts(self, subset: str, scene: Scene) -> tuple[Caption, Caption | None]:
        """The caption of a scene and its hard negative, or None if it has none."""
        content, template = self.content(subset, scene), self.wording
        false = write_caption(swapped_content(content, self.swap), template) if content.negative else None
        return write_caption(content, template), false

    def content(self, subset: str, scene: Scene) -> Content:
        """What the caption of a scene says. Unless a kind of split says otherwise, scenes of two objects have a hard
        negative if the swap changes them and the caption, which in train may be incomplete, says all that it
        exchanges."""
        spec = self.caption_spec
        content = spec.training_content(scene) if subset == "train" else content_of(scene, self.seed, spec.template)
        whole = len(content.objects) == len(scene.objects) == 2
        complete = whole and (self.exchanges == "slot" or sorted(content.objects) == sorted(scene.objects))
        return content._replace(negative=complete and self.swap(scene) != scene)

    @abstractmethod
    def plan(self, world: World) -> dict[str, list[Scene]]:
        """The scenes of train, validation and all tests except those of rules, without scenes that rules hold out."""

    @property
    def train_range(self) -> range:
        """The views of train."""
        return range(self.views)

    @property
    def test_range(self) -> range:
        """The views of tests and validation."""
        return range(self.views, self.views + self.test_views)

    @abstractmethod
    def counts(self) -> PairCounts:
        """The numbers of pairs that the fractions amount to; raises if they are impossible."""

    def exchanged_pairs(self, scenes: Sequence[Scene]) -> Int64[np.ndarray, " n"] | None:
        """For each scene, the number of the pair of animals whose textures are exchanged. None for kinds of splits that
        have no such pairs."""
        return None

    def measure(self, subsets: Mapping[str, Sequence[Scene]]) -> dict[str, Any]:
        """Further values that a split file records beside the recipe, measured on its scenes."""
        return {}

    def leave_out(self, planned: Mapping[str, Sequence[Scene]], hidden: dict[str, list[int]]) -> dict[str, list[int]]:
        """Return, by subset, the numbers of the scenes to leave out. `hidden` has those in which less than
        `least_visible` of some object shows."""
        return hidden

    def rules(self, world: World) -> tuple[Rule, ...]:
        """The hold-out rules, parsed with the names of `world`."""
        return parse_rules(self.hold_out, with_sets(world, self.sets)) if self.hold_out else ()

    def with_used_sets(self) -> "SplitRecipe":
        """Return the recipe with exactly the sets that its rules name, those of the world included.

        It determines the same scenes without the sets in the world's file. So it gives the split its name, and split
        files record it.
        """
        rules = self.rules(load_world(self.world)) if self.hold_out else ()
        return replace(self, sets=set_texts(dict(named for rule in rules for named in rule.sets)))

    def coverage_in(self, world: World) -> Coverage:
        """The combinations of animal and texture, and which of them train shows."""
        return coverage_of(vars(self), world.animals, world.textures)

    @cached_property
    def caption_spec(self) -> CaptionSpec:
        """What decides the captions of the split."""
        return CaptionSpec(asdict(self))

    @property
    def wording(self) -> Template:
        """The template, with the recipe's changes."""
        return self.caption_spec.template

    def subsets(self) -> dict[str, list[Scene]]:
        """The scenes of train, validation and all tests; a subset may be empty."""
        world = with_sets(load_world(self.world), self.sets)
        check_phrasings(self.wording, world)
        self.rules(world)  # raises for a wrong one before scenes are drawn
        subsets = self.plan(world)
        if strange := subsets.keys() ^ {"train", "validation", *self.tests}:
            raise TypeError(f"plan of {type(self).__name__} and its tests differ in {', '.join(sorted(strange))}")
        return subsets | self.tests_of_rules(world, subsets) if self.hold_out else subsets

    def tests_of_rules(self, world: World, subsets: Mapping[str, list[Scene]]) -> dict[str, list[Scene]]:
        """The scenes of the tests of hold-out rules, besides `subsets`. Called only for kinds that support rules."""
        raise NotImplementedError

    def rule_tests(
        self, world: World, choose: Callable[[str, tuple[Rule, ...]], list[Scene]]
    ) -> dict[str, list[Scene]]:
        """The scenes that `choose` gives for the name and the rules of each test of rules. Raises if one has none."""
        tests = {name: choose(name, parse_rules(texts, world)) for name, texts in self.held_out_tests.items()}
        if empty := next((name for name, scenes in tests.items() if not scenes), None):
            shown = " or ".join(self.held_out_tests[empty])
            raise UserError(f"hold_out {shown!r} matches no scene that could be tested; widen it")
        return tests

    @property
    def held_out_tests(self) -> dict[str, tuple[str, ...]]:
        """The tests of the hold-out rules, each with its rules."""
        return held_out_tests(self.hold_out)

    @property
    def all_tests(self) -> tuple[str, ...]:
        """The names of all test subsets, the tests of rules last."""
        return (*self.tests, *self.held_out_tests)

    @property
    def judged(self) -> tuple[str, ...]:
        """The tests by which studies judge a model: `held_out` if there are rules, else the tests of unseen pairs,
        else those of other unseen scenes."""
        if self.hold_out:
            return (HELD_OUT,)
        pairs = tuple(test for test in self.tests if test.endswith("unseen_pairs"))
        return pairs or tuple(test for test in self.tests if "unseen" in test)

    def keep(self, world: World, scenes: list[Scene]) -> list[Scene]:
        """Return the scenes that no rule holds out, with facings (`with_facings`) and, in a world with sizes, drawn
        sizes.

        A scene and its swap get the same sizes, so that hard negatives in train differ only by the swap. If rules hold
        out a scene in its drawn sizes, it gets others, if possible. Single-object scenes have their sizes already.
        """
        if world.sizes:
            scenes = [scene if scene.objects[0].size else self.with_sizes(world, scene) for scene in scenes]
        rules = self.rules(world)
        return [scene for scene in map(self.with_facings, scenes) if not matches_any(rules, scene)]

    def sample(self, world: World, scenes: list[Scene], most: int, *parts: str) -> list[Scene]:
        """Draw at random at most `most` of the scenes that rules leave, with sizes and facings (`keep`); `parts` is
        added to the seed."""
        random = generator(self.seed, "draw", *parts)
        if self.hold_out:  # filter first, so that tests keep their size
            return sample_scenes(self.keep(world, scenes), most, random)
        return self.keep(world, sample_scenes(scenes, most, random))  # draw first: it saves drawing facings

    def with_sizes(self, world: World, scene: Scene) -> Scene:
        """Return the scene in drawn sizes. Its swap gets the same. Sizes that rules hold out are avoided if
        possible."""
        choices, key = list(world.in_sizes(scene)), min(scene.key, self.swap(scene).key)
        drawn = [choices[i] for i in generator(self.seed, "sizes", key).permutation(len(choices))]
        rules = self.rules(world)
        return next((scene for scene in drawn if not matches_any(rules, scene)), drawn[0])

    def with_facings(self, scene: Scene) -> Scene:
        """Draw facings for a scene of a left and a right object, so that they say nothing of the place. Its swap gets
        the same, whatever the sizes. Other scenes are returned as they are."""
        if scene.relation != "left/right":
            return scene
        sizes = any(obj.size for obj in scene.objects)
        bare = replace(scene, objects=tuple(obj._replace(size="") for obj in scene.objects)) if sizes else scene
        random = generator(self.seed, "facing", min(bare.key, self.swap(bare).key))
        slots = [choices[random.integers(len(choices))] for choices in (facings(obj.slot) for obj in scene.objects)]
        objects = zip(scene.objects, slots, strict=True)
        return replace(scene, objects=tuple(obj._replace(slot=slot) for obj, slot in objects))

    @classmethod
    def exchanged_objects(cls, scene: Scene) -> Sequence[int]:
        """The indices of the two objects of a scene that its swap changes."""
        return range(len(scene.objects))

    @classmethod
    def swap(cls, scene: Scene) -> Scene:
        """The scene that the hard negative of `scene` describes."""
        return with_exchanged(scene, cls.exchanged_objects(scene), cls.exchanges)

    @classmethod
    def cluster(cls, scene: Scene) -> str:
        """The names of the animals that the swap changes. Tests of the same animals form a cluster."""
        return " + ".join(sorted(scene.objects[i].animal for i in cls.exchanged_objects(scene)))

    @classmethod
    def tasks_of(cls, subset: str) -> Mapping[str, Task]:
        """The tasks of a subset besides `swap`."""
        return cls.tasks

    @classmethod
    def same_words(cls, subset: str) -> bool:
        """Whether the hard negatives of a subset have the words of their captions."""
        return True

    def own_facts(self, scene: Scene) -> Iterable[Fact]:
        """Facts of a scene on which claims of this kind rely, besides those of `facts.facts_of`."""
        return ()

    def lacks(self, subset: str) -> Claim | None:
        """What the name of a subset says that training lacks; None if it only says that the images are new.

        Another training may have it. Then the record is left out of a model's numbers."""
        return None

    def has(self, subset: str) -> Claim | None:
        """What the split's training has of each scene of a subset; None if it says nothing of that."""
        return None

    def apart(self, scene: Scene) -> Iterable[Fact]:
        """The facts of a scene that validation shares neither with tests nor with train, such as its pair."""
        return ()

    def claims(self, subsets: Mapping[str, Any]) -> Iterator[tuple[str, Iterable[str]]]:
        """Further claims on a split's `Records`, by subset, each with the counterexamples that the audit names."""
        return iter(())

    def with_counterfactuals(self, subsets: Mapping[str, list[Scene]]) -> list[Scene]:
        """Return all scenes of the subsets and the counterfactuals of those in tests and validation (see `Records`),
        each once."""
        counterfactuals = {self.swap(scene) for name, scenes in subsets.items() if name != "train" for scene in scenes}
        return sorted(counterfactuals.union(*subsets.values()))


def recorded_fields(recipe: SplitRecipe) -> dict:
    """A recipe as split files record it, with the sets that its rules name."""
    return {"kind": recipe.kind} | asdict(recipe.with_used_sets())


def check_template(recipe: SplitRecipe) -> None:
    """Raise for an unknown template, and for one that states a relation where this kind of split states none, or the
    reverse."""
    if len(recipe.wording.phrasings) > 255:  # raises before for an unknown template, and for fields that don't fit it
        raise UserError(f"phrasings: {len(recipe.wording.phrasings)} of them; a split file has room for 255")
    fitting = [name for name, template in TEMPLATES.items() if template.relation == recipe.relational]
    if recipe.template not in fitting:
        stated = "no relation, but every" if recipe.relational else "a relation, but no"
        raise UserError(
            f"the template {recipe.template!r} states {stated} {recipe.kind} split does; choose {' or '.join(fitting)}"
        )


def set_apart(recipe: SplitRecipe, names: list[Name], what: str) -> tuple[list[Name], list[Name], list[Name]]:
    """Divide shuffled names into the test pairs, validation and the rest. A share above 0 gives at least one name.
    Raises if nothing is left to train on."""
    shares = recipe.test_pairs, recipe.validation
    n_tested, n_validation = (max(round(share * len(names)), 1) if share > 0 else 0 for share in shares)
    n_apart = n_tested + n_validation
    if not names[n_apart:]:
        raise UserError(
            f"test_pairs {recipe.test_pairs:g} and validation {recipe.validation:g} leave none of the {len(names)} "
            f"{what} of world {recipe.world!r} to train on; lower one of them"
        )
    return names[:n_tested], names[n_tested:n_apart], names[n_apart:]


def sample_scenes(scenes: list[Scene], most: int, rng: np.random.Generator) -> list[Scene]:
    """Draw at most `most` scenes at random, and keep their order."""
    if len(scenes) <= most:
        return scenes
    return [scenes[i] for i in sorted(rng.choice(len(scenes), most, replace=False))]
