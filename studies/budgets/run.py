"""Renders what a study of compute needs, trains round after round, and writes its report; and what that would take."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from menagerie.envs.core.progress import Sparing
from menagerie.studies.budgets.courses import Config, Run, Setup, Trained, cell_for, known_of, next_runs
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import data_of, render, splits
from menagerie.studies.runs.cell import Job


def run(config: Config, grids: Mapping[str, Grid], out: Path) -> None:
    """Train what isn't finished, each round's runs at once, and write tables and report."""
    from menagerie.studies.budgets.report import publish
    from menagerie.studies.runs.dispatch import run_jobs

    trained, sparing = trained_on(config, grids, out), Sparing()
    any_grid = next(iter(grids.values()))

    def show(job: Job | None = None) -> None:
        if job and job.problem:
            print(f"{job.name}: {job.problem}; it counts as a run that gets nothing right on validation")
        sparing(lambda: publish(trained))

    while waiting := next_runs(config, known_of(trained), tuple(grids)):
        jobs = [trained.job(each) for each in waiting]
        print(f"{len(jobs)} runs of {described(waiting)} steps", flush=True)
        show()
        run_jobs(jobs, any_grid.cluster, any_grid.at_once, out, show)
    # What cells share stays: the same command with larger budgets goes on from there.
    print(f"report: {publish(trained)}")


def trained_on(config: Config, grids: Mapping[str, Grid], out: Path) -> Trained:
    """Render all images and write all split files; returns what turns runs into jobs."""
    rendered = {split: render(grid, grid.cores) for split, grid in grids.items()}
    files = {data: file for _, found in rendered.values() for data, file in found.items()}
    return Trained(config, grids, {split: identity for split, (identity, _) in rendered.items()}, files, out)


def described(runs: Iterable[Run]) -> str:
    """The budgets of some runs."""
    return ", ".join(map(str, sorted({run.steps for run in runs})))


def all_runs(config: Config, names: tuple[str, ...]) -> list[Run]:
    """All runs, in order, if validation rose with every budget and the first choices were the best."""
    known: dict[Run, float] = {}
    while runs := next_runs(config, known, names):
        known |= {run: run.steps / config.budgets[-1] / 2 + 0.1 for run in runs}
    return list(known)


def steps_taken(config: Config, runs: list[Run]) -> int:
    """Steps of the runs of one choice and seed: the longest stable phase, and the decay of each."""
    decays = [round(config.decay * run.steps) for run in runs]
    longest = max(range(len(runs)), key=lambda k: runs[k].steps)
    return runs[longest].steps - decays[longest] + sum(decays)


def plan(config: Config, grids: Mapping[str, Grid]) -> None:
    """Print what is to be rendered and trained, and how long both take at most."""
    import torch

    from menagerie.envs.worlds import load_world
    from menagerie.generators.storage.estimate import estimate
    from menagerie.generators.storage.image_store import ImageStore
    from menagerie.studies.frame.step_cost import REST_SECONDS, STUDY_SECONDS, Noise, shown, step_seconds

    rendering, training, count = 0.0, 0.0, 0
    for split, grid in grids.items():
        store = ImageStore(grid.store, load_world(grid.world), grid.resolution)
        scenes = {scene for recipe in splits(grid) for scene in recipe.scenes_to_render()}
        cost = estimate(store, sorted(scenes), grid.cores)
        rendering += cost.seconds
        print(f"{split}: {len(scenes)} scenes, {cost.scenes} of them to render: {shown(cost.seconds)}")
        torch.set_num_threads(grid.threads)
        data = Noise(splits(grid)[0], grid.resolution)
        runs = all_runs(config, (split,))
        for setup in dict.fromkeys(run.setup for run in runs):
            same = [run for run in runs if run.setup == setup]
            trunks = [[run for run in same if run.seed == seed] for seed in dict.fromkeys(run.seed for run in same)]
            shared = sum(steps_taken(config, trunk) for trunk in trunks)
            cell = cell_for(config, grid, same[0], *data_of(grid, "")[0])
            seconds = step_seconds(cell, data)
            steps, before = shared, 0.0
            if cell.base:  # each budget starts from its own, which is trained for as many steps
                steps, before = sum(run.steps for run in same), shared * step_seconds(cell.base, data)
            training, count = training + before + steps * seconds + REST_SECONDS * len(same), count + len(same)
            print(f"{split}, {named(setup)}: {len(same)} runs, {steps} steps, {1000 * seconds:.0f} ms each", flush=True)
    at_once = min(next(iter(grids.values())).at_once, count)
    total = STUDY_SECONDS + rendering + training / at_once
    print(f"at most about {shown(total)} in all, {at_once} runs at once, as busy as this machine is now")


def named(setup: Setup) -> str:
    return f"{setup.model} ({setup})"
