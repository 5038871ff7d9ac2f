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
    """open_clip's tag of pretrained weights, or a local FILE or FILE@TAG of them; empty trains from scratch."""
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


def small_tower(width: int, layers: int, head_width: int, text_layers: int, heads: int, text_width: int = 0) -> dict:
    """Return the configuration of small towers; texts are as wide as images unless `text_width` says otherwise."""
    vision = {"width": width, "layers": layers, "head_width": head_width, "patch_size": 8}
    text = {"width": text_width or width, "layers": text_layers, "heads": heads}
    return {"embed_dim": width, "vision_cfg": vision, "text_cfg": text}


def row_tower(layers: int, **positions: str) -> dict:
    """Return the configuration of small towers for worlds in which objects stand in a row, such as `row`. A patch is
    one of ten columns of the image, from top to bottom, and is embedded linearly."""
    vision = {"width": 64, "layers": layers, "head_width": 32, "columns": 10} | positions
    return {"embed_dim": 64, "vision_cfg": vision, "text_cfg": {"width": 64, "layers": layers, "heads": 2}}


# Small towers in open_clip's configuration format; image size, vocabulary and context are filled in. They read images
# through a small convolutional stem, which trains far faster than one linear patch projection (Xiao et al. 2021, "Early
# convolutions help transformers see better"). Add one by adding an entry.
SMALL_TOWERS: dict[str, dict] = {
    "nano": small_tower(32, 1, 16, 1, 2),
    "micro": small_tower(64, 1, 32, 1, 2),
    "mini": small_tower(64, 2, 32, 2, 2),
    "broad": small_tower(96, 1, 32, 1, 3),
    "small": small_tower(128, 4, 32, 3, 4),
    "triple": small_tower(64, 3, 32, 3, 2),
    "quad": small_tower(64, 4, 32, 4, 2),
    # "micro" with the second layer of "mini" in one tower alone: which of the two needs it?
    "deep-image-micro": small_tower(64, 2, 32, 1, 2),
    "deep-text-micro": small_tower(64, 1, 32, 2, 2),
    # "mini" with more of the text tower: is a text's vector its narrow place?
    "deep-text": small_tower(64, 2, 32, 6, 2),
    "wide-text": small_tower(64, 2, 32, 2, 4, text_width=128),
    "row": row_tower(1),
    "row-sinusoidal": row_tower(1, positions="sinusoidal"),
    "row-no-positions": row_tower(1, positions="none"),
    "row-mini": row_tower(2),
}
