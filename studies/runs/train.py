"""Trains and evaluates one cell."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import copy_file, write_text
from menagerie.envs.core.records import write_record
from menagerie.models.kept_states import make_state_keeper
from menagerie.models.registry import spec_of
from menagerie.studies.runs.cell import CHECKPOINT, DIVERGED, STATE, Job, one_training
from menagerie.studies.runs.data import Material
from menagerie.studies.runs.evaluation import FILE, evaluate, evaluates_after, sample_accuracy
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.graphs import (
    PLAIN,
    Graphs,
    give_readers,
    kind_of_further_negatives,
    loss_negatives,
    parsed_record,
    parsed_texts,
    read_graphs,
)
from menagerie.studies.runs.job import Report
from menagerie.studies.runs.loggers import Logger
from menagerie.studies.runs.machine import settle_torch
from menagerie.studies.runs.results import CARRIED, read_carried, read_result, write_result
from menagerie.studies.runs.shared import Report as Steps
from menagerie.studies.runs.shared import saved_step, shared_steps, train_shared_steps
from menagerie.studies.runs.together import JOINED, take_steps
from menagerie.studies.runs.training_log import FILE as LOG
from menagerie.studies.runs.training_log import LastRow, StepClock, TrainingLog, read_training, training_log

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.models.training.loop import Progress

# The data that this process opened last.
OPENED: dict[tuple[Any, ...], Material] = {}


WAITS = "waits for steps that another run of this study trains"


def run_cell(
    job: Job, report: Report, release: Callable[[], None] = lambda: None, loggers: Sequence[Logger] = ()
) -> None:
    """Train and evaluate a cell, unless it has ended; at the end the result file is written, whole or not at all.

    `report` receives each step with the last row of the training log in words, and 0 with `WAITS` while the cell waits.
    `loggers` receive the rows too. `release` is called between training and evaluation, when processes that prepare
    batches have ended and loggers are closed. A stopped run continues from its last state. Raises if another process
    trains the cell, or if a cell that it needs has no result.
    """
    latest = LastRow()
    with one_training(job):
        if not job.ended:  # another process may have trained it meanwhile
            train_and_evaluate(
                job, lambda step: report(step, latest.text if step else WAITS), [latest, *loggers], release
            )


def run_with_needs(job: Job, report: Report) -> None:
    """Run the cells that a cell needs, as far as they haven't ended, and then the cell."""
    for need in job.needs:
        run_with_needs(need, report)
    run_cell(job, report)


def train_and_evaluate(job: Job, report: Steps, loggers: Sequence[Logger], after_training: Callable[[], None]) -> None:
    """Train and evaluate a cell, and write its result."""
    from menagerie.models.checkpoint import WEIGHTS, save_checkpoint

    cell = job.cell
    settle_torch(cell.threads)
    started = time.perf_counter()
    material = open_material(job)
    graphs = read_graphs(job, material)
    scorer, step_seconds = train_or_take_over(job, material, graphs, report, loggers)
    after_training()
    save_checkpoint(job.folder / CHECKPOINT, cell.model, scorer)
    with noting_divergence(job):
        subsets = evaluate(job.folder, material.tests, scorer)
    result = {
        **{"id": cell.id, "model": cell.model, "seed": cell.seed, **cell.axes, "settings": cell.settings},
        "axes": list(cell.axes),
        **{"train_images": len(material.train), "images_seen": cell.images_seen, **cell.data.counts()},
        **{"parameters": sum(p.numel() for p in scorer.parameters()), "subsets": subsets},
        "loss_negatives": loss_negatives(cell, material.train, kind_of_further_negatives(scorer)),
        **parsed_record(graphs),
        **({"carried": read_carried(job.folder)} if cell.start else {}),
        "seconds": round(time.perf_counter() - started, 1),  # of this process only, so less if it resumed
        "provenance": {**provenance(), "step_cpu_seconds": step_seconds}
        | ({"processes": JOINED["cpu"].share.count} if JOINED else {}),
    }
    logs = tuple(path.name for path in [job.folder / LOG] if path.exists())
    write_result(job.folder, result, (FILE, f"{CHECKPOINT}/{WEIGHTS}"), logs)
    (job.folder / STATE).unlink(missing_ok=True)


def open_material(job: Job) -> Material:
    """Open a cell's data, or return those of the last cell if they are the same: opening takes seconds."""
    stat = job.data_file.stat() if job.data_file.exists() else None
    key = (job.cell.data, job.data_file, stat and (stat.st_mtime_ns, stat.st_size))
    if key not in OPENED:
        OPENED.clear()  # free memory first
        OPENED[key] = job.cell.data.open(job.data_file)
    return OPENED[key]


