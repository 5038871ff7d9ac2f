"""Write a split and its images as one self-contained file to share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from menagerie.envs.core.progress import progress_bars
from menagerie.generators.storage.pack import pack


@dataclass(frozen=True)
class Config:
    file: tyro.conf.Positional[Path]
    """The split file."""
    out: Path = Path("packed.h5")
    """The file to write; an existing one is not overwritten."""
    codec: Literal["none", "lz4", "zstd"] = "none"
    """Compression; all but none need hdf5plugin to read."""


def run(config: Config) -> int:
    """Write the packed file and print its path."""
    with progress_bars("pack", "check") as progress:
        pack(config.file, config.out, config.codec, progress)
    print(config.out)
    return 0
