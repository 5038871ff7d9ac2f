"""The data of a training run and its tests."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import changed_fields, defaults_version, json_value
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import VERSION, PairCounts, SplitRecipe

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.benchmark import Benchmark
    from menagerie.generators.captioned import Captioned
    from menagerie.generators.familiarity import Familiar
    from menagerie.generators.storage.folder import SplitFolder
    from menagerie.generators.storage.split_file import Split
    from menagerie.generators.vocabulary import Vocabulary


FRACTIONS = ("pairs", "hard_negatives")  # fields that every recipe and every table has


class Material(NamedTuple):
    """Opened data: training data, and tests by name."""

    train: "Captioned"
    tests: Mapping[str, "Benchmark"]
    """Among them "validation" if the data have one."""
    texts: Sequence[str]
    """All texts that training and tests may contain."""
    content: Callable[[int], str]
    """Returns a text of everything that decides an item of `train`. Runs with the same items share steps."""
    may_be_cut: bool = False
    """Whether texts longer than the model's context are cut, as for photographs; otherwise they are refused."""
    words: "Vocabulary | None" = None
    """Names in the data's world; None for photographs."""


@runtime_checkable
class CellData(Protocol):
    """Describes data without opening it."""

    axes: dict[str, Any]
    """The data's place in a study, as columns of the results."""
    name: str
    """Short text for progress bars."""
    kind: str
    """Kind of the split, or "photographs"; tuned recipes record the kind that they were tuned for."""
    tests: tuple[str, ...]
    """The test subsets in the order of tables, without validation; of photographs "validation" alone."""
    settings: dict[str, Any]
    """All settings that decide the data."""
    splits: "tuple[SplitData, ...]"
    """The splits that have to be rendered before the data can be opened; `open` is given the file of the first."""

    def counts(self) -> dict[str, int]:
        """Return numbers that describe the data: pairs in train, swapped pairs, and all pairs that fractions count."""

    def open(self, file: Path) -> Material:
        """Open the data in a file. Raises `UserError` if the file has other data."""


@dataclass(frozen=True)
class SplitData:
    """A split of one of the project's worlds."""

    recipe: SplitRecipe
    store: str  # what decides the pixels of its images (`image_identity`)
    varied: tuple[str, ...] = ()  # further fields of the recipe that a study varies

    @property
    def axes(self) -> dict[str, Any]:
        return {name: json_value(getattr(self.recipe, name)) for name in (*FRACTIONS, *self.varied)}

    @property
    def name(self) -> str:
        place = [f"{self.recipe.pairs:.0%} pairs", f"{self.recipe.hard_negatives:.0%} negatives"]
        if not type(self.recipe)().test_pairs:  # no pairs are held out, as in multi-object splits
            place = place[1:] if self.recipe.hard_negatives else []
        return " ".join([*place, *(f"{name} {getattr(self.recipe, name)}" for name in self.varied)])

    @property
    def kind(self) -> str:
        return self.recipe.kind

    @property
    def tests(self) -> tuple[str, ...]:
        return self.recipe.all_tests

    @property
    def settings(self) -> dict[str, Any]:
        texts = {"kind": self.recipe.kind, "version": VERSION, **defaults_version(type(self.recipe))}
        return texts | {"store": self.store, "split": changed_fields(self.recipe.with_used_sets())}

    @property
    def splits(self) -> "tuple[SplitData, ...]":
        return (self,)

    def counts(self) -> dict[str, int]:
        counts = self.recipe.counts()
        return {"training_pairs": counts.train, "swapped_pairs": counts.swapped, "all_pairs": counts.trainable}

    def open(self, file: Path) -> Material:
        from menagerie.generators.storage.split_file import check_recipe

        material = split_material(file)
        check_recipe(material.train.split, self.recipe, self.store)
        return material


def split_material(file: Path) -> Material:
    """Open a split: its training subset, and a benchmark of each other subset."""
    from menagerie.generators.benchmarks.split_tests import SplitTests
    from menagerie.generators.storage.dataset import SplitDataset

    train = SplitDataset(file, "train")
    others = sorted(train.split.subsets.keys() - {"train"})
    tests = {name: SplitTests(SplitDataset(train.split, name)) for name in others}
    texts = {caption.text for test in tests.values() for item in test.items for caption in item.texts}
    every = sorted(texts.union(split_texts(train.split)))

    def content(index: int) -> str:
        r = train.records
        return json.dumps([train.split.identity, r.scenes[index].key, r.captions[index], r.graphs[index]])

    return Material(train, tests, every, content, words=train.split.vocabulary)


def familiar_data(train: "Captioned") -> "Familiar | None":
    """Return what a run's own training data show and say; None for photographs, also where a split is mixed in."""
    from menagerie.generators.familiarity import familiar_records
    from menagerie.generators.sources.mixture import CaptionedSubset
    from menagerie.generators.storage.dataset import SplitDataset

    whole, rows = (train.whole, train.indices) if isinstance(train, CaptionedSubset) else (train, range(len(train)))
    return familiar_records(whole.records, rows) if isinstance(whole, SplitDataset) else None


