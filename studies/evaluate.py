"""How do models do on splits that they weren't trained on? Scores any models on any splits, and trains nothing.

    python studies/evaluate.py runs/binding_grid-laptop ViT-B-16/openai --splits binding spatial
    python studies/evaluate.py ViT-B-16/weights.safetensors path/to/siglip --splits mine.toml packed.h5
    python studies/evaluate.py mine.py:Mine runs/mine --code mine.py:Mine --splits store/pug-64px-…/binding-….h5

A model is a run (all its cells), a cell, a checkpoint, an open_clip model (without weights: random), a folder of
Hugging Face's CLIP or SigLIP (or hf:NAME), or a class of your own. A split is a file, also a packed one, a recipe of
`menagerie recipes`, or a TOML file. Ends with `report.html`, `results.csv`, `results.tex`, `cells.jsonl` and
per-record predictions in `--out`. Run again, it skips what is finished: also with further models and splits.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from menagerie.envs.core.command_help import read_options, started_as
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.files import check_place
from menagerie.envs.core.validation import SIDE, SOME_PROCESSES
from menagerie.studies.runs.machine import check_device, check_device_here

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.benchmark import Benchmark
    from menagerie.models.library.loaded import LoadedScorer
    from menagerie.studies.evaluation.models import Model
    from menagerie.studies.evaluation.pieces import Piece, TestedSplit


@dataclass(frozen=True)
class Config:
    """Score models on splits."""

    models: tyro.conf.Positional[tuple[str, ...]]
    """Runs, cells, checkpoints, open_clip names (ViT-B-16/openai, ViT-B-16/FILE@openai), Hugging Face folders,
    file.py:Class."""
    splits: tuple[str, ...]
    """Split files, recipes by name, TOML files."""
    out: Path = Path("runs/evaluate")
    """Folder of the results; one of before is continued, also with other models and splits."""
    store: Path = Path("store")
    """Folder of the image stores, for recipes."""
    world: str = ""
    """World of recipes, a name or a TOML file; empty takes each recipe's own."""
    resolution: Annotated[int, SIDE] = 64
    """Side of the images that recipes are rendered at, in pixels; each model reads them in its own size."""
    code: tuple[str, ...] = ()
    """Classes of your own (file.py:Class) of which checkpoints may be: their files are run."""
    architecture: str = "micro"
    """Towers of a file.py:Class without a checkpoint, at --resolution."""
    device: str = "cpu"
    """cpu or cuda."""
    threads: Annotated[int, SOME_PROCESSES] = 0
    """Threads of torch; 0 leaves it the choice."""
    workers: Annotated[int, SOME_PROCESSES] = 0
    """Processes that render; 0 takes one a core."""


def check(config: Config) -> None:
    if not config.models or not config.splits:
        raise UserError("give one or more models, and after --splits one or more splits")
    check_place("--store", config.store)
    check_device(config.device)


def run(config: Config) -> None:
    import os

    import torch

    from menagerie.models.towers.config import TowerConfig
    from menagerie.studies.evaluation.models import models_of
    from menagerie.studies.evaluation.pieces import recipes_of, render, splits_of
    from menagerie.studies.runs.folder import run_folder

    check_device_here(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    recipes_of(config.splits, config.world)

    models = models_of(config.models, config.code, TowerConfig(config.architecture, "", config.resolution))
    prepare = partial(
        render, root=config.store, resolution=config.resolution, workers=config.workers or os.cpu_count() or 1
    )
    ignored = frozenset(item.name for item in fields(config))  # what decides a piece is in its own name
    with run_folder(config.out, config, ignored) as out:
        print(f"report: {score_splits(models, splits_of(config.splits, config.world, prepare), out, config.device)}")


def score_splits(models: list["Model"], splits: list["TestedSplit"], out: Path, device: str) -> Path:
    """Score what isn't scored yet; returns the report. What can't be scored is left out with a word."""
    from menagerie.studies.evaluation.loop import Outputs, image_bar, load, score_all
    from menagerie.studies.evaluation.pieces import check_texts, images_of, pieces_of, score_piece
    from menagerie.studies.evaluation.report import print_swaps, write_report, write_tables

    pieces = pieces_of(models, splits, out)
    tests: dict[str, Mapping[str, Benchmark]] = {}

    def score(piece: "Piece", loaded: "LoadedScorer") -> None:
        label = piece.split.label
        tests[label] = tests.get(label) or piece.split.tests()
        check_texts(loaded.scorer, tests[label])
        with image_bar(label) as start:
            score_piece(piece, loaded, tests[label], start(images_of(tests[label])))

    report = score_all(pieces, out, partial(load, device=device), score, Outputs(write_tables, write_report))
    print_swaps(pieces)
    return report


def main() -> None:
    config = read_options(Config, sys.argv[1:], started_as(), __doc__)
    check(config)
    run(config)


if __name__ == "__main__":
    run_command(main)
