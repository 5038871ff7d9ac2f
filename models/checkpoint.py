"""A checkpoint is a folder with `config.json` and `model.safetensors`; neither can run code.

The result in a cell's folder also records the digest of the weights, so that weights of another cell are noticed.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import whole_file
from menagerie.envs.core.reading import Unreadable, check_accessible, open_file
from menagerie.envs.core.records import check_digest, file_digest, read_record, write_record
from menagerie.models.cell_results import CONFIG, RESULT, WEIGHTS, read_recorded_digest
from menagerie.models.registry import is_own, same_scorer, scorer_class, spec_of, specs
from menagerie.models.scorer import Scorer
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.preparation import towers_to_record


class CheckpointConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a checkpoint's `config.json`: everything about the scorer except its weights."""

    model: str
    towers: TowerConfig
    texts: TextSpace
    options: dict[str, Any]
    weights: str
    """Digest of the weights' file."""
    base: dict[str, Any] | None = None
    """Options of the scorer that this one was built on."""
    state: str = ""
    """Of a state that was kept during training: its cell and step."""


def build_scorer(
    model: str,
    towers: TowerConfig,
    texts: TextSpace,
    options: dict[str, Any] | None = None,
    base: Scorer | None = None,
) -> Scorer:
    """Build the scorer called `model` with fresh weights; `options` are fields of its config.

    A scorer with a preceding stage is built on `base`, that stage's trained scorer; by default on a fresh one.
    """
    spec, given = spec_of(model), {}
    config = spec.make_config(options or {})
    if spec.stage:
        given["base"] = base or build_scorer(spec.stage.scorer, towers, texts)
        given["base"].requires_grad_(not spec.stage.frozen)
    scorer = scorer_class(model)(towers, texts, config, **given)
    if not hasattr(scorer, "config"):  # a user's class may have no `config`
        scorer.config = config
    return scorer


def save_checkpoint(folder: Path, model: str, scorer: Scorer, state: str = "") -> None:
    """Write a scorer, and the name `model` under which it is built, to `folder`; `state` names the cell and step of a
    state that is kept during training."""
    with whole_file(folder / WEIGHTS) as temporary:
        temporary.write_bytes(save({name: tensor.contiguous() for name, tensor in scorer.state_dict().items()}))
    config = describe_scorer(model, scorer) | ({"state": state} if state else {})
    write_record(folder / CONFIG, config | {"weights": file_digest(folder / WEIGHTS)}, indent=1)


def describe_scorer(model: str, scorer: Scorer) -> dict[str, Any]:
    """Return everything about a scorer except its weights and their digest."""
    config = {
        "model": model,
        "towers": asdict(towers_to_record(scorer.towers_config, elsewhere=True)),
        "texts": asdict(scorer.texts),
        "options": asdict(scorer.config),
    }
    if isinstance(base := getattr(scorer, "base", None), Scorer):
        config["base"] = asdict(base.config)
    return config


def scorer_config(folder: Path) -> CheckpointConfig:
    """Read the description of the scorer in `folder`. Raises if this program didn't write it, if it is damaged, or if
    the cell's result records other weights."""
    config, place = config_in(folder), folder.absolute()
    noted = read_recorded_digest(place.parent, f"{place.name}/{WEIGHTS}")
    if noted and noted != config.weights:
        raise UserError(
            f"the weights in {folder} are not those of the result in {place.parent}: two cells' files were exchanged; "
            "put them back, or delete that result and run its study again"
        )
    return config


def config_in(folder: Path) -> CheckpointConfig:
    """Read the description of the scorer in `folder`, without looking at a result beside it."""
    if not folder.exists() and (folder.parent / RESULT).exists():
        way_out = "delete it and run its study again: only this run is trained anew"
        raise UserError(
            f"{folder.parent} has a result and no weights, as runs made of published records have; {way_out}"
        )
    try:
        return config_of(read_record(folder / CONFIG, CheckpointConfig))
    except (ValueError, TypeError) as error:
        raise UserError(f"{folder} is not a whole checkpoint ({error}); train the model again") from error


