"""Trains first steps that several cells have in common once: a cell begins at step n of another run.

The single-object phase has the same images, captions and order for all cells of one model, seed and recipe, whatever
their pairs. If the rate is constant before it decays (`Recipe.decay`), runs that differ only in their number of steps
have the same first steps, too. The first cell that trains such steps keeps the state after them in the study's folder.
The others wait for it and continue from it, with the same bytes as if they had trained these steps. On file systems
without locks, and with `--keep-states`, a cell trains all of its steps itself.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from menagerie.envs.core.identity import digest, identity_of
from menagerie.envs.core.locks import FileLock
from menagerie.models.recipe import Recipe, negatives_of
from menagerie.models.registry import spec_of
from menagerie.studies.runs.cell import STATE, Cell, Job
from menagerie.studies.runs.data import Material
from menagerie.studies.runs.graphs import kind_of_further_negatives
from menagerie.studies.runs.results import read_result

if TYPE_CHECKING:
    from menagerie.generators.captioned import Captioned
    from menagerie.models.scorer import Scorer

POLL_SECONDS = 0.5
Report = Callable[[int], None]  # receives each finished step, or 0 while a run waits


class SharedSteps(NamedTuple):
    """The first steps of a cell, which other cells may share."""

    folder: Path  # of their states, named by everything that decides the steps
    steps: int

    def states(self) -> dict[int, Path]:
        """Return the intact states that cells have kept, by step; other files are ignored."""
        files = self.folder.glob("[0-9]*.pt")
        return {step: file for file in files if (step := saved_step(file)) and file.stem == str(step)}


def shared_steps(job: Job, material: Material, scorer: "Scorer") -> SharedSteps | None:
    """Return the first steps that other cells may share with this one; None if there are none."""
    from menagerie.models.training.feed import single_steps
    from menagerie.models.training.sampling import SINGLES

    recipe, shared = job.cell.recipe, job.out / "shared"
    if job.execution.keep_states:
        return None
    if recipe.decay is not None:
        return SharedSteps(shared / trunk_key(job.cell), recipe.stable_steps) if recipe.stable_steps else None
    steps, singles = single_steps(recipe), material.train.strata.get(SINGLES, ())
    indices = [i for i, single in enumerate(singles) if single]
    alike = steps and indices and not material.train.shares
    if not alike or has_false_captions(job.cell, material.train, indices, kind_of_further_negatives(scorer)):
        return None
    return SharedSteps(shared / phase_key(job, material, scorer, indices), steps)


def train_shared_steps(job: Job, shared: SharedSteps, train_until: Callable[[int], None], report: Report) -> None:
    """Train a cell to the end of its shared steps, from the last state of this cell or of any other, and keep the state
    after them. `train_until` trains the cell from its own state, if any, to a step, and saves its state there.
    Meanwhile other cells that share these steps wait, and call `report(0)`."""
    from menagerie.models.training.state import StateFile, copy_state

    own = StateFile(job.folder / STATE, job.cell.id)
    if saved_step(own.path) > shared.steps:
        return
    with hold_lock(shared.folder.with_suffix(".lock"), report):
        kept = {step: file for step, file in shared.states().items() if step <= shared.steps}
        last = max(kept, default=0)
        if last > saved_step(own.path):
            copy_state(StateFile(kept[last], shared.folder.name), own)
        if saved_step(own.path) < shared.steps:
            train_until(shared.steps)
        if last < shared.steps == saved_step(own.path):  # false if the kept state was deleted during later steps
            copy_state(own, StateFile(shared.folder / f"{shared.steps}.pt", shared.folder.name))
            for file in kept.values():  # longer cells no longer need them
                file.unlink(missing_ok=True)


def has_false_captions(cell: Cell, train: "Captioned", indices: list[int], further: str = "") -> bool:
    """Whether the phase's items have false captions, which depend on all training data, or further ones (`further`)."""
    kinds = filter(None, (*negatives_of(cell.recipe, cell.negatives).texts, further))
    return any(text is not None for kind in kinds for text in train.negatives(indices, indices, kind))


def phase_key(job: Job, material: Material, scorer: "Scorer", indices: list[int]) -> str:
    """Return a key that is equal for two cells exactly if every step of their phases is the same."""
    cell = job.cell.trained_as  # tests don't affect training
    local = spec_of(cell.model).local_loss  # a scene of one animal has no relations
    items = hashlib.sha256(b"".join(material.content(index).encode() + b"\0" for index in indices))
    return digest(
        {name: value for name, value in cell.settings.items() if name != "data"}
        | {"recipe": identity_of(phase_recipe(cell.recipe)), "texts": asdict(scorer.texts)}
        | {"options": {name: value for name, value in cell.options.items() if name not in local}}
        | {"complete": material.train.complete_captions, "items": items.hexdigest()[:12]}
    )


def phase_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe with defaults in fields that only affect later steps."""
    plain = Recipe()
    return replace(recipe, singles_share=plain.singles_share, image_negatives=plain.image_negatives)


@contextmanager
def hold_lock(path: Path, report: Report) -> Iterator[None]:
    """Hold a lock in this context, if the file system has locks. Waiting calls `report(0)`, which can stop the run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    with suppress(OSError):  # without locks, training twice is better than not training
        while not lock.acquire(wait=False):
            report(0)
            time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def clear_shared(out: Path) -> None:
    """Delete the shared states, once all cells are finished, and those of finished cells whose process was killed."""
    shutil.rmtree(out / "shared", ignore_errors=True)
    with suppress(OSError):  # a cell of another command is being trained
        (out / "locks").rmdir()
    for state in out.glob(f"cells/*/{STATE}"):
        if read_result(state.parent) is not None:
            state.unlink()


def trunk_key(cell: Cell) -> str:
    """Return the hash of all settings except the number of steps and those that depend on it."""
    from menagerie.models.training.feed import single_steps

    of_length = {"steps", "decay", "single_object_phase"}
    recipe = {name: value for name, value in cell.settings["recipe"].items() if name not in of_length}
    return digest(cell.settings | {"recipe": recipe, "single_steps": single_steps(cell.recipe)})


def saved_step(state: Path) -> int:
    """Return the step after which a state was saved; 0 if there is none, or if it is damaged."""
    import torch

    from menagerie.models.training.state import damage, resume_errors

    if not state.exists() or damage(state):
        return 0
    with resume_errors(state):
        return int(torch.load(state, weights_only=True, map_location="cpu", mmap=True)["step"])
