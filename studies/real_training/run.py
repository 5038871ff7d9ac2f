"""Trains what isn't finished, scores it on benchmarks, and writes results and report."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import Sparing
from menagerie.generators.sources.searched_folders import Given
from menagerie.studies.grids.grid import cores, workers
from menagerie.studies.real_training.cells import Planned, Rendered, planned, recipes, rendered_splits
from menagerie.studies.real_training.config import Config, grid_of
from menagerie.studies.real_training.describe import described
from menagerie.studies.runs.cell import Execution, Job


def root_of(config: Config, out: Path) -> Path:
    """The root of the photographs: the user's, or that of a rehearsal."""
    if not config.rehearse:
        return config.data_root
    from menagerie.studies.real_training.rehearsal import write_files

    grid = grid_of(config)
    return write_files(grid.recipe_given, out, config.store, config.resolution, cores(grid))


def run(config: Config, out: Path, folders: Given) -> None:
    """Read photographs, render, train, score, report."""
    from menagerie.studies.real_training.report import Study, print_table, write_report
    from menagerie.studies.real_training.score import Tests, score
    from menagerie.studies.runs.dispatch import run_cells
    from menagerie.studies.runs.results import collect

    grid = grid_of(config)
    root = root_of(config, out)
    photos = described(config, root, folders)
    runs = planned(config, photos, rendered_splits(config, cores(grid)))
    check_false_captions(runs)
    tests = Tests.of(config, [its.place.parser for its in runs], root, folders)
    jobs = [Job(its.cell, its.data_file, out, execution=Execution.of(config)) for its in runs]
    notes = recipes(config, photos)
    for name, text in notes.items():
        print(f"{name}: {text}")

    study = Study(config, out, runs, photos, tests)
    done = {result["id"] for result in collect(job.folder for job in jobs)}
    print(f"{len(jobs)} cells, {len(done)} of them finished before", flush=True)
    sparing = Sparing()
    waiting = [job for job in jobs if job.cell.id not in done]
    run_cells(waiting, config.cluster, workers(grid), out, lambda _: sparing(lambda: write_report(study, notes)))
    print_carried(runs, out)
    report = write_report(study, notes, score(runs, tests, out, config))
    print_table(study)
    print(f"report: {report}")


def check_false_captions(runs: Sequence[Planned]) -> None:
    """Raise before training for a model whose loss needs false captions of data that have none."""
    from menagerie.models.recipe import negatives_of

    for its in runs:
        if (
            its.place.mix < 1
            and negatives_of(its.cell.recipe, its.cell.negatives).texts
            and not its.cell.data.synthetic
        ):
            raise UserError(
                f"{its.cell.model} trains with false captions, which photographs don't have; choose another model or "
                "other --text-negatives, or mix rendered scenes in, which have them: --mix 0.5"
            )


def print_carried(runs: Sequence[Planned], out: Path) -> None:
    """What each cell had of the weights that it started with."""
    from menagerie.models.carry_over import Carried
    from menagerie.studies.runs.results import finished

    for its in runs:
        carried = (finished(out / "cells" / its.cell.id) or {}).get("carried")
        if carried:
            print(f"{its.cell.name}: {Carried.recorded(carried).text}")


def plan(config: Config, folders: Given) -> None:
    """Print what there is, what would be trained, and how long that takes; nothing is rendered or kept."""
    import torch

    from menagerie.studies.grids.plan import REST_SECONDS, STUDY_SECONDS, shown, step_seconds, steps_of

    if config.rehearse:
        raise UserError(
            "--dry-run reads the files that are trained on, which --rehearse has yet to write; leave one out"
        )
    photos = described(config, config.data_root, folders)
    alone = replace(config, mix=(0.0,))
    runs = planned(alone, photos, Rendered((), {}))
    torch.set_num_threads(config.threads)
    total = 0.0
    for model, place in dict.fromkeys((its.cell.model, its.place) for its in runs):
        own = [its.cell for its in runs if (its.cell.model, its.place) == (model, place)]
        data = own[0].data.open(config.data_root).train
        fresh = replace(own[0], start=None, towers=replace(own[0].towers, pretrained="", load=True))
        seconds = step_seconds(fresh, data)
        cells = len(own) * len(config.mix)
        total += len(config.mix) * steps_of(own) * seconds + REST_SECONDS * cells
        print(f"{own[0].name}: {cells} cells, {own[0].recipe.steps} steps each, {1000 * seconds:.0f} ms a step")
    at_once = min(workers(grid_of(config)), len(runs) * len(config.mix))
    about = shown(STUDY_SECONDS + total / at_once)
    print(f"about {about} of training in all, {at_once} cells at once; benchmarks are not counted")
