"""Trains shared first steps once: the first of several cells with the same first steps trains them, and the others
continue from its state.

The single-object phase has the same images, captions and order for all cells of one model, seed and recipe, whatever
their pairs. Its last state is kept in the study's folder. Every such cell continues from it with the same bytes as if
it had trained the phase itself. Cells that need it wait; on file systems without locks each trains its own.

If the rate is constant before it decays (`Recipe.decay`), runs that differ only in their number of steps have the same
first steps: the state at the end of the constant phase is kept too, and longer cells continue from it. Shorter cells
must be finished before longer ones begin, else steps are trained twice.

States of `--keep-states` within such steps are kept beside the shared state, and copied to the cells that continue
from it.
"""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.envs.core.identity import digest, identity_of
from menagerie.envs.core.locks import FileLock
from menagerie.models.kept_states import make_state_keeper, missing_steps, take_over_states
from menagerie.models.recipe import Recipe, negatives_of
from menagerie.models.registry import spec_of
from menagerie.studies.runs.cell import STATE, Cell, Job
from menagerie.studies.runs.data import Material, content_digest
from menagerie.studies.runs.graphs import kind_of_further_negatives
from menagerie.studies.runs.results import read_result
from menagerie.studies.runs.together import take_steps
from menagerie.studies.runs.training_log import TrainingLog

if TYPE_CHECKING:
    from menagerie.generators.captioned import Captioned
    from menagerie.models.scorer import Scorer
    from menagerie.models.training.loop import Progress

POLL_SECONDS = 0.5
Report = Callable[[int], None]  # receives each finished step, or 0 while a run waits


def start_from_shared_phase(job: Job, material: Material, scorer: "Scorer", report: Report, log: TrainingLog) -> None:
    """Copy the state after the single-object phase to the cell, unless the cell has a state. Train the phase first if
    no cell has. Does nothing for a cell without a phase that others could share."""
    from menagerie.models.training.feed import single_steps
    from menagerie.models.training.sampling import SINGLES
    from menagerie.models.training.state import StateFile, copy_state

    steps, state = single_steps(job.cell.recipe), job.folder / STATE
    singles = material.train.strata.get(SINGLES, ())
    if job.cell.recipe.decay is not None:  # it shares more steps (`train_to_branch`)
        return
    if not steps or material.train.shares or not any(singles):
        return
    indices = [i for i, single in enumerate(singles) if single]
    if has_false_captions(job.cell, material.train, indices, kind_of_further_negatives(scorer)):
        return
    if not state.exists():
        ready = job.shared / f"{phase_key(job, material, scorer, indices)}.pt"
        with hold_lock(ready.with_suffix(".lock"), report):
            if not ready.exists():
                train_phase(job, material, scorer, report, steps, ready, log)
        take_over_states(states_beside(ready), job.folder, job.lacking, job.cell.model, scorer)
        copy_state(StateFile(ready, ready.stem), StateFile(state, job.cell.id))


def has_false_captions(cell: Cell, train: "Captioned", indices: list[int], further: str = "") -> bool:
    """Whether the phase's items have false captions, which depend on the rest of the training data. `further` is the
    kind of false further captions, if any."""
    kinds = filter(None, (*negatives_of(cell.recipe, cell.negatives).texts, further))
    return any(text is not None for kind in kinds for text in train.negatives(indices, indices, kind))


def train_phase(
    job: Job, material: Material, scorer: "Scorer", report: Report, steps: int, ready: Path, log: TrainingLog
) -> None:
    """Train the phase's steps, continuing where it was stopped, and keep the state after them as `ready`.

    The rows of `log` are part of that state, so cells that continue from it have them too.
    """
    from menagerie.models.training.state import StateFile

    unfinished, beside = ready.with_suffix(".unfinished.pt"), states_beside(ready)
    keep_it = make_state_keeper(
        beside, missing_steps(beside, job.execution.keep_states), job.cell.model, scorer, log.aside
    )

    def pass_on(progress: "Progress") -> None:
        keep_it(progress.step)
        log.write()
        report(progress.step)

    file = StateFile(unfinished, ready.stem)
    take_steps(job, material, scorer, file, pass_on, steps, log.history)
    unfinished.replace(ready)


def states_beside(ready: Path) -> Path:
    """Return the folder beside a shared state for states of `--keep-states` before it."""
    return ready.with_suffix("")


def phase_key(job: Job, material: Material, scorer: "Scorer", indices: list[int]) -> str:
    """Return a key that is equal for two cells exactly if every step of their phases is the same."""
    cell = job.cell.trained_as  # tests don't affect training
    settings = {name: value for name, value in cell.settings.items() if name not in ("data", "recipe")}
    settings["recipe"] = identity_of(phase_recipe(cell.recipe))
    local = spec_of(cell.model).local_loss  # a scene of one animal has no relations
    settings["options"] = {name: value for name, value in cell.options.items() if name not in local}
    settings["texts"] = asdict(scorer.texts)
    settings["complete"] = material.train.complete_captions
    settings["items"] = content_digest(material.content, indices)
    return digest(settings)


