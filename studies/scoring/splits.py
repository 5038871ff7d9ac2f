"""Models on splits: the splits of a command line, files or recipes; their pieces; and their numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import file_names, write_csv
from menagerie.envs.core.identity import digest
from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Scores
from menagerie.generators.benchmarks.photographs import group_by_task
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.benchmarks.words_alone import words_alone
from menagerie.generators.captions.templates import Caption
from menagerie.generators.familiarity import Familiar, familiar_training
from menagerie.generators.splits.recipe import VERSION, SplitRecipe
from menagerie.generators.splits.recipe_file import FROZEN, read_recipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import COLUMNS as TRAINED
from menagerie.generators.trained_on import Overlap, Training, measure_overlap, overlap_columns
from menagerie.models.evaluation.scoring import score_items
from menagerie.models.judges.judge import Judge
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.pictures import framed_benchmark
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Texts
from menagerie.studies.analysis.tables import FLAG, NEAR, TEXT_SCORE
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.estimate import NOTHING
from menagerie.studies.frame.parts import Part, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.data import ordered_tests
from menagerie.studies.runs.evaluation import FILE, Results, evaluate
from menagerie.studies.scoring.cards import COLUMNS as SCORE_COLUMNS
from menagerie.studies.scoring.cards import score_row
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.page import Score, ScoredTest, coverage_parts, named_results, short_names
from menagerie.studies.scoring.piece import SCORES, Piece, cut_record, images_needed

Tests = Mapping[str, Benchmark]
BLOCK = 256  # texts that are read at once
COLUMNS = ("model", "split", "subset", "task", "accuracy", "official", "tie_rate", "n", "cell", *TRAINED)


@dataclass(frozen=True)
class SplitPiece(Piece):
    """A model on a split."""

    path: Path
    content: str
    """Hash of the split's scenes and texts and of what decides its images, wherever these are kept."""
    tests: tuple[str, ...]
    covered: Mapping[str, Overlap]
    """What the model's training had of each subset. Records that it had are left out."""
    frozen: bool  # whether it is a frozen benchmark, of which all scores are kept
    on: ClassVar[str] = "split"

    @property
    def kept(self) -> tuple[str, ...]:
        return (FILE, SCORES) if self.frozen else (FILE,)

    def asked(self) -> Sequence[Benchmark]:
        return list(without_left_out(open_split_tests(self.path)[1], self.covered).values())

    def rows(self, result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for subset, tasks in result["subsets"].items():
            had = overlap_columns(self.covered[subset])
            for task, scores in tasks.items():
                yield {**result, "cell": self.id, "subset": subset, "task": task, **scores, **had}

    def notes(self, result: Mapping[str, Any]) -> Iterator[str]:
        """Yield what isn't known of the model's training, and how many records are left out of each test."""
        covered = self.covered.items()
        yield from dict.fromkeys(f"training unknown: {'; '.join(had.gaps)}" for _, had in covered if had.gaps)
        yield from (f"its training had, of {subset}, {had}" for subset, had in covered if had.lost)

    def score(self, loaded: LoadedScorer | Judge, report: Callable[[int], None]) -> dict[str, Any]:
        """Score all tests, and write predictions; of a frozen benchmark also all scores."""
        content, tests = open_split_tests(self.path)
        if content != self.content:
            raise UserError(f"{self.path} has changed since this command was started; start it again")
        if isinstance(loaded, Judge):
            scorer: Scorer | Judge = loaded
        else:
            scorer, texts = loaded.scorer, texts_of_tests(tests)
            for start in range(0, len(texts), BLOCK):  # raises for an unknown word or a missing graph
                scorer.reader(Texts(*zip(*texts[start : start + BLOCK], strict=True)))
            tests = {name: framed_benchmark(test, loaded.framing, report) for name, test in tests.items()}
        counted = without_left_out(tests, self.covered)
        trained = familiar_training(self.tested.training)
        if self.frozen:
            subsets = self.score_frozen(tests, counted, scorer, trained)
        else:
            subsets = evaluate(self.folder, counted, scorer, trained=trained)
        return {"subsets": subsets, "cut": cut_record(scorer, texts_of_tests(tests))}

    def score_frozen(self, tests: Tests, counted: Tests, scorer: Scorer | Judge, trained: Familiar | None) -> Results:
        """Score the counted records, and write the scores of all, also of those that are left out, which are marked."""
        found: dict[tuple[str, str, str], tuple[object, ...]] = {}

        def keep(subset: str, items: Sequence[Item], scores: Sequence[Scores], had: bool = False) -> None:
            both = zip(items, scores, strict=True)
            found.update({(subset, item.task, item.record): score_row(subset, item, its, had) for item, its in both})

        results = evaluate(self.folder, counted, scorer, keep, trained)
        for subset, test in tests.items():
            rest = [item for item in test.items if (subset, item.task, item.record) not in found]
            keep(subset, rest, score_items(scorer, test, rest) if rest else [], True)
        order = [(subset, item.task, item.record) for subset, test in tests.items() for item in test.items]
        write_csv(self.folder / SCORES, SCORE_COLUMNS, map(found.__getitem__, order))
        return results


def without_left_out(tests: Tests, had: Mapping[str, Overlap]) -> dict[str, Benchmark]:
    """Return the tests without the items that are left out."""
    made = {name: copy(test) for name, test in tests.items()}
    for name, test in made.items():
        test.items = [item for item in test.items if had[name].left_out.isdisjoint(item.images)]
    return made


@cache
def open_split_tests(path: Path) -> tuple[str, Mapping[str, SplitTests]]:
    """Return the identity of a split's content, and a benchmark of each of its subsets but train."""
    split = read_split(path)
    names = (*ordered_tests(split), "validation")
    return split.content, {name: SplitTests(SplitDataset(split, name, preload=False)) for name in names}


@cache
def bags_in(path: Path) -> dict[tuple[str, str], float]:
    """Return what the best bag of words gets on each subset and task of a split."""
    tests = ((name, test, group_by_task(test.items, test.items)) for name, test in open_split_tests(path)[1].items())
    every = {(name, task): words_alone(test, items) for name, test, tasks in tests for task, items in tasks.items()}
    return {key: its.bag for key, its in every.items() if its}


def split_piece(model: Model, label: str, path: Path, frozen: bool = False, **how: Any) -> SplitPiece:
    """Return the piece of a model on the split in a file. Raises if the file isn't a split."""
    content, tests = open_split_tests(path)
    had = overlap_by_subset(model.training, path)
    images = sum(images_needed(test) for test in without_left_out(tests, had).values())
    kept = {"kept": (FILE, SCORES)} if frozen else {}  # a frozen benchmark has another id than its split
    left = {subset: sorted(its.left_out) for subset, its in had.items() if its.left_out}
    without = {"left_out": left} if left else {}  # with all records the id is that of before records were left out
    name = digest({"model": model.weights, "split": content, "version": VERSION, **kept, **without})
    subsets = tuple(subset for subset in tests if subset != "validation")
    return SplitPiece(model, label, name, images, path, content, subsets, had, frozen, **how)


@cache
def overlap_by_subset(training: Training, path: Path) -> dict[str, Overlap]:
    """Return what a training had of each subset, but train, of the split in a file."""
    tests = open_split_tests(path)[1].items()
    return {name: measure_overlap(training, test.data.split, name) for name, test in tests}


def split_labels(names: Sequence[str]) -> dict[str, str]:
    """Return each split's name in tables: its file's stem if that is unique. Raises for a split given twice."""
    stems = [Path(name).stem for name in names]
    if len(set(names)) < len(names):
        raise UserError(f"one of --splits is given twice: {' '.join(names)}")
    return {name: stem if stems.count(stem) == 1 else name for name, stem in zip(names, stems, strict=True)}


def recipes_of(names: Sequence[str], world: str) -> dict[str, SplitRecipe]:
    """Return the recipes among the splits, by name. Raises for an unknown name, and for impossible fractions."""
    files = [name for name in names if Path(name).suffix in (".h5", ".hdf5")]
    files += [name for name in names if Path(name).is_file() and not name.endswith(".toml")]
    recipes = {name: read_recipe(name) for name in names if name not in files}
    if world:
        recipes = {n: recipe if n in FROZEN else replace(recipe, world=world) for n, recipe in recipes.items()}
    for recipe in recipes.values():
        recipe.counts()
    if missing := next((name for name in names if name not in recipes and not Path(name).is_file()), None):
        raise UserError(f"--splits {missing}: there is no such file; make it with 'menagerie make'")
    return recipes


def texts_of_tests(tests: Tests) -> list[Caption]:
    return list(dict.fromkeys(text for test in tests.values() for text in test.texts))


def scores(records: Records) -> list[Score]:
    """Return the numbers of all models on all splits; those of swaps come first on the page."""
    names, found = short_names(records), []
    known = records.estimates(("model", "split", "subset", "task")) if records.results else {}
    for piece, result in named_results(records):
        for subset, tasks in result["subsets"].items():
            same = (tasks.get(TEXT_SCORE, {}).get("accuracy") or 1.0) < NEAR
            for task, numbers in tasks.items() if piece.covered[subset].records else ():
                its = known.get((piece.model, piece.label, subset, task), NOTHING)
                title = f"{piece.label}, {subset}" if task == "swap" and subset != "validation" else ""
                score = Score(names[piece.model], piece.label, subset, task, its, numbers["tie_rate"])
                more = {"chance": CHANCES.get(task, 50) / 100, "title": title, "drawn": bool(title)}
                more["words"] = bags_in(piece.path).get((subset, task))
                found.append(score._replace(**more, flag=FLAG * (same and task == "swap")))
    return found


def parts(records: Records, scores: Sequence[Score]) -> Iterator[Part]:
    """Yield, for each split, how far other models are above the first, and what their training had of it."""
    names = short_names(records)
    for split, file in file_names(arm.cell.label for arm, _ in records.results).items():
        its = records.where(split=split)
        if len(its.results) > 1:
            first = its.results[0][0].cell.model
            says = f"Accuracy on swaps of {split}: percentage points above {names[first]}, on the same records."
            swaps, words = its.where(task="swap"), {"model": names}
            yield Table(f"differences-{file}", swaps, ("model",), against={"model": first}, words=words, says=says)
        tests = [
            ScoredTest(names[piece.model], split, subset, had)
            for piece in (arm.cell for arm, _ in its.results)
            for subset, had in piece.covered.items()
            if had.records
        ]
        yield from coverage_parts(tests, file)
