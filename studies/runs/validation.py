"""Accuracy on validation while a cell trains: at a few steps, on a sample, for the eye alone.

Nothing is selected by it, and it changes nothing: a scorer in training stays so, random states are as before.
"""

from typing import TYPE_CHECKING

from menagerie.envs.core.errors import UserError
from menagerie.studies.runs.evaluation import swap_accuracy

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.benchmark import Benchmark
    from menagerie.models.recipe import Recipe
    from menagerie.models.scorer import Scorer

# The most swaps of a look, always the same ones.
MOST = 200
# Unless `--validate-every` says otherwise: as many looks in a run, at least so many steps apart.
LOOKS, LEAST_STEPS = 10, 100


def looks_after(step: int, recipe: "Recipe", every: int) -> bool:
    """Whether to look after a step: every so many of them (0: a tenth of all) and after the last.

    Not in the single-object phase, whose steps cells with different validation share.
    """
    from menagerie.models.training.feed import single_steps

    every = every or max(LEAST_STEPS, -(-recipe.steps // LOOKS))
    return step > single_steps(recipe) and (step % every == 0 or step == recipe.steps)


def sample_accuracy(scorer: "Scorer", test: "Benchmark") -> float:
    """Accuracy on the sample; nan where there is no swap, or a score is no number (the loss will say so)."""
    import torch

    devices = [scorer.device] if scorer.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        try:
            return swap_accuracy(scorer, test, MOST)
        except UserError:
            return float("nan")
