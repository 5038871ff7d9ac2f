"""What the study of slots writes: tables, figures, and SPARO's claims in words, from the runs that are finished."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from menagerie.envs.core.figures import write_figure, write_png
from menagerie.envs.core.files import write_csv, write_text
from menagerie.envs.core.pages import write_page
from menagerie.models.checkpoint import load_checkpoint
from menagerie.studies.ablation.figures import accuracy_figure
from menagerie.studies.ablation.papers import ABLATIONS
from menagerie.studies.ablation.report import HEADER, records_of, rows_explained, scores_of, smoke_of
from menagerie.studies.ablation.rows import ablated
from menagerie.studies.ablation.tables import EXPECTED, OUTCOME, VERDICTS, column_name, columns_of, read_runs, verdict
from menagerie.studies.analysis.curves import Curve, alike, training_curves
from menagerie.studies.analysis.paired_bootstrap import Count, counts_in, fewest_pairs, record_line
from menagerie.studies.analysis.tables import to_csv, to_latex, to_rows
from menagerie.studies.analysis.two_levels import meaning
from menagerie.studies.analysis.words import TERMS, columns_explained, models_explained
from menagerie.studies.grids.grid import cell_line
from menagerie.studies.runs.cell import CHECKPOINT, Job
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.slots.figures import AGREE, MOST, chosen_slots, favourite, seen, slot_sheet, spread, sweep_figure
from menagerie.studies.slots.masks import LEAST_GAIN, Masked, MaskRow, Selected
from menagerie.studies.slots.runs import MODEL, SWEPT, Jobs, Rows, shown, whole
from menagerie.studies.slots.tables import (
    Done,
    Verdict,
    of_masks,
    of_selection,
    of_sweeps,
    selections,
    tables_of,
    trained_masks,
)

# What the vectors of table 5 are compared with, if it is among the models.
BESIDE = "clip-gap"
CAPTIONS = {
    "selection": "Slots chosen after the fact (table 4): accuracy in percent over all tests, by task, all seeds.",
    "masks": "Masks of image vectors (table 5): accuracy in percent without and with the mask, all seeds.",
    "ladder": "From attentional pooling to SPARO (table 6): accuracy in percent, mean and deviation over seeds.",
    "sweeps": "Number and width of slots (figure 3): accuracy in percent, mean and deviation over seeds.",
}


def publish(out: Path, config: Any, rows: Rows, jobs: Jobs, notes: dict[str, Any]) -> Path:
    """Write all that the finished runs allow; returns the report."""
    data = next(iter(jobs.values()))[0].cell.data
    done = Done(config, rows, jobs, read_runs(ablated(MODEL), jobs), columns_of(data))
    points, masks = selections(done), trained_masks(done)
    tables = tables_of(done, points, masks)
    counts = [tested_counts(job) for batch in jobs.values() for job in whole(batch)]
    for name, table in tables.items():
        to_csv(out / f"{name}.csv", table)
    write_text(out / "tables.tex", "\n".join(to_latex(table, CAPTIONS[name]) for name, table in tables.items()))
    write_csv(out / "accuracies.csv", HEADER, scores_of(done.runs))
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title=config.title,
        claims=[
            ("claim", "row", "tests, their records pooled", *OUTCOME, "measured: difference, points"),
            *verdicts(done, points, masks),
        ],
        cell=cell_line(config),
        record_numbers=records_of(done.runs, config.kind, done.columns),
        all_records=record_line(counts, {column: column_name(*column) for column in sorted(set().union(*counts))}),
        usual=f"{done.slots} slots of width {done.width}",
        least_gain=f"{LEAST_GAIN:g}",
        models=models_explained(config.models),
        tests=columns_explained(tested(done, points), data.kind),
        says=rows_explained(ablated(MODEL), done.ladder),
        tables={name: to_rows(table) for name, table in tables.items()},
        verdicts=VERDICTS,
        meaning=meaning(config.seeds, fewest_pairs(counts, done.columns)),
        captions=CAPTIONS,
        figures=figures(out / "figures", done),
        finished=len({job.folder for batch in jobs.values() for job in whole(batch)}),
        runs=len({job.folder for batch in jobs.values() for job in batch}),
        base=rows.base,
        alike=alike(curves(done)),
        agreeing=AGREE,
        terms=TERMS,
        notes={**notes, **where_it_ran(out)},
        smoke=smoke_of(jobs),
    )


def verdicts(done: Done, points: Selected, masks: Mapping[MaskRow, Masked]) -> list[Verdict]:
    """All claims of the parts that were requested."""
    config, rows = done.config, []
    if "selection" in config.parts:
        rows += of_selection(points)
    if "masks" in config.parts:
        rows += of_masks(masks, MODEL, BESIDE, config.mask_tasks[0])
    for claim in ABLATIONS[MODEL].claims if done.ladder else ():
        if claim.split == config.kind:
            outcome, delta = verdict(done.runs, claim, done.rows.base)
            tests = ", ".join(column_name(*column) for column in claim.columns)
            rows.append(Verdict(claim.text, claim.row, tests, outcome, EXPECTED[claim.sign], delta))
    return rows + of_sweeps(done.runs, config.kind, done.columns, done.swept)


def tested_counts(job: Job) -> dict[tuple[str, str], Count]:
    """How many records a finished run has of each test."""
    return {column: count for column, count in counts_in(job.folder).items() if column[0] in job.cell.data.tests}


def tested(done: Done, points: Selected) -> list[tuple[str, str]]:
    """The subsets and tasks of all tables."""
    found = {key[1:3] for records in points.values() for key in records}
    return [*done.columns, *sorted(found), *(("validation", task) for task in done.config.mask_tasks)]


def figures(folder: Path, done: Done) -> dict[str, str]:
    """The figures that there are runs for, written and as data URIs."""
    written, kind = {}, done.config.kind
    if done.ladder:
        figure = accuracy_figure(done.runs_of(done.ladder), kind, done.columns, done.rows.base)
        written["ladder"] = write_figure(folder / "ladder.png", figure)
    if any(done.swept.values()):
        figure = sweep_figure(done.runs, kind, done.columns, done.swept, done.beside, done.parameters())
        written["sweeps"] = write_figure(folder / "sweeps.png", figure)
    base = whole(done.jobs_of(done.rows.base))
    if base and "pictures" in done.config.parts:
        written["pictures"] = write_pictures(folder / "slots.png", base[0], done.config.scenes)
    if training := training_curves(curves(done)):
        written["training"] = write_figure(folder / "training.png", training)
    return written


def curves(done: Done) -> list[Curve]:
    """The finished runs in the figure of how all trained, each once."""
    labels = {job.folder: place.row for place, batch in reversed(done.jobs.items()) for job in whole(batch)}
    return [Curve(group_of(done, row), shown(row), folder) for folder, row in reversed(labels.items())]


def group_of(done: Done, row: str) -> str:
    """The column of panels that a row's training is in: few lines can be told apart in one."""
    swept = next((field for field, rows in done.rows.sweeps.items() if row in rows), "")
    return SWEPT[swept] if swept else "rows of table 6, models"


def write_pictures(path: Path, job: Job, scenes: int) -> str:
    """Figure 4 of one run: slots are chosen on validation, and shown on the first test that has scenes."""
    scorer, tests = load_checkpoint(job.folder / CHECKPOINT, job.cell.model), job.cell.data.open(job.data_file).tests
    validation = tests["validation"].data
    test = next(tests[name].data for name in job.cell.data.tests if len(tests[name].data))
    ranked = seen(scorer, validation, spread(len(validation), MOST))
    slots = {slot: favourite(ranked, slot) for slot in chosen_slots(ranked)}
    return write_png(path, slot_sheet(seen(scorer, test, spread(len(test), scenes)), slots))
