"""The numbers of models on benchmarks of photographs, also beside a paper's tables, whose columns name our numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from menagerie.envs.core.reading import read_toml
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographBenchmark, summaries_by_task
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.estimate import NOTHING
from menagerie.studies.frame.parts import Part, Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.benchmark_piece import Subject
from menagerie.studies.scoring.page import Score, in_percent, level_of, named_results, seed_mean, short_names

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
    """Return the numbers of all models on all benchmarks, and those that papers report."""
    names = short_names(records)
    rows = (
        row | {"model": names[row["model"]]} for piece, result in named_results(records) for row in piece.rows(result)
    )
    subjects = {piece.label: piece.subject for piece, _ in named_results(records)}
    return benchmark_scores(rows, subjects)


def benchmark_scores(
    rows: Iterable[Mapping[str, Any]],
    subjects: Mapping[str, Subject],
    published: bool = True,
    chance: float | None = None,
) -> list[Score]:
    """Return the numbers in rows of results.csv, in the mean over rows of one model (its seeds), and those that papers
    report unless not `published`. A page draws the first headline of each benchmark. `chance` is that on tests which
    are no subjects."""
    groups: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["official"] is not None:
            groups.setdefault((row["benchmark"], row["kind"], row["name"], row["model"]), []).append(row)
    first: dict[str, str] = {}
    found = []
    for (test, kind, name, model), its in groups.items():
        title = name_headline(test, name) if kind == "headline" else ""
        drawn = bool(title) and first.setdefault(test, name) == name
        ties = its[0]["tie_rate"] if len(its) == 1 else None
        level = chances_in(subjects[test].bench).get((kind, name)) if test in subjects else chance
        found.append(Score(model, test, kind, name, seed_mean(list(map(level_of, its))), ties, level, title, drawn))
    headlines = {(its.test, its.measure): its.title for its in found if its.title}
    theirs = [
        Score(model + THEIRS, test, "headline", name, NOTHING._replace(value=value / 100), title=headlines[test, name])
        for test, subject in subjects.items()
        if published
        for model, numbers in subject.published.items()
        for name, value in numbers.items()
        if (test, name) in headlines
    ]
    return found + theirs


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
