"""What a study of photographs writes: tables as CSV, figures, and `report.html`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.envs.core.figures import short, write_figure
from menagerie.envs.core.pages import write_page
from menagerie.studies.analysis.tables import DASH, flat, to_csv, to_rows
from menagerie.studies.analysis.two_levels import meaning
from menagerie.studies.analysis.words import TERMS, models_explained, records_in, smoke_words
from menagerie.studies.photographs import figures, questions
from menagerie.studies.photographs.measures import (
    KNOWN,
    MEASURES,
    RECOGNITION,
    SWAPS,
    Level,
    Lines,
    StudyState,
    done_jobs,
)
from menagerie.studies.photographs.trainings import (
    FACTORS,
    FACTORS_PART,
    FINE_TUNING,
    OWN,
    SYNTHETIC,
    WORTH,
    ZERO_SHOT,
    all_trainings,
)
from menagerie.studies.photographs.worlds import HELD_OUT, PHOTOGRAPHS
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import collect, write_results

# Tests in tables.
TESTED = {HELD_OUT: "held-out photographs", PHOTOGRAPHS: "all photographs", SYNTHETIC: "rendered animals"}


def gap_table(rows: list[questions.Gap]) -> pd.DataFrame:
    """(a) Rendered and photographed animals, and their difference."""
    columns = ["model", "test", "measure", "rendered (%)", "photographed (%)", "photographed − rendered"]
    return pd.DataFrame([[short(row.model), *row[1:3], *map(str, row[3:])] for row in rows], columns=columns)


def step_table(rows: list[questions.Step]) -> pd.DataFrame:
    """(b) By the photographs in training, with and without synthetic training."""
    columns = ["model", "measure", "photographs in training", "tested on", "from scratch (%)", "after synthetic (%)"]
    texts = [
        [
            short(row.model),
            row.measure,
            trained_on(row),
            TESTED[row.test],
            *map(str, (row.scratch, row.tuned, row.saved)),
        ]
        for row in rows
    ]
    table = pd.DataFrame(texts, columns=[*columns, "after synthetic − from scratch"])
    return table.drop_duplicates()  # without photographs both lines of the figure begin alike


def trained_on(row: questions.Step) -> str:
    """The photographs of a row."""
    if not row.count:
        return "none"
    return f"{row.count} of each animal" if row.world == OWN else f"of {row.count} other animals"


def worth_table(rows: list[questions.Worth]) -> pd.DataFrame:
    """Table (c): the fewest images with which each model reaches each target."""
    columns = [
        "model",
        "measure",
        "target (%)",
        "images from scratch",
        "images after synthetic",
        "ratio",
        "95 % interval",
    ]
    texts = []
    for row in rows:
        numbers = [f"{100 * row.target:.0f}", str(row.scratch), "0" if str(row.tuned) == "1" else str(row.tuned)]
        texts.append([short(row.model), row.measure, *numbers, ratio_text(row), row.ratio.interval])
    return pd.DataFrame(texts, columns=columns)


def ratio_text(row: questions.Worth) -> str:
    """How many times the images a model needs from scratch; a bound where one of both never reaches the target."""
    if row.scratch.censored and row.tuned.censored:
        return DASH
    sign = "≥ " if row.scratch.censored else "≤ " if row.tuned.censored else ""
    ratio = row.scratch.images / row.tuned.images
    return f"{sign}{ratio:.2g}" if ratio < 100 else f"{sign}{ratio:.0f}"


def change_table(rows: list[questions.Change]) -> pd.DataFrame:
    """(d) What each factor changes."""
    columns = ["model", "changed", "tested on", "measure", "as it is (%)", "changed (%)", "difference"]
    return pd.DataFrame(
        [[short(row.model), row.factor, TESTED[row.test], row.measure, *map(str, row[4:])] for row in rows],
        columns=columns,
    )


def audit_table(study: StudyState) -> pd.DataFrame:
    """A table of how many photographs training has, how many tests have, and how many both have."""
    columns = ["photographs in training", "number", "photographs tested", "their number", "in both"]
    return pd.DataFrame([list(map(str, row)) for row in study.audit], columns=columns)


def gap_words(rows: list[questions.Gap]) -> list[str]:
    """The findings of part (a), a sentence for each model and test."""
    found: dict[tuple[str, str], dict[str, questions.Gap]] = {}
    for row in rows:
        found.setdefault((row.model, row.test), {})[row.measure] = row
    return [
        f"{short(model)}, {test}: from rendered to photographed animals recognition changes by {gaps[RECOGNITION].gap} "
        f"points to {gaps[RECOGNITION].photographs} %, swaps by {gaps[SWAPS].gap} to {gaps[SWAPS].photographs} %, and "
        f"swaps where all is recognised by {gaps[KNOWN].gap if KNOWN in gaps else '– (no scene is, rendered)'}."
        for (model, test), gaps in found.items()
    ]


def step_words(rows: list[questions.Step]) -> list[str]:
    """The findings of part (b), for the largest number of photographs of the tested animals."""
    of_tested = [row for row in rows if row.world == OWN and row.count]
    most = max((row.count for row in of_tested), default=0)
    return [
        f"{short(row.model)}, {row.measure} on held-out photographs after training on up to {row.count} others of each "
        f"animal: {row.scratch} % from scratch, {row.tuned} % after synthetic training ({row.saved} points)."
        for row in of_tested
        if row.count == most
    ]


# What each factor changes.
FACTOR_WORDS = {
    "views": "a quarter of the views of each training scene",
    "textures": "four further textures, plain colours",
    "augmentation": "no random zoom, shift and contrast of training images (with, where the recipe has none)",
    "backgrounds": "photographs of --backgrounds beside the world's own backgrounds",
    "vocabulary": "all animals of the synthetic world, not only those that there are photographs of",
}


def publish(study: StudyState) -> Path:
    """Write all that the finished runs allow; returns the report."""
    config, out, done = study.config, study.out, done_jobs(study)
    results = collect(job.folder for job in done.values())
    write_results(out, results)
    lines = Lines(study, done)
    rows = {part: rows_of(part, lines) for part in config.parts}
    pairs = pairs_of(rows)
    texts = {part: table_of(part, found, config) for part, found in rows.items() if found}
    for part, table in texts.items():
        to_csv(out / f"{part}.csv", table)
    drawn = {part: figure_of(part, found, config) for part, found in rows.items() if found}
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title="Synthetic first, then real: what training in a rendered world buys on photographs",
        rehearsal=config.rehearsal and not config.photos and not config.package,
        sentences=[*gap_words(rows.get(ZERO_SHOT, [])), *step_words(rows.get(FINE_TUNING, []))],
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
        audit=to_rows(audit_table(study)),
        left_out=study.lacking,
        finished=len(done),
        runs=len(all_trainings(config, study.material)),
        terms=TERMS,
        config=flat(asdict(config)),
        notes={**study.notes, **where_it_ran(out, results)},
    )


def pairs_of(rows: dict[str, list[Any]]) -> list[int]:
    """How many animal pairs, each of one seed, the measures of all parts are over; of each number one."""
    levels = [value for found in rows.values() for row in found for value in row if isinstance(value, Level)]
    return sorted({level.clusters for level in levels} - {0})


def rows_of(part: str, lines: Lines) -> list[Any]:
    """The rows of one question."""
    config = lines.study.config
    if part == FACTORS_PART:
        return questions.changes(lines, [model for model in config.models if model in config.with_factors])
    makers = {ZERO_SHOT: questions.gaps, FINE_TUNING: questions.steps, WORTH: questions.ladders}
    return makers[part](lines, config.models)


def table_of(part: str, rows: list[Any], config: Any) -> pd.DataFrame:
    makers = {ZERO_SHOT: gap_table, FINE_TUNING: step_table, FACTORS_PART: change_table}
    return worth_table(questions.worths(rows, config.targets)) if part == WORTH else makers[part](rows)


def figure_of(part: str, rows: list[Any], config: Any) -> Any:
    if part == WORTH:
        return figures.ladder_figure(rows, config.targets)
    makers = {ZERO_SHOT: figures.gap_figure, FINE_TUNING: figures.step_figure, FACTORS_PART: figures.change_figure}
    return makers[part](rows)
