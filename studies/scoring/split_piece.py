"""Models on splits: the splits of a command line, files or recipes, and each model on each, scored once."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

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
from menagerie.generators.storage.split_file import content_identity
from menagerie.models.contract import attempt
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.pictures import Framed
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Texts
from menagerie.studies.runs.evaluation import FILE, evaluate
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result
from menagerie.studies.runs.split_file import make_splits, tests_of
from menagerie.studies.scoring.cut_texts import cut_record
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.piece import How, Piece

Tests = Mapping[str, Benchmark]
BLOCK = 256  # texts that are read at once


class TestedSplit(NamedTuple):
    """A split that models are scored on."""

    label: str
    path: Path
    content: str
    """Hash of its scenes and texts and of the store that shows them; the same for a packed file."""
    tests: tuple[str, ...]
    images: int


@dataclass(frozen=True)
class SplitPiece(Piece):
    """A model on a split."""

    split: TestedSplit

    @property
    def tests(self) -> tuple[str, ...]:
        return self.split.tests

    def score(self, prepared: LoadedScorer, report: Callable[[int], None]) -> None:
        """Score all tests, and write predictions and then the result."""
        content, tests = opened(self.split.path)
        if content != self.split.content:
            raise UserError(f"{self.split.path} has changed since this command was started; start it again")
        check_texts(prepared.scorer, tests)
        started = time.perf_counter()
        framed = {name: Framed(test, prepared.framing, report) for name, test in tests.items()}
        subsets = attempt(self.model, "fails", lambda: evaluate(self.folder, framed, prepared.scorer))
        result = {
            **{"id": self.id, "model": self.model, "split": self.label, "subsets": subsets},
            "cut": attempt(self.model, "fails", lambda: cut_record(prepared.scorer, texts_of(tests))),
            **{"seconds": round(time.perf_counter() - started, 1), "provenance": provenance()},
        }
        write_result(self.folder, result, (FILE,))


@cache
def opened(path: Path) -> tuple[str, Tests]:
    """The identity of a split's content, and a benchmark of each of its subsets but train."""
    split = open_split(path)
    names = (*tests_of(split), "validation")
    return content_identity(split), {name: SplitTests(SplitDataset(split, name, preload=False)) for name in names}


def split_at(label: str, path: Path) -> TestedSplit:
    """A split that is there; raises for a file that is none."""
    content, tests = opened(path)
    names = tuple(name for name in tests if name != "validation")
    return TestedSplit(label, path, content, names, sum(map(images_of, tests.values())))


def piece_of(model: Model, split: TestedSplit, how: How) -> SplitPiece:
    """One model on one split."""
    what = {"model": model.weights, "split": split.content, "version": VERSION}
    return SplitPiece(model, split.label, digest(what), split.images, how, split)


def labels_of(names: Sequence[str]) -> dict[str, str]:
    """For each split of a command line its name in tables, the file's where no other has it; raises for one that is
    given twice."""
    stems = [Path(name).stem for name in names]
    if len(set(names)) < len(names):
        raise UserError(f"one of --splits is given twice: {' '.join(names)}")
    return {name: stem if stems.count(stem) == 1 else name for name, stem in zip(names, stems, strict=True)}


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


def check_texts(scorer: Scorer, tests: Tests) -> None:
    """Raise for the first text that a scorer can't read: an unknown word, a missing graph."""
    texts = texts_of(tests)
    for start in range(0, len(texts), BLOCK):
        scorer.reader(Texts(*zip(*texts[start : start + BLOCK], strict=True)))


def texts_of(tests: Tests) -> list[Caption]:
    return list(dict.fromkeys(text for test in tests.values() for text in test.texts))


def images_of(test: Benchmark) -> int:
    """Images that scoring reads."""
    return len({number for item in test.items for number in item.images})
