"""The options of a multi-object split, the checks of their values, and the names of its tests."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from menagerie.envs.core.errors import UserError, not_allowed
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SCENES, SHARE, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.envs.world import World
from menagerie.generators.captions.spec import SEARCH, CaptionSpec
from menagerie.generators.coverage import Coverage, coverage_of, round_coverage
from menagerie.generators.splits.recipe import SplitRecipe

Objects = Annotated[tuple[int, ...], FIRST, Several(1), Range(1, MOST)]


@dataclass(frozen=True)
class MultiObjectOptions(SplitRecipe):
    """The fields of a multi-object split's recipe."""

    kind: ClassVar[str] = "multi-object"
    title: ClassVar[str] = "Many objects"
    task: ClassVar[str] = "the same words with the textures of two objects exchanged"

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

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, only in (("pairs", 1), ("test_pairs", 0), ("validation", 0)):
            if getattr(self, name) != only:
                raise UserError(f"{name} must be {only} in a multi-object split, which sets no pairs of animals apart")
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
        numbered = [f"{kind}_{n}" for kind in kinds for n in self.test_objects]
        features = [f"{SEARCH}_feature_{k}" for k in self.searches]
        searches = [*features, *(f"{SEARCH}_conjunction_{k}" for k in self.searches if k > 1)]
        return (*numbered, *searches, *(f"triplets_{t}" for t in self.triplets))

    @property
    def judged(self) -> tuple[str, ...]:
        """The tests by which studies judge a model: `held_out` if there are rules, else those of unseen compositions,
        else those of more objects than train shows, else all."""
        unseen = tuple(test for test in self.tests if test.startswith("unseen"))
        more = tuple(f"seen_{n}" for n in self.test_objects if n > max(self.objects))
        return super().judged if self.hold_out else unseen or more or self.tests

    @property
    def caption_spec(self) -> CaptionSpec:
        return CaptionSpec(vars(self))


def coverage_in(recipe: MultiObjectOptions, world: World) -> Coverage:
    """Return the compositions of a recipe, given its world."""
    return coverage_of(vars(recipe), world.animals, world.textures)


def check_names(recipe: MultiObjectOptions, world: World) -> None:
    """Raise unless the recipe's world has enough animals and textures for scenes of different objects and for its
    classes."""
    most = max(*recipe.objects, *recipe.test_objects, *(4 for _ in recipe.triplets), *(k + 1 for k in recipe.searches))
    for names, what in ((world.animals, "animals"), (world.textures, "textures")):
        if len(names) < most:
            raise UserError(
                f"scenes of {most} different objects need {most} {what}, but world {recipe.world!r} has {len(names)}; "
                "take another world, or lower objects and test_objects"
            )
    coverage_in(recipe, world)
