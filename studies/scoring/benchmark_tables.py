"""The numbers of models on benchmarks of photographs, also in a paper's layout.

Each column of a paper's table names our number for it. Where the paper doesn't say what a number is of, the table's
note does."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from menagerie.envs.core.reading import read_toml
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographBenchmark, summaries_by_task
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.estimate import NOTHING
from menagerie.studies.frame.parts import Part, Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.benchmark_piece import result_numbers
from menagerie.studies.scoring.page import Score, in_percent, level_of, named_results, short_names

NUMBERS = ("official", "neutral", "tie_rate", "n", "missing", "unread", "low", "high")
COLUMNS = ("model", "benchmark", "kind", "name", *NUMBERS, "piece")
THEIRS = " (theirs)"
PAPERS = (
    f"The tables of the paper on OC-CLIP, in its layout: rows marked{THEIRS} are its numbers, all others were measured "
    "here by each benchmark's official rule. –: there is no number; the notes say of which tests not all records count."
)
OC_CLIP = read_toml(Path(__file__).with_name("oc_clip_tables.toml"))


def name_headline(benchmark: str, headline: str) -> str:
    """Return the name of a headline; over all records it is just the benchmark's name."""
    return benchmark if headline in ("", "all") else f"{benchmark}, {headline}"


def scores(records: Records) -> list[Score]:
    """Return the numbers of all models on all benchmarks, and those that papers report. A page draws the first headline
    of each benchmark."""
    names, found, theirs = short_names(records), [], {}
    for piece, result in named_results(records):
        chances, first = chances_in(piece.subject.bench), next(iter(result["headlines"]), None)
        for kind, name, its in result_numbers(result):
            title = name_headline(piece.label, name) if kind == "headline" else ""
            score = Score(names[piece.model], piece.label, kind, name, level_of(its), its["tie_rate"])
            drawn = bool(title) and name == first
            found.append(score._replace(chance=chances.get((kind, name)), title=title, drawn=drawn))
        theirs.update(dict.fromkeys(published_scores(piece.label, piece.subject.published, result["headlines"])))
    return [*found, *theirs]


def published_scores(
    benchmark: str, published: Mapping[str, Mapping[str, float]], there: Collection[str]
) -> Iterator[Score]:
    """Yield the numbers of a benchmark that papers report, for the headlines that are `there`."""
    for model, numbers in published.items():
        for name, value in ((name, value) for name, value in numbers.items() if name in there):
            title, its = name_headline(benchmark, name), NOTHING._replace(value=value / 100)
            yield Score(model + THEIRS, benchmark, "headline", name, its, title=title)


@lru_cache(maxsize=64)  # reports are written anew after every model
def chances_in(bench: PhotographBenchmark) -> dict[tuple[str, str], float]:
    """Return chance accuracies on one benchmark: those of equal scores, with ties broken at random."""
    if isinstance(bench, MatrixBenchmark):
        found = [its for pool in bench.pools for its in bench.tied_outcomes(pool)]
    else:
        found = [(item, bench.outcome(item, np.zeros((len(item.images), len(item.texts))))) for item in bench.items]
    both = [item for item, _ in found], [outcome for _, outcome in found]
    every = {"task": summaries_by_task(*both), "headline": bench.headlines(*both)}
    numbers = {(kind, name): its.neutral for kind, summaries in every.items() for name, its in summaries.items()}
    return {name: neutral for name, neutral in numbers.items() if neutral is not None}


def parts(records: Records, scores: Sequence[Score]) -> Iterator[Part]:
    """Yield the paper's tables of which a benchmark was scored: our models, chance, and then the paper's numbers."""
    ours = [its for its in scores if not its.model.endswith(THEIRS)]
    texts = {(its.model, its.test, its.measure): in_percent(its.its.value) for its in ours}
    texts |= {("chance", its.test, its.measure): in_percent(its.chance) for its in ours}
    for table in OC_CLIP["tables"]:
        titles, *places = zip(*table["columns"], strict=True)
        places = list(zip(*places, strict=True))
        if {its.test for its in ours}.isdisjoint(test for test, _ in places):
            continue
        models = (*dict.fromkeys(its.model for its in ours), "chance")
        rows = [[model, *(texts.get((model, *place), DASH) for place in places)] for model in models]
        rows += [[model + THEIRS, *them, *[DASH] * (len(places) - len(them))] for model, *them in table["rows"]]
        title = f"Beside table {table['number']} of the paper: {table['title']}"
        name, says = f"paper-table-{table['number']}", f"{PAPERS} {table['note']}"
        yield Rows(name, ("model", *titles), rows, says=says, folded=title)
