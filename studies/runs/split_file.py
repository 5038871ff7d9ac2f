"""Split files for training runs: from the user (`--split FILE`), or made from recipes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.runs.data import FRACTIONS, Material, split_material

if TYPE_CHECKING:
    from menagerie.envs.scene import Scene
    from menagerie.generators.storage.folder import SplitFolder
    from menagerie.generators.storage.split_file import Split


@dataclass(frozen=True)
class SplitFile:
    """An existing split file. Its identity is its content."""

    content: str
    """Identity of recipe, scenes and texts, with pictures or without."""
    store: str
    """What decides the pixels of its images (`image_identity`)."""
    kind: str
    world: str
    side: int
    """Side of the split's images, in pixels."""
    tests: tuple[str, ...]
    hold_out: tuple[str, ...]
    place: tuple[tuple[str, Any], ...]
    """Place in a study, by axis."""
    seed: int
    """Seed in the recipe; the first seed of its training runs."""
    pairs: tuple[int, int, int]
    """Numbers of pairs in train, of swapped pairs, and of all pairs of its world."""

    @property
    def axes(self) -> dict[str, Any]:
        """The split's fractions, and its name if a study has several files."""
        return dict(self.place)

    @property
    def name(self) -> str:
        return str(self.axes.get("split", self.kind))

    @property
    def settings(self) -> dict[str, Any]:
        """The content and the images that decide results."""
        return {"kind": self.kind, "split_file": self.content, "store": self.store}

    @property
    def splits(self) -> tuple[()]:
        """Empty, because the file exists and nothing has to be rendered."""
        return ()

    def counts(self) -> dict[str, int]:
        return dict(zip(("training_pairs", "swapped_pairs", "all_pairs"), self.pairs, strict=True))

    def open(self, file: Path) -> Material:
        """Open the training subset, and a benchmark of each other subset; raises if the file has changed."""
        material = split_material(file)
        if material.train.split.content != self.content:
            raise UserError(f"{file} has changed since this run was started; start a new one with another --out")
        return material


def describe_file(file: Path, several: bool) -> SplitFile:
    """Describe a split file; raises `UserError` if it is damaged, or has nothing to train on."""
    from menagerie.generators.storage.split_file import read_split

    split = read_split(file)
    if not len(split.subsets["train"]):
        raise UserError(f"{file} has nothing to train on: it is a {split.recipe['kind']} split, for trained models")
    recipe, scenes = split.recipe, set(split.subsets["train"].scenes)
    animals = [frozenset(obj.animal for obj in scene.objects) for scene in scenes]
    two = {scene: pair for scene, pair in zip(scenes, animals, strict=True) if len(pair) == 2}
    swapped = {pair for scene, pair in two.items() if split.kind.swap(scene) in scenes}
    n = len(split.vocabulary.animals)
    place = {name: recipe[name] for name in FRACTIONS} | ({"split": file.stem} if several else {})
    counts = (len(set(two.values())), len(swapped), n * (n - 1) // 2)
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
        pairs=counts,
    )


def ordered_tests(split: "Split") -> tuple[str, ...]:
    """List the test subsets of a file in the order of recipes of its kind, unknown ones last."""
    names = sorted(split.subsets.keys() - {"train", "validation"})
    try:
        order = split.made_by.all_tests
    except UserError:  # a recipe of another version
        order = ()
    return (*(name for name in order if name in names), *(name for name in names if name not in order))


def make_splits(
    folder: "SplitFolder", recipes: Iterable[SplitRecipe], workers: int, names: Mapping[SplitRecipe, str] | None = None
) -> dict[SplitRecipe, Path]:
    """Make the split file of each recipe, and the missing atlas entries. An error begins with the recipe's name in
    `names`, if it has one."""
    from menagerie.envs.core.progress import progress_bars

    files = {}
    with progress_bars("factors") as progress:
        for recipe in dict.fromkeys(recipes):
            try:
                files[recipe] = folder.make(recipe, workers, progress)
            except UserError as error:
                name = (names or {}).get(recipe, "")
                raise (error.at(name) if name else error) from error
    return files


def scenes_needed(recipe: SplitRecipe, name: str) -> "list[Scene]":
    """Return the scenes that a recipe needs; an error begins with `name`."""
    try:
        return recipe.with_counterfactuals(recipe.subsets())
    except UserError as error:
        raise (error.at(name) if name else error) from error
