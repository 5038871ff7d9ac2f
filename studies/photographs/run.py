"""Writes the worlds of a study, renders and trains what isn't finished, and writes its report."""

from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import Sparing
from menagerie.studies.grids.cells import recipe_line, untuned
from menagerie.studies.grids.grid import workers
from menagerie.studies.photographs.apart import shared_photographs
from menagerie.studies.photographs.collection import FEWEST, Photographs, photographs_of
from menagerie.studies.photographs.jobs import Jobs, rendered
from menagerie.studies.photographs.trainings import FACTORS_PART, FINE_TUNING, WORTH, Material, Training, all_trainings
from menagerie.studies.photographs.world_files import write_worlds
from menagerie.studies.photographs.worlds import material_of
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import finished


def run(config: Any, out: Path) -> None:
    """From photographs to the report; what is finished is skipped."""
    from menagerie.studies.photographs.lines import Study
    from menagerie.studies.photographs.pictures import sample_sheets
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
    study, sparing = Study(config, material, photographs, jobs, audit, lacking, samples, notes), Sparing()

    def show(_: Job) -> None:
        sparing(lambda: publish(study))

    while waiting := waiting_jobs(jobs, trainings):
        print(f"{len(trainings)} runs, {len(waiting)} of them can be trained now", flush=True)
        run_cells(waiting, config.cluster, workers(config), out, show)
    clear_shared(out)
    print(f"report: {publish(study)}")


def some_trainings(config: Any, material: Material, lacking: list[str]) -> list[Training]:
    """All training runs; raises where the photographs are enough for none."""
    if trainings := all_trainings(config, material):
        return trainings
    raise UserError("; ".join(["nothing is left to train", *lacking]))


def waiting_jobs(jobs: Jobs, trainings: list[Training]) -> list[Job]:
    """What can be trained now and isn't finished; two runs with the same settings are one job."""
    found = {job.cell.id: job for its in trainings if (job := jobs.job(its))}
    return [job for job in found.values() if finished(job.folder) is None]


def left_out(config: Any, photographs: Photographs, material: Material) -> list[str]:
    """What can't be answered with these photographs, and why."""
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
