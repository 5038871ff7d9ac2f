"""`load_scorer`: loads any model by name, to score and embed images and captions.

The name is resolved completely before anything is loaded.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.phrases import suggest_nearest
from menagerie.models.checkpoint import CONFIG, WEIGHTS, check_model_name, scorer_config
from menagerie.models.kept_states import find_state, kept_steps
from menagerie.models.library.cells import find_cell, find_training
from menagerie.models.library.judged import HUB, is_judge, kind_of_hugging_face
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.sources import Checkpoint, HuggingFace, OpenCLIP, OwnClass, ScorerSource
from menagerie.models.registry import check_scorer, is_own, same_scorer, spec_of
from menagerie.models.towers.build import check_pretrained_weights, check_towers, open_clip_architectures
from menagerie.models.towers.config import TowerConfig, file_and_tag
from menagerie.models.towers.preparation import tags_of
from menagerie.models.towers.weight_file import check_no_adapter

CHECKPOINT = "checkpoint"
MOST_NAMED = 4  # cells in a message


def load_scorer(
    name: str | Path,
    *,
    code: Sequence[str] = (),
    device: str = "cpu",
    world: str = "",
    towers: TowerConfig | None = None,
    step: int | None = None,
    **place: Any,
) -> LoadedScorer:
    """Load a scorer by its name.

    The name stands for one of these:

    - a run's folder; `place` chooses one of several cells: `load_scorer("runs/mine", model="clip", pairs=0.2, seed=0)`,
      or, if cells of one place differ in a setting, `**{"options.dim": 16}`;
    - a cell's folder, a checkpoint's folder or file;
    - an open_clip model: "ViT-B-16/openai", "ViT-B-16-SigLIP/weights.safetensors", "ViT-B-16/weights.pt@openai" if
      the architecture's weights aren't all prepared alike, or "ViT-B-16" with random weights;
    - CLIP or SigLIP of Hugging Face's transformers: a folder, or "hf:NAME" on the hub;
    - a class of your own, "file.py:Class", on `towers` and without a checkpoint.

    Args:
        name: What to load, as above.
        code: Your classes whose checkpoints may be loaded: their files are run.
        device: cpu or cuda.
        world: The world whose names captions have, for scorers that read scene graphs; by default all built-in animals
            and backgrounds, and the textures of pug.
        towers: The towers of a class of your own.
        step: Take a cell's weights after that step of its training (0: before the first), if its study was run with
            `--keep-states`.
        place: What tells a cell from the others of its run.

    Raises:
        UserError: If nothing matches, or several cells do; the message has the names on which they differ.
    """
    source = find_source(name, code, towers, place, step)
    loaded = source.load(device, world)
    loaded.training = partial(find_training, source)
    return loaded


def find_source(
    name: str | Path,
    code: Sequence[str] = (),
    towers: TowerConfig | None = None,
    place: Mapping[str, Any] | None = None,
    step: int | None = None,
) -> ScorerSource:
    """Find the source that `name` stands for; raises if there is none, or if it is a run of several cells and `place`
    doesn't choose one.

    `code` names users' classes (file.py:Class) whose checkpoints are accepted: their files are run.
    """
    text, path = str(name), Path(name)
    check_no_adapter(path)
    if path.exists() and not is_own(text) and not (path.is_dir() and kind_of_hugging_face(path)):
        folders = find_checkpoints(path) or ([] if step is None else unfinished_checkpoints(path, place or {}))
        return one_checkpoint(text, folders, code, place or {}, step)
    source = other_source(text, towers)
    if place:
        raise UserError(f"{text} has no cells to tell apart; leave out {', '.join(place)}")
    if step is not None:
        raise UserError(f"{text} is no run that kept states of its training; leave out step")
    return source


def other_source(name: str, towers: TowerConfig | None) -> ScorerSource:
    """Find the source for a name that isn't a checkpoint. Raises for a model that answers questions."""
    if is_judge(name):
        raise UserError(
            f"{name} answers questions, and has neither layers nor embeddings; evaluate and transfer ask it"
        )
    if is_own(name):
        check_towers(towers := towers or TowerConfig())
        spec_of(name)  # runs the file, so that a missing class is reported before anything is rendered
        return OwnClass(name, towers)
    if name.startswith(HUB):
        return HuggingFace(name, name.removeprefix(HUB))
    return HuggingFace(name, name) if Path(name).is_dir() else open_clip_source(name)


def one_checkpoint(
    name: str, folders: Sequence[Path], code: Sequence[str], place: Mapping[str, Any], step: int | None = None
) -> Checkpoint:
    """Choose the only checkpoint in `folders`, or the one of the cell at `place` in the study; with `step`, the state
    that this cell kept after that step. Raises if there is no such checkpoint, or several."""
    if not folders:
        file = f"; weights for open_clip need their architecture: ViT-B-16/{name}" * Path(name).is_file()
        raise UserError(
            f"{name} holds no model: no run, no cell, no checkpoint ({CONFIG} and {WEIGHTS}), no folder of Hugging "
            f"Face's transformers{file}"
        )
    named = [model for model in (*code, str(place.get("model", ""))) if is_own(model)]
    folder = folders[0] if len(folders) == 1 and not place else find_cell(name, folders, place)
    return checkpoint(name, folder if step is None else find_state(folder.parent, step), named)


def checkpoint(name: str, folder: Path, code: Sequence[str] = ()) -> Checkpoint:
    """The source for a checkpoint; raises if it is of a user's class that isn't in `code`."""
    recorded = scorer_config(folder).model
    named = next((model for model in code if same_scorer(model, recorded)), None)
    return Checkpoint(name, folder, check_scorer(check_model_name(folder, recorded, named)))


def find_checkpoints(path: Path) -> list[Path]:
    """Find the folders of all checkpoints in a run, a cell or a checkpoint's folder; of a file, in its folder."""
    folder = path.parent if path.is_file() else path
    for pattern in ("", CHECKPOINT, f"cells/*/{CHECKPOINT}"):
        places = folder.glob(pattern) if pattern else [folder]
        if found := sorted(place for place in places if (place / WEIGHTS).is_file()):
            return found
    return []


def unfinished_checkpoints(path: Path, place: Mapping[str, Any]) -> list[Path]:
    """Find the folder in which the only unfinished cell with kept states will have its checkpoint; empty if there is no
    such cell. Raises if there are several, or if `place` is given: only finished cells record their place."""
    cells = sorted(cell for cell in (path, *path.glob("cells/*")) if kept_steps(cell))
    if len(cells) > 1 or (cells and place):
        some = ", ".join(map(str, cells[:MOST_NAMED])) + ", …" * (len(cells) > MOST_NAMED)
        raise UserError(f"{path} has no finished cell yet; name one that has states by its folder alone: {some}")
    return [cell / CHECKPOINT for cell in cells]


def open_clip_source(name: str) -> OpenCLIP:
    """The source for an open_clip name: "ViT-B-16", "ViT-B-16/openai", "ViT-B-16/FILE@openai"; raises for others."""
    architecture, _, weights = name.partition("/")
    known = open_clip_architectures()
    if architecture not in known:
        raise UserError(f"{name} is no file, no folder and no open_clip model{suggest_nearest(architecture, known)}")
    tags = tags_of(architecture)
    if weights:
        check_no_adapter(Path(weights))
    if weights and not Path(file_and_tag(weights)[0]).is_file() and weights not in tags:
        raise UserError(f"{weights!r} is no file and no weights of {architecture}{suggest_nearest(weights, tags)}")
    if weights:
        check_pretrained_weights(TowerConfig(architecture, weights))
    return OpenCLIP(name, architecture, weights)
