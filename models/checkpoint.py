"""A checkpoint is a folder: `config.json` and `model.safetensors`, nothing that runs code."""

import json
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from envs.common.errors import UserError, choose
from envs.common.files import whole_file, write_text
from models.registry import SCORERS, scorer_class
from models.scorer import Scorer
from models.towers.config import TowerConfig


def build_scorer(model: str, towers: TowerConfig, words: tuple[str, ...], options: dict | None = None) -> Scorer:
    """A fresh scorer by name; `options` are fields of its own config."""
    kind = scorer_class(model)
    return kind(towers, words, kind.config_class(**(options or {})))


def save_checkpoint(folder: Path, model: str, scorer: Scorer) -> None:
    """Write the scorer called `model` to `folder`."""
    config = {
        "model": model,
        "towers": asdict(scorer.towers_config),
        "words": list(scorer.words),
        "options": asdict(scorer.config),
    }
    with whole_file(folder / "model.safetensors") as temporary:
        save_file({name: tensor.contiguous() for name, tensor in scorer.state_dict().items()}, temporary)
    write_text(folder / "config.json", json.dumps(config, indent=1))


def load_checkpoint(folder: Path, model: str | None = None) -> Scorer:
    """The scorer in `folder`; a checkpoint of another model than `model` raises, and so do
    weights that are missing or left over.

    A class of one's own (`file.py:Class`) must be asked for as `model`: a checkpoint alone
    never decides what code runs.
    """
    folder = Path(folder)
    try:
        config = json.loads((folder / "config.json").read_text())
        weights = load_file(folder / "model.safetensors")
        name, words, options = config["model"], tuple(config["words"]), config["options"]
        towers = TowerConfig(**config["towers"] | {"pretrained": ""})  # the weights are here
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UserError(f"{folder} is not a whole checkpoint ({error}); train the model again") from error
    if model is not None and name != model:
        raise UserError(f"{folder} is a checkpoint of {name!r}, not of {model!r}")
    scorer = build_scorer(choose("model", name, [*SCORERS, *([model] if model else [])]), towers, words, options)
    expected = {name: tensor.shape for name, tensor in scorer.state_dict().items()}
    found = {name: tensor.shape for name, tensor in weights.items()}
    if expected != found:
        odd = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        raise UserError(f"the weights in {folder} are not those of {name!r}; the first odd one is {odd[0]}")
    scorer.load_state_dict(weights)
    return scorer.eval()
