"""`load_scorer`: any model by its name, to score and embed images and captions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from menagerie.models.library.find import find_source
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.towers.config import TowerConfig


def load_scorer(
    name: str | Path,
    *,
    code: Sequence[str] = (),
    device: str = "cpu",
    world: str = "",
    towers: TowerConfig | None = None,
    **place: Any,
) -> LoadedScorer:
    """The scorer that `name` stands for:

    - a run's folder; of several cells `place` says which: `load_scorer("runs/mine", model="clip", pairs=0.2, seed=0)`,
      or, where cells of one place differ in a setting, `**{"options.dim": 16}`;
    - a cell's folder, a checkpoint's folder or file;
    - an open_clip model: "ViT-B-16/openai", "ViT-B-16-SigLIP/weights.safetensors", "ViT-B-16/weights.pt@openai" where
      the architecture's weights aren't all prepared alike, or "ViT-B-16" with random weights;
    - CLIP or SigLIP of Hugging Face's transformers: a folder, or "hf:NAME" on the hub;
    - a class of your own, "file.py:Class", on `towers` and without a checkpoint.

    `code` names your classes whose checkpoints may be loaded: their files are run. `world` is what captions are parsed
    in for scorers that read scene graphs; without it, everything that ships. Raises `UserError` for what isn't there,
    and for several cells with what tells them apart.
    """
    return find_source(name, code, towers, place).load(device, world)
