"""Trains and evaluates one cell."""

import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import copy_file, write_text
from menagerie.envs.core.records import write_record
from menagerie.models.kept_states import keep_state
from menagerie.models.registry import spec_of
from menagerie.studies.runs.cell import CHECKPOINT, DIVERGED, STATE, Job, Report, one_training
from menagerie.studies.runs.data import Material, familiar_data
from menagerie.studies.runs.evaluation import FILE, evaluate, evaluates_after, sample_accuracy
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.graphs import (
    PLAIN,
    Graphs,
    give_readers,
    kind_of_further_negatives,
    loss_negatives,
    open_material,
    parsed_texts,
    read_graphs,
)
from menagerie.studies.runs.machine import settle_torch
from menagerie.studies.runs.results import CARRIED, read_carried, read_result, write_result
from menagerie.studies.runs.shared import Report as Steps
from menagerie.studies.runs.shared import saved_step, shared_steps, train_shared_steps
from menagerie.studies.runs.torchrun import JOINED, take_steps
from menagerie.studies.runs.training_log import FILE as LOG
from menagerie.studies.runs.training_log import LastRow, TrainingLog, read_training, training_log

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.models.training.loop import Progress

WAITS = "waits for steps that another run of this study trains"


def run_cell(job: Job, report: Report, release: Callable[[], None] = lambda: None) -> None:
    """Train and evaluate a cell, unless it has ended, from its last state if it was stopped.

    `report` receives each step with the last row of the training log in words, and 0 with `WAITS` while the cell waits.
    `release` is called between training and evaluation, when processes that prepare batches have ended and loggers are
    closed. Raises if another process trains the cell, or if a cell that it needs has no result.
    """
    latest = LastRow()
    with one_training(job):
        if not job.ended:  # another process may have trained it meanwhile
            train_and_evaluate(job, lambda step: report(step, latest.text if step else WAITS), latest, release)


def run_with_needs(job: Job, report: Report) -> None:
    """Run the cells that a cell needs, as far as they haven't ended, and then the cell."""
    for need in job.needs:
        run_with_needs(need, report)
    run_cell(job, report)


def train_and_evaluate(job: Job, report: Steps, latest: LastRow, after_training: Callable[[], None]) -> None:
    """Train and evaluate a cell, and write its result."""
    from menagerie.models.checkpoint import WEIGHTS, save_checkpoint
    from menagerie.models.scorer import Diverged

    cell = job.cell
    settle_torch(cell.threads)
    started = time.perf_counter()
    material = open_material(job)
    graphs = read_graphs(job, material)
    try:
        scorer, step_seconds = train_or_take_over(job, material, graphs, report, latest)
        after_training()
        save_checkpoint(job.folder / CHECKPOINT, cell.model, scorer)
        subsets = evaluate(job.folder, material.tests, scorer, trained=familiar_data(material.train))
    except Diverged as error:
        write_text(job.folder / DIVERGED, str(error))
        raise
    result = {
        **{"id": cell.id, "model": cell.model, "seed": cell.seed, **cell.axes, "settings": cell.settings},
        "axes": list(cell.axes),
        **{"train_images": len(material.train), "images_seen": cell.images_seen, **cell.data.counts()},
        **{"parameters": sum(p.numel() for p in scorer.parameters()), "subsets": subsets},
        "scalars": {name: its.item() for name, its in scorer.state_dict().items() if its.numel() == 1},
        "loss_negatives": loss_negatives(cell, material.train, kind_of_further_negatives(scorer)),
        **({"parsed": graphs.parser.counts().text} if graphs.parser else {}),
        **({"carried": read_carried(job.folder)} if cell.start else {}),
        "seconds": round(time.perf_counter() - started, 1),  # of this process only, so less if it resumed
        "provenance": {**provenance(), "step_cpu_seconds": step_seconds}
        | ({"processes": JOINED["cpu"].share.count} if JOINED else {}),
    }
    logs = tuple(path.name for path in [job.folder / LOG] if path.exists())
    write_result(job.folder, result, (FILE, f"{CHECKPOINT}/{WEIGHTS}"), logs)
    (job.folder / STATE).unlink(missing_ok=True)


