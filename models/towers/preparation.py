"""Records what pretrained weights need: the preparation of pictures, and the activation.

open_clip knows it of its own weights by their tags, and of a file nothing: it then prepares pictures as for OpenAI's. A
file is therefore read as the weights of its architecture are, where these agree. Where they don't, FILE@TAG says which
of them it is like, and FILE@default that it is read as open_clip reads what it doesn't know.
"""

from dataclasses import replace
from typing import NamedTuple

import open_clip

from menagerie.envs.core.errors import UserError, choose
from menagerie.models.towers import paired
from menagerie.models.towers.config import DEFAULT, FILE_AND_TAG, READ_AS, TowerConfig, file_and_tag


class Preparation(NamedTuple):
    """How pictures are prepared for weights, and the activation that these were trained with."""

    mean: tuple[float, ...] = open_clip.OPENAI_DATASET_MEAN
    std: tuple[float, ...] = open_clip.OPENAI_DATASET_STD
    interpolation: str = "bicubic"
    resize_mode: str = "shortest"
    """One of open_clip's modes: "shortest" takes the central square, "squash" the whole picture."""
    quick_gelu: bool = False
    """Whether the activation is OpenAI's approximation of GELU."""

    @property
    def pictures(self) -> dict[str, object]:
        """The argument `force_preprocess_cfg` of open_clip."""
        return {name: value for name, value in self._asdict().items() if name != "quick_gelu"}


def preparation_of(towers: TowerConfig) -> Preparation:
    """How pictures are prepared for the weights of towers; raises for a file of which nobody knows it.

    A checkpoint brings its weights itself: there a file without a tag is read by default (`recorded`).
    """
    if towers.architecture in paired.TEXTS_OF:
        return preparation_of(texts_of(towers))._replace(**paired.image_preparation(towers.architecture))
    (weights, tag), tags = weights_and_tag(towers), tags_of(towers.architecture)
    if tag:
        choose(f"tag in {towers.pretrained}", tag, [DEFAULT, *tags])
    elif weights in tags:
        tag = weights
    elif weights and towers.load:
        tag = common_tag(towers.architecture) or refuse(towers)
    return of_tag(towers.architecture, tag or DEFAULT)


def recorded(towers: TowerConfig, elsewhere: bool = False) -> TowerConfig:
    """Towers as they are written down: a file with the tag as whose weights it is read, or alone where that is the
    default.

    What is read `elsewhere`, where the file may not lie, says @default too behind a name that ends as with a tag.
    """
    if towers.architecture in paired.TEXTS_OF:
        texts, separator, image = towers.pretrained.partition(paired.SEPARATOR)
        text_weights = recorded(texts_of(replace(towers, pretrained=texts)), elsewhere).pretrained
        return replace(towers, pretrained=f"{text_weights}{separator}{image}")
    weights, tag = weights_and_tag(towers)
    if not weights or weights in tags_of(towers.architecture):
        return towers
    tag = tag or (common_tag(towers.architecture) if towers.load else "") or DEFAULT
    usual = of_tag(towers.architecture, tag) == of_tag(towers.architecture, DEFAULT)
    alone = usual and not (elsewhere and FILE_AND_TAG.fullmatch(weights))
    return replace(towers, pretrained=weights if alone else f"{weights}{READ_AS}{DEFAULT if usual else tag}")


def weights_and_tag(towers: TowerConfig) -> tuple[str, str]:
    """The weights, and the tag behind a file of them. In a checkpoint, whose file may have gone, what stands behind the
    sign and is no tag is part of the file's name."""
    weights, tag = file_and_tag(towers.pretrained)
    unknown = tag and not towers.load and tag not in (DEFAULT, *tags_of(towers.architecture))
    return (towers.pretrained, "") if unknown else (weights, tag)


def texts_of(towers: TowerConfig) -> TowerConfig:
    """The architecture and the weights that a pair of towers has its text tower of."""
    weights = paired.weights_of(towers.pretrained).text
    return replace(towers, architecture=paired.TEXTS_OF[towers.architecture], pretrained=weights)


def tags_of(architecture: str) -> list[str]:
    """The tags of open_clip's pretrained weights for an architecture."""
    return open_clip.list_pretrained_tags_by_model(architecture)


def of_tag(architecture: str, tag: str) -> Preparation:
    """The preparation of open_clip's own weights; its default for a tag that it doesn't have."""
    known = open_clip.get_pretrained_cfg(architecture, tag)
    named = {name: known[name] for name in Preparation._fields if known.get(name) is not None}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
    quick = (open_clip.get_model_config(architecture) or {}).get("quick_gelu", False)  # of the architecture itself
    return Preparation(**given | {"quick_gelu": bool(quick or given.get("quick_gelu"))})


def common_tag(architecture: str) -> str:
    """A tag as whose weights all of an architecture are prepared; empty where they differ."""
    tags = sorted(tags_of(architecture)) or [DEFAULT]
    return tags[0] if len({of_tag(architecture, tag) for tag in tags}) == 1 else ""


def refuse(towers: TowerConfig) -> str:
    """Raise for a file of which nobody knows how it is prepared: what differs, and how to say it."""
    ways: dict[Preparation, str] = {}
    for tag in tags_of(towers.architecture):
        ways.setdefault(of_tag(towers.architecture, tag), tag)
    odd = [name for name in Preparation._fields if len({getattr(way, name) for way in ways}) > 1]
    some = [
        f"{tag} has {', '.join(f'{name} {shown(getattr(way, name))}' for name in odd)}" for way, tag in ways.items()
    ]
    other = f"{towers.architecture}-quickgelu"
    named = f", or name {other}, which is QuickGELU alone" * (
        "quick_gelu" in odd and bool(tags_of(other) and common_tag(other))
    )
    raise UserError(
        f"the weights of {towers.architecture} aren't all prepared alike ({'; '.join(some)}), and the file "
        f"{towers.pretrained} doesn't say how it is: write FILE{READ_AS}TAG with the tag that it is like, or "
        f"FILE{READ_AS}{DEFAULT} for what open_clip has by default{named}"
    )


def shown(value: object) -> str:
    """A field of a preparation for people."""
    return " ".join(f"{each:.3g}" for each in value) if isinstance(value, tuple) else str(value)
