"""`--dry-run`: what a study would render, and how long its training steps would take on this machine, by one step of
each model that is taken and discarded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.recipe import Recipe
from menagerie.models.training.feed import single_steps
from menagerie.studies.frame.adaptive import all_arms, is_adaptive
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.checks import check_states
from menagerie.studies.frame.sampled_costs import take_sample, time_step
from menagerie.studies.frame.study import Study
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.shared import trunk_key
from menagerie.studies.runs.split_file import scenes_needed


def dry_run(study: Study) -> None:
    """Print what is to be rendered and trained, and about how long the steps take. For an adaptive study that is the
    longest case."""
    torch.set_num_threads(study.threads)
    with scratch_folder() as folder:
        study = study.prepare(folder)
        check_states(study)
        for name, text in study.notes().items():
            print(f"{name}: {text}")
        arms = all_arms(study)
        print_rendering(study, arms)
        seconds = print_training_time(study, arms) / min(study.at_once, len(arms))
        most = ", with the most runs that results may ask for" * is_adaptive(study, arms)
    at_once = min(study.at_once, len(arms))
    print(
        f"the steps take about {duration_text(seconds)} in all{most}, {at_once} runs at once, as busy as this machine "
        f"is now"
    )


def print_rendering(study: Study, arms: Sequence[Arm]) -> None:
    """Print, for each world and image side, the number of splits and, of the first, the numbers of scenes and of atlas
    entries."""
    stores: dict[tuple[str, int], dict[SplitRecipe, str]] = {}
    for arm in arms:
        if not arm.file and isinstance(arm.cell, Cell):
            for split in arm.cell.data.splits:
                stores.setdefault((split.recipe.world, arm.cell.towers.resolution), {})[split.recipe] = arm.name
    for (world, side), recipes in stores.items():
        scenes = sorted(set(scenes_needed(*next(iter(recipes.items())))))
        needed = SplitFolder(study.store, load_world(world), side).describe_needed(scenes)
        several = f"{len(recipes)} splits, of which the first has " * (len(recipes) > 1)
        print(f"{Path(world).stem}, {side} px: {several}{needed}")


def print_training_time(study: Study, arms: Sequence[Arm]) -> float:
    """Print the steps of each kind of run with their time; returns the seconds that all runs take one after another."""
    alike: dict[Any, list[Arm]] = {}
    for arm in arms:
        cell, given = arm.cell.trained_as, (arm.file, arm.cell.data.name) if arm.file else None
        kind = (cell.model, cell.towers, cell.recipe.batch, bool(cell.recipe.text_negatives), str(cell.options), given)
        alike.setdefault(kind, []).append(arm)
    total, samples = 0.0, {}
    for (model, towers, batch, negatives, _, given), same in alike.items():
        cells = list({cell.id: cell for cell in (arm.cell.trained_as for arm in same)}.values())
        key = given, cells[0].data.kind, towers.resolution
        if key not in samples:
            samples[key] = take_sample(same[0])
        steps, seconds = count_steps(cells), time_step(cells[0], samples[key])
        total += steps * seconds
        if bases := [cell.base for cell in cells if cell.base]:
            total += count_steps(bases) * time_step(bases[0], samples[key])
        runs = f"{model}{' with false captions' * negatives}, {towers.architecture}, batch {batch}: {len(same)} runs"
        borrowed = f" ({len(same) - len(cells)} of which only score another's weights)" * (len(same) > len(cells))
        print(f"{runs}{borrowed}, {steps} steps, {1000 * seconds:.0f} ms each", flush=True)
    return total


def count_steps(cells: Sequence[Cell]) -> int:
    """Count the steps of all runs of one kind; steps that several runs share count once."""
    trunks: dict[str, list[Recipe]] = {}
    for cell in cells:
        trunks.setdefault(trunk_key(cell) if cell.recipe.decay else cell.id, []).append(cell.recipe)
    total = sum(map(trunk_steps, trunks.values()))
    first = {(cell.seed, str(cell.recipe), cell.data.kind, training_world(cell)) for cell in cells}
    phase = 0 if cells[0].recipe.decay else single_steps(cells[0].recipe)
    return total - phase * (len(cells) - len(first))


def training_world(cell: Cell) -> tuple[str, ...]:
    """Return the world of a cell's training scenes; runs in different worlds have no steps in common."""
    return tuple(split.recipe.world for split in cell.data.splits[:1])


def trunk_steps(recipes: Sequence[Recipe]) -> int:
    """Count the steps of runs that differ only in their number of steps. They share the longest stable phase; each has
    its own decay."""
    if len(recipes) == 1:
        return recipes[0].steps
    return max(r.stable_steps for r in recipes) + sum(r.steps - r.stable_steps for r in recipes)


def duration_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
