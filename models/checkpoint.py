"""A checkpoint is a folder: `config.json` and `model.safetensors`, nothing that runs code."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from envs.common.errors import UserError, choose
from envs.common.files import whole_file, write_text
from models.registry import scorer_class, spec_of, specs
from models.scorer import Scorer
from models.towers.config import TextSpace, TowerConfig


def build_scorer(
    model: str,
    towers: TowerConfig,
    texts: TextSpace,
    options: dict[str, Any] | None = None,
    base: Scorer | None = None,
) -> Scorer:
    """A fresh scorer by name; `options` are fields of its own config.

    One with a stage before it is built on `base`, the trained scorer of that stage, or on a fresh one.
    """
    spec = spec_of(model)
    given = dict(spec.fixed)
    if spec.stage:
        given["base"] = base or build_scorer(spec.stage.scorer, towers, texts)
        given["base"].requires_grad_(not spec.stage.frozen)
    return scorer_class(model)(towers, texts, spec.config(**(options or {})), **given)


def save_checkpoint(folder: Path, model: str, scorer: Scorer) -> None:
    """Write the scorer called `model` to `folder`."""
    config = {
        "model": model,
        "towers": asdict(scorer.towers_config),
        "texts": asdict(scorer.texts),
        "options": asdict(scorer.config),
    }
    if isinstance(base := getattr(scorer, "base", None), Scorer):
        config["base"] = asdict(base.config)
    with whole_file(folder / "model.safetensors") as temporary:
        save_file({name: tensor.contiguous() for name, tensor in scorer.state_dict().items()}, temporary)
    write_text(folder / "config.json", json.dumps(config, indent=1))


def load_checkpoint(folder: Path, model: str | None = None) -> Scorer:
    """The scorer in `folder`; a checkpoint of another model than `model` raises, and so do
    weights that are missing or left over.

    A class of one's own (`file.py:Class`) must be named as `model`: a checkpoint alone
    never decides what code runs.
    """
    folder = Path(folder)
    try:
        config = json.loads((folder / "config.json").read_text())
        weights = load_file(folder / "model.safetensors")
        name, options, texts = config["model"], dict(config["options"]), config["texts"]
        space = TextSpace(tuple(texts["words"]), int(texts["context"]))
        towers = TowerConfig(**config["towers"] | {"pretrained": ""})  # the weights are here
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UserError(f"{folder} is not a whole checkpoint ({error}); train the model again") from error
    if model is not None and name != model:
        raise UserError(f"{folder} is a checkpoint of {name!r}, not of {model!r}")
    choose("model", name, [*specs(), *([model] if model else [])])
    for option in options:
        choose(f"option in {folder}", option, spec_of(name).config.__dataclass_fields__)
    stage = spec_of(name).stage
    first = build_scorer(stage.scorer, towers, space, config.get("base")) if stage else None
    scorer = build_scorer(name, towers, space, options, first)
    load_weights(scorer, weights, f"the weights in {folder} are not those of {name!r}")
    return scorer.eval()


def load_weights(scorer: Scorer, weights: dict[str, Any], complaint: str) -> None:
    """Load weights that must fit exactly; else raise with `complaint` and the first that doesn't."""
    expected = {name: tensor.shape for name, tensor in scorer.state_dict().items()}
    given = {name: tensor.shape for name, tensor in weights.items()}
    if expected != given:
        odd = sorted(name for name in expected.keys() | given.keys() if expected.get(name) != given.get(name))
        raise UserError(f"{complaint}; the first odd one is {odd[0]}")
    scorer.load_state_dict(weights)
