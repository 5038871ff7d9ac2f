"""What models do on splits, as parts of a page: swaps first, then all that is tested there."""

from collections.abc import Iterator, Mapping
from typing import Any

from menagerie.envs.core.files import write_csv, write_text
from menagerie.studies.analysis.tables import DASH, by_task, print_table, to_rows
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.layout import Sheet, latex_of
from menagerie.studies.frame.parts import Bars, Facts, Heading, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.cut_texts import unread_texts
from menagerie.studies.scoring.models import short_labels
from menagerie.studies.scoring.study import about_models, file_names, left_out, named_results, write_lines

COLUMNS = ("model", "split", "subset", "task", "accuracy", "official", "tie_rate", "n", "cell")
AS_THEY_ARE = (
    "Every model scores each image with its true caption and with a hard negative, which has the same words, and "
    "should prefer the true one. Images are resized to what a model reads. Nothing was trained for this: models of a "
    "run stay as they were trained there, others as they come."
)
SAME_SCORE = "Texts that differ only in what a model doesn't read have equal scores there, which count as ties."
INTERVALS = (
    "with an interval, nominally of 95 %, by a bootstrap over animal pairs: for these models as they are, not for "
    "models that are trained anew. Of fewer than five pairs there is none"
)
NO_INTERVALS = "None has an interval: each subset has fewer than five animal pairs"


def parts(records: Records) -> Iterator[Part]:
    """The page."""
    names, files = short_names(records), file_names(records.labels("split"))
    scored = scored_splits(records)
    swaps = records.where(task="swap", subset=records.tests, split=scored)
    for split in scored:
        if found := swaps.where(split=split).estimates(("model",)):
            yield best(split, found, names)
    says = "Hard negatives: how often the true caption is preferred, by split and subset."
    yield Bars("swaps", swaps, panels=("split", "subset"), words={"model": names}, says=says)
    yield Paragraph(AS_THEY_ARE)
    if left := left_out(records):
        yield Heading("Left out")
        yield Facts(left)
    if unread := unread_texts({piece.name: result for piece, result in named_results(records)}):
        yield Heading("Texts that weren't read to their end", SAME_SCORE)
        yield Facts(unread)
    for split, file in files.items():
        yield Heading(split, "" if split in scored else "No model has been scored on it.")
        if split in scored:
            yield from of_split(records.where(split=split), file, names)
    yield from about_models(records, names)


def write_tables(records: Records) -> None:
    """Write cells.jsonl and results.csv."""
    results = [result for _, result in named_results(records)]
    write_lines(records.out / "cells.jsonl", results)
    rows = (
        {**result, "cell": result["id"], "subset": subset, "task": task, **scores}
        for result in results
        for subset, tasks in result["subsets"].items()
        for task, scores in tasks.items()
    )
    write_csv(records.out / "results.csv", COLUMNS, ([row.get(name) for name in COLUMNS] for row in rows))


def write_latex(records: Records) -> None:
    """Write the tables of swaps of all splits as results.tex."""
    parts = [swap_table(records.where(split=split), "", short_names(records)) for split in scored_splits(records)]
    texts = map(latex_of, parts)
    write_text(records.out / "results.tex", "\n".join(texts))


def scored_splits(records: Records) -> list[str]:
    """The splits that any model was scored on."""
    return list(dict.fromkeys(piece.label for piece, _ in named_results(records)))


def short_names(records: Records) -> dict[str, str]:
    """The names of models in tables."""
    return short_labels(list({arm.cell.model: arm.cell.tested for arm in records.arms}.values()))


def best(split: str, found: Mapping[tuple[Any, ...], Estimate], names: Mapping[str, str]) -> Sentence:
    """Which model is right most often."""
    (model,), value = max(found.items(), key=lambda pair: pair[1].value)
    most = "prefers the true caption most often" if len(found) > 1 else "prefers the true caption"
    return Sentence(f"On {split} {names[model]} {most}: {100 * value.value:.1f} % of {value.n} swaps; chance is 50.")


def of_split(records: Records, file: str, names: Mapping[str, str]) -> Iterator[Part]:
    """All tables of one split."""
    split, numbers = records.labels("split")[0], records.scores
    yield swap_table(records, file, names)
    if len(records.results) > 1:
        yield differences(records, file, names)
    for subset, rows in numbers.groupby("subset", sort=False):
        if rows.n.any():
            yield Heading(f"{split}, {subset.replace('_', ' ')}: all tasks", level=3)
            chosen = records.where(subset=subset)
            yield Table(f"tasks-{file}-{subset}", chosen, ("model",), ("task",), words={"model": names})
    yield Heading(f"{split}: numbers of records", level=3)
    yield counts(f"records-{file}", numbers)


def swap_table(records: Records, file: str, names: Mapping[str, str]) -> Table:
    """A row a model, a column a subset."""
    says = f"Accuracy in percent with the hard negative, the task `swap`, on {records.labels('split')[0]}."
    return Table(f"swaps-{file}", records.where(task="swap"), ("model",), words={"model": names}, says=says)


def differences(records: Records, file: str, names: Mapping[str, str]) -> Part:
    """How far each further model is above the first, on the same records; without intervals where none has one."""
    first = records.results[0][0].cell.model
    swaps, by = records.where(task="swap"), ("model", "subset")
    found = swaps.estimates(by, {"model": first})
    says = f"Percentage points above {names[first]}, the first model, on the same records"
    if any(value.known for value in found.values()):
        given: dict[str, Any] = {"against": {"model": first}, "words": {"model": names}}
        return Table(f"differences-{file}", swaps, ("model",), **given, says=f"{says}, {INTERVALS}.")
    subsets = list(dict.fromkeys(subset for _, subset in found))
    models = list(dict.fromkeys(model for model, _ in found))
    rows = [[names[model], *(bare(found.get((model, subset))) for subset in subsets)] for model in models]
    header = ["model", *(subset.replace("_", " ") for subset in subsets)]
    return Rows(f"differences-{file}", header, rows, says=f"{says}. {NO_INTERVALS}.")


def bare(value: Estimate | None) -> str:
    """A difference without an interval."""
    return DASH if value is None else f"{100 * value.value:+.1f}"


def counts(name: str, numbers: Any) -> Rows:
    """A row for each subset, a column for each task."""
    tasks = sorted(numbers.task.unique(), key=by_task)
    most = numbers.groupby(["subset", "task"], sort=False)["n"].max().to_dict()
    subsets = numbers.subset.unique()
    rows = [[subset, *(str(most.get((subset, task), DASH)) for task in tasks)] for subset in subsets]
    return Rows(name, ["subset", *tasks], rows)


def print_results(records: Records) -> None:
    """The tables of swaps on the terminal."""
    for split in scored_splits(records):
        table = swap_table(records.where(split=split), "", short_names(records))
        header, *rows = to_rows(Sheet(table).frame)
        print_table(header, rows, f"{split}: swaps preferred right, %")
