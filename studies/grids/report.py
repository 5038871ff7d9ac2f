"""`report.html` of a grid: one page that needs no other file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from menagerie.envs.core.figures import write_figure
from menagerie.envs.core.files import write_text
from menagerie.envs.core.pages import write_page
from menagerie.generators.captions.hard_negatives.foils import TASKS
from menagerie.studies.analysis.curves import Curve, training_curves
from menagerie.studies.analysis.errors import Source, Surest, breakdown, surest, table
from menagerie.studies.analysis.model_table import model_table
from menagerie.studies.analysis.paired_bootstrap import counts_in, fewest_pairs, record_line
from menagerie.studies.analysis.samples import file_name, write_samples
from menagerie.studies.analysis.tables import flat, to_csv, to_rows
from menagerie.studies.analysis.two_levels import meaning
from menagerie.studies.analysis.words import (
    CHANCES,
    TERMS,
    explained,
    models_explained,
    records_in,
    smoke_words,
    subsets_explained,
)
from menagerie.studies.frame.cells import SEARCHED, title_of, untuned
from menagerie.studies.grids.figures import bars, heat_maps, ticked
from menagerie.studies.grids.tables import (
    difference_table,
    latex,
    place_names,
    summary_of,
    task_tables,
    tasks_of,
    varying,
)
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import place_of


class Section(NamedTuple):
    """The part of a report on one model's errors."""

    model: str
    rows: list[list[str]]
    """Header and rows: accuracy by what is shown, over all cells of the model."""
    place: str
    """The cell whose surest records are shown."""
    surest: Surest


def write_errors(
    out: Path,
    results: Sequence[dict[str, Any]],
    splits: Mapping[str, Path],
    tests: Mapping[str, str],
    place: Sequence[str],
) -> list[Section]:
    """Write `errors.csv`, a row for each place, test, task, factor and value; returns a section for each model.

    `splits` are the split files of cells by their id, `tests` the words for each test, and `place` names what says
    where in a grid a result belongs, the model first.
    """
    places: dict[tuple[Any, ...], list[Source]] = {}
    for result in results:
        source = Source(result["seed"], out / "cells" / result["id"], splits[result["id"]])
        places.setdefault(place_of(result, place), []).append(source)
    parts = [breakdown(tuple(sources)).assign(**dict(zip(place, key, strict=True))) for key, sources in places.items()]
    if parts:
        whole = pd.concat(parts, ignore_index=True)
        to_csv(out / "errors.csv", whole[[*place, *(name for name in whole if name not in place)]])
    models = dict.fromkeys(key[0] for key in places)
    return [
        section({key: sources for key, sources in places.items() if key[0] == model}, tests, place) for model in models
    ]


def section(places: Mapping[tuple[Any, ...], list[Source]], tests: Mapping[str, str], names: Sequence[str]) -> Section:
    """Write the part on one model. The surest records are those of its first place and seed, the hardest."""
    sources = tuple(source for of_place in places.values() for source in of_place)
    (model, *values), (first, *_) = next(iter(places.items()))
    facts = [f"{name.replace('_', ' ')} {ticked(name, value)}" for name, value in zip(names[1:], values, strict=True)]
    rows = to_rows(table(breakdown(sources), list(tests)).rename(columns=tests))
    return Section(model, rows, ", ".join([*facts, f"seed {first.seed}"]), surest(first, tuple(tests)))


MOST_LISTED = 5  # models in a title
ONE_ANIMAL = "one animal"  # the task that OC-CLIP's figure 6 has in its lower row


def write_report(
    out: Path, config: Any, notes: dict[str, Any], results: Sequence[dict[str, Any]], splits: Mapping[str, Path]
) -> Path:
    """Write figures and `report.html` from the finished cells; `splits` are the split files of all cells by their id,
    of which the first gives the sample images."""
    counts = [counts_in(out / "cells" / result["id"]) for result in results]
    swaps = {(test, "swap"): config.label(test) for test in config.tests}
    tasks, labels = tasks_of(results), {test: config.label(test) for test in config.tests}
    others = [task for task in tasks if task in TASKS and task != "swap"]
    lone = len(config.places) == 1
    draw = bars if lone else heat_maps
    # Before the first cell is finished there is nothing to draw, and empty figures take as long as full ones.
    figures = {"accuracy": draw(results, config, [(test, "swap") for test in config.tests])} if results else {}
    for test in config.unseen if others else ():
        figures[f"recognition-{file_name(test)}"] = draw(results, config, [(test, task) for task in others])
    if ONE_ANIMAL in others:
        figures["one-animal"] = draw(results, config, [(test, ONE_ANIMAL) for test in config.tests])
    training = training_curves([curve_of(config, out, result) for result in results])
    figures |= {"training": training} if training else {}
    write_text(out / "results.tex", latex(config, results))
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title=f"{config.title}: {listed(list(map(title_of, config.models)))}",
        task=config.task,
        config=reported_config(config),
        notes={**notes, **where_it_ran(out, results)},
        smoke=smoke_words([config.recipe.steps], records_in(results)),
        **summary_of(config, results),
        models=to_rows(model_table(config.models, results)),
        tasks=task_tables(config, results),
        chances=CHANCES,
        meanings=explained(tasks, config.task),
        differences=to_rows(varying(difference_table(out, config, results))),
        errors=write_errors(out, results, splits, labels, place_names(config)),
        labels=labels,
        lone=lone,
        from_files=bool(config.split),
        relational=config.recipe_given.relational,
        figures={name: write_figure(out / "figures" / f"{name}.png", figure) for name, figure in figures.items()},
        recognition={f"recognition-{file_name(test)}": config.label(test) for test in config.unseen},
        samples=write_samples(out, next(iter(splits.values())), tuple(config.tests)),
        finished=len(results),
        about=models_explained(config.models),
        terms=TERMS,
        meaning=meaning(config.seeds, fewest_pairs(counts, swaps)),
        record_numbers=record_line(counts, swaps),
        task_records={
            label: record_line(counts, {(test, task): task for task in tasks}) for test, label in labels.items()
        },
        untuned=untuned(config),
        subsets=subsets_explained(config.tests),
        seeds=config.seeds,
        cells=len(config.models) * len(config.places) * config.seeds,
    )


def listed(names: Sequence[str]) -> str:
    """Names in a title: of many only how many."""
    return ", ".join(names) if len(names) <= MOST_LISTED else f"{len(names)} models"


def curve_of(config: Any, out: Path, result: dict[str, Any]) -> Curve:
    """A finished cell in the figure of how all trained."""
    names = place_names(config)[1:]
    place = {name: ticked(name, value) for name, value in zip(names, place_of(result, names), strict=True)}
    text = f"{place.pop('pairs')} of pairs, {place.pop('hard_negatives')} with negatives"
    return Curve(result["model"], ", ".join([text, *map(" ".join, place.items())]), out / "cells" / result["id"])


def reported_config(config: Any) -> dict[str, str]:
    """The configuration; with tuned recipes without what they replace (each model's own is reported below)."""
    replaced = {"architecture", *(f"recipe.{name}" for name in SEARCHED)} if config.tuned else set()
    return {name: text for name, text in flat(asdict(config)).items() if name not in replaced}
