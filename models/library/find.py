"""What the name of a model stands for, found out before anything is loaded."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import open_clip

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_json
from menagerie.generators.captions.phrases import nearest
from menagerie.models.checkpoint import CONFIG, WEIGHTS, checked_name, read_config
from menagerie.models.library.cells import named_cell
from menagerie.models.library.sources import Checkpoint, HuggingFace, OpenCLIP, OwnClass, Source
from menagerie.models.registry import check_scorer, is_own, same_scorer, spec_of
from menagerie.models.towers.build import check_towers, check_weights
from menagerie.models.towers.config import TowerConfig, file_and_tag

CHECKPOINT = "checkpoint"
HUB = "hf:"


def find_source(
    name: str | Path,
    code: Sequence[str] = (),
    towers: TowerConfig | None = None,
    place: Mapping[str, Any] | None = None,
) -> Source:
    """What `name` stands for; raises where it is nothing, or a run of several cells of which `place` doesn't say one.

    `code` names classes of one's own (file.py:Class) of which a checkpoint may be: their files are run.
    """
    text, path = str(name), Path(name)
    if path.exists() and not is_own(text) and not (path.is_dir() and kind_of_hugging_face(path)):
        return one_checkpoint(text, checkpoints_in(path), code, place or {})
    source = other_source(text, towers)
    if place:
        raise UserError(f"{text} has no cells to tell apart; leave out {', '.join(place)}")
    return source


def other_source(name: str, towers: TowerConfig | None) -> Source:
    """What a name stands for that is no checkpoint."""
    if is_own(name):
        check_towers(towers := towers or TowerConfig())
        spec_of(name)  # runs the file: a class that isn't there is reported before anything is rendered
        return OwnClass(name, towers)
    if name.startswith(HUB):
        return HuggingFace(name, name.removeprefix(HUB))
    return HuggingFace(name, name) if Path(name).is_dir() else open_clip_source(name)


def one_checkpoint(name: str, folders: Sequence[Path], code: Sequence[str], place: Mapping[str, Any]) -> Checkpoint:
    """The one checkpoint that a name stands for, in a run of several with its place in the study."""
    if not folders:
        raise UserError(
            f"{name} holds no model: no run, no cell, no checkpoint ({CONFIG} and {WEIGHTS}), no folder of Hugging "
            "Face's transformers"
        )
    named = [model for model in (*code, str(place.get("model", ""))) if is_own(model)]
    return checkpoint(name, folders[0] if len(folders) == 1 and not place else named_cell(name, folders, place), named)


def checkpoint(name: str, folder: Path, code: Sequence[str] = ()) -> Checkpoint:
    """A checkpoint; one of somebody's own class must be of one of `code`."""
    recorded = read_config(folder).model
    own = next((own for own in code if same_scorer(own, recorded)), None)
    return Checkpoint(name, folder, check_scorer(checked_name(folder, recorded, own)))


def checkpoints_in(path: Path) -> list[Path]:
    """The checkpoints of a run, a cell, a checkpoint's folder or one of its files."""
    folder = path.parent if path.is_file() else path
    for pattern in ("", CHECKPOINT, f"cells/*/{CHECKPOINT}"):
        places = folder.glob(pattern) if pattern else [folder]
        if found := sorted(place for place in places if (place / WEIGHTS).is_file()):
            return found
    return []


def kind_of_hugging_face(folder: Path) -> str:
    """The `model_type` that Hugging Face's transformers write to a folder; empty for other folders."""
    try:
        return str(read_json(folder / CONFIG, dict[str, Any]).get("model_type", ""))
    except ValueError:
        return ""


def open_clip_source(name: str) -> OpenCLIP:
    """ "ViT-B-16", "ViT-B-16/openai", "ViT-B-16/path/to/weights.safetensors@openai"; anything else raises."""
    architecture, _, weights = name.partition("/")
    known = open_clip.list_models()
    if architecture not in known:
        raise UserError(f"{name} is no file, no folder and no open_clip model{nearest(architecture, known)}")
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    if weights and not Path(file_and_tag(weights)[0]).is_file() and weights not in tags:
        raise UserError(f"{weights!r} is no file and no weights of {architecture}{nearest(weights, tags)}")
    if weights:
        check_weights(TowerConfig(architecture, weights))
    return OpenCLIP(name, architecture, weights)
