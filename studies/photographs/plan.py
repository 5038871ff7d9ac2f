"""What a study of photographs would take on this machine: `--dry-run`."""

from typing import Any

import torch

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.estimate import estimate
from menagerie.generators.storage.image_store import ImageStore
from menagerie.studies.grids.cells import cell_of
from menagerie.studies.grids.grid import cores, workers
from menagerie.studies.grids.plan import REST_SECONDS, STUDY_SECONDS, Noise, shown, step_seconds
from menagerie.studies.photographs.collection import photographs_of
from menagerie.studies.photographs.jobs import recipes_of, steps_of, train_recipe
from menagerie.studies.photographs.run import left_out, some_trainings
from menagerie.studies.photographs.trainings import Training
from menagerie.studies.photographs.world_files import write_worlds
from menagerie.studies.photographs.worlds import material_of, world_name
from menagerie.studies.runs.data import SplitData


def plan(config: Any) -> None:
    """Print what is to be rendered and trained, and how long both take."""
    with scratch_folder() as folder:
        photographs = photographs_of(config, folder / "photos")
        worlds, material = write_worlds(config, photographs, folder / "worlds"), material_of(config, photographs)
        lacking = left_out(config, photographs, material)
        print(*lacking, sep="\n")
        trainings = some_trainings(config, material, lacking)
        rendering = 0.0
        for world, recipes in recipes_of(config, trainings, worlds).items():
            store = ImageStore(config.store, load_world(str(worlds[world])), config.resolution)
            cost = estimate(
                store, sorted({scene for its in recipes for scene in its.scenes_to_render()}), cores(config)
            )
            rendering += cost.seconds
            print(f"{world}: {cost.scenes} scenes to render, {cost.megabytes:.0f} MB, {shown(cost.seconds)}")
        torch.set_num_threads(config.threads)
        training = sum(model_seconds(config, model, trainings, worlds) for model in config.models)
    at_once = min(workers(config), len(trainings))
    print(
        f"about {shown(STUDY_SECONDS + rendering + training / at_once)} in all, {at_once} runs at once, as busy as "
        "this machine is now"
    )


def model_seconds(config: Any, model: str, trainings: list[Training], worlds: Any) -> float:
    """Processor seconds of all runs of a model, tests included."""
    seconds, steps, own = 0.0, 0, [its for its in trainings if its.model == model]
    for kind in dict.fromkeys(its.kind for its in own):
        here = [its for its in own if its.kind == kind]
        recipe = train_recipe(config, here[0], worlds)
        cell = cell_of(config, model, SplitData(recipe, world_name(here[0])), 0)
        each = step_seconds(cell, Noise(recipe, config.resolution))
        count = sum(steps_of(config, its, cell.recipe).steps for its in here)
        print(f"{model}: {len(here)} runs of {kind}, {count} steps, {1000 * each:.0f} ms each")
        seconds, steps = seconds + each * count, steps + count
    return seconds + REST_SECONDS * len(own)
