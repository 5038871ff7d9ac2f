"""The weights of a run at the steps that `--keep-states` names, each a checkpoint of its own beside the last one."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import copy_file
from menagerie.envs.core.reading import Inaccessible, Unreadable
from menagerie.envs.core.records import RESULT, check_file, file_digest, read_record, write_record

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer

STATES, RECORD = "states", "state.json"


class StateRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The last file of a state; its digest also covers the state's owner and step."""

    weights: str
    """Digest of the file of weights."""


def state_folder(folder: Path, step: int) -> Path:
    """Where a cell's folder has the state after a step."""
    return folder / STATES / str(step)


def owner(folder: Path, step: int) -> str:
    """The owner of a state: its cell, known by its result or, while there is none, by the name of its folder."""
    try:
        name = read_record(folder / RESULT)["id"]
    except (Unreadable, KeyError):
        name = folder.absolute().name
    return f"{name} {step} "


def lacking(folder: Path, steps: Iterable[int]) -> list[int]:
    """The steps after which no state was kept."""
    return [step for step in steps if not (state_folder(folder, step) / RECORD).exists()]


def kept_steps(folder: Path) -> list[int]:
    """The steps after which a state was kept, in their order."""
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


def keeper(
    folder: Path,
    steps: Collection[int],
    model: str,
    scorer: "Scorer",
    aside: Callable[[Callable[[], None]], object] = lambda action: action(),
) -> Callable[[int], None]:
    """Make a function to be called after each step, which keeps the states of some; `aside` calls what takes time but
    isn't training."""

    def keep(step: int) -> None:
        if step in steps:
            aside(lambda: keep_state(folder, step, model, scorer))

    return keep


def take_over_states(source: Path, folder: Path, steps: Iterable[int], model: str, scorer: "Scorer") -> None:
    """Keep the states that the folder `source` has of these steps as a cell's own: both have taken these steps
    alike."""
    for step in steps:
        if not lacking(source, [step]):
            with contextlib.suppress(Unusable):
                take_over(checked_state(source, step), folder, step, model, scorer)


def take_over(checkpoint: Path, folder: Path, step: int, model: str, scorer: "Scorer") -> None:
    """Keep the weights of a checkpoint as a cell's state after a step; raises `Unusable` if they are damaged.

    They are described by the cell's `scorer`, whatever its weights: two cells that begin alike may differ in options
    of later steps.
    """
    from menagerie.models.checkpoint import WEIGHTS, read_config, save_config

    place = state_folder(folder, step)
    with damaged_state(checkpoint, step):
        check_file(checkpoint / WEIGHTS, read_config(checkpoint).weights)
    copy_file(checkpoint / WEIGHTS, place / WEIGHTS)
    save_config(place, model, scorer)
    write_state_record(folder, step)


class Unusable(UserError):
    """Raised for a state that is damaged or another's."""


@contextlib.contextmanager
def damaged_state(place: Path, step: int) -> Iterator[None]:
    """Turn any mistake in a state's files into an error that says how to make it anew."""
    try:
        yield
    except Inaccessible:
        raise
    except UserError as error:
        raise Unusable(
            f"{place} can't be used ({error}); delete this folder and run again with --keep-states {step}: only this "
            "state is made anew"
        ) from error


def checked_state(folder: Path, step: int) -> Path:
    """The checkpoint of a cell after a step; raises if none was kept, if it is another's, or if it is damaged."""
    from menagerie.models.checkpoint import WEIGHTS, read_config

    place = state_folder(folder, step)
    if lacking(folder, [step]):
        known = kept_steps(folder)
        others = f", only of step{'s' * (len(known) > 1)} {', '.join(map(str, known))}" if known else " and of no other"
        raise UserError(f"{folder} has no state of step {step}{others}; run its study again with --keep-states {step}")
    with damaged_state(place, step):
        record = read_record(place / RECORD, StateRecord, owner(folder, step))
        if record["weights"] != read_config(place).weights:
            raise Unreadable("its weights are those of another state")
        check_file(place / WEIGHTS, record["weights"])
    return place


def load_state(folder: Path, step: int, model: str) -> "Scorer":
    """The scorer that a cell was after a step."""
    from menagerie.models.checkpoint import load_checkpoint

    place = checked_state(folder, step)
    with damaged_state(place, step):
        return load_checkpoint(place, model)
