"""Trains and evaluates one cell."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.files import clear_leftovers, copy_file, write_text
from menagerie.envs.core.records import write_record
from menagerie.models.kept_states import make_state_keeper
from menagerie.models.registry import spec_of
from menagerie.studies.runs.cell import CHECKPOINT, DIVERGED, STATE, Job
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
from menagerie.studies.runs.loggers import Logger
from menagerie.studies.runs.machine import settle_torch
from menagerie.studies.runs.results import CARRIED, read_carried, read_result, write_result
from menagerie.studies.runs.shared import Report, hold_lock, start_from_shared_phase, train_to_branch
from menagerie.studies.runs.together import JOINED, take_steps
from menagerie.studies.runs.training_log import FILE as LOG
from menagerie.studies.runs.training_log import StepClock, TrainingLog, read_training, training_log

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.models.training.loop import Progress

# The data that this process opened last.
OPENED: dict[tuple[Any, ...], Material] = {}


def run_cell(
    job: Job, report: Report, loggers: Sequence[Logger] = (), after_training: Callable[[], None] = lambda: None
) -> None:
    """Train and evaluate a cell; at the end the result file is written, whole or not at all.

    `report` receives each finished step, `loggers` the rows of the training log. `after_training` is called between
    training and evaluation, when processes that prepare batches have ended and loggers are closed. A stopped run
    continues from its last state.
    """
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


def fresh_scorer(job: Job, material: Material, report: Report, graphs: Graphs = PLAIN) -> "Scorer":
    """Build the cell's scorer before its first step. Raises if captions would be cut, unless that is allowed."""
    import torch

    from menagerie.models.carry_over import carry_over, widen
    from menagerie.models.checkpoint import build_scorer, scorer_config
    from menagerie.models.towers.tokenizers import check_uncut, text_space

    cell = job.cell
    texts = text_space(cell.towers, [*material.texts, *parsed_texts(material, graphs)])
    if cell.start:
        texts = widen(texts, scorer_config(cell.start.folder).texts)
    base = base_scorer(job, report)
    torch.manual_seed(cell.seed)
    scorer = build_scorer(cell.model, cell.towers, texts, cell.options, base).to(cell.device)
    if cell.start:
        carried = carry_over(scorer, cell.model, cell.start.folder)
        write_record(job.folder / CARRIED, {**carried._asdict(), "from": str(cell.start.folder)})
    if "captions" in spec_of(cell.model).reads and not material.may_be_cut:
        check_uncut(cell.towers, scorer.texts, material.texts)
    return scorer


def base_scorer(job: Job, report: Report) -> "Scorer | None":
    """Load the scorer of the cell's base, and train it first if necessary; None without a base."""
    from menagerie.models.checkpoint import load_checkpoint

    if job.cell.base is None:
        return None
    base = replace(job, cell=job.cell.base, what="")
    train_other(base, lambda step: report(0))
    return load_checkpoint(base.folder / CHECKPOINT, base.cell.model)


@contextmanager
def noting_divergence(job: Job) -> Iterator[None]:
    """Write the reason into the cell's folder if loss, weights or scores aren't finite in this context."""
    from menagerie.models.scorer import Diverged

    try:
        yield
    except Diverged as error:
        write_text(job.folder / DIVERGED, str(error))
        raise


def load_same_training(job: Job, report: Report) -> "Scorer | None":
    """Load the scorer of the cell with the same training (`Cell.trained_as`), and copy its log and what it took over
    from another study; None if this cell has to be trained itself.

    If the cells differ in options that only affect scores, the other cell is trained first if necessary. If they differ
    only in graphs of tests, its scorer is used only if it is finished.
    """
    from menagerie.models.checkpoint import load_checkpoint

    other = replace(job, cell=job.cell.trained_as)
    if other.cell == job.cell:
        return None
    if read_result(other.folder) is None and other.cell.options == job.cell.options:
        return None
    train_other(other, report)
    read_training(other.folder)  # raises for a changed log, whose copy would pass as unchanged
    for name in (LOG, CARRIED):
        (job.folder / name).unlink(missing_ok=True)
        if (other.folder / name).exists():  # a log may have been deleted
            copy_file(other.folder / name, job.folder / name)
    return load_checkpoint(other.folder / CHECKPOINT, other.cell.model, job.cell.options).to(job.cell.device)


def train_other(job: Job, report: Report) -> None:
    """Train a cell whose weights another cell needs, unless it is finished. Raises `Diverged` if it diverged before:
    then the other cell has diverged too."""
    from menagerie.models.scorer import Diverged

    if read_result(job.folder) is not None:
        return
    with one_training(job, report):
        if job.problem:
            raise Diverged(job.problem)
        if read_result(job.folder) is None:
            run_cell(job, report)


@contextmanager
def one_training(job: Job, report: Report) -> Iterator[None]:
    """Lock the training of this cell and its folder inside this context, and delete temporary files of killed
    processes.

    A cell may wait for a cell whose weights it needs, never the other way round.
    """
    with hold_lock(job.shared / f"cell-{job.id}.lock", report) as held:
        clear_leftovers(job.folder, below=True, alone=held)
        yield


def train_or_take_over(
    job: Job, material: Material, graphs: Graphs, report: Report, loggers: Sequence[Logger]
) -> tuple["Scorer", float | None]:
    """Train the cell, or load the same training of another one; returns the scorer after its last step, and the median
    processor time of a step (None if no step was left)."""
    from menagerie.models.training.encoding import checkpoint_blocks

    with noting_divergence(job):
        before = load_same_training(job, report)
    if before:
        give_readers(before, graphs)
        return before, None
    with noting_divergence(job):
        scorer = fresh_scorer(job, material, report, graphs)
        give_readers(scorer, graphs)
        if job.execution.grad_checkpointing:
            checkpoint_blocks(scorer)
        with training_log(job, loggers) as log:
            return scorer, train_cell(job, material, scorer, report, log)


def train_cell(job: Job, material: Material, scorer: "Scorer", report: Report, log: TrainingLog) -> float | None:
    """Train to the end, from the cell's last state or from steps that other cells share.

    Returns the median processor time of a step, without evaluations and saves; None if no step was left.
    """
    from menagerie.models.training.state import StateFile

    cell, clock = job.cell, StepClock()
    validation, keep = (
        material.tests.get("validation"),
        make_state_keeper(job.folder, job.lacking, cell.model, scorer, log.aside),
    )
    keep(0)

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
        file = StateFile(job.folder / STATE, cell.id)
        take_steps(job, material, scorer, file, pass_on, step, log.history)

    start_from_shared_phase(job, material, scorer, report, log)
    train_to_branch(job, scorer, train_until, report)
    train_until()
    return clock.median
