"""`--dry-run`: what a study would render, and how long its training steps would take on this machine, by one step of
each model that is taken and discarded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.studies.frame.adaptive import all_arms, is_adaptive
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.run import splits_by_store
from menagerie.studies.frame.sampled_costs import Noise, time_step
from menagerie.studies.frame.study import Study
from menagerie.studies.runs.data import scenes_needed


def dry_run(study: Study) -> None:
    """Print what is to be rendered and trained, and about how long the steps take. For an adaptive study that is the
    longest case."""
    torch.set_num_threads(study.threads)
    with scratch_folder() as folder:
        study = study.prepare(folder)
        for name, text in study.notes().items():
            print(f"{name}: {text}")
        arms = all_arms(study)
        print_rendering(study, arms)
        seconds = print_training_time(arms) / min(study.at_once, len(arms))
        most = ", with the most runs that results may ask for" * is_adaptive(study, arms)
    at_once = f"{min(study.at_once, len(arms))} runs at once, as busy as this machine is now"
    print(f"the steps take at most about {duration_text(seconds)} in all{most}, {at_once}; runs may share some of them")


def print_rendering(study: Study, arms: Sequence[Arm]) -> None:
    """Print, for each world and image side, the number of splits and, of the first, the numbers of scenes and of atlas
    entries."""
    for (world, side), recipes in splits_by_store(arm for arm in arms if arm.trains and not arm.file).items():
        scenes = sorted(set(scenes_needed(*next(iter(recipes.items())))))
        needed = SplitFolder(study.store, load_world(world), side).describe_needed(scenes)
        several = f"{len(recipes)} splits, of which the first has " * (len(recipes) > 1)
        print(f"{Path(world).stem}, {side} px: {several}{needed}")


def print_training_time(arms: Sequence[Arm]) -> float:
    """Print the steps of each kind of run with their time; returns the seconds that all runs take one after another.
    Runs are of one kind if their steps cost about the same."""
    alike: dict[tuple[Any, ...], list[Arm]] = {}
    for arm in arms:
        cell = arm.cell.trained_as
        negatives = " with false captions" * bool(cell.recipe.text_negatives)
        text = f"{cell.model}{negatives}, {cell.towers.architecture}, batch {cell.recipe.batch}"
        given = (arm.file, cell.data.name) if arm.file else cell.data.kind
        alike.setdefault((text, cell.towers, str(cell.options), given), []).append(arm)
    total, samples = 0.0, {}
    for (text, towers, _, given), same in alike.items():
        cells = list({cell.id: cell for cell in (arm.cell.trained_as for arm in same)}.values())
        if (key := (given, towers.resolution)) not in samples:
            data, file = cells[0].data, same[0].file
            samples[key] = data.open(file).train if file else Noise(data.splits[0].recipe, towers.resolution)
        steps, seconds = sum(cell.recipe.steps for cell in cells), time_step(cells[0], samples[key])
        total += steps * seconds
        if bases := [cell.base for cell in cells if cell.base]:
            total += sum(base.recipe.steps for base in bases) * time_step(bases[0], samples[key])
        borrowed = f" ({len(same) - len(cells)} of which only score another's weights)" * (len(same) > len(cells))
        print(f"{text}: {len(same)} runs{borrowed}, {steps} steps, {1000 * seconds:.0f} ms each", flush=True)
    return total


def duration_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
