"""Slots chosen after the fact, and masks of image vectors (SPARO, sections 5.1, 5.2, tables 4, 5, appendix 0.C.1).

Slots are ranked one by one on validation, half of them kept. Masks are trained on one task and tested on others.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from menagerie.envs.core.identity import generator, seed_of
from menagerie.studies.analysis.paired_bootstrap import Difference, Points, difference, pooled
from menagerie.studies.analysis.tables import DASH, by_task
from menagerie.studies.slots.codes import Coded, Coding

# What slots are ranked by, as the paper ranks them by zero-shot classes: recognition. And binding itself beside it.
RANKINGS: Mapping[str, tuple[str, ...]] = {
    "recognition": ("replace animal", "replace texture"),
    "binding": ("swap",),
}
ALL, BEST, WORST, RANDOM = "all slots", "best half", "worst half", "random half"


Selected = dict[tuple[str, str], Points]  # by ranking ("" for all slots) and half


def slot_accuracies(validation: Coded, tasks: Sequence[str]) -> Float[np.ndarray, " slots"]:
    """Accuracy of each slot by itself on some tasks."""
    items = validation.of_tasks(tasks)
    return items.values(np.eye(items.products.shape[-1], dtype=items.products.dtype)).mean(0)


def selected(codings: Mapping[int, Coding], random_halves: int) -> Selected:
    """The points of all records of the tests with each selection, over all seeds; a random half is a mean over
    `random_halves` of them. Rankings that validation has no items for are left out."""
    points: Selected = {}
    for seed, (validation, tests) in codings.items():
        slots = tests.products.shape[-1]
        draws = generator(seed, "halves of slots")
        random = np.stack([half(draws.permutation(slots)) for _ in range(random_halves)], 1)
        add(points, ("", ALL), tests, np.ones((slots, 1)))
        add(points, ("", RANDOM), tests, random)
        for ranking, tasks in RANKINGS.items():
            if validation.of_tasks(tasks).keys:
                order = np.argsort(-slot_accuracies(validation, tasks), kind="stable")
                add(points, (ranking, BEST), tests, half(order)[:, None])
                add(points, (ranking, WORST), tests, half(order[::-1])[:, None])
    return points


def half(order: np.ndarray) -> Float[np.ndarray, " slots"]:
    """Weight 1 for the first half of slots in an order, else 0."""
    weights = np.zeros(len(order))
    weights[order[: max(1, len(order) // 2)]] = 1
    return weights


def add(points: Selected, place: tuple[str, str], tests: Coded, weights: Float[np.ndarray, "slots v"]) -> None:
    """Add the points of one seed; of several selections their mean."""
    points.setdefault(place, {}).update(tests.points(tests.values(weights).mean(1)))


def tasks_of(points: Points) -> list[str]:
    """The tasks of some records, in the order of reports."""
    return sorted({key[2] for key in points}, key=by_task)


def accuracy(points: Points, tasks: Sequence[str]) -> float:
    """Accuracy (%) over all records of some tasks."""
    values = [point.value for key, point in points.items() if key[2] in tasks]
    return 100 * float(np.mean(values)) if values else np.nan


def over_tasks(first: Points, second: Points, tasks: Sequence[str]) -> Difference | None:
    """The difference in accuracy, second minus first, over all records of some tasks; a bootstrap draws whole pairs
    of animals."""
    columns = {key[1:3] for key in first if key[2] in tasks}
    return difference(pooled(first, columns), pooled(second, columns), "", "")


def selection_table(points: Selected) -> pd.DataFrame:
    """Table 4: a row for each selection, a column for each task, their average, and its difference from all slots."""
    whole = points["", ALL]
    tasks = tasks_of(whole)
    rows = []
    for (ranking, kept), records in points.items():
        each = [accuracy(records, [task]) for task in tasks]
        delta = None if kept == ALL else over_tasks(whole, records, tasks)
        row = [ranking or DASH, kept, *(f"{value:.1f}" for value in [*each, float(np.mean(each))])]
        rows.append([*row, str(delta or DASH)])
    return pd.DataFrame(rows, columns=["ranked by", "slots", *tasks, "average", "minus all slots"])


# As the paper trains them; it names no batch, and starts nowhere: here at the same weight for all.
EPOCHS, RATE, MOMENTUM, BATCH = 100, 0.02, 0.9, 64
LEAST_SCALE = 100.0
LEAST_GAIN = 1.0  # points on the trained task: of less, what others lose for each percent is noise


class MaskRow(NamedTuple):
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
    products, squares = (torch.from_numpy(array).double() for array in (items.products, items.squares))
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
    """The weight of each part, from 0 to 1."""
    return torch.sigmoid(scale_of(alpha) * theta / 4)


def mask_loss(theta: Tensor, alpha: Tensor, products: Tensor, squares: Tensor) -> Tensor:
    """Cross-entropy of the true text against the false one; texts are unit vectors."""
    mask = mask_of(theta, alpha)
    cosines = products @ mask / (squares @ mask**2).clamp_min(1e-12).sqrt()[:, None]
    return F.cross_entropy(scale_of(alpha) * cosines, torch.zeros(len(products), dtype=torch.int64))


def masked(codings: Mapping[str, Mapping[int, Coding]], slots: int, tasks: Sequence[str]) -> dict[MaskRow, Masked]:
    """Masks of each model's vectors in `slots` parts and in single numbers, trained on validation's items of a task.

    The vectors are whole. Parts of models without slots are contiguous and equal; one whose vectors have no such
    parts is left out there.
    """
    results: dict[MaskRow, Masked] = {}
    for model, seeds in codings.items():
        width = next(iter(seeds.values())).tests.products.shape[-1]
        for shape, parts in {"slots": slots, "numbers": width}.items():
            for task in tasks if width % parts == 0 else ():
                results[MaskRow(model, shape, task)] = over_seeds(seeds, parts, task)
    return results


def over_seeds(seeds: Mapping[int, Coding], parts: int, task: str) -> Masked:
    """The points of all seeds, each with a mask of its own."""
    points: tuple[Points, ...] = ({}, {}, {}, {})
    for seed, coding in seeds.items():
        validation, tests = (coded.in_parts(parts) for coded in coding)
        trained_on = validation.of_tasks([task])
        if not trained_on.keys:
            continue
        weights = np.stack([np.ones(parts), trained_mask(trained_on, seed)], 1)
        for pair, items in ((points[:2], trained_on), (points[2:], tests)):
            values = items.values(weights)
            for side, column in zip(pair, values.T, strict=True):
                side.update(items.points(column))
    return Masked(points[:2], points[2:])


def mask_table(results: Mapping[MaskRow, Masked], names: Mapping[str, str]) -> pd.DataFrame:
    """Table 5: accuracy on the task that a mask was trained on and on all others, before and after."""
    header = ["model", "a weight for each", "trained on", "there, on validation", "that task, tested"]
    rows = []
    for place, (validation, tests) in results.items():
        others = [task for task in tasks_of(tests[0]) if task != place.task]
        fit, same_task, rest = (
            [accuracy(records, tasks) for records in both]
            for both, tasks in ((validation, [place.task]), (tests, [place.task]), (tests, others))
        )
        shown = [f"{before:.1f} → {after:.1f}" for before, after in (fit, same_task, rest)]
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
        *([accuracy(records, tasks) for records in both] for both, tasks in ((validation, [task]), (tests, others)))
    )


def relative(before: float, after: float) -> float:
    return (after - before) / before if before else 0.0


def changes_elsewhere(result: Masked, task: str) -> Points:
    """For each record of the other tasks, how much a mask changes its score."""
    before, after = result.tests
    return {
        key: point._replace(value=after[key].value - point.value) for key, point in before.items() if key[2] != task
    }
