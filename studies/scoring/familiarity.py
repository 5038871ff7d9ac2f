"""How familiar a benchmark is to the captions of a training, by record and in tables; accuracies of models by how
familiar records are; and what words alone decide."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.generators.benchmarks.photographs import ItemBenchmark
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.benchmarks.words_alone import TrigramPrior, WordsAlone, words_alone
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.familiarity import (
    FREE,
    KINDS_OF_BINDINGS,
    STRATA,
    UNREAD,
    Binding,
    FamiliarRecord,
    familiar_captions,
    record_familiarity,
)
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.sources.annotated import AnnotatedPhotographs
from menagerie.generators.sources.captions_file import captions_in_file, parse_all
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import load_source, names
from menagerie.generators.sources.rows import read_csv
from menagerie.generators.storage.split_file import read_split
from menagerie.studies.analysis.tables import DASH, print_table
from menagerie.studies.runs.results import read_result
from menagerie.studies.scoring.benchmarks import PIECES
from menagerie.studies.scoring.page import in_percent
from menagerie.studies.scoring.piece import SCORES

SIDES = ("true", "false")
COLUMNS = tuple(f"{side}_{what}" for what in ("bindings", "seen", "texts_seen") for side in SIDES)
ALL = "all"  # the row of all tasks
COUNTED = "What only true and only false captions state: how much of it the given captions have"
BY_STRATUM = "by which side of the differing bindings was seen; free of the shortcut: neither or both"
BY_UNSEEN = "by how many of the differing bindings were never seen, of the side that has more"
UNSEEN = ("0 unseen", "1 unseen", "2 or more")
ACCURACIES = ": official accuracy, %,"
BLIND = "What words alone decide, %"
WORDS = ("same words", "bag", "length", "prefers", "trigrams")
Points = Mapping[tuple[str, str], float]  # by record and task: what a benchmark's official rule gives, 0 to 1


def scores_in(run: Path, benchmark: str) -> list[tuple[str, Points]]:
    """Return the models in a folder of `menagerie transfer` with their points on a benchmark; raises if there are
    none."""
    name, found = load_benchmark(benchmark).name, []
    for folder in sorted((run / PIECES).glob("*/")):
        if (result := read_result(folder)) and result.get("benchmark") == name:
            rows = read_csv(folder / SCORES, ("record", "task", "official"))
            points = {(row.text("record"), row.text("task")): float(row.content["official"]) for row in rows}
            found.append((result["model"], points))
    if not found:
        raise UserError(f"--scores {run} has no scores on {name}; name a folder that `menagerie transfer` wrote")
    return found


def report_familiarity(
    given: str, benchmark: str, root: Path, runs: Sequence[tuple[str, Points]], parser: CaptionParser, out: Path
) -> None:
    """Write and print how familiar a benchmark is to the captions that `given` names."""
    bench = load_benchmark(benchmark).build(Place(root, allow_missing=True))
    if not isinstance(bench, ItemBenchmark):
        raise UserError(f"{bench.name} has no false captions of its own; name a benchmark whose records have some")
    items = [*bench.items, *bench.items_without_images()]
    texts, graphs = read_captions(given, root, parser)
    parse_all(parser, [text.text for item in items for text in item.texts])
    known = familiar_captions(texts, graphs)

    def graph(text: str) -> SceneGraph | None:
        return None if parser.fell_back(text) else parser.graph(text)

    found = [record_familiarity(item, known, graph) for item in items]
    write_csv(out, ("record", "task", *COLUMNS, "stratum", "unseen"), map(record_row, found))
    print_table(("task", "kind", *(f"{side}: seen" for side in SIDES)), count_rows(found, known.bindings), COUNTED)
    for model, points in (("Records", {}), *runs):
        title = f"{model}{ACCURACIES if points else ''} {BY_STRATUM}"
        print_table(("task", "all", "free", *STRATA, UNREAD), stratum_rows(found, points), title)
        print_table(("task", *UNSEEN), unseen_rows(found, points), f"{model}{ACCURACIES if points else ''} {BY_UNSEEN}")
    prior = TrigramPrior(texts)
    blind = ((task, words_alone(bench, its, prior)) for task, its in by_task(items).items())
    print_table(("task", "records", *WORDS), (word_row(task, its) for task, its in blind if its), BLIND)


def read_captions(given: str, root: Path, parser: CaptionParser) -> tuple[list[str], list[SceneGraph]]:
    """Return the captions in a file or of a source, and the graphs of those that have one."""
    if given.endswith(".h5"):
        train = read_split(Path(given)).subsets["train"]
        return train.captions, train.graphs
    if given in names() and not Path(given).exists():
        source = load_source(given).open(Place(root))
        if isinstance(source, AnnotatedPhotographs):
            raise UserError(f"captions of {given} are drawn anew for every step; give a file of captions, one a line")
        texts = [text for k in range(len(source)) for text in source.texts_of(k)]
    else:
        texts = captions_in_file(Path(given))
    parse_all(parser, texts)
    return texts, [parser.graph(text) for text in texts if not parser.fell_back(text)]


def record_row(its: FamiliarRecord) -> list[object]:
    sides = ([" ".join(b[::-1] if len(b) == 2 else b) for b in side] for side in its.bindings)
    bindings = ["; ".join(sorted(side)) for side in sides]
    return [its.record, its.task, *bindings, *its.seen, *its.texts, its.stratum, its.unseen]


def by_task(found: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the records or items of each task, and all."""
    parts: dict[str, list[Any]] = {}
    for its in found:
        parts.setdefault(its.task, []).append(its)
    return parts | ({ALL: list(found)} if len(parts) > 1 else {})


