"""Options of towers, the texts that they will read, and the sizes of small ones; free of torch."""

import re
from dataclasses import dataclass
from pathlib import Path

READ_AS, DEFAULT = "@", "default"
FILE_AND_TAG = re.compile(rf"(.+){READ_AS}(\w+)")


@dataclass(frozen=True)
class TowerConfig:
    """The towers on which a scorer is built."""

    architecture: str = "mini"
    """Name in `SMALL_TOWERS`, or any open_clip architecture, such as ViT-B-16."""
    pretrained: str = ""
    """open_clip's tag of pretrained weights, or a local file of them, FILE or FILE@TAG
    (models/towers/preparation.py); empty trains from scratch."""
    resolution: int = 64
    """Side of the square images, in pixels."""
    tokenizer: str = ""
    """closed (the words of the data) or open_clip (byte pairs); empty takes the closed vocabulary for small towers, and
    for an open_clip architecture the one that belongs to it."""
    load: bool = True
    """Whether to load pretrained weights; false if a checkpoint has the weights. Other properties of the weights, such
    as pixel statistics, still apply."""


@dataclass(frozen=True)
class TextSpace:
    """The texts that a scorer will read: their words, and their length in tokens."""

    words: tuple[str, ...] = ()
    """The closed vocabulary; empty for byte-pair tokenizers."""
    context: int = 20
    """Largest number of tokens of a text, with its end. The default is OC-CLIP's length from scratch (table 9)."""


def file_and_tag(pretrained: str) -> tuple[str, str]:
    """Split FILE@TAG; the second part is empty for a tag or a file alone."""
    given = None if Path(pretrained).is_file() else FILE_AND_TAG.fullmatch(pretrained)
    return (given[1], given[2]) if given else (pretrained, "")


def mini_tower(text: dict) -> dict:
    """An open_clip configuration of the image tower "mini" and a given text tower."""
    vision = {"width": 64, "layers": 2, "head_width": 32, "patch_size": 8}
    return {"embed_dim": 64, "vision_cfg": vision, "text_cfg": text}


def row_tower(layers: int, **positions: str) -> dict:
    """Return the configuration of small towers for worlds in which objects stand in a row, such as `row`. A patch is
    one of ten columns of the image, from top to bottom, and is embedded linearly."""
    vision = {"width": 64, "layers": layers, "head_width": 32, "columns": 10} | positions
    return {"embed_dim": 64, "vision_cfg": vision, "text_cfg": {"width": 64, "layers": layers, "heads": 2}}


# Small towers in open_clip's configuration format; image size, vocabulary and context are filled in. They read images
# through a small convolutional stem, which trains far faster than one linear patch projection (Xiao et al. 2021, "Early
# convolutions help transformers see better"). Add one by adding an entry.
SMALL_TOWERS: dict[str, dict] = {
    "nano": {
        "embed_dim": 32,
        "vision_cfg": {"width": 32, "layers": 1, "head_width": 16, "patch_size": 8},
        "text_cfg": {"width": 32, "layers": 1, "heads": 2},
    },
    "micro": {
        "embed_dim": 64,
        "vision_cfg": {"width": 64, "layers": 1, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 64, "layers": 1, "heads": 2},
    },
    "mini": mini_tower({"width": 64, "layers": 2, "heads": 2}),
    "broad": {
        "embed_dim": 96,
        "vision_cfg": {"width": 96, "layers": 1, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 96, "layers": 1, "heads": 3},
    },
    "small": {
        "embed_dim": 128,
        "vision_cfg": {"width": 128, "layers": 4, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 128, "layers": 3, "heads": 4},
    },
    # "mini" with more of the text tower: is a text's vector its narrow place?
    "deep-text": mini_tower({"width": 64, "layers": 6, "heads": 2}),
    "wide-text": mini_tower({"width": 128, "layers": 2, "heads": 4}),
    "row": row_tower(1),
    "row-sinusoidal": row_tower(1, positions="sinusoidal"),
    "row-no-positions": row_tower(1, positions="none"),
    "row-mini": row_tower(2),
}
