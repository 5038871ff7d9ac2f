"""Models on splits: the splits of a command line, files or recipes; their pieces; and their page."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import file_names, write_csv, write_text
from menagerie.envs.core.identity import digest
from menagerie.envs.core.records import write_records
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.benchmark import Benchmark
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import VERSION, SplitRecipe
from menagerie.generators.splits.recipe_file import FROZEN, read_recipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import COLUMNS as TRAINED
from menagerie.generators.trained_on import Overlap, Training, overlap_columns
from menagerie.models.contract import attempt
from menagerie.models.judges.judge import Judge
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.pictures import FramedBenchmark
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Texts
from menagerie.studies.analysis.tables import DASH, print_table, task_order, to_rows
from menagerie.studies.frame.layout import Sheet, latex_of
from menagerie.studies.frame.parts import Bars, Facts, Heading, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.evaluation import FILE, Results, evaluate
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import CELLS, write_result
from menagerie.studies.runs.split_file import make_splits, ordered_tests
from menagerie.studies.scoring.judged import about_answers, flag_undecided, judged_record, questions_to
from menagerie.studies.scoring.models import Model, short_labels
from menagerie.studies.scoring.piece import Piece, count_images
from menagerie.studies.scoring.study import about_models, left_out_pieces, named_results
from menagerie.studies.scoring.texts import cut_record, unread_texts
from menagerie.studies.scoring.trained_on import (
    cover_tests,
    print_training,
    scored_tests,
    warnings_in,
    without_left_out,
)
from menagerie.studies.scoring.trained_on import coverage_parts as on_training

Tests = Mapping[str, Benchmark]
BLOCK = 256  # texts that are read at once
COLUMNS = ("model", "split", "subset", "task", "accuracy", "official", "tie_rate", "n", "cell", *TRAINED)
NO_INTERVALS = "None has an interval: each subset has fewer than five animal pairs"
AS_THEY_ARE = (
    "Every model scores each image with its true caption and with a hard negative of the same words, and should prefer "
    "the true one. Images are resized to a model's resolution. Nothing was trained for this: models of a run are as "
    "they were trained there, others as published."
)
IN_THIS_SPLIT = "Seen and unseen in the names of tests: in this split."
SAME_SCORE = "Texts that differ only in what a model doesn't read have equal scores, which count as ties."
INTERVALS = (
    "with an interval, nominally of 95 %, for new animal pairs: for these models as they are, not for models that are "
    "trained again. There is none for fewer than five pairs"
)


@dataclass(frozen=True)
class SplitPiece(Piece):
    """A model on a split."""

    path: Path
    content: str
    """Hash of the split's scenes and texts and of what decides its images, wherever these are kept."""
    tests: tuple[str, ...]
    covered: Mapping[str, Overlap]
    """What the model's training had of each subset. Records that it had are left out."""
    kept: ClassVar[tuple[str, ...]] = (FILE,)  # beside the result

    @property
    def questions(self) -> int:
        return questions_to(self.tested.source, open_split_tests(self.path)[1].values())

    def score(self, prepared: LoadedScorer | Judge, report: Callable[[int], None]) -> None:
        """Score all tests, and write predictions and then the result."""
        content, tests = open_split_tests(self.path)
        if content != self.content:
            raise UserError(f"{self.path} has changed since this command was started; start it again")
        started = time.perf_counter()
        if isinstance(prepared, Judge):
            prepared.begin(report)
            scorer = prepared
        else:
            scorer = prepared.scorer
            check_texts_readable(scorer, tests)
            tests = {name: FramedBenchmark(test, prepared.framing, report) for name, test in tests.items()}
        subsets = attempt(self.model, "fails", lambda: self.evaluate_piece(tests, scorer))
        result = {
            **{"id": self.id, "model": self.model, "split": self.label, "subsets": subsets},
            "cut": attempt(self.model, "fails", lambda: cut_record(scorer, texts_of_tests(tests))),
            **judged_record(scorer),
            **{"seconds": round(time.perf_counter() - started, 1), "provenance": provenance()},
        }
        write_result(self.folder, result, self.kept)

    def evaluate_piece(self, tests: Tests, scorer: Scorer | Judge) -> Results:
        """Return the results of all tests, and write the predictions."""
        return evaluate(self.folder, without_left_out(tests, self.covered), scorer)


@cache
def open_split_tests(path: Path) -> tuple[str, Tests]:
    """Return the identity of a split's content, and a benchmark of each of its subsets but train."""
    split = read_split(path)
    names = (*ordered_tests(split), "validation")
    return split.content, {name: SplitTests(SplitDataset(split, name, preload=False)) for name in names}


