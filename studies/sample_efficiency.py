"""How little data is enough? Fewest training images against accuracy, and images to a target.

    python studies/sample_efficiency.py --preset smoke    # tiny world, under 90 seconds on 2 cores
    python studies/sample_efficiency.py                   # laptop: 12 animals, 32 px, 5 seeds
    python studies/sample_efficiency.py --preset fixed    # 8 animals, 3 seeds, 700 steps for all
    python studies/sample_efficiency.py --storage postgresql+psycopg://user@host/database --workers 4
    optuna-dashboard runs/sample_efficiency-laptop/journal.log      # if you have it

Two searches with Optuna for each model, over the fraction of animal pairs in training, the fraction
of those with hard negatives, views of the single-object scenes and their share of a batch:

- the Pareto front: fewest distinct images against highest accuracy (TPE for several objectives);
- the target: fewest images whose accuracy is at least --target, by trials near that boundary, ended early
  where they can't reach it. A model that never does gives a lower bound.

Settings are judged on validation; the report's figures are from the test of unseen pairs. With --budgets,
as laptop has them, a setting gets larger ones until the mean of its seeds on validation stops rising, so
that how little data isn't how few steps: both ratios of images, at convergence and at equal compute, are
reported with intervals over seeds. Without, all take the same steps, and the median over seeds counts.

The same command, on any machine that reaches the storage, joins in; with --cluster slurm --workers 8 the
workers are tasks of a job array. Stopped and started again it goes on; one worker draws the same trials
each time.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, run_command
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.checks import check as check_grid
from menagerie.studies.frame.overrides import check_overrides
from menagerie.studies.frame.presets import PAPER, SMOKE
from menagerie.studies.runs.command_line import parse
from menagerie.studies.runs.data import FRACTIONS
from menagerie.studies.sample_search.budget import Config, everything, images_of, least
from menagerie.studies.sample_search.study import FURTHER, run

RANGES: dict[str, Any] = {"pairs": (0.0, 1.0), "hard_negatives": (0.0, 1.0)}
PRESETS: dict[str, Config] = {
    "smoke": Config(
        **SMOKE | RANGES | {"recipe": Recipe(steps=16, batch=16, warmup=4), "test_scenes": 16},
        **{"views": 2, "seeds": 2, "trials": 4, "target": 0.6},
    ),
    # 12 animals, so that 66 pairs leave 20 for the test and 9 for validation. What is searched is how many pairs there
    # are and how many images of lone animals: few settings, each of them with five seeds until it stops rising.
    "laptop": Config(
        **{"world": "twelve", "resolution": 32, "test_views": 2, "test_scenes": 200, "seeds": 5, "trials": 3},
        **{"reserve": 0.31, "validation": 0.14, "hard_negatives": (0.0,), "singles_shares": (0.5,), "target": 0.9},
        tuned="twelve",
        recipe=Recipe(steps=500, decay=0.2),
        budgets=(500, 1000, 2000),
    ),
    # 8 animals, so that 28 pairs leave 6 for the test and 6 for validation; hard negatives are searched too.
    "fixed": Config(
        world="eight",
        resolution=32,
        test_views=2,
        test_scenes=200,
        reserve=0.2,
        validation=0.2,
        tuned="laptop",
        recipe=Recipe(steps=700),
    ),
    "paper": Config(**PAPER | RANGES | {"trials": 60, "views": 16}),
}


def check(config: Config) -> None:
    from menagerie.studies.trials.launch import check_workers
    from menagerie.studies.trials.storage import check_storage

    check_workers(config.cluster, config.workers)
    check_storage(config.storage)
    check_grid(config)
    if not 0.5 < config.target <= 1:
        raise UserError(f"--target is above chance, 0.5, and at most 1; got {config.target:g}")
    if config.split:
        raise UserError("--split: the amount of data is searched here, which a file fixes; give its --recipe instead")
    if not hasattr(config.recipe_given, "singles_views"):
        raise UserError(f"--recipe: splits of kind {config.kind} have no singles_views, over which is searched")
    check_budgets(config)
    for name in ("reserve", "validation"):
        if not getattr(config, name):
            raise UserError(f"--{name} must leave pairs, got 0")
    if images_of(config, least(config)) == images_of(config, everything(config)):
        raise UserError(
            "all settings have as many images: there is nothing to search; give --pairs, --hard-negatives or --views "
            "more than one value"
        )


def check_budgets(config: Config) -> None:
    """Raise for budgets of which a larger one isn't a smaller one trained on."""
    if not config.budgets:
        given = [name for name in ("patience", "rise") if getattr(config, name) != getattr(Config, name)]
        if given:
            raise UserError(f"--{given[0]} changes nothing without --budgets; leave it out, or give several budgets")
        return
    if list(config.budgets) != sorted(set(config.budgets)) or config.budgets[0] != config.recipe.steps:
        raise UserError(f"--budgets rise from --steps, {config.recipe.steps}; got {config.budgets}")
    if config.recipe.decay is None:
        raise UserError("--budgets needs --decay, such as 0.2: with a cosine no run goes on from a shorter one")


def decay_steps(config: Config) -> list[int]:
    """Steps of each budget in which the rate falls."""
    return [round(config.recipe.decay * steps) for steps in config.budgets]


def main() -> None:
    preset, config = parse(PRESETS, "laptop", __doc__)
    if config.recipe.singles_share != PRESETS[preset].recipe.singles_share:
        raise UserError("--singles-share is searched here, between the least and the most of --singles-shares")
    check_overrides(config, PRESETS[preset])
    check(config)
    if config.dry_run:
        from menagerie.studies.frame.dry_run import dry_run

        most = {name: (max(getattr(config, name)),) for name in FRACTIONS}
        if config.budgets:  # the longest stable phase, and the decay of each budget
            steps = [config.budgets[-1] - decay_steps(config)[-1], *decay_steps(config)]
            most["recipe"] = replace(config.recipe, steps=sum(steps))
        dry_run(replace(config, **most))
        print(
            f"and that at most {2 * config.trials} times: two searches of {config.trials} trials, most of them smaller"
        )
        return
    from menagerie.studies.runs.folder import run_folder

    # A URL may hold a password, which is nobody's business but the storage's.
    plain = replace(config, storage="", study="")
    study = config.study or f"sample_efficiency-{preset}"
    with run_folder(config.out or Path(f"runs/sample_efficiency-{preset}"), plain, FURTHER, shared=True) as out:
        run(config, study, out)


if __name__ == "__main__":
    run_command(main)