def fresh_scorer(job: Job, material: Material, graphs: Graphs = PLAIN) -> "Scorer":
    """Build the cell's scorer before its first step. Raises if captions would be cut, unless that is allowed."""
    import torch

    from menagerie.models.carry_over import carry_over, widen
    from menagerie.models.checkpoint import build_scorer, scorer_config
    from menagerie.models.towers.tokenizers import check_uncut, text_space

    cell = job.cell
    texts = text_space(cell.towers, [*material.texts, *parsed_texts(material, graphs)])
    if cell.start:
        texts = widen(texts, scorer_config(cell.start.folder).texts)
    base = base_scorer(job)
    torch.manual_seed(cell.seed)
    scorer = build_scorer(cell.model, cell.towers, texts, cell.options, base).to(cell.device)
    if cell.start:
        carried = carry_over(scorer, cell.model, cell.start.folder)
        write_record(job.folder / CARRIED, {**carried._asdict(), "from": str(cell.start.folder)})
    if "captions" in spec_of(cell.model).reads and not material.may_be_cut:
        check_uncut(cell.towers, scorer.texts, material.texts)
    return scorer


def base_scorer(job: Job) -> "Scorer | None":
    """Load the scorer of the cell's base; None without a base."""
    from menagerie.models.checkpoint import load_checkpoint

    if job.base is None:
        return None
    check_needed(job.base)
    return load_checkpoint(job.base.folder / CHECKPOINT, job.base.cell.model)


def check_needed(job: Job) -> None:
    """Raise `Diverged` if a cell whose weights another cell needs diverged: then the other cell has diverged too."""
    from menagerie.models.scorer import Diverged

    if job.problem:
        raise Diverged(job.problem)
    if read_result(job.folder) is None:
        raise UserError(f"{job.folder} has no result, but another run begins with its weights; repeat the command")


@contextmanager
def noting_divergence(job: Job) -> Iterator[None]:
    """Write the reason into the cell's folder if loss, weights or scores aren't finite in this context."""
    from menagerie.models.scorer import Diverged

    try:
        yield
    except Diverged as error:
        write_text(job.folder / DIVERGED, str(error))
        raise


def load_same_training(job: Job) -> "Scorer | None":
    """Load the scorer of the cell with the same training (`Job.same_training`), and copy its log and what it took over
    from another study; None if this cell has to be trained itself."""
    from menagerie.models.checkpoint import load_checkpoint

    other = job.same_training
    if other is None:
        return None
    check_needed(other)
    read_training(other.folder)  # raises for a changed log, whose copy would pass as unchanged
    for name in (LOG, CARRIED):
        (job.folder / name).unlink(missing_ok=True)
        if (other.folder / name).exists():  # a log may have been deleted
            copy_file(other.folder / name, job.folder / name)
    return load_checkpoint(other.folder / CHECKPOINT, other.cell.model, job.cell.options).to(job.cell.device)


def train_or_take_over(
    job: Job, material: Material, graphs: Graphs, report: Steps, loggers: Sequence[Logger]
) -> tuple["Scorer", float | None]:
    """Train the cell, or load the same training of another one; returns the scorer after its last step, and the median
    processor time of a step (None if no step was left)."""
    from menagerie.models.training.encoding import checkpoint_blocks

    with noting_divergence(job):
        before = load_same_training(job)
    if before:
        give_readers(before, graphs)
        return before, None
    with noting_divergence(job):
        scorer = fresh_scorer(job, material, graphs)
        give_readers(scorer, graphs)
        if job.execution.grad_checkpointing:
            checkpoint_blocks(scorer)
        with training_log(job, loggers) as log:
            return scorer, train_cell(job, material, scorer, report, log)


def train_cell(job: Job, material: Material, scorer: "Scorer", report: Steps, log: TrainingLog) -> float | None:
    """Train to the end, from the cell's last state or from steps that other cells share.

    Returns the median processor time of a step, without evaluations and saves; None if no step was left.
    """
    from menagerie.models.training.state import StateFile

    cell, clock, file = job.cell, StepClock(), StateFile(job.folder / STATE, job.cell.id)
    validation, lacking = material.tests.get("validation"), job.lacking
    keep = make_state_keeper(job.folder, lacking, cell.model, scorer, log.aside)
    keep(0)
    if any(0 < step <= saved_step(file.path) for step in lacking):  # it was taken before --keep-states asked for it
        file.path.unlink()

    def pass_on(progress: "Progress") -> None:
        clock.stop()
        keep(progress.step)
        if validation is not None and evaluates_after(progress.step, cell.recipe, job.execution.validate_every):
            log.note(lambda: sample_accuracy(scorer, validation))
        log.write()
        report(progress.step)
        clock.start()

    def train_until(step: int | None = None) -> None:
        clock.pause()
        take_steps(job, material, scorer, file, pass_on, step, log.history)

    if shared := shared_steps(job, material, scorer):
        train_shared_steps(job, shared, train_until, report)
    train_until()
    return clock.median
