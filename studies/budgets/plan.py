"""What a study of compute would take at most on this machine: `--dry-run`."""

from collections.abc import Mapping

import torch

from menagerie.envs.worlds import load_world
from menagerie.generators.storage.estimate import estimate
from menagerie.generators.storage.image_store import ImageStore
from menagerie.studies.budgets.rounds import next_runs
from menagerie.studies.budgets.setups import Run, Setup, Study, cell_for
from menagerie.studies.grids.cells import data_of
from menagerie.studies.grids.grid import Grid, cores, splits, workers
from menagerie.studies.grids.plan import REST_SECONDS, STUDY_SECONDS, Noise, shown, step_seconds


def all_runs(config: Study, names: tuple[str, ...]) -> list[Run]:
    """All runs, in order, if validation rose with every budget and the first choices were the best."""
    known: dict[Run, float] = {}
    while runs := next_runs(config, known, names):
        known |= {run: run.steps / config.budgets[-1] / 2 + 0.1 for run in runs}
    return list(known)


def steps_taken(config: Study, runs: list[Run]) -> int:
    """Steps of the runs of one choice and seed: the longest stable phase, and the decay of each."""
    decays = [round(config.decay * run.steps) for run in runs]
    longest = max(range(len(runs)), key=lambda k: runs[k].steps)
    return runs[longest].steps - decays[longest] + sum(decays)


def plan(config: Study, grids: Mapping[str, Grid]) -> None:
    """Print what is to be rendered and trained, and how long both take at most."""
    rendering, training, count = 0.0, 0.0, 0
    for split, grid in grids.items():
        store = ImageStore(grid.store, load_world(grid.world), grid.resolution)
        scenes = {scene for recipe in splits(grid) for scene in recipe.scenes_to_render()}
        cost = estimate(store, sorted(scenes), cores(grid))
        rendering += cost.seconds
        print(f"{split}: {len(scenes)} scenes, {cost.scenes} of them to render: {shown(cost.seconds)}")
        torch.set_num_threads(grid.threads)
        data = Noise(splits(grid)[0], grid.resolution)
        runs = all_runs(config, (split,))
        for setup in dict.fromkeys(run.setup for run in runs):
            own = [run for run in runs if run.setup == setup]
            trunks = [[run for run in own if run.seed == seed] for seed in dict.fromkeys(run.seed for run in own)]
            shared = sum(steps_taken(config, its) for its in trunks)
            cell = cell_for(config, grid, own[0], *data_of(grid, "")[0])
            seconds = step_seconds(cell, data)
            steps, before = shared, 0.0
            if cell.base:  # each budget starts from its own, which is trained for as many steps
                steps, before = sum(run.steps for run in own), shared * step_seconds(cell.base, data)
            training, count = training + before + steps * seconds + REST_SECONDS * len(own), count + len(own)
            print(f"{split}, {named(setup)}: {len(own)} runs, {steps} steps, {1000 * seconds:.0f} ms each", flush=True)
    at_once = min(workers(next(iter(grids.values()))), count)
    total = STUDY_SECONDS + rendering + training / at_once
    print(f"at most about {shown(total)} in all, {at_once} runs at once, as busy as this machine is now")


def named(setup: Setup) -> str:
    """A model and its choice."""
    return f"{setup.model} ({setup})"
