"""Masks of image vectors, trained on one task and tested on others (SPARO, section 5.2, table 5 and appendix 0.C.1)."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from menagerie.envs.core.identity import seed_of
from menagerie.studies.analysis.paired_bootstrap import Points
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.slots.codes import Coded, Coding
from menagerie.studies.slots.selection import accuracy, over_tasks, tasks_of

# As the paper trains them; it names no batch, and starts nowhere: here at the same weight for all.
EPOCHS, RATE, MOMENTUM, BATCH = 100, 0.02, 0.9, 64
LEAST_SCALE = 100.0
LEAST_GAIN = 1.0  # points on the trained task: of less, what others lose for each percent is noise


class Place(NamedTuple):
    """One row of table 5."""

    model: str
    shape: str
    """A weight for each slot, or for each number."""
    task: str
    """What it was trained on."""


class Masked(NamedTuple):
    """The points of all records, over all seeds, before and after."""

    validation: tuple[Points, Points]
    tests: tuple[Points, Points]


def trained_mask(items: Coded, seed: int) -> Float[np.ndarray, " parts"]:
    """The mask, between 0 and 1, that prefers true texts to false ones most often in any epoch; the first such.

    sigmoid(s theta / 4), s = max(100, e^alpha); cross-entropy over s times the two cosines of the masked image.
    """
    products, squares = (torch.from_numpy(its).double() for its in (items.products, items.squares))
    theta = torch.zeros(products.shape[-1], dtype=torch.float64, requires_grad=True)
    alpha = torch.tensor(math.log(LEAST_SCALE), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([theta, alpha], RATE, MOMENTUM)
    draws = torch.Generator().manual_seed(seed_of(seed, "mask"))
    best, kept = -1.0, np.empty(0)
    for _ in range(EPOCHS + 1):
        mask = mask_of(theta, alpha).detach().numpy()
        if (value := float(items.values(mask[:, None]).mean())) > best:
            best, kept = value, mask
        for batch in torch.randperm(len(products), generator=draws).split(BATCH):
            optimizer.zero_grad()
            mask_loss(theta, alpha, products[batch], squares[batch]).backward()
            optimizer.step()
    return kept


def scale_of(alpha: Tensor) -> Tensor:
    """s, the inverse temperature of both sigmoid and loss."""
    return alpha.exp().clamp_min(LEAST_SCALE)


def mask_of(theta: Tensor, alpha: Tensor) -> Tensor:
    """One weight for each part."""
    return torch.sigmoid(scale_of(alpha) * theta / 4)


def mask_loss(theta: Tensor, alpha: Tensor, products: Tensor, squares: Tensor) -> Tensor:
    """Cross-entropy of the true text against the false one; texts are unit vectors."""
    mask = mask_of(theta, alpha)
    cosines = products @ mask / (squares @ mask**2).clamp_min(1e-12).sqrt()[:, None]
    return F.cross_entropy(scale_of(alpha) * cosines, torch.zeros(len(products), dtype=torch.int64))


def masked(codings: Mapping[str, Mapping[int, Coding]], slots: int, tasks: Sequence[str]) -> dict[Place, Masked]:
    """Masks of each model's vectors in `slots` parts and in single numbers, trained on validation's items of a task.

    The vectors are whole. Parts of models without slots are contiguous and equal; one whose vectors have no such
    parts is left out there.
    """
    results: dict[Place, Masked] = {}
    for model, seeds in codings.items():
        width = next(iter(seeds.values())).tests.products.shape[-1]
        for shape, parts in {"slots": slots, "numbers": width}.items():
            for task in tasks if width % parts == 0 else ():
                results[Place(model, shape, task)] = over_seeds(seeds, parts, task)
    return results


def over_seeds(seeds: Mapping[int, Coding], parts: int, task: str) -> Masked:
    """The points of all seeds, each with a mask of its own."""
    points: tuple[Points, ...] = ({}, {}, {}, {})
    for seed, coding in seeds.items():
        validation, tests = (its.in_parts(parts) for its in coding)
        own = validation.of_tasks([task])
        if not own.keys:
            continue
        weights = np.stack([np.ones(parts), trained_mask(own, seed)], 1)
        for pair, items in ((points[:2], own), (points[2:], tests)):
            values = items.values(weights)
            for its, column in zip(pair, values.T, strict=True):
                its.update(items.points(column))
    return Masked(points[:2], points[2:])


def mask_table(results: Mapping[Place, Masked], names: Mapping[str, str]) -> pd.DataFrame:
    """Table 5: accuracy on the task that a mask was trained on and on all others, before and after."""
    header = ["model", "a weight for each", "trained on", "there, on validation", "that task, tested"]
    rows = []
    for place, (validation, tests) in results.items():
        others = [task for task in tasks_of(tests[0]) if task != place.task]
        fit, own, rest = (
            [accuracy(its, tasks) for its in both]
            for both, tasks in ((validation, [place.task]), (tests, [place.task]), (tests, others))
        )
        shown = [f"{before:.1f} → {after:.1f}" for before, after in (fit, own, rest)]
        delta, change = over_tasks(*tests, others), for_each_gained(fit, rest)
        ratio = DASH if change is None else f"{change:+.3f}"
        rows.append([names[place.model], place.shape, place.task, *shown, str(delta or DASH), ratio])
    return pd.DataFrame(rows, columns=[*header, "other tasks, tested", "their change, points", "% for each % gained"])


def for_each_gained(fit: Sequence[float], rest: Sequence[float]) -> float | None:
    """By how many percent of itself an accuracy changes, `rest`, for each percent of itself that another rises, `fit`:
    each before and after, in percent. The paper's measure; None where the rise is below `LEAST_GAIN` points."""
    return relative(*rest) / relative(*fit) if fit[0] and fit[1] - fit[0] >= LEAST_GAIN else None


def papers_measure(result: Masked, task: str) -> float | None:
    """`for_each_gained` of the other tasks, tested, against the trained one on validation."""
    validation, tests = result
    others = [other for other in tasks_of(tests[0]) if other != task]
    return for_each_gained(
        *([accuracy(its, tasks) for its in both] for both, tasks in ((validation, [task]), (tests, others)))
    )


def relative(before: float, after: float) -> float:
    """Relative change."""
    return (after - before) / before if before else 0.0


def changes_elsewhere(result: Masked, task: str) -> Points:
    """What a mask changes of each record of other tasks."""
    before, after = result.tests
    return {
        key: point._replace(value=after[key].value - point.value) for key, point in before.items() if key[2] != task
    }
