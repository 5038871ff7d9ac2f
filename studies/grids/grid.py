"""What grids share: a training run per model, fraction of pairs, fraction of hard negatives and seed.

A grid is a subclass of `Grid` that says which split belongs to each place (`split_of`), with
presets and a `main`: see `studies/binding_grid.py`.
"""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import tyro

from generators.cluster.options import Cluster
from generators.splits.recipe import SplitRecipe
from models.recipe import Recipe
from studies.runs.scorer_options import ScorerOptions, only, scorer_options

# Fields that don't decide results, so that a run may go on with others.
EXECUTION = frozenset({"out", "store", "workers", "loaders", "log", "validate_every", "cluster"})
# `--tuned paper`: each model's recipe is its paper's.
PAPER_RECIPES = "paper"

AnyGrid = TypeVar("AnyGrid", bound="Grid")


@dataclass(frozen=True)
class Grid(ABC):
    """The options of every grid."""

    title: ClassVar[str]
    task: ClassVar[str]
    """What a model must prefer, in one sentence of the report."""
    tests: ClassVar[tuple[str, ...]]
    """The test subsets, in the report's order."""

    out: Path | None = None
    """Folder of the results; without it, runs/STUDY-PRESET."""
    store: Path = Path("store")
    """Folder of the image stores; every scene is rendered once for all studies."""
    world: str = "pug"
    """Vocabulary of the scenes: a name, or a TOML file of your own."""
    resolution: int = 64
    """Side of the square images, in pixels."""
    models: tuple[str, ...] = ("clip", "oc-clip")
    """Scorers by name, or file.py:Class for one of your own."""
    pairs: tuple[float, ...] = (0.2, 0.8)
    """Fractions of the trainable animal pairs."""
    hard_negatives: tuple[float, ...] = (0.0, 1.0)
    """Fractions of the training pairs that also have their hard negatives."""
    seeds: int = 1
    """Number of seeds, 0 to seeds - 1; a seed decides the split and the training."""
    views: int = 16
    """Views of each training scene."""
    test_views: int = 4
    """Views of each test scene, none of them used in training."""
    test_scenes: int = 400
    """The most scenes of a test subset."""
    template: str = ""
    """Template of all captions (docs/splits.md); empty takes OC-CLIP's."""
    tuned: str = ""
    """Each model's own towers and rates: a name in studies/recipes, or the best.json of studies/tune.py; `paper`
    takes the rates of each model's paper; empty trains all models with the options below."""
    architecture: str = "micro"
    """Towers: nano, micro, mini, broad, small, or any open_clip architecture such as ViT-B-16."""
    pretrained: str = ""
    """open_clip's name of pretrained weights, or a local file of them; empty trains from scratch."""
    tokenizer: str = ""
    """closed, open_clip or hf:NAME; empty takes the closed vocabulary for small towers, else the architecture's."""
    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(
        # Chosen on validation, hardest cell of a world of six animals, 4 seeds: without the first phase
        # the few training pairs' fixed textures are memorised before textures themselves are learnt.
        default_factory=lambda: Recipe(steps=2000, single_object_phase=0.5, singles_share=0.95)
    )
    """Training recipe, the same for all models. With pretrained weights each model's paper gives learning
    rates, warm-ups, weight decay and betas in place of these."""
    scorers: Annotated[ScorerOptions, tyro.conf.arg(name="")] = field(default_factory=partial(scorer_options, "small"))
    """What is specific to each model, in the sizes for small towers; only that of chosen models is recorded."""
    device: str = "cpu"
    """cpu or cuda."""
    threads: int = 1
    """Threads of each training run; part of the configuration, because sums depend on it."""
    workers: int = 0
    """Runs at once; 0 takes one per core on a cpu and one on cuda. On a cpu results don't depend on it."""
    loaders: int = 0
    """Processes that prepare the batches of each run; results don't depend on it. On a GPU a few keep it busy."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Where loss, validation and speed go beside each cell's training.csv: tensorboard, wandb, or both."""
    validate_every: int = 0
    """Steps between two looks at validation for the training curves, which select nothing; 0: a tenth of the run."""
    cluster: Annotated[Cluster, tyro.conf.arg(name="")] = field(default_factory=Cluster)
    """Where cells run; results don't depend on it."""

    def split_fields(self, pairs: float, hard_negatives: float, seed: int) -> dict[str, Any]:
        """The fields that the splits of every grid have."""
        own = {name: getattr(self, name) for name in ("world", "views", "test_views", "test_scenes")}
        return (
            own
            | {"pairs": pairs, "hard_negatives": hard_negatives, "seed": seed}
            | ({"template": self.template} if self.template else {})
        )

    @abstractmethod
    def split_of(self, pairs: float, hard_negatives: float, seed: int) -> SplitRecipe:
        """The recipe of the split at one place of the grid."""


# What the presets of every grid share.
SMOKE: dict[str, Any] = {
    "world": "tiny",
    "resolution": 32,
    "pairs": (0.5,),
    "test_views": 1,
    "test_scenes": 48,
    "architecture": "nano",
    "recipe": Recipe(steps=60, batch=32, warmup=5),
    "scorers": scorer_options("smoke"),
}
# 224 px and ViT-B/16 as in OC-CLIP's paper, but from scratch unless --pretrained names weights; each model with
# the rates of its paper, and all with our number of steps.
PAPER: dict[str, Any] = {
    "resolution": 224,
    "pairs": (0.2, 0.4, 0.6, 0.8, 1.0),
    "hard_negatives": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "seeds": 3,
    "test_scenes": 2000,
    "architecture": "ViT-B-16",
    "tuned": PAPER_RECIPES,
    "recipe": Recipe(steps=10_000, batch=256, learning_rate=5e-4, warmup=1000, weight_decay=0.5),
    "scorers": scorer_options("paper"),
    "loaders": 4,
}


def chosen_alone(grid: AnyGrid) -> AnyGrid:
    """The grid with the options of its own models only."""
    return replace(grid, scorers=only(grid.scorers, grid.models))


def splits(grid: Grid) -> list[SplitRecipe]:
    """The recipes of all splits of the grid, in its order."""
    return [
        grid.split_of(pairs, negatives, seed)
        for seed in range(grid.seeds)
        for pairs in grid.pairs
        for negatives in grid.hard_negatives
    ]


def cores(grid: Grid) -> int:
    """Processes that render: as configured, or one a core."""
    machine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return grid.workers or machine


def workers(grid: Grid) -> int:
    """Runs at once: as configured, or one a core, or one on cuda."""
    return grid.workers or (1 if grid.device.startswith("cuda") else cores(grid))
