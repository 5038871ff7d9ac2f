"""The weights of a run after the steps that `--keep-states` names: a checkpoint for each, beside the final one."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Inaccessible, Unreadable
from menagerie.envs.core.records import check_digest, read_record
from menagerie.models.cell_results import CONFIG, RESULT, WEIGHTS

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer

STATES = "states"


def state_folder(folder: Path, step: int) -> Path:
    """The folder of a cell's state after a step."""
    return folder / STATES / str(step)


def owner(folder: Path, step: int) -> str:
    """Name the owner of a state by its step and cell: the id in the folder's result, else the folder's name."""
    try:
        name = read_record(folder / RESULT)["id"]
    except (Unreadable, KeyError):
        name = folder.absolute().name
    return f"{name} {step}"


def missing_steps(folder: Path, steps: Iterable[int]) -> list[int]:
    """Those of the steps after which no state was kept."""
    return [step for step in steps if not (state_folder(folder, step) / CONFIG).exists()]


def kept_steps(folder: Path) -> list[int]:
    """The steps after which a state was kept, in ascending order."""
    names = [path.parent.name for path in (folder / STATES).glob(f"*/{CONFIG}")]
    return sorted(int(name) for name in names if name.isdecimal())


def keep_state(folder: Path, step: int, model: str, scorer: "Scorer") -> None:
    """Keep the scorer's state after a step. Each file appears whole or not at all, the description last."""
    from menagerie.models.checkpoint import save_checkpoint

    save_checkpoint(state_folder(folder, step), model, scorer, owner(folder, step))


@contextlib.contextmanager
def state_errors(place: Path, step: int) -> Iterator[None]:
    """Add to a `UserError` about a state's files how to make the state again. `Inaccessible` passes through."""
    try:
        yield
    except Inaccessible:
        raise
    except UserError as error:
        again = f"delete {place.parents[1]} and run its study again with --keep-states {step}"
        raise UserError(f"{place} can't be used ({error}); {again}") from error


def find_state(folder: Path, step: int) -> Path:
    """Return the folder of a cell's state after a step; raise if it is missing, damaged, or of another cell or step."""
    from menagerie.models.checkpoint import config_in

    place = state_folder(folder, step)
    if missing_steps(folder, [step]):
        others = ", ".join(map(str, kept_steps(folder))) or "none"
        raise UserError(
            f"{folder} has no state of step {step} (those kept: {others}); delete this folder and run its study again "
            f"with --keep-states {step}"
        )
    with state_errors(place, step):
        config = config_in(place)
        if config.state != owner(folder, step):
            raise Unreadable("it is the state of another cell or step")
        check_digest(place / WEIGHTS, config.weights)
    return place


def load_kept_state(folder: Path, step: int, model: str) -> "Scorer":
    """Load a cell's scorer as it was after a step."""
    from menagerie.models.checkpoint import load_checkpoint

    place = find_state(folder, step)
    with state_errors(place, step):
        return load_checkpoint(place, model)
