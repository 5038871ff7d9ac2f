"""How a tower's pictures become squares of floats, and how they must be prepared for pretrained weights.

open_clip knows this for its own weights, by tag, but treats files like OpenAI's weights. Here a file is treated like
open_clip's weights of the same architecture, if all of these are prepared alike. If they aren't, the user writes
FILE@TAG, the tag of the weights that the file resembles, or FILE@default for open_clip's default."""

from dataclasses import replace
from typing import NamedTuple

import open_clip
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError, choose
from menagerie.models.towers import paired
from menagerie.models.towers.config import DEFAULT, FILE_AND_TAG, READ_AS, TowerConfig, file_and_tag


class Statistics(NamedTuple):
    """Mean and standard deviation of each colour channel, on a scale of 0 to 1."""

    mean: tuple[float, ...] = open_clip.OPENAI_DATASET_MEAN
    deviation: tuple[float, ...] = open_clip.OPENAI_DATASET_STD


class Framing(NamedTuple):
    """How a picture of any size becomes the square that a tower reads."""

    resolution: int
    """Side of the square, in pixels."""
    squashed: bool = False
    """Whether the whole picture is squashed (SigLIP); else its central square is taken (CLIP)."""
    interpolation: str = "bicubic"
    """Name of a resampling filter of Pillow."""


def statistics_of(model: nn.Module) -> Statistics:
    """The pixel statistics of an open_clip model (SigLIP's differ from CLIP's); OpenAI's for our small towers."""
    given = getattr(model.visual, "preprocess_cfg", None) or {}
    return Statistics(tuple(given.get("mean", Statistics().mean)), tuple(given.get("std", Statistics().deviation)))


def framing_of(model: nn.Module, resolution: int) -> Framing:
    """How open_clip prepares pictures for a model; the central square for our small towers."""
    given = getattr(model.visual, "preprocess_cfg", None) or {}
    return Framing(resolution, given.get("resize_mode") == "squash", given.get("interpolation", "bicubic"))


class PixelScale(nn.Module):
    """Scales bytes to floats of mean 0 and deviation 1; its statistics move with the model, but aren't saved."""

    def __init__(self, statistics: Statistics, framing: Framing) -> None:
        super().__init__()
        self.framing = framing
        for name, values in statistics._asdict().items():
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)

    def forward(self, pixels: UInt8[Tensor, "n 3 h w"]) -> Float[Tensor, "n 3 h w"]:
        """Floats for the towers; raises for images of another size than theirs."""
        height, width = pixels.shape[-2:]
        side = self.framing.resolution
        if (height, width) != (side, side):
            raise UserError(
                f"images of {width} x {height} pixels for a model that reads {side} x {side}; resize them, or let "
                "`load_scorer(...).score` do it"
            )
        return pixels.float().div_(255).sub_(self.mean).div_(self.deviation)


class Preparation(NamedTuple):
    """How pictures are prepared for weights, and the activation that these were trained with."""

    mean: tuple[float, ...] = open_clip.OPENAI_DATASET_MEAN
    std: tuple[float, ...] = open_clip.OPENAI_DATASET_STD
    interpolation: str = "bicubic"
    resize_mode: str = "shortest"
    """Resize mode of open_clip: "shortest" takes the central square, "squash" the whole picture."""
    quick_gelu: bool = False
    """Whether the activation is OpenAI's approximation of GELU."""

    @property
    def pictures(self) -> dict[str, object]:
        """The argument `force_preprocess_cfg` of open_clip."""
        return {name: value for name, value in self._asdict().items() if name != "quick_gelu"}


def preparation_of(towers: TowerConfig) -> Preparation:
    """Find how pictures are prepared for the towers' weights; raises for a file whose preparation is unknown.

    In a checkpoint's configuration (`load` is false) a file without a tag means the default (`towers_to_record`).
    """
    if towers.architecture in paired.TEXTS_OF:
        return preparation_of(text_towers(towers))._replace(**paired.image_preparation(towers.architecture))
    (weights, tag), tags = weights_and_tag(towers), tags_of(towers.architecture)
    if tag:
        choose(f"tag in {towers.pretrained}", tag, [DEFAULT, *tags])
    elif weights in tags:
        tag = weights
    elif weights and towers.load:
        tag = common_tag(towers.architecture) or refuse(towers)
    return tag_preparation(towers.architecture, tag or DEFAULT)


