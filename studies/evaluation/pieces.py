"""Models on splits: the splits of a command line, files or recipes, and each model on each, scored once."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.benchmark import Benchmark
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import VERSION, SplitRecipe
from menagerie.generators.splits.recipe_file import read_recipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.pixels import open_split
from menagerie.generators.storage.split_file import Split, content_identity
from menagerie.models.contract import attempt
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.pictures import Framed
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Texts
from menagerie.studies.evaluation.loop import cut_record
from menagerie.studies.evaluation.models import Model
from menagerie.studies.runs.evaluation import FILE, evaluate
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result
from menagerie.studies.runs.split_file import make_splits, tests_of


@dataclass(frozen=True)
class TestedSplit:
    """A split that was opened."""

    label: str
    split: Split

    @property
    def identity(self) -> str:
        """Hash of its scenes and texts and of the store that shows them; the same for a packed file."""
        return content_identity(self.split)

    def tests(self) -> Mapping[str, SplitTests]:
        """A benchmark of each subset but train."""
        names = (*tests_of(self.split), "validation")
        return {name: SplitTests(SplitDataset(self.split, name, preload=False)) for name in names}


def splits_of(names: Sequence[str], world: str, prepare: Callable[[SplitRecipe], Path]) -> list[TestedSplit]:
    """All splits, recipes rendered by `prepare`; every name is checked before anything is rendered."""
    recipes = recipes_of(names, world)
    labels = [Path(name).stem for name in names]
    opened = []
    for name, label in zip(names, labels, strict=True):
        unique = label if labels.count(label) == 1 else name
        opened.append(TestedSplit(unique, open_split(prepare(recipes[name]) if name in recipes else Path(name))))
    if len({split.label for split in opened}) < len(opened):
        raise UserError(f"one of --splits is given twice: {' '.join(names)}")
    return opened


def recipes_of(names: Sequence[str], world: str) -> dict[str, SplitRecipe]:
    """The recipes among splits by name; raises for a name of nothing, and for fractions that can't be had."""
    recipes = {name: recipe_of(name, world) for name in names if not is_split_file(name)}
    for recipe in recipes.values():
        recipe.counts()
    if missing := next((name for name in names if name not in recipes and not Path(name).is_file()), None):
        raise UserError(f"--splits {missing}: there is no such file; make it with 'menagerie make'")
    return recipes


def is_split_file(name: str) -> bool:
    """Whether a name is that of a file, there or not, rather than of a recipe."""
    return Path(name).suffix in (".h5", ".hdf5") or (Path(name).is_file() and not name.endswith(".toml"))


def recipe_of(name: str, world: str) -> SplitRecipe:
    """A recipe by name or from a TOML file, in the world that it says or in another."""
    recipe = read_recipe(name)
    return replace(recipe, world=world) if world else recipe


def render(recipe: SplitRecipe, root: Path, resolution: int, workers: int) -> Path:
    """Render what the store lacks of a recipe's scenes, and write its split file."""
    store = ImageStore(root, load_world(recipe.world), resolution)
    return make_splits(store, [recipe], workers)[recipe]


BLOCK = 256  # texts that are read at once


@dataclass(frozen=True)
class Piece:
    """A model and a split, and the folder of their results."""

    model: Model
    split: TestedSplit
    out: Path
    id: str
    """Hash of the weights, and of the split's content."""

    @property
    def folder(self) -> Path:
        """The folder of its result and its predictions."""
        return self.out / "cells" / self.id

    @property
    def name(self) -> str:
        return f"{self.model.label} on {self.split.label}"


def pieces_of(models: list[Model], splits: list[TestedSplit], out: Path) -> list[Piece]:
    contents = {split.label: split.identity for split in splits}
    found = []
    for model in models:
        for split in splits:
            what = {"model": model.weights, "split": contents[split.label], "version": VERSION}
            found.append(Piece(model, split, out, digest(what)))
    return found


def score_piece(
    piece: Piece, loaded: LoadedScorer, tests: Mapping[str, Benchmark], report: Callable[[int], None]
) -> None:
    """Score all tests of a split, and write predictions and then the result; `report` receives numbers of images.

    Raises where the model can't, or where its scores are no numbers.
    """
    started = time.perf_counter()
    framed = {name: Framed(test, loaded.framing, report) for name, test in tests.items()}
    subsets = attempt(piece.model.label, "fails", lambda: evaluate(piece.folder, framed, loaded.scorer))
    result = {
        **{"id": piece.id, "model": piece.model.label, "split": piece.split.label, "subsets": subsets},
        "cut": attempt(piece.model.label, "fails", lambda: cut_record(loaded.scorer, texts_of(tests))),
        **{"seconds": round(time.perf_counter() - started, 1), "provenance": provenance()},
    }
    write_result(piece.folder, result, (FILE,))


def check_texts(scorer: Scorer, tests: Mapping[str, Benchmark]) -> None:
    """Raise for the first text that a scorer can't read: an unknown word, a missing graph."""
    texts = texts_of(tests)
    for start in range(0, len(texts), BLOCK):
        scorer.reader(Texts(*zip(*texts[start : start + BLOCK], strict=True)))


def texts_of(tests: Mapping[str, Benchmark]) -> list[Caption]:
    return list(dict.fromkeys(text for test in tests.values() for text in test.texts))


def images_of(tests: Mapping[str, Benchmark]) -> int:
    """Images that scoring reads."""
    return sum(len({number for item in test.items for number in item.images}) for test in tests.values())