def config_of(description: Mapping[str, Any]) -> CheckpointConfig:
    """Convert what `describe_scorer` gave into a config; its towers don't `load`, as the checkpoint has all weights."""
    towers = TowerConfig(**description["towers"] | {"load": False})
    return msgspec.convert({"weights": "", **description, "towers": asdict(towers)}, CheckpointConfig)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read a checkpoint's weights by name, after checking their digest; raises if the file is damaged."""
    digest = scorer_config(folder).weights
    try:
        open_file(folder / WEIGHTS).close()  # for an unreadable file, safetensors would say that it doesn't exist
        check_digest(folder / WEIGHTS, digest)
        return load_file(folder / WEIGHTS)
    except (OSError, Unreadable, SafetensorError, MemoryError) as error:
        check_accessible(folder / WEIGHTS, error)
        raise UserError(f"{folder} is not a whole checkpoint ({error}); train the model again") from error


def load_checkpoint(folder: Path, model: str | None = None, options: Mapping[str, Any] | None = None) -> Scorer:
    """Load the scorer in `folder`; raise if its weights don't fit exactly, or if the checkpoint isn't of `model`.

    `options` replace those of the checkpoint. Options in `ScorerSpec.scored` always fit the weights, others may not.

    For a user's class, `model` must name it (`file.py:Class`, in any folder): a checkpoint alone never decides what
    code runs.
    """
    folder = Path(folder)
    config = scorer_config(folder)
    if options is not None:
        config = msgspec.structs.replace(config, options=dict(options))
    name = check_model_name(folder, config.model, model)
    weights = read_weights(folder)
    check_known_options(folder, name, config)
    scorer = build_from_config(folder, name, config)
    expected, given = ({name: its.shape for name, its in each.items()} for each in (scorer.state_dict(), weights))
    if odd := sorted(name for name in expected.keys() | given.keys() if expected.get(name) != given.get(name)):
        raise UserError(f"{describe_foreign_weights(folder, name)}; the first odd one is {odd[0]}")
    scorer.load_state_dict(weights)
    return scorer.eval()


def describe_foreign_weights(folder: Path, name: str) -> str:
    """Return the message for weights whose names or shapes don't fit the checkpoint's scorer."""
    return (
        f"the weights in {folder} are not those of {name!r} as this version builds it (if an earlier one trained it, "
        "load it with that, or train it again)"
    )


def check_known_options(folder: Path, name: str, config: CheckpointConfig) -> None:
    """Raise for an option that the scorer doesn't have, or no longer has."""
    for option in config.options:
        choose(f"option in {folder}", option, spec_of(name).config.__dataclass_fields__)


def build_from_config(folder: Path, name: str, config: CheckpointConfig) -> Scorer:
    """Build the scorer of a checkpoint with fresh weights; raises for sizes that don't fit."""
    stage = spec_of(name).stage
    try:
        first = build_scorer(stage.scorer, config.towers, config.texts, config.base) if stage else None
        return build_scorer(name, config.towers, config.texts, config.options, first)
    except Exception as error:  # torch and users' classes raise anything for sizes that don't fit
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{folder} can't be built from its {CONFIG} ({reason:.200}); train the model again") from error


def check_model_name(folder: Path, recorded: str, model: str | None) -> str:
    """Return the name under which to build a checkpoint's scorer.

    Raise if `model` is another scorer, or if `recorded` is a user's class and the caller gave no `model`.
    """
    if model is not None and not same_scorer(recorded, model):
        raise UserError(f"{folder} is a checkpoint of {recorded!r}, not of {model!r}")
    if is_own(recorded) and model is None:
        raise UserError(
            f"{folder} is a checkpoint of {recorded}, a user's class; its file is run only if you name it, "
            "as model=, code=[...] or --code"
        )
    return model or choose("model", recorded, specs())
