"""Everything that the rest of a training run depends on, and what it was like so far, as one file."""

import contextlib
from pathlib import Path

import torch

from envs.common.errors import UserError
from envs.common.files import whole_file
from models.scorer import Scorer
from models.training.history import History


def save_state(path: Path, scorer: Scorer, optimizer: torch.optim.Optimizer, step: int, history: History) -> None:
    """Everything that the rest of the run depends on, and the rows of all steps before."""
    state = {"step": step, "scorer": scorer.state_dict(), "optimizer": optimizer.state_dict()}
    with whole_file(path) as temporary:
        torch.save(state | {"history": history.table()}, temporary)


def load_state(path: Path, scorer: Scorer, optimizer: torch.optim.Optimizer, history: History | None = None) -> int:
    """Load what `save_state` wrote and return the step to go on from; 0 where there is no file.

    A state of before there was a history leaves `history` without the steps before.
    """
    if not path.exists():
        return 0
    with damaged_state(path):
        state = torch.load(path, weights_only=True, map_location=scorer.device)
        scorer.load_state_dict(state["scorer"])
        optimizer.load_state_dict(state["optimizer"])
        if history is not None:
            history.take(state["history"].tolist() if "history" in state else [])
        return state["step"]


@contextlib.contextmanager
def damaged_state(path: Path):
    """Turn whatever a foreign or damaged file raises into one clear error."""
    try:
        yield
    except Exception as error:
        raise UserError(f"{path} can't be resumed from ({type(error).__name__}); delete it to train anew") from error
