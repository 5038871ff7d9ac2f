"""What grids share: a training run per model, fraction of pairs, fraction of hard negatives and seed.

A grid is a subclass of `Grid` that says which split belongs to each place (`split_of`), with
presets and a `main`: see `studies/binding_grid.py`.
"""

import os
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from envs.worlds import load_world
from generators.cluster.options import Cluster
from generators.splits.recipe import SplitRecipe
from models.recipe import Recipe
from models.scorers.clip.spec import CLIP_PRETRAINED
from models.scorers.oc_clip.spec import OC_CLIP_PRETRAINED, OCCLIPConfig
from models.towers.config import TowerConfig
from studies.grids.tuned_recipes import Tuned, read_tuned
from studies.runs.cell import Cell, Job, own_files

# Fields that don't decide results, so that a run may go on with others.
EXECUTION = frozenset({"out", "store", "workers", "cluster"})
# Tokens of CLIP's small text towers in a world with sizes: the longest text of `pug-sizes` has 22 words and an end.
SIZED_CONTEXT = 24


@dataclass(frozen=True)
class Grid(ABC):
    """The options of every grid."""

    title: ClassVar[str]
    task: ClassVar[str]
    """What a model is asked, in one sentence of the report."""
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
    """Each model's own towers and rates: a name in studies/recipes, or the best.json of studies/tune.py;
    empty trains all models with the options below."""
    architecture: str = "micro"
    """Towers: nano, micro, mini, broad, small, or any open_clip architecture such as ViT-B-16."""
    pretrained: str = ""
    """open_clip's name of pretrained weights, or a local file of them; empty trains from scratch."""
    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(
        # Chosen on validation, hardest cell of a world of six animals, 4 seeds: without the warm start
        # the few training pairs' fixed textures are memorised before textures themselves are learnt.
        default_factory=lambda: Recipe(steps=2000, warm_start=0.5, singles_share=0.95)
    )
    """Training recipe, the same for all models. With pretrained weights the paper's learning
    rates, warm-ups, weight decay and betas replace these (OC-CLIP, section 4.2, appendix A.8)."""
    oc_clip: OCCLIPConfig = field(default_factory=lambda: OCCLIPConfig(dim=64, relation_dim=32, layers=0))
    """Sizes of OC-CLIP's binding module. Table 11's are wider, with two layers of self-attention over the
    patches: small towers bind as well without, and their queries look at their own animals."""
    device: str = "cpu"
    """cpu or cuda."""
    threads: int = 1
    """Threads of each training run; part of the configuration, because sums depend on it."""
    workers: int = 0
    """Runs at once; 0 takes one per core on a cpu and one on cuda. On a cpu results don't depend on it."""
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
    "oc_clip": OCCLIPConfig(dim=32, relation_dim=16, layers=1, heads=2),
}
# 224 px and ViT-B/16 as in the paper, but from scratch unless --pretrained names weights: then learning
# rate 5e-4, weight decay 0.5 and 1 000 steps of warm-up, the paper's recipe for training from scratch
# (section 4.3.1), with our number of steps.
PAPER: dict[str, Any] = {
    "resolution": 224,
    "pairs": (0.2, 0.4, 0.6, 0.8, 1.0),
    "hard_negatives": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "seeds": 3,
    "test_scenes": 2000,
    "architecture": "ViT-B-16",
    "recipe": Recipe(steps=10_000, batch=256, learning_rate=5e-4, warmup=1000, weight_decay=0.5),
    "oc_clip": OCCLIPConfig(),
}
PRETRAINED_RECIPES = {"clip": CLIP_PRETRAINED, "oc-clip": OC_CLIP_PRETRAINED}
# What the paper says of them; steps, batch and data stay the study's own, the same for all models.
PRETRAINED_FIELDS = (
    "learning_rate",
    "vision_learning_rate",
    "text_learning_rate",
    "warmup",
    "vision_warmup",
    "text_warmup",
    "weight_decay",
    "betas",
)


def options(grid: Grid, model: str) -> dict[str, Any]:
    """Fields of the model's own config."""
    if model == "clip" and load_world(grid.world).sizes:
        return {"context": SIZED_CONTEXT}
    return asdict(grid.oc_clip) if model == "oc-clip" else {}


def splits(grid: Grid) -> list[SplitRecipe]:
    """The recipes of all splits of the grid, in its order."""
    return [
        grid.split_of(pairs, negatives, seed)
        for seed in range(grid.seeds)
        for pairs in grid.pairs
        for negatives in grid.hard_negatives
    ]


@lru_cache(maxsize=8)
def tuned(grid: Grid) -> dict[str, Tuned]:
    """What was tuned for the models of the grid; read once."""
    return read_tuned(grid.tuned, grid.models) if grid.tuned else {}