def split_piece(model: Model, label: str, path: Path, kind: type[SplitPiece] = SplitPiece, **how: Any) -> SplitPiece:
    """Return the piece of a model on the split in a file. Raises if the file isn't a split."""
    content, tests = open_split_tests(path)
    had = overlap_by_subset(model.training, path)
    images = count_images(without_left_out(tests, had).values())
    kept = (
        {} if kind.kept == SplitPiece.kept else {"kept": kind.kept}
    )  # a frozen benchmark has another id than its split
    left = {subset: sorted(its.left_out) for subset, its in had.items() if its.left_out}
    without = {"left_out": left} if left else {}  # with all records the id is that of before records were left out
    name = digest({"model": model.weights, "split": content, "version": VERSION, **kept, **without})
    subsets = tuple(subset for subset in tests if subset != "validation")
    return kind(model, label, name, images, path, content, subsets, had, **how)


@cache
def overlap_by_subset(training: Training, path: Path) -> dict[str, Overlap]:
    """Return what a training had of each subset, but train, of the split in a file."""
    return cover_tests(training, open_split_tests(path)[1])


def split_labels(names: Sequence[str]) -> dict[str, str]:
    """Return each split's name in tables: its file's stem if that is unique. Raises for a split given twice."""
    stems = [Path(name).stem for name in names]
    if len(set(names)) < len(names):
        raise UserError(f"one of --splits is given twice: {' '.join(names)}")
    return {name: stem if stems.count(stem) == 1 else name for name, stem in zip(names, stems, strict=True)}


def recipes_of(names: Sequence[str], world: str) -> dict[str, SplitRecipe]:
    """Return the recipes among the splits, by name. Raises for an unknown name, and for impossible fractions."""
    recipes = {name: read_recipe(name) for name in names if not is_split_file(name)}
    if world:
        recipes = {n: recipe if n in FROZEN else replace(recipe, world=world) for n, recipe in recipes.items()}
    for recipe in recipes.values():
        recipe.counts()
    if missing := next((name for name in names if name not in recipes and not Path(name).is_file()), None):
        raise UserError(f"--splits {missing}: there is no such file; make it with 'menagerie make'")
    return recipes


def is_split_file(name: str) -> bool:
    """Return whether a name is that of a split file, which needn't exist, rather than of a recipe."""
    return Path(name).suffix in (".h5", ".hdf5") or (Path(name).is_file() and not name.endswith(".toml"))


def render_split(recipe: SplitRecipe, root: Path, resolution: int, workers: int) -> Path:
    """Render the objects of a recipe's scenes that the atlas lacks, and write its split file."""
    store = SplitFolder(root, load_world(recipe.world), resolution)
    return make_splits(store, [recipe], workers)[recipe]


def check_texts_readable(scorer: Scorer, tests: Tests) -> None:
    """Raise for the first text that a scorer can't read, because of an unknown word or a missing graph."""
    texts = texts_of_tests(tests)
    for start in range(0, len(texts), BLOCK):
        scorer.reader(Texts(*zip(*texts[start : start + BLOCK], strict=True)))


def texts_of_tests(tests: Tests) -> list[Caption]:
    return list(dict.fromkeys(text for test in tests.values() for text in test.texts))


def parts(records: Records) -> Iterator[Part]:
    names, files = short_names(records), file_names(records.labels("split"))
    scored = scored_splits(records)
    swaps = records.where(task="swap", subset=records.tests, split=tuple(scored))
    for split in scored:
        if found := swaps.where(split=split).estimates(("model",)):
            (model,), its = max(found.items(), key=lambda pair: pair[1].value)
            most = "prefers the true caption most often" if len(found) > 1 else "prefers the true caption"
            level = f"{100 * its.value:.1f} %" + f" [{its.bounds}]" * its.known + f" of {its.n} swaps"
            text = f"On {split} {names[model]} {most}: {level}; chance is 50."
            yield Sentence(text)
    for its in scored.values():
        yield from map(Sentence, warnings_in(scored_tests(its), names))
    says = "Hard negatives: how often the true caption is preferred, by split and subset."
    yield Bars("swaps", swaps, panels=("split", "subset"), words={"model": names}, says=says)
    yield Paragraph(AS_THEY_ARE)
    if left := left_out_pieces(records):
        yield Heading("Left out")
        yield Facts(left)
    if unread := unread_texts({piece.name: result for piece, result in named_results(records)}):
        yield Heading("Texts that weren't read to their end", SAME_SCORE)
        yield Facts(unread)
    yield from about_answers(records)
    for split, file in files.items():
        yield Heading(split, "" if split in scored else "No model has been scored on it.")
        if split in scored:
            yield from split_parts(split, scored[split], file, names)
    yield from about_models(records, names)


