"""Which models bind attributes to objects, and how many pairs and hard negatives do they need?

The experiment of OC-CLIP's section 4.1 (figure 2): a grid of (fraction of animal pairs in
training) x (fraction of those with hard negatives), one training run per model, place and seed.

    python studies/binding_grid.py --preset smoke      # tiny world, under 90 seconds on 2 cores
    python studies/binding_grid.py                     # laptop: four corners, one seed, minutes
    python studies/binding_grid.py --preset paper --device cuda
    python studies/binding_grid.py --compare RUN_A RUN_B     # how two runs differ, record by record

Ends with `report.html`, `results.csv`, `cells.jsonl` and per-record predictions in `--out`.
Run again, it skips finished cells; stopped in the middle of one, it goes on from its last state.
"""

import hashlib
import os
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import tyro

from envs.errors import UserError, choose, run_command
from envs.world import load_world
from generators.binding import BindingRecipe, pair_roles, scenes_to_render
from models.configs import OCCLIPConfig, TowerConfig
from models.recipes import CLIP_PRETRAINED, OC_CLIP_PRETRAINED, Recipe
from models.registry import check_scorer
from studies.cells import Cell, Job
from studies.command_line import parse, runs_to_compare
from studies.tuned import read_tuned

# Fields that don't decide results, so that a run may go on with others.
EXECUTION = frozenset({"out", "store", "workers"})


@dataclass(frozen=True)
class Config:
    """One binding grid."""

    out: Path | None = None
    """Folder of the results; without it, runs/binding_grid-PRESET."""
    store: Path = Path("store")
    """Folder of the image stores; every scene is rendered once for all studies."""
    world: str = "pug"
    """Vocabulary of the scenes."""
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
    oc_clip: OCCLIPConfig = field(default_factory=lambda: OCCLIPConfig(dim=64, relation_dim=32, layers=1))
    """Sizes of OC-CLIP's binding module; table 11 has two layers and wider ones, which a small
    tower from scratch doesn't need."""
    tuned: Path | None = None
    """best.json of studies/tune.py: each model's own towers and whole recipe, in place of --architecture
    and of all options of the recipe, steps and batch included."""
    device: str = "cpu"
    """cpu or cuda."""
    threads: int = 1
    """Threads of each training run; part of the configuration, because sums depend on it."""
    workers: int = 0
    """Runs at once; 0 takes one per core on a cpu and one on cuda. On a cpu results don't depend on it."""


PRESETS: dict[str, Config] = {
    "smoke": Config(
        world="tiny",
        resolution=32,
        pairs=(0.5,),
        views=4,
        test_views=1,
        test_scenes=48,
        architecture="nano",
        recipe=Recipe(steps=60, batch=32, warmup=5),
        oc_clip=OCCLIPConfig(dim=32, relation_dim=16, layers=1, heads=2),
    ),
    "laptop": Config(),
    # 224 px and ViT-B/16 as in the paper, but from scratch unless --pretrained names weights:
    # then learning rate 5e-4, weight decay 0.5 and 1 000 steps of warm-up, the paper's recipe
    # for training from scratch (section 4.3.1), with our number of steps.
    "paper": Config(
        resolution=224,
        pairs=(0.2, 0.4, 0.6, 0.8, 1.0),
        hard_negatives=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        seeds=3,
        test_scenes=2000,
        architecture="ViT-B-16",
        recipe=Recipe(steps=10_000, batch=256, learning_rate=5e-4, warmup=1000, weight_decay=0.5),
        oc_clip=OCCLIPConfig(),
    ),
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


def check(config: Config) -> None:
    """Raise on what can't work, before anything is made."""
    load_world(config.world)
    for model in config.models:
        check_scorer(model)
    for name in ("models", "pairs", "hard_negatives"):
        values = getattr(config, name)
        if not values or len(set(values)) != len(values):
            raise UserError(f"--{name.replace('_', '-')} needs one or more different values, got {values}")
    if config.seeds < 1 or config.threads < 1 or config.workers < 0:
        raise UserError("--seeds and --threads must be at least 1, --workers at least 0")
    if not 16 <= config.resolution <= 1024:
        raise UserError(f"--resolution must be from 16 to 1024 pixels, got {config.resolution}")
    for recipe in splits(config):
        pair_roles(recipe)  # refuses fractions that can't be had
    check_machine(config)


def check_machine(config: Config) -> None:
    """Raise on towers or a device that this machine doesn't have. Imports torch."""
    choose("device", config.device.partition(":")[0], ("cpu", "cuda"))
    import torch

    from models.towers import check_towers

    if config.device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--device {config.device}: torch sees no CUDA device here; use --device cpu")
    for model in config.models:
        check_towers(towers(config, model))
        check_builds(config, model)


def check_builds(config: Config, model: str) -> None:
    """Raise if `model` can't be built as configured: now, and not after an hour of other cells."""
    from models.checkpoint import build_scorer

    try:
        build_scorer(model, replace(towers(config, model), pretrained=""), ("a",), options(config, model))
    except UserError:
        raise
    except Exception as error:  # whatever a library or a user's own class raises
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{model} on {config.architecture} can't be built as configured: {told}") from error


def options(config: Config, model: str) -> dict[str, Any]:
    """Fields of the model's own config."""
    return asdict(config.oc_clip) if model == "oc-clip" else {}


def own_files(config: Config, model: str) -> str:
    """Hash of the model's file, if it is the user's own, and of local pretrained weights."""
    paths = [Path(model.rpartition(":")[0]), Path(config.pretrained)]
    contents = [path.read_bytes() for path in paths if path.is_file()]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:12] if contents else ""