def count_rows(found: Sequence[FamiliarRecord], known: Counter[Binding]) -> Iterator[list[str]]:
    """Yield, by task and kind, how many of what only true and of what only false captions state was seen."""
    for task, records in by_task(found).items():
        for length, kind in KINDS_OF_BINDINGS.items():
            sides = ([b for its in records for b in its.bindings[side] if len(b) == length] for side in (0, 1))
            yield [task, kind, *(seen_text(map(known.get, its)) for its in sides)]
        yield [task, "whole text", *(seen_text(its.texts[side] for its in records) for side in (0, 1))]


def seen_text(counts: Iterable[int | None]) -> str:
    """Say how many of some counts aren't 0."""
    every = list(counts)
    return f"{sum(map(bool, every))} of {len(every)}"


def stratum_rows(found: Sequence[FamiliarRecord], points: Points) -> Iterator[list[str]]:
    """Yield, by task, the accuracy (without points the number) of all records, of those of `FREE` and of each
    stratum."""
    every = (*STRATA, UNREAD)
    for task, records in by_task(found).items():
        parts = ([r for r in records if r.stratum in group] for group in (every, FREE, *((name,) for name in every)))
        yield [task, *(accuracy_text(part, points) for part in parts)]


def unseen_rows(found: Sequence[FamiliarRecord], points: Points) -> Iterator[list[str]]:
    """Yield, by task, the accuracy (without points the number) of records with no, one, and more unseen bindings."""
    for task, records in by_task(found).items():
        counted = [(min(r.unseen, len(UNSEEN) - 1), r) for r in records if r.unseen is not None]
        parts = ([r for number, r in counted if number == k] for k in range(len(UNSEEN)))
        yield [task, *(accuracy_text(part, points) for part in parts)]


def accuracy_text(records: Sequence[FamiliarRecord], points: Points) -> str:
    """Write the accuracy in percent on the records that have points; the number of records if none has."""
    scored = [points[its.record, its.task] for its in records if (its.record, its.task) in points]
    return (in_percent(fmean(scored)) if scored else DASH) if points else str(len(records))


def word_row(task: str, its: WordsAlone) -> list[str]:
    return [
        task,
        str(its.records),
        *map(in_percent, (its.same, its.bag, its.length)),
        its.preferred,
        in_percent(its.prior),
    ]