def columns_by_test(piece: SplitPiece) -> dict[str, dict[str, Any]]:
    return {name: overlap_columns(had) for name, had in piece.covered.items()}


def write_tables(records: Records) -> None:
    """Write cells.jsonl and results.csv."""
    results = [
        result | {"seed": 0, "labels": {"split": result["split"]}, "trained_on": columns_by_test(piece)}
        for piece, result in named_results(records)
    ]
    write_records(records.out / CELLS, results)
    rows = (
        {**result, "cell": result["id"], "subset": subset, "task": task, **scores, **result["trained_on"][subset]}
        for result in results
        for subset, tasks in result["subsets"].items()
        for task, scores in tasks.items()
    )
    write_csv(records.out / "results.csv", COLUMNS, ([row.get(name) for name in COLUMNS] for row in rows))


def write_latex(records: Records) -> None:
    """Write the tables of swaps of all splits as results.tex."""
    texts = (latex_of(swap_table(its, "", short_names(records))) for its in scored_splits(records).values())
    write_text(records.out / "results.tex", "\n".join(texts))


def scored_splits(records: Records) -> dict[str, Records]:
    """Return the records of each split that a model was scored on."""
    return {label: records.where(split=label) for label in dict.fromkeys(arm.cell.label for arm, _ in records.results)}


def short_names(records: Records) -> dict[str, str]:
    """Return the names of models in tables."""
    names = short_labels(list({arm.cell.model: arm.cell.tested for arm in records.arms}.values()))
    return {model: flag_undecided(records, model, name) for model, name in names.items()}


def split_parts(split: str, records: Records, file: str, names: Mapping[str, str]) -> Iterator[Part]:
    numbers = records.scores
    yield swap_table(records, file, names)
    if len(records.results) > 1:
        yield difference_table(records.where(task="swap"), file, names)
    yield from on_training(scored_tests(records), file, names)
    subsets = file_names(numbers.subset.unique())
    for subset, rows in numbers.groupby("subset", sort=False):
        if rows.n.any():
            where = " in this split" if "seen" in subset else ""
            yield Heading(f"{split}, {subset.replace('_', ' ')}{where}: all tasks", level=3)
            chosen = records.where(subset=subset)
            yield Table(f"tasks-{file}-{subsets[subset]}", chosen, ("model",), ("task",), words={"model": names})
    yield Heading(f"{split}: numbers of records", level=3)
    yield record_counts(f"records-{file}", numbers)


def swap_table(records: Records, file: str, names: Mapping[str, str]) -> Table:
    """Return a table of swaps with a row for each model and a column for each subset."""
    split = records.labels("split")[0]
    says = f"Accuracy in percent with the hard negative, the task `swap`, on {split}. {IN_THIS_SPLIT}"
    return Table(f"swaps-{file}", records.where(task="swap"), ("model",), words={"model": names}, says=says)


def difference_table(swaps: Records, file: str, names: Mapping[str, str]) -> Part:
    """Return a table of how far each other model is above the first; if nothing has an interval it says so once."""
    first = swaps.results[0][0].cell.model
    says = f"Percentage points above {names[first]}, the first model, on the same records"
    found = swaps.estimates(("model", "subset"), {"model": first})
    given: dict[str, Any] = {"against": {"model": first}, "words": {"model": names}}
    part = Table(f"differences-{file}", swaps, ("model",), **given, says=f"{says}, {INTERVALS}.")
    if any(value.known for value in found.values()):
        return part
    header, *rows = to_rows(Sheet(part).frame)
    bare = [[label, *(cell.partition(" [")[0] for cell in cells)] for label, *cells in rows]
    return Rows(part.name, header, bare, says=f"{says}. {NO_INTERVALS}.")


def record_counts(name: str, numbers: Any) -> Rows:
    """Return a table of the numbers of records, with a row for each subset and a column for each task."""
    tasks = sorted(numbers.task.unique(), key=task_order)
    most = numbers.groupby(["subset", "task"], sort=False)["n"].max().to_dict()
    subsets = numbers.subset.unique()
    rows = [[subset, *(str(most.get((subset, task), DASH)) for task in tasks)] for subset in subsets]
    return Rows(name, ["subset", *tasks], rows)


def print_results(records: Records) -> None:
    for split, its in scored_splits(records).items():
        names = short_names(records)
        header, *rows = to_rows(Sheet(swap_table(its, "", names)).frame)
        print_table(header, rows, f"{split}: swaps preferred right, %")
        print_training(scored_tests(its), names)