def splits(config: Config) -> list[BindingRecipe]:
    """The recipes of all splits of the grid, in its order."""
    return [
        BindingRecipe(config.world, pairs, negatives, config.views, config.test_views, config.test_scenes, seed=seed)
        for seed in range(config.seeds)
        for pairs in config.pairs
        for negatives in config.hard_negatives
    ]


def towers(config: Config, model: str) -> TowerConfig:
    """The towers of a model: the study's own, or those that tuning found best."""
    architecture = tuned(config)[model][0] if config.tuned else config.architecture
    return TowerConfig(architecture, config.pretrained, config.resolution)


@lru_cache(maxsize=8)
def tuned(config: Config) -> dict[str, tuple[str, Recipe]]:
    """Architecture and recipe of every model of the grid, from the file that tuning wrote; read once."""
    return read_tuned(config.tuned, config.models, conditions(config))


def conditions(config: Config) -> dict[str, Any]:
    """What a recipe is tuned for."""
    return {"world": config.world, "resolution": config.resolution, "oc_clip": asdict(config.oc_clip)}


def cores(config: Config) -> int:
    """Processes that render: as asked, or one a core."""
    machine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return config.workers or machine


def workers(config: Config) -> int:
    """Runs at once: as asked, or one a core, or one on cuda."""
    return config.workers or (1 if config.device.startswith("cuda") else cores(config))


def training_recipe(config: Config, model: str) -> Recipe:
    """The recipe of one model: the study's own, a tuned one, or with pretrained weights the paper's rates."""
    if config.tuned:
        return tuned(config)[model][1]
    if not config.pretrained or model not in PRETRAINED_RECIPES:
        return config.recipe
    paper = asdict(PRETRAINED_RECIPES[model])
    return replace(config.recipe, **{name: paper[name] for name in PRETRAINED_FIELDS})


def cells(config: Config, store_identity: str) -> list[Cell]:
    """All cells of the grid; the hardest come first, so that a stopped grid has said something."""
    return [
        Cell(
            model=model,
            seed=recipe.seed,
            split=recipe,
            store=store_identity,
            towers=towers(config, model),
            recipe=training_recipe(config, model),
            options=options(config, model),
            device=config.device,
            threads=config.threads,
            files=own_files(config, model),
        )
        for recipe in splits(config)
        for model in config.models
    ]


def render(config: Config, workers: int) -> tuple[str, dict[BindingRecipe, Path]]:
    """Fill the image store and write the split files; returns its identity and the files."""
    from generators.split_file import make_binding_split
    from generators.store import ImageStore
    from studies.engine import progress_bar

    store = ImageStore(config.store, load_world(config.world), config.resolution)
    scenes = list({scene for recipe in splits(config) for scene in scenes_to_render(recipe)})
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
    return store.identity, {recipe: make_binding_split(store, recipe) for recipe in splits(config)}


def told(config: Config, model: str) -> str:
    """The recipe of a model in one line."""
    start = f"{towers(config, model).architecture} " + (
        f"from {config.pretrained}" if config.pretrained else "from scratch"
    )
    fields = asdict(training_recipe(config, model))
    return f"{start}; " + ", ".join(f"{name} {value}" for name, value in fields.items() if value is not None)


def run(config: Config, out: Path) -> None:
    """Render, train what isn't finished, and write results and report."""
    from studies.engine import run_jobs
    from studies.grid_report import write_report
    from studies.results import collect, write_results
    from studies.run_folder import provenance

    identity, files = render(config, cores(config))
    jobs = [Job(cell, files[cell.split], out / "cells" / cell.id) for cell in cells(config, identity)]
    folders = [job.folder for job in jobs]
    sample = files[splits(config)[0]]

    def publish(_: Job | None = None) -> Path:
        results = collect(folders)
        write_results(out, results)
        return write_report(out, config, notes, results, sample)

    recipes = {f"recipe of {model}": told(config, model) for model in config.models}
    notes = {**recipes, **provenance()}
    for name, text in recipes.items():
        print(f"{name}: {text}")
    done = {result["id"] for result in collect(folders)}
    print(f"{len(jobs)} cells, {len(done)} of them finished before", flush=True)
    publish()
    run_jobs([job for job in jobs if job.cell.id not in done], workers(config), publish)
    print(f"report: {publish()}")


def main() -> None:
    """Parse, check, run; or compare two runs."""
    if runs := runs_to_compare():
        from studies.compare import compare

        print(compare(*runs))
        return
    preset, config = parse(PRESETS, "laptop", __doc__)
    check(config)
    from studies.run_folder import run_folder

    with run_folder(config.out or Path(f"runs/binding_grid-{preset}"), config, EXECUTION) as out:
        run(config, out)


if __name__ == "__main__":
    run_command(main)
