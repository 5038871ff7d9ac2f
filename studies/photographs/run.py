"""Writes the worlds of a study, renders and trains what isn't finished, and writes its report; `--dry-run`."""

from pathlib import Path
from typing import Any

import torch

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.core.progress import Sparing
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.estimate import estimate
from menagerie.generators.storage.image_store import ImageStore
from menagerie.studies.frame.cells import cell_of, recipe_line, untuned
from menagerie.studies.frame.step_cost import REST_SECONDS, STUDY_SECONDS, Noise, shown, step_seconds
from menagerie.studies.photographs.collection import FEWEST, Photographs, photographs_of
from menagerie.studies.photographs.jobs import Jobs, recipes_of, rendered, steps_of, train_recipe
from menagerie.studies.photographs.trainings import FACTORS_PART, FINE_TUNING, WORTH, Material, Training, all_trainings
from menagerie.studies.photographs.worlds import material_of, shared_photographs, world_name, write_worlds
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.data import SplitData
from menagerie.studies.runs.results import finished


def run(config: Any, out: Path) -> None:
    """Run the whole study, from photographs to the report; finished parts are skipped."""
    from menagerie.studies.photographs.figures import sample_sheets
    from menagerie.studies.photographs.measures import StudyState
    from menagerie.studies.photographs.report import publish
    from menagerie.studies.runs.dispatch import run_cells
    from menagerie.studies.runs.shared import clear_shared

    photographs = photographs_of(config, out / "photos")
    worlds, material = write_worlds(config, photographs, out / "worlds"), material_of(config, photographs)
    lacking = left_out(config, photographs, material)
    for line in lacking:
        print(line, flush=True)
    trainings = some_trainings(config, material, lacking)
    jobs = rendered(config, trainings, worlds, out)
    notes = {f"recipe of {model}": recipe_line(config, model) for model in config.models}
    if odd := untuned(config):
        print(f"warning: {', '.join(odd)}: not tuned, unlike the others; compare with care")
    audit = shared_photographs(config, material, worlds)
    samples = sample_sheets(jobs, out / "figures")
    study, sparing = StudyState(config, material, photographs, jobs, audit, lacking, samples, notes), Sparing()

    def show(_: Job) -> None:
        sparing(lambda: publish(study))

    while waiting := waiting_jobs(jobs, trainings):
        print(f"{len(trainings)} runs, {len(waiting)} of them can be trained now", flush=True)
        run_cells(waiting, config.cluster, config.at_once, out, show)
    clear_shared(out)
    print(f"report: {publish(study)}")


def some_trainings(config: Any, material: Material, lacking: list[str]) -> list[Training]:
    """All training runs; raises where the photographs are enough for none."""
    if trainings := all_trainings(config, material):
        return trainings
    raise UserError("; ".join(["nothing is left to train", *lacking]))


def waiting_jobs(jobs: Jobs, trainings: list[Training]) -> list[Job]:
    """The jobs that can be trained now and aren't finished; two runs with the same settings are one job."""
    found = {job.cell.id: job for training in trainings if (job := jobs.job(training))}
    return [job for job in found.values() if finished(job.folder) is None]


def left_out(config: Any, photographs: Photographs, material: Material) -> list[str]:
    """The questions that can't be answered with these photographs, and why."""
    lines = []
    if {FINE_TUNING, WORTH} & set(config.parts) and not photographs.several:
        lines.append(
            f"left out: photographs of tested animals in training, for which {FEWEST} animals need two photographs or "
            "more"
        )
    if FINE_TUNING in config.parts and not material.others:
        lines.append(f"left out: photographs of other animals in training; there are fewer than {FEWEST}")
    reasons = {"backgrounds": "give --backgrounds FOLDER", "vocabulary": "the synthetic world has no other animals"}
    lines += [
        f"left out: factor {name}; {reasons[name]}"
        for name in config.factors
        if name not in material.factors and FACTORS_PART in config.parts
    ]
    return lines


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
                store, sorted({scene for recipe in recipes for scene in recipe.scenes_to_render()}), config.cores
            )
            rendering += cost.seconds
            print(f"{world}: {cost.scenes} scenes to render, {cost.megabytes:.0f} MB, {shown(cost.seconds)}")
        torch.set_num_threads(config.threads)
        training = sum(model_seconds(config, model, trainings, worlds) for model in config.models)
    at_once = min(config.at_once, len(trainings))
    print(
        f"about {shown(STUDY_SECONDS + rendering + training / at_once)} in all, {at_once} runs at once, as busy as "
        "this machine is now"
    )


def model_seconds(config: Any, model: str, trainings: list[Training], worlds: Any) -> float:
    """Processor seconds of all runs of a model, tests included."""
    seconds, steps, of_model = 0.0, 0, [run for run in trainings if run.model == model]
    for kind in dict.fromkeys(run.kind for run in of_model):
        here = [run for run in of_model if run.kind == kind]
        recipe = train_recipe(config, here[0], worlds)
        cell = cell_of(config, model, SplitData(recipe, world_name(here[0])), 0)
        each = step_seconds(cell, Noise(recipe, config.resolution))
        count = sum(steps_of(config, run, cell.recipe).steps for run in here)
        print(f"{model}: {len(here)} runs of {kind}, {count} steps, {1000 * each:.0f} ms each")
        seconds, steps = seconds + each * count, steps + count
    return seconds + REST_SECONDS * len(of_model)
