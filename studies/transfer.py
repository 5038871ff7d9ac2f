"""How do models do on benchmarks of photographs? Scores any models on any of them, and trains nothing.

    python studies/transfer.py --check --data-root DATA
    python studies/transfer.py ViT-B-16/openai runs/mine --benchmarks sugarcrepe whatsup --data-root DATA
    python studies/transfer.py ViT-B-32 --benchmarks sugarcrepe --data-root DATA --images coco/val2017=PHOTOGRAPHS

A model is a run (all its cells), a checkpoint, an open_clip model (without weights: random), a folder of Hugging Face's
CLIP or SigLIP (or hf:NAME), or a class of your own. docs/transfer.md says which file of a benchmark goes where. Ends
with `report.html`, `results.csv`, `results.tex`, `results.jsonl` and the scores of every record in `--out`. Run again,
it skips what is finished: also with further models and benchmarks.
"""

import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import tyro

from menagerie.envs.core.command_help import read_options, started_as
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.validation import SIDE, SOME_PROCESSES, Range
from menagerie.generators.benchmarks.registry import check_benchmark, chosen, load, names
from menagerie.generators.parsers.registry import DEFAULT, read_parser
from menagerie.generators.sources.folders import Given
from menagerie.studies.runs.machine import check_device, check_device_here


@dataclass(frozen=True)
class Config:
    """Score models on benchmarks of photographs."""

    models: tyro.conf.Positional[tuple[str, ...]] = ()
    """Runs, cells, checkpoints, open_clip names (ViT-B-16/openai, ViT-B-16/FILE@openai), Hugging Face folders,
    file.py:Class."""
    benchmarks: tuple[str, ...] = ()
    """Names of benchmarks, or file.py:NAME of your own; none takes all with --check, else all that are complete."""
    data_root: Path = Path("data")
    """Folder of the benchmarks' files (docs/transfer.md)."""
    images: tuple[str, ...] = ()
    """Folders of images that lie elsewhere, such as coco/val2017=/data/coco/val2017; of one place all are searched."""
    check: bool = False
    """Report which benchmarks are complete on disk, and what to get for the others; scores nothing."""
    allow_missing: bool = False
    """Score the other records where images are missing; the result says how many weren't scored."""
    unknown_words: Literal["refuse", "skip"] = "refuse"
    """What a model with a vocabulary of its own does with other words: refuse, or skip them."""
    parser: str = DEFAULT
    """What makes scene graphs of texts, for models that read them: NAME or NAME:OPTION=VALUE,… (docs/parsing.md)."""
    parses: Path = Path("parses")
    """Folder of the graphs that are kept, also by menagerie parse."""
    out: Path = Path("runs/transfer")
    """Folder of the results; one of before is continued, also with other models and benchmarks."""
    codes: Path = Path("codes")
    """Folder of images' codes: each image is encoded once by each model, for all benchmarks and commands."""
    codes_limit: Annotated[float, Range(0.0, 1_000_000.0)] = 5.0
    """GB of codes that are kept, those that were used last; 0 keeps none."""
    code: tuple[str, ...] = ()
    """Classes of your own (file.py:Class) of which checkpoints may be: their files are run."""
    architecture: str = "micro"
    """Towers of a file.py:Class without a checkpoint, at --resolution."""
    resolution: Annotated[int, SIDE] = 64
    """Side of the images of a file.py:Class without a checkpoint, in pixels."""
    device: str = "cpu"
    """cpu or cuda."""
    threads: Annotated[int, SOME_PROCESSES] = 0
    """Threads of torch; 0 leaves it the choice."""
    workers: Annotated[int, SOME_PROCESSES] = 0
    """Threads that decode images; 0 takes one a core."""


def folders_of(config: Config) -> Given:
    """`--images` by what they replace."""
    from menagerie.studies.transferring.check import folders_given

    known = (
        {folder for name in (*names(), *config.benchmarks) for folder in load(name).images} if config.images else set()
    )
    return folders_given(config.images, known)


def check(config: Config) -> None:
    if not config.models and not config.check:
        raise UserError("give one or more models, or --check")
    for name in config.benchmarks:
        check_benchmark(name)
    folders_of(config)
    read_parser(config.parser)
    check_device(config.device)


def report_states(config: Config) -> int:
    """Print which benchmarks are complete; returns the exit status, 1 where one isn't."""
    from menagerie.generators.benchmarks.photographs import Place
    from menagerie.studies.transferring.check import reported, states

    found = states(chosen(config.benchmarks), Place(config.data_root, folders=folders_of(config)))
    complete = [reported(state.name, state, f", {state.records} records") for state in found]
    print(f"{sum(complete)} of {len(complete)} benchmarks are complete in {config.data_root}")
    return int(not all(complete))


def score(config: Config) -> None:
    """Find models and benchmarks, then score."""
    import torch

    from menagerie.generators.benchmarks.photographs import Place
    from menagerie.models.evaluation.code_store import CodeFolder
    from menagerie.models.towers.config import TowerConfig
    from menagerie.studies.evaluation.models import models_of
    from menagerie.studies.runs.folder import run_folder
    from menagerie.studies.transferring.check import read_benchmarks
    from menagerie.studies.transferring.pieces import pieces_of, subjects_of
    from menagerie.studies.transferring.report import run

    check_device_here(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    workers = config.workers or os.cpu_count() or 1
    place = Place(config.data_root, workers=workers, allow_missing=config.allow_missing, folders=folders_of(config))
    read = read_benchmarks(chosen(config.benchmarks), bool(config.benchmarks), place)
    if not read:
        raise UserError(f"no benchmark is complete in {config.data_root}; --check reports what to get")
    subjects = subjects_of(read, config.parser, config.parses)
    models = models_of(config.models, config.code, TowerConfig(config.architecture, "", config.resolution))
    codes = CodeFolder(config.codes, round(config.codes_limit * 1e9)) if config.codes_limit else None
    ignored = frozenset(item.name for item in fields(config))  # what decides a piece is in its own name
    with run_folder(config.out, config, ignored) as out:
        pieces = pieces_of(models, subjects, out, config.unknown_words == "skip")
        print(f"report: {run(pieces, out, config.device, codes)}")


def main() -> int | None:
    config = read_options(Config, sys.argv[1:], started_as(), __doc__)
    check(config)
    return report_states(config) if config.check else score(config)


if __name__ == "__main__":
    run_command(main)
