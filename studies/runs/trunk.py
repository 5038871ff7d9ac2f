"""One stable phase for runs of many lengths: where the rate is constant before it decays (`Recipe.decay`), runs that
differ only in their number of steps begin alike.

The state in which such a cell leaves the stable phase is kept among what cells share, and a longer cell goes on from
it: with the same bytes as if it had trained all steps by itself. Shorter cells must be finished before longer ones
begin, else steps are taken twice.
"""

import re
from collections.abc import Callable
from pathlib import Path

from menagerie.envs.core.identity import digest
from menagerie.studies.runs.cell import STATE, Cell, Job

FOLDER = "trunks"
NUMBER = re.compile("[0-9]+")


def reach_branch(job: Job, train_until: Callable[[int], None]) -> None:
    """Bring a cell whose recipe decays to the end of its stable phase, and keep that state for longer ones.

    `train_until` trains the cell from its own state, if it has one, to a step, and saves its state there.
    """
    from menagerie.models.training.state import StateFile, hand_on

    branch, state = job.cell.recipe.stable_steps, job.folder / STATE
    if not branch:
        return
    kept = states(job)
    if branch not in kept:
        nearest = max((step for step in kept if step < branch), default=None)
        if not state.exists() and nearest is not None:
            hand_on(StateFile(kept[nearest], trunk_key(job.cell)), StateFile(state, job.cell.id))
        if not state.exists() or saved_step(state) < branch:
            train_until(branch)
        if saved_step(state) == branch:  # not where the kept state was deleted while the rate decays
            keep(job, state, branch)
    elif not state.exists():
        hand_on(StateFile(kept[branch], trunk_key(job.cell)), StateFile(state, job.cell.id))


def keep(job: Job, state: Path, branch: int) -> None:
    """Keep a state, and delete those of shorter cells, which no longer cell begins with any more."""
    from menagerie.models.training.state import StateFile, hand_on

    hand_on(StateFile(state, job.cell.id), StateFile(folder_of(job) / f"{branch}.pt", trunk_key(job.cell)))
    kept = states(job)
    for step, file in kept.items():
        if step < branch and branch in kept:  # not where its state was damaged meanwhile, and nothing was kept
            file.unlink(missing_ok=True)


def states(job: Job) -> dict[int, Path]:
    """What is kept of the cell's stable phase, by step; files that somebody else put there are passed over."""
    return {int(file.stem): file for file in folder_of(job).glob("[0-9]*.pt") if NUMBER.fullmatch(file.stem)}


def folder_of(job: Job) -> Path:
    """Where states are kept: the same for cells that are the same but for the number of their steps."""
    return job.shared / FOLDER / trunk_key(job.cell)


def trunk_key(cell: Cell) -> str:
    """Hash of all settings but the number of steps, and what follows from it."""
    from menagerie.models.training.feed import single_steps

    own = {"steps", "decay", "single_object_phase"}
    recipe = {name: value for name, value in cell.settings["recipe"].items() if name not in own}
    return digest(cell.settings | {"recipe": recipe, "single_steps": single_steps(cell.recipe)})


def saved_step(state: Path) -> int:
    """The step after which a state was saved; 0 for one that was damaged, from which nothing can go on."""
    import torch

    from menagerie.models.training.state import damage, damaged_state

    if damage(state):
        return 0
    with damaged_state(state):
        return int(torch.load(state, weights_only=True, map_location="cpu", mmap=True)["step"])
