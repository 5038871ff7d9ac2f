"""Make the official files of a benchmark, images and all, of a folder of parquet or arrow files as the Hugging Face
hub has them, or of a webdataset of CLIP_benchmark. Nothing is downloaded."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Config:
    folder: tyro.conf.Positional[Path]
    """The folder, as it was downloaded, or as `datasets` saved it (save_to_disk)."""
    data_root: Path = Path("data")
    """Folder of the benchmarks' files (docs/transfer.md); what is there stays."""
    benchmark: str = ""
    """Which benchmark it is, where its columns leave that open."""
    part: str = ""
    """Which part of a benchmark with several files it is, such as swap_obj, where no name says so."""
    split: str = ""
    """Which split to read; default: test, or the only one unless it is called train, validation or dev."""


def run(config: Config) -> int:
    """Print what was made, what wasn't read, and what else is needed."""
    from menagerie.generators.hub.write import import_folder

    made = import_folder(config.folder, config.data_root, config.benchmark, config.part, config.split)
    for part, records in made.records.items():
        print(f"{' '.join(filter(None, (made.benchmark, part)))}: {records} records")
    print(f"{made.images} images in {config.data_root / made.folder}")
    print(f"read: {', '.join(made.read)}")
    if made.left_out:
        print(f"not read: {', '.join(made.left_out)}")
    if made.note:
        print(f"needed beside it: {made.note}")
    if made.warning:
        print(f"beware: {made.warning}")
    root = shlex.quote(str(config.data_root))
    check = f"python studies/transfer.py --check --benchmarks {made.benchmark} --data-root {root}"
    print(f"whether it is complete: {check}")
    return 0
