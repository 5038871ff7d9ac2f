"""Which towers a scorer is built on, and which texts they will read; free of torch."""

import re
from dataclasses import dataclass
from pathlib import Path

READ_AS, DEFAULT = "@", "default"
FILE_AND_TAG = re.compile(rf"(.+){READ_AS}(\w+)")


@dataclass(frozen=True)
class TowerConfig:
    """Which towers a scorer is built on."""

    architecture: str = "mini"
    """A name in `menagerie.models.towers.sizes.SMALL_TOWERS` or any open_clip architecture, such as ViT-B-16."""
    pretrained: str = ""
    """open_clip's tag of pretrained weights, or a local file of them, FILE or FILE@TAG (models/towers/preparation.py);
    empty trains from scratch."""
    resolution: int = 64
    """Side of the square images, in pixels."""
    tokenizer: str = ""
    """closed (the words of the data), open_clip (byte pairs), or hf:NAME (Hugging Face's, a name or a folder);
    empty takes the closed vocabulary for small towers and its own for an open_clip architecture."""
    load: bool = True
    """Whether pretrained weights are loaded: not where a checkpoint brings its own. All else that belongs to them, such
    as pixel statistics, stays."""


@dataclass(frozen=True)
class TextSpace:
    """The texts that a scorer will read: their words, and their length in tokens."""

    words: tuple[str, ...] = ()
    """The closed vocabulary; byte-pair tokenizers need none."""
    context: int = 20
    """Tokens of the longest text, its end included. OC-CLIP's from-scratch length (table 9) is the least."""


def file_and_tag(pretrained: str) -> tuple[str, str]:
    """FILE@TAG as its two parts; of a tag alone, or of a file alone, the second is empty."""
    given = None if Path(pretrained).is_file() else FILE_AND_TAG.fullmatch(pretrained)
    return (given[1], given[2]) if given else (pretrained, "")
