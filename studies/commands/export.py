"""Write a split in the format of another tool, with a data sheet; an interrupted export is continued."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from menagerie.envs.core.progress import progress_bars
from menagerie.generators.export.write import export


@dataclass(frozen=True)
class Config:
    file: tyro.conf.Positional[Path]
    """The split file."""
    out: Path
    """The folder to write, new or of the same export."""
    format: Literal["webdataset", "coco", "coco_instances", "sugarcrepe"]
    """The form of another tool."""
    subsets: tuple[str, ...] = ()
    """Subsets to write; default: all."""


def run(config: Config) -> int:
    """Write the export, and print the number of samples in it and of records left out."""
    with progress_bars("export") as progress:
        counts = export(config.file, config.format, config.out, config.subsets, progress)
    for name, (samples, records) in counts.items():
        left_out = f"; {records - samples} left out, {config.format} has no place for them" if samples < records else ""
        print(f"{name}: {samples} of {records} records{left_out}")
    print(config.out)
    return 0