def phase_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe with defaults in fields that only affect later steps."""
    plain = Recipe()
    later = ("singles_share", "image_negatives")
    return replace(recipe, **{name: getattr(plain, name) for name in later})


@contextmanager
def hold_lock(path: Path, report: Report) -> Iterator[bool]:
    """Hold a lock inside this context. While waiting for it, calls `report(0)`, which can stop the run. Yields whether
    the lock is held: False on file systems without locks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock, held = FileLock(path), True
    try:
        while not lock.acquire(wait=False):
            report(0)
            time.sleep(POLL_SECONDS)
    except OSError:  # without locks, training twice is better than not training
        held = False
    try:
        yield held
    finally:
        lock.release()


def clear_shared(out: Path) -> None:
    """Delete the shared states, once all cells are finished, and the last states of finished cells whose process was
    killed."""
    shutil.rmtree(out / "shared", ignore_errors=True)
    for state in out.glob(f"cells/*/{STATE}"):
        if read_result(state.parent) is not None:
            state.unlink()


FOLDER = "trunks"
NUMBER = re.compile("[0-9]+")


def train_to_branch(job: Job, scorer: "Scorer", train_until: Callable[[int], None], report: Report) -> None:
    """If a cell's rate decays, train the cell to the end of its constant phase and keep that state for longer cells.

    `train_until` trains the cell from its last state, if any, to a step, and saves its state there. States are copied
    under a lock, so that no cell deletes a state that another one copies; while waiting for it, `report(0)` is called.
    """
    branch, state, lock = job.cell.recipe.stable_steps, job.folder / STATE, folder_of(job).with_suffix(".lock")
    if not branch:
        return
    with hold_lock(lock, report):
        kept = {step: file for step, file in branch_states(job).items() if step <= branch}
        if kept and not state.exists():
            continue_from(job, scorer, max(kept), kept[max(kept)])
    if branch in kept:
        return
    if not state.exists() or saved_step(state) < branch:
        train_until(branch)
    if saved_step(state) == branch:  # false if the kept state was deleted during the decay
        with hold_lock(lock, report):
            wanted = missing_steps(folder_of(job), (step for step in job.execution.keep_states if step <= branch))
            take_over_states(job.folder, folder_of(job), wanted, job.cell.model, scorer)
            keep_branch(job, state, branch)


def continue_from(job: Job, scorer: "Scorer", branch: int, file: Path) -> None:
    """Let a cell continue from the `file` that a shorter cell kept at its `branch`, and copy the earlier states of
    `--keep-states`."""
    from menagerie.models.training.state import StateFile, copy_state

    before = (step for step in job.lacking if step <= branch)
    take_over_states(folder_of(job), job.folder, before, job.cell.model, scorer)
    copy_state(StateFile(file, trunk_key(job.cell)), StateFile(job.folder / STATE, job.cell.id))


def keep_branch(job: Job, state: Path, branch: int) -> None:
    """Keep a state, and delete the states of shorter cells, which longer cells no longer need."""
    from menagerie.models.training.state import StateFile, copy_state

    copy_state(StateFile(state, job.cell.id), StateFile(folder_of(job) / f"{branch}.pt", trunk_key(job.cell)))
    kept = branch_states(job)
    for step, file in kept.items():
        if step < branch and branch in kept:  # false if the state was damaged, so that nothing was kept
            file.unlink(missing_ok=True)


def branch_states(job: Job) -> dict[int, Path]:
    """Return the files with states of the cell's constant phase, by step; other files are ignored."""
    return {int(file.stem): file for file in folder_of(job).glob("[0-9]*.pt") if NUMBER.fullmatch(file.stem)}


def folder_of(job: Job) -> Path:
    """Return the folder of a cell's states, which cells that differ only in their number of steps share."""
    return job.shared / FOLDER / trunk_key(job.cell)


def trunk_key(cell: Cell) -> str:
    """Return the hash of all settings except the number of steps and those that depend on it."""
    from menagerie.models.training.feed import single_steps

    of_length = {"steps", "decay", "single_object_phase"}
    recipe = {name: value for name, value in cell.settings["recipe"].items() if name not in of_length}
    return digest(cell.settings | {"recipe": recipe, "single_steps": single_steps(cell.recipe)})


def saved_step(state: Path) -> int:
    """Return the step after which a state was saved; 0 if it is damaged."""
    import torch

    from menagerie.models.training.state import damage, resume_errors

    if damage(state):
        return 0
    with resume_errors(state):
        return int(torch.load(state, weights_only=True, map_location="cpu", mmap=True)["step"])