def split_texts(split: "Split") -> Iterator[str]:
    """Yield all texts of a split, and the names of its world, as tests may have some that captions leave out."""
    from menagerie.generators.captions.templates import bare_mentions, template_of
    from menagerie.generators.storage.records import KEPT

    for r in split.subsets.values():
        if len(r) > KEPT:
            yield from r.texts()
            continue
        yield from r.captions
        yield from (negative for negative in r.negatives if negative)
        for graph in r.graphs:
            yield from graph.nodes
            yield from (edge.predicate for edge in graph.edges)
    v = split.vocabulary
    yield from (*bare_mentions(template_of(split.recipe), v.animals), *v.textures, *v.backgrounds, *v.sizes)


@lru_cache(maxsize=4096)
def counts_of(recipe: SplitRecipe) -> PairCounts:
    """Return `recipe.counts()`, computed once."""
    return recipe.counts()


@lru_cache(maxsize=4096)
def distinct_images(recipe: SplitRecipe) -> int:
    """Count the different images in train, single-object scenes included, without a split file."""
    if type(recipe) is not BindingRecipe or recipe.hold_out or recipe.compositions < 1:
        return len(set(recipe.subsets()["train"]))
    world, counts = load_world(recipe.world), counts_of(replace(recipe, singles_views=0))
    lone = sum(1 for _ in world.singles()) * (recipe.singles_views or recipe.views)
    orders = 2  # left and right
    return lone + (counts.train + counts.swapped) * orders * len(world.backgrounds) * recipe.views


@dataclass(frozen=True)
class SplitFile:
    """An existing split file. Its identity is its content."""

    content: str
    """Identity of recipe, scenes and texts, with pictures or without."""
    store: str  # what decides the pixels of its images (`image_identity`)
    kind: str
    world: str
    side: int  # of the split's images, in pixels
    tests: tuple[str, ...]
    hold_out: tuple[str, ...]
    place: tuple[tuple[str, Any], ...]
    """The split's fractions, and its name if a study has several files."""
    seed: int  # in the recipe; the first seed of its training runs
    pairs: tuple[int, int, int]  # in train, swapped, and of its world
    splits: ClassVar[tuple[()]] = ()

    @property
    def axes(self) -> dict[str, Any]:
        return dict(self.place)

    @property
    def name(self) -> str:
        return str(self.axes.get("split", self.kind))

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": self.kind, "split_file": self.content, "store": self.store}

    def counts(self) -> dict[str, int]:
        return dict(zip(("training_pairs", "swapped_pairs", "all_pairs"), self.pairs, strict=True))

    def open(self, file: Path) -> Material:
        material = split_material(file)
        if material.train.split.content != self.content:
            raise UserError(f"{file} has changed since this run was started; start a new one with another --out")
        return material


def describe_file(file: Path, several: bool) -> SplitFile:
    """Describe a split file; raises `UserError` if it is damaged, or has nothing to train on."""
    from menagerie.generators.storage.split_file import read_split

    split = read_split(file)
    recipe, scenes = split.recipe, set(split.subsets["train"].scenes)
    if not scenes:
        raise UserError(f"{file} has nothing to train on: it is a {recipe['kind']} split, for trained models")
    shown = {scene: frozenset(obj.animal for obj in scene.objects) for scene in scenes}
    pairs = {scene: animals for scene, animals in shown.items() if len(animals) == 2}
    swapped = {animals for scene, animals in pairs.items() if split.kind.swap(scene) in scenes}
    n = len(split.vocabulary.animals)
    place = {name: recipe[name] for name in FRACTIONS} | ({"split": file.stem} if several else {})
    return SplitFile(
        content=split.content,
        store=split.identity,
        kind=recipe["kind"],
        world=recipe["world"],
        side=split.resolution,
        tests=ordered_tests(split),
        hold_out=tuple(recipe.get("hold_out", ())),
        place=tuple(place.items()),
        seed=recipe["seed"],
        pairs=(len(set(pairs.values())), len(swapped), n * (n - 1) // 2),
    )


def ordered_tests(split: "Split") -> tuple[str, ...]:
    """List the test subsets of a file in the order of recipes of its kind, unknown ones last."""
    names = sorted(split.subsets.keys() - {"train", "validation"})
    order: tuple[str, ...] = ()
    with suppress(UserError):  # a recipe of another version
        order = split.made_by.all_tests
    return (*(name for name in order if name in names), *(name for name in names if name not in order))


def make_splits(
    folder: "SplitFolder", recipes: Iterable[SplitRecipe], workers: int, names: Mapping[SplitRecipe, str] | None = None
) -> dict[SplitRecipe, Path]:
    """Make the split file of each recipe, and missing atlas entries. An error begins with the name in `names`."""
    from menagerie.envs.core.progress import progress_bars

    files = {}
    with progress_bars("factors") as progress:
        for recipe in dict.fromkeys(recipes):
            with naming_errors((names or {}).get(recipe, "")):
                files[recipe] = folder.make(recipe, workers, progress)
    return files


@contextmanager
def naming_errors(name: str) -> Iterator[None]:
    """Begin errors in this context with a name, unless it is empty."""
    try:
        yield
    except UserError as error:
        raise (error.at(name) if name else error) from error