def conditions(grid: Grid) -> dict[str, Any]:
    """What a recipe is tuned for."""
    kind = splits(grid)[0].kind
    return {"kind": kind, "world": grid.world, "resolution": grid.resolution, "oc_clip": asdict(grid.oc_clip)}


def towers(grid: Grid, model: str) -> TowerConfig:
    """The towers of a model: the study's own, or those that tuning found best."""
    found = tuned(grid).get(model)
    return TowerConfig(found.architecture if found else grid.architecture, grid.pretrained, grid.resolution)


def training_recipe(grid: Grid, model: str) -> Recipe:
    """The recipe of one model: the study's own, with tuned rates, or with pretrained weights the paper's."""
    if model in tuned(grid):
        return replace(grid.recipe, **tuned(grid)[model].fields)
    if not grid.pretrained or model not in PRETRAINED_RECIPES:
        return grid.recipe
    paper = asdict(PRETRAINED_RECIPES[model])
    return replace(grid.recipe, **{name: paper[name] for name in PRETRAINED_FIELDS})


def told(grid: Grid, model: str, recipe: Recipe | None = None) -> str:
    """The recipe of a model, its own or the given one, in one line, and what it was tuned for where that
    isn't this grid."""
    start = f"from {grid.pretrained}" if grid.pretrained else "from scratch"
    fields = asdict(recipe or training_recipe(grid, model)).items()
    text = f"{towers(grid, model).architecture} {start}; "
    text += ", ".join(f"{name} {value}" for name, value in fields if value is not None)
    if not grid.tuned:
        return text
    if model not in tuned(grid):
        return f"{text} (not tuned)"
    there = tuned(grid)[model].conditions
    here = conditions(grid) | {"steps": grid.recipe.steps}
    if model != "oc-clip":
        del here["oc_clip"]  # other models have no such module
    others = [f"{name} {there[name]}, not {value}" for name, value in here.items() if there.get(name) != value]
    return f"{text} (tuned with {'; '.join(others)})" if others else f"{text} (tuned)"


def cores(grid: Grid) -> int:
    """Processes that render: as asked, or one a core."""
    machine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return grid.workers or machine


def workers(grid: Grid) -> int:
    """Runs at once: as asked, or one a core, or one on cuda."""
    return grid.workers or (1 if grid.device.startswith("cuda") else cores(grid))


def cells(grid: Grid, store_identity: str) -> list[Cell]:
    """All cells of the grid; the hardest come first, so that a stopped grid has said something."""
    return [
        Cell(
            model=model,
            seed=recipe.seed,
            split=recipe,
            store=store_identity,
            towers=towers(grid, model),
            recipe=training_recipe(grid, model),
            options=options(grid, model),
            device=grid.device,
            threads=grid.threads,
            files=own_files(model, grid.pretrained),
        )
        for recipe in splits(grid)
        for model in grid.models
    ]


def render(grid: Grid, workers: int) -> tuple[str, dict[SplitRecipe, Path]]:
    """Fill the image store and write the split files; returns its identity and the files."""
    from envs.common.progress import progress_bar
    from generators.storage.image_store import ImageStore
    from generators.storage.split_file import make_split

    store = ImageStore(grid.store, load_world(grid.world), grid.resolution)
    scenes = list({scene for recipe in splits(grid) for scene in recipe.scenes_to_render()})
    missing = len(store.missing(scenes))
    megabytes = missing * store.scene_bytes / 1e6
    print(f"{len(scenes)} scenes, {missing} of them to render: {megabytes:.0f} MB in {store.folder}", flush=True)
    with progress_bar() as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(f"rendering {stage}", total=total)
            bar.update(tasks[stage], completed=done)

        store.add(scenes, workers, progress=show)
    return store.identity, {recipe: make_split(store, recipe) for recipe in splits(grid)}


def run(grid: Grid, out: Path) -> None:
    """Render, train what isn't finished, and write results and report."""
    from studies.grids.report import write_report
    from studies.runs.dispatch import run_cells
    from studies.runs.folder import provenance
    from studies.runs.results import collect, write_results

    identity, files = render(grid, cores(grid))
    jobs = [Job(cell, files[cell.split], out / "cells" / cell.id) for cell in cells(grid, identity)]
    folders = [job.folder for job in jobs]
    sample = files[splits(grid)[0]]

    def publish(_: Job | None = None) -> Path:
        results = collect(folders)
        write_results(out, results)
        return write_report(out, grid, notes, results, sample)

    recipes = {f"recipe of {model}": told(grid, model) for model in grid.models}
    notes = {**recipes, **provenance()}
    for name, text in recipes.items():
        print(f"{name}: {text}")
    done = {result["id"] for result in collect(folders)}
    print(f"{len(jobs)} cells, {len(done)} of them finished before", flush=True)
    publish()
    waiting = [job for job in jobs if job.cell.id not in done]
    run_cells(waiting, grid.cluster, workers(grid), out, publish)
    print(f"report: {publish()}")
