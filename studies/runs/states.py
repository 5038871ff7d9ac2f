"""The weights of a run at the steps that `--keep-states` names, each a checkpoint of its own beside the last one."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Inaccessible, Unreadable
from menagerie.envs.core.records import file_digest, read_record, write_record

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer

STATES, RECORD = "states", "state.json"


class StateRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The last file of a state; whose it is and of which step is part of its digest."""

    weights: str
    """Digest of the file of weights."""


def state_folder(folder: Path, step: int) -> Path:
    """Where a cell's folder has the state after a step."""
    return folder / STATES / str(step)


def owner(folder: Path, step: int) -> str:
    """Whose state it is: the cell's, by the name of its folder."""
    return f"{folder.name} {step} "


def lacking(folder: Path, steps: Iterable[int]) -> list[int]:
    """The steps after which no state was kept."""
    return [step for step in steps if not (state_folder(folder, step) / RECORD).exists()]


def keep_state(folder: Path, step: int, model: str, scorer: "Scorer") -> None:
    """Keep the scorer's state after a step. Each file appears whole or not at all, the record last."""
    from menagerie.models.checkpoint import WEIGHTS, save_checkpoint

    place = state_folder(folder, step)
    save_checkpoint(place, model, scorer)
    write_record(place / RECORD, {"weights": file_digest(place / WEIGHTS)}, owner=owner(folder, step))


def keeper(
    folder: Path,
    steps: Collection[int],
    model: str,
    scorer: "Scorer",
    aside: Callable[[Callable[[], None]], object] = lambda action: action(),
) -> Callable[[int], None]:
    """A function to be called after each step, which keeps some; `aside` calls what takes time that is no training."""

    def keep(step: int) -> None:
        if step in steps:
            aside(lambda: keep_state(folder, step, model, scorer))

    return keep


def load_state(folder: Path, step: int, model: str) -> "Scorer":
    """The scorer that a cell was after a step."""
    from menagerie.models.checkpoint import load_checkpoint, read_config

    place = state_folder(folder, step)
    if lacking(folder, [step]):
        raise UserError(f"{folder} has no state of step {step}; run its study again with --keep-states {step}")
    try:
        record = read_record(place / RECORD, StateRecord, owner(folder, step))
        if record["weights"] != read_config(place).weights:
            raise Unreadable("its weights are those of another state")
        return load_checkpoint(place, model)
    except Inaccessible:
        raise
    except UserError as error:
        raise UserError(
            f"{place} can't be used ({error}); delete this folder and run again with --keep-states {step}: only this "
            "state is made anew"
        ) from error