def towers_to_record(towers: TowerConfig, elsewhere: bool = False) -> TowerConfig:
    """Return the towers as checkpoints record them: a file gets the tag whose preparation applies, but no tag if that
    is the default.

    With `elsewhere`, for a place where the file may not exist, a file that is prepared by default gets @default if its
    own name looks like FILE@TAG.
    """
    if towers.architecture in paired.TEXTS_OF:
        texts, separator, image = towers.pretrained.partition(paired.SEPARATOR)
        text_weights = towers_to_record(text_towers(replace(towers, pretrained=texts)), elsewhere).pretrained
        return replace(towers, pretrained=f"{text_weights}{separator}{image}")
    weights, tag = weights_and_tag(towers)
    if not weights or weights in tags_of(towers.architecture):
        return towers
    tag = tag or (common_tag(towers.architecture) if towers.load else "") or DEFAULT
    usual = tag_preparation(towers.architecture, tag) == tag_preparation(towers.architecture, DEFAULT)
    alone = usual and not (elsewhere and FILE_AND_TAG.fullmatch(weights))
    return replace(towers, pretrained=weights if alone else f"{weights}{READ_AS}{DEFAULT if usual else tag}")


def weights_and_tag(towers: TowerConfig) -> tuple[str, str]:
    """The weights, and the tag after a file. For a checkpoint, whose file may be gone, text after "@" that isn't a
    known tag is part of the file's name."""
    weights, tag = file_and_tag(towers.pretrained)
    unknown = tag and not towers.load and tag not in (DEFAULT, *tags_of(towers.architecture))
    return (towers.pretrained, "") if unknown else (weights, tag)


def text_towers(towers: TowerConfig) -> TowerConfig:
    """The architecture and weights from which a pair of towers takes its text tower."""
    weights = paired.weights_of(towers.pretrained)[0]
    return replace(towers, architecture=paired.TEXTS_OF[towers.architecture], pretrained=weights)


def tags_of(architecture: str) -> list[str]:
    """The tags of open_clip's pretrained weights for an architecture."""
    return open_clip.list_pretrained_tags_by_model(architecture)


def tag_preparation(architecture: str, tag: str) -> Preparation:
    """The preparation of open_clip's weights with this tag; open_clip's default for an unknown tag."""
    known = open_clip.get_pretrained_cfg(architecture, tag)
    named = {name: known[name] for name in Preparation._fields if known.get(name) is not None}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
    quick = (open_clip.get_model_config(architecture) or {}).get("quick_gelu", False)  # of the architecture itself
    return Preparation(**given | {"quick_gelu": bool(quick or given.get("quick_gelu"))})


def common_tag(architecture: str) -> str:
    """A tag whose preparation all weights of an architecture share; empty if they differ."""
    tags = sorted(tags_of(architecture)) or [DEFAULT]
    return tags[0] if len({tag_preparation(architecture, tag) for tag in tags}) == 1 else ""


def refuse(towers: TowerConfig) -> str:
    """Raise for a file whose preparation is unknown; the message says how the known ones differ and how to choose."""
    ways: dict[Preparation, str] = {}
    for tag in tags_of(towers.architecture):
        ways.setdefault(tag_preparation(towers.architecture, tag), tag)
    odd = [name for name in Preparation._fields if len({getattr(way, name) for way in ways}) > 1]
    some = [f"{tag} has {', '.join(f'{name} {getattr(way, name)}' for name in odd)}" for way, tag in ways.items()]
    other = f"{towers.architecture}-quickgelu"
    named = f", or name {other}, which is QuickGELU alone" * (
        "quick_gelu" in odd and bool(tags_of(other) and common_tag(other))
    )
    raise UserError(
        f"the weights of {towers.architecture} aren't all prepared alike ({'; '.join(some)}), and the file "
        f"{towers.pretrained} doesn't say how it is: write FILE{READ_AS}TAG with the tag that it is like, or "
        f"FILE{READ_AS}{DEFAULT} for what open_clip has by default{named}"
    )
