"""What a study of photographs writes: tables as CSV, figures, and `report.html`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.envs.core.figure_files import write_figure
from menagerie.envs.core.pages import write_page
from menagerie.studies.analysis.tables import flat, to_csv, to_rows
from menagerie.studies.analysis.two_levels import meaning
from menagerie.studies.analysis.words import TERMS, models_explained, records_in, smoke_words
from menagerie.studies.photographs import figures, questions, tables
from menagerie.studies.photographs.lines import Lines, Study, done_jobs, results_of
from menagerie.studies.photographs.measures import MEASURES, Level
from menagerie.studies.photographs.trainings import (
    FACTORS,
    FACTORS_PART,
    FINE_TUNING,
    WORTH,
    ZERO_SHOT,
    all_trainings,
)
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import write_results

# What each factor changes.
FACTOR_WORDS = {
    "views": "a quarter of the views of each training scene",
    "textures": "four further textures, plain colours",
    "augmentation": "no random zoom, shift and contrast of training images (with, where the recipe has none)",
    "backgrounds": "photographs of --backgrounds beside the world's own backgrounds",
    "vocabulary": "all animals of the synthetic world, not only those that there are photographs of",
}


def publish(study: Study) -> Path:
    """Write all that the finished runs allow; returns the report."""
    config, out, done = study.config, study.out, done_jobs(study)
    results = results_of(done)
    write_results(out, results)
    lines = Lines(study, done)
    rows = {part: rows_of(part, lines) for part in config.parts}
    pairs = pairs_of(rows)
    texts = {part: table_of(part, its, config) for part, its in rows.items() if its}
    for part, table in texts.items():
        to_csv(out / f"{part}.csv", table)
    drawn = {part: figure_of(part, its, config) for part, its in rows.items() if its}
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title="Synthetic first, then real: what training in a rendered world buys on photographs",
        rehearsal=config.rehearsal and not config.photos and not config.package,
        sentences=[*tables.gap_words(rows.get(ZERO_SHOT, [])), *tables.step_words(rows.get(FINE_TUNING, []))],
        about=models_explained(config.models),
        measures=MEASURES,
        meaning=meaning(config.seeds, min(pairs, default=0) // config.seeds),
        pairs=pairs,
        records=sorted(set(records_in(results))),
        smoke=smoke_words([config.recipe.steps], records_in(results)),
        tables={part: to_rows(table) for part, table in texts.items()},
        figures={part: write_figure(out / "figures" / f"{part}.png", figure) for part, figure in drawn.items()},
        factors={name: FACTOR_WORDS[name] for name in FACTORS if name in study.material.factors},
        samples=study.samples,
        tested={name: f"{len(files)}" for name, files in study.photographs.tested.items()},
        several=len(study.photographs.several),
        others=len(study.photographs.others),
        audit=to_rows(tables.audit_table(study)),
        left_out=study.lacking,
        finished=len(done),
        runs=len(all_trainings(config, study.material)),
        terms=TERMS,
        config=flat(asdict(config)),
        notes={**study.notes, **where_it_ran(out, results)},
    )


def pairs_of(rows: dict[str, list[Any]]) -> list[int]:
    """How many animal pairs, each of one seed, the measures of all parts are over; of each number one."""
    levels = [value for its in rows.values() for row in its for value in row if isinstance(value, Level)]
    return sorted({level.clusters for level in levels} - {0})


def rows_of(part: str, lines: Lines) -> list[Any]:
    """The rows of one question."""
    config = lines.study.config
    if part == FACTORS_PART:
        return questions.changes(lines, [model for model in config.models if model in config.with_factors])
    makers = {ZERO_SHOT: questions.gaps, FINE_TUNING: questions.steps, WORTH: questions.ladders}
    return makers[part](lines, config.models)


def table_of(part: str, rows: list[Any], config: Any) -> pd.DataFrame:
    """The table of one question, texts."""
    makers = {ZERO_SHOT: tables.gap_table, FINE_TUNING: tables.step_table, FACTORS_PART: tables.change_table}
    return tables.worth_table(questions.worths(rows, config.targets)) if part == WORTH else makers[part](rows)


def figure_of(part: str, rows: list[Any], config: Any) -> Any:
    """The figure of one question."""
    if part == WORTH:
        return figures.ladder_figure(rows, config.targets)
    makers = {ZERO_SHOT: figures.gap_figure, FINE_TUNING: figures.step_figure, FACTORS_PART: figures.change_figure}
    return makers[part](rows)