def train_or_take_over(
    job: Job, material: Material, graphs: Graphs, report: Steps, latest: LastRow
) -> tuple["Scorer", float | None]:
    """Train the cell or load the same training of another; returns its scorer, and what `train_cell` does or None."""
    from menagerie.models.training.encoding import checkpoint_blocks

    if other := job.same_training:
        scorer = load_needed(other, job.cell.options).to(job.cell.device)
        read_training(other.folder)  # raises for a changed log, whose copy would pass as unchanged
        for name in (LOG, CARRIED):  # the latter says what it took over from another study
            (job.folder / name).unlink(missing_ok=True)
            if (other.folder / name).exists():  # a log may have been deleted
                copy_file(other.folder / name, job.folder / name)
        give_readers(scorer, graphs)
        return scorer, None
    scorer = fresh_scorer(job, material, graphs)
    give_readers(scorer, graphs)
    if job.execution.grad_checkpointing:
        checkpoint_blocks(scorer)
    with training_log(job, [latest]) as log:
        return scorer, train_cell(job, material, scorer, report, log)


def load_needed(job: Job, options: dict | None = None) -> "Scorer":
    """Load the scorer of a cell that another one needs. Raises `Diverged` if it diverged: then so has the other."""
    from menagerie.models.checkpoint import load_checkpoint
    from menagerie.models.scorer import Diverged

    if job.problem:
        raise Diverged(job.problem)
    if read_result(job.folder) is None:
        raise UserError(f"{job.folder} has no result, but another run begins with its weights; repeat the command")
    return load_checkpoint(job.folder / CHECKPOINT, job.cell.model, options)


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
    base = load_needed(job.base) if job.base else None
    torch.manual_seed(cell.seed)
    scorer = build_scorer(cell.model, cell.towers, texts, cell.options, base).to(cell.device)
    if cell.start:
        carried = carry_over(scorer, cell.model, cell.start.folder)
        write_record(job.folder / CARRIED, {**carried._asdict(), "from": str(cell.start.folder)})
    if "captions" in spec_of(cell.model).reads and not material.may_be_cut:
        check_uncut(cell.towers, scorer.texts, material.texts)
    return scorer


def train_cell(job: Job, material: Material, scorer: "Scorer", report: Steps, log: TrainingLog) -> float | None:
    """Train to the end, from the cell's last state or from steps that other cells share. Returns the median processor
    time (s) of a step: of all threads of this process, without loader processes, evaluations and saves, and without the
    first step after a pause, which loads and compiles; None if no step was left."""
    from menagerie.models.training.state import StateFile

    cell, file, lacking = job.cell, StateFile(job.folder / STATE, job.cell.id), job.lacking
    validation, seconds, started = material.tests.get("validation"), list[float](), 0.0

    def keep(step: int) -> None:
        if step in lacking:
            log.aside(lambda: keep_state(job.folder, step, cell.model, scorer))

    def pass_on(progress: "Progress") -> None:
        nonlocal started
        if started:
            seconds.append(time.process_time() - started)
        keep(progress.step)
        if validation is not None and evaluates_after(progress.step, cell.recipe, job.execution.validate_every):
            log.history.note(log.aside(lambda: sample_accuracy(scorer, validation)))
        log.write()
        report(progress.step)
        started = time.process_time()

    def train_until(step: int | None = None) -> None:
        nonlocal started
        started = 0.0
        take_steps(job, material, scorer, file, pass_on, step, log.history)

    keep(0)
    if any(0 < step <= saved_step(file.path) for step in lacking):  # it was taken before --keep-states asked for it
        file.path.unlink()
    if shared := shared_steps(job, material, scorer):
        train_shared_steps(job, shared, train_until, report)
    train_until()
    return median(seconds) if seconds else None
