"""Everything that the rest of a training run depends on, and what it was like so far, as one file.

It is a zip with a checksum of every part, which torch writes and doesn't look at; here it is looked at.
"""

import contextlib
import zipfile
import zlib
from pathlib import Path

import torch

from envs.common.errors import UserError
from envs.common.files import whole_file
from envs.common.reading import Unreadable, check_regular
from models.scorer import Scorer
from models.training.history import History

# What Python's reader of zips raises for what is none, or for a torn one.
BROKEN = (OSError, ValueError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def save_state(path: Path, scorer: Scorer, optimizer: torch.optim.Optimizer, step: int, history: History) -> None:
    """Everything that the rest of the run depends on, and the rows of all steps before."""
    state = {"step": step, "scorer": scorer.state_dict(), "optimizer": optimizer.state_dict()}
    with whole_file(path) as temporary:
        torch.save(state | {"history": history.table()}, temporary)


def load_state(path: Path, scorer: Scorer, optimizer: torch.optim.Optimizer, history: History | None = None) -> int:
    """Load what `save_state` wrote and return the step to go on from; 0 where there is no file.

    One that was damaged on the disk is left aside, with a line: training begins anew. A state of another run raises. A
    state of before there was a history leaves `history` without the steps before.
    """
    if not path.exists() and not path.is_symlink():
        return 0
    if problem := damage(path):
        print(f"warning: {path} is damaged ({problem}); this run is trained from its first step", flush=True)
        return 0
    with damaged_state(path):
        state = torch.load(path, weights_only=True, map_location="cpu")  # steps of the optimiser stay there
        scorer.load_state_dict(state["scorer"])
        optimizer.load_state_dict(state["optimizer"])
        if history is not None:
            history.take(state["history"].tolist() if "history" in state else [])
        return state["step"]


def damage(path: Path) -> str:
    """What is wrong with a state as a file; empty where it is whole."""
    try:
        check_regular(path)
        with zipfile.ZipFile(path) as parts:
            wrong = parts.testzip()
        return f"{wrong} was changed since it was written" if wrong else ""
    except Unreadable as error:
        raise UserError(f"{path} can't be resumed from ({error}); delete it to train anew") from error
    except BROKEN as error:
        return str(error)


@contextlib.contextmanager
def damaged_state(path: Path):
    """Turn whatever a foreign or damaged file raises into one clear error."""
    try:
        yield
    except Exception as error:
        raise UserError(f"{path} can't be resumed from ({type(error).__name__}); delete it to train anew") from error
