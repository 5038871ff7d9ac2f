"""The weights of a run after the steps that `--keep-states` names: a checkpoint for each, beside the final one."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Inaccessible, Unreadable
from menagerie.envs.core.records import check_digest, file_digest, read_record, write_record
from menagerie.models.cell_results import RESULT

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer

STATES, RECORD = "states", "state.json"


class StateRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `state.json`, the last file of a state to be written. Its digest also covers `owner`."""

    weights: str
    """Digest of the file of weights."""


def state_folder(folder: Path, step: int) -> Path:
    """Return the folder of a cell's state after a step."""
    return folder / STATES / str(step)


def owner(folder: Path, step: int) -> str:
    """Name the owner of a state by its cell and step. The cell is the id in the folder's result or, while there is
    none, the folder's name."""
    try:
        name = read_record(folder / RESULT)["id"]
    except (Unreadable, KeyError):
        name = folder.absolute().name
    return f"{name} {step} "


def missing_steps(folder: Path, steps: Iterable[int]) -> list[int]:
    """Return those of the steps after which no state was kept."""
    return [step for step in steps if not (state_folder(folder, step) / RECORD).exists()]


def kept_steps(folder: Path) -> list[int]:
    """Return the steps after which a state was kept, in ascending order."""
    names = [path.parent.name for path in (folder / STATES).glob(f"*/{RECORD}")]
    return sorted(int(name) for name in names if name.isdecimal())


def keep_state(folder: Path, step: int, model: str, scorer: "Scorer") -> None:
    """Keep the scorer's state after a step. Each file appears whole or not at all, the record last."""
    from menagerie.models.checkpoint import save_checkpoint

    save_checkpoint(state_folder(folder, step), model, scorer)
    write_state_record(folder, step)


def write_state_record(folder: Path, step: int) -> None:
    from menagerie.models.checkpoint import WEIGHTS

    place = state_folder(folder, step)
    write_record(place / RECORD, {"weights": file_digest(place / WEIGHTS)}, owner=owner(folder, step))


def make_state_keeper(
    folder: Path,
    steps: Collection[int],
    model: str,
    scorer: "Scorer",
    aside: Callable[[Callable[[], None]], object] = lambda action: action(),
) -> Callable[[int], None]:
    """Make a function to call after each step, which keeps the state if it is one of `steps`.

    `aside` runs the saving, so that a caller can leave it out of the training time.
    """

    def keep(step: int) -> None:
        if step in steps:
            aside(lambda: keep_state(folder, step, model, scorer))

    return keep


class Unusable(UserError):
    """Raised for a state that is damaged, or that belongs to another cell or step."""


@contextlib.contextmanager
def state_errors(place: Path, step: int) -> Iterator[None]:
    """Turn a `UserError` about a state's files into `Unusable`, which says how to make the state again. `Inaccessible`
    passes through."""
    try:
        yield
    except Inaccessible:
        raise
    except UserError as error:
        run = place.parents[1]
        raise Unusable(
            f"{place} can't be used ({error}); delete {run} and run its study again with --keep-states {step}"
        ) from error


def find_state(folder: Path, step: int) -> Path:
    """Return the folder of a cell's state after a step; raise if it is missing, damaged, or of another cell or step."""
    from menagerie.models.checkpoint import WEIGHTS, scorer_config

    place = state_folder(folder, step)
    if missing_steps(folder, [step]):
        known = kept_steps(folder)
        others = f", only of step{'s' * (len(known) > 1)} {', '.join(map(str, known))}" if known else " and of no other"
        raise UserError(
            f"{folder} has no state of step {step}{others}; delete this folder and run its study again with "
            f"--keep-states {step}"
        )
    with state_errors(place, step):
        record = read_record(place / RECORD, StateRecord, owner(folder, step))
        if record["weights"] != scorer_config(place).weights:
            raise Unreadable("its weights are those of another state")
        check_digest(place / WEIGHTS, record["weights"])
    return place


def load_kept_state(folder: Path, step: int, model: str) -> "Scorer":
    """Load a cell's scorer as it was after a step."""
    from menagerie.models.checkpoint import load_checkpoint

    place = find_state(folder, step)
    with state_errors(place, step):
        return load_checkpoint(place, model)
