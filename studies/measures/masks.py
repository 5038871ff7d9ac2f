"""Masks of image vectors (SPARO, section 5.2, table 5, appendix 0.C.1): trained on one task, tested on the others.

The measure, the table of what it measured, and the paper's claims.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from menagerie.envs.core.identity import seed_of
from menagerie.models.scorer import Scorer
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import Verdict, make_verdict
from menagerie.studies.frame.estimate import Estimate, estimate, estimates
from menagerie.studies.frame.measure import Measure
from menagerie.studies.frame.parts import Rows
from menagerie.studies.measures.embeddings import (
    ITEM,
    SEPARATOR,
    EmbeddedItems,
    embed_tests,
    percent_right,
    sorted_tasks,
)
from menagerie.studies.runs.data import Material

# As the paper trains them. It states neither a batch size nor a start; here all weights start equal.
EPOCHS, RATE, MOMENTUM, BATCH = 100, 0.02, 0.9, 64
LEAST_SCALE = 100.0
LEAST_GAIN = 1.0  # points on the trained task; below it, what others lose for each percent is noise
# The model that SPARO is compared with in table 5, if it is among the models.
BESIDE = "clip-gap"
SAYS = f"""Masks of image vectors (table 5): accuracy in percent without and with the mask, all seeds. A mask is a
weight between 0 and 1 for each slot, or for each number, of the image's vector; vectors without slots are cut into as
many equal parts. It is trained on validation's items of one task, and the epoch that is best there is taken: the paper
overfits on purpose. The last column is the relative change of accuracy on other tasks, in percent, for each percent by
which accuracy on the trained task rises on validation. At −0.5 they lose half of what it gains; `–`: it gains less than
{LEAST_GAIN:g} point, too little for a ratio."""


def train_mask(items: EmbeddedItems, seed: int) -> Float[np.ndarray, " parts"]:
    """Train a mask, whose weights are between 0 and 1. Of its states before training and after each epoch, return the
    one that scores the most true texts above false ones; of equal ones the first.

    The mask is sigmoid(s theta / 4) with s = max(100, e^alpha). The loss is the cross-entropy of s times the masked
    image's two cosines.
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


def inverse_temperature(alpha: Tensor) -> Tensor:
    """Return s, the inverse temperature of both the sigmoid and the loss."""
    return alpha.exp().clamp_min(LEAST_SCALE)


def mask_of(theta: Tensor, alpha: Tensor) -> Tensor:
    return torch.sigmoid(inverse_temperature(alpha) * theta / 4)


def mask_loss(theta: Tensor, alpha: Tensor, products: Tensor, squares: Tensor) -> Tensor:
    """Return the cross-entropy of true texts against false ones; texts are unit vectors."""
    mask = mask_of(theta, alpha)
    cosines = products @ mask / (squares @ mask**2).clamp_min(1e-12).sqrt()[:, None]
    return F.cross_entropy(inverse_temperature(alpha) * cosines, torch.zeros(len(products), dtype=torch.int64))


@dataclass(frozen=True)
class Masks(Measure):
    """What masks of a model's vectors change. For each task, two masks are trained on validation's items of that task:
    one with a weight for each of `slots` parts, and one with a weight for each number.

    Gives a row for each item of the tests, and for each item of validation in `tasks`: its value before and after each
    mask, in columns such as "slots | swap | after". Vectors without slots are cut into contiguous equal parts; a model
    whose vectors can't be cut so has no masks of parts.
    """

    slots: int
    tasks: tuple[str, ...]
    """The tasks that masks are trained on."""
    tests: tuple[str, ...]

    def rows(self, scorer: Scorer, material: Material, seed: int) -> Iterator[dict[str, Any]]:
        validation = embed_tests(scorer, material.tests, ("validation",)).of_tasks(self.tasks)
        tests = embed_tests(scorer, material.tests, self.tests)
        values = masked_values(validation, tests, self.slots, self.tasks, seed)
        for items, columns in zip((validation, tests), values, strict=True):
            yield from items.rows(columns)


Columns = dict[str, Float[np.ndarray, " _"]]


def masked_values(
    validation: EmbeddedItems, tests: EmbeddedItems, slots: int, tasks: Sequence[str], seed: int
) -> tuple[Columns, Columns]:
    """Return values before and after each mask, for validation and tests; masks need items in validation."""
    found: tuple[Columns, Columns] = ({}, {})
    width = tests.products.shape[-1]
    for shape, parts in {"slots": slots, "numbers": width}.items():
        sides = [items.in_parts(parts) for items in (validation, tests)] if width % parts == 0 else []
        for task in tasks if sides and len(validation.records) else ():
            trained_on = sides[0].of_tasks([task])
            if trained_on.records:
                weights = np.stack([np.ones(parts), train_mask(trained_on, seed)], 1)
                for columns, items in zip(found, sides, strict=True):
                    before, after = items.values(weights).T
                    columns |= {mask_column(shape, task, "before"): before, mask_column(shape, task, "after"): after}
    return found


def mask_column(shape: str, task: str, when: str) -> str:
    """Return the name of a mask's column."""
    return SEPARATOR.join((shape, task, when))


class MaskRow(NamedTuple):
    """One row of table 5."""

    model: str
    shape: str
    """Whether the mask has a weight for each slot, or for each number."""
    task: str
    """The task that the mask was trained on."""


def masks_in(model: str, measured: pd.DataFrame, tasks: Sequence[str]) -> dict[MaskRow, pd.DataFrame]:
    """Return the items of each mask of a model, with values before and after, from the rows of `Masks`."""
    found = {}
    for place in (MaskRow(model, shape, task) for shape in ("slots", "numbers") for task in tasks):
        sides = [mask_column(place.shape, place.task, when) for when in ("before", "after")]
        if set(sides) <= set(measured):
            names = dict(zip(sides, ("before", "after"), strict=True))
            found[place] = measured[[*ITEM, *sides]].rename(columns=names).dropna()
    return found


def mask_table(masks: Mapping[MaskRow, pd.DataFrame]) -> Rows:
    """Return a table of accuracy on the task that a mask was trained on and on all others, before and after."""
    rows = []
    for place, items in masks.items():
        fit, same, rest = mask_sides(items, place.task)
        shown = [f"{percent_right(side.before):.1f} → {percent_right(side.after):.1f}" for side in (fit, same, rest)]
        change = for_each_gained(fit, rest)
        ratio = DASH if change is None else f"{change:+.3f}"
        rows.append([title_of(place.model), place.shape, place.task, *shown, str(change_of(rest) or DASH), ratio])
    header = ["model", "a weight for each", "trained on", "there, on validation", "that task, tested"]
    header += ["other tasks, tested", "their change, points", "% for each % gained"]
    return Rows("masks", header, rows, says=one_line(SAYS))


def mask_sides(items: pd.DataFrame, task: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the items that a mask was trained on, those of the same task in tests, and those of other tasks there."""
    validation, trained = items.subset == "validation", items.task == task
    return items[validation & trained], items[~validation & trained], items[~validation & ~trained]


def change_of(items: pd.DataFrame) -> Estimate | None:
    """Estimate how far a mask raises accuracy on some items."""
    return estimate(items.assign(value=items.after - items.before), signed=True) if len(items) else None


def for_each_gained(fit: pd.DataFrame, rest: pd.DataFrame) -> float | None:
    """Return the paper's measure: the relative change of accuracy on other tasks, divided by the relative rise on the
    task that the mask was trained on. None if the rise is below `LEAST_GAIN` points."""
    before, after = percent_right(fit.before), percent_right(fit.after)
    if not before or not after - before >= LEAST_GAIN:
        return None
    other = percent_right(rest.before)
    lost = (percent_right(rest.after) - other) / other if other else 0.0
    return lost / ((after - before) / before)


def mask_verdicts(masks: Mapping[MaskRow, pd.DataFrame], task: str) -> Iterator[Verdict]:
    """Yield verdicts on the claims of table 5, about what masks trained on one task change on all others."""
    slots = MaskRow("sparo", "slots", task)
    yield mask_verdict(
        f"A mask of slots, trained on {task}, harms other tasks less than one of single numbers (table 5, in % of "
        "ImageNet for each % gained: −0.3 against −2.3); over all other tasks",
        f"{title_of(slots.model)}, a weight for each slot − for each number",
        *(task, masks.get(slots._replace(shape="numbers")), masks.get(slots)),
    )
    yield mask_verdict(
        "... and less than one of equal parts of CLIP's vector with average pooling (table 5: −0.3 against −3.9)",
        f"{title_of(slots.model)} − {title_of(BESIDE)}, a weight for each slot",
        *(task, masks.get(slots._replace(model=BESIDE)), masks.get(slots)),
    )


def mask_verdict(claim: str, row: str, task: str, theirs: pd.DataFrame | None, ours: pd.DataFrame | None) -> Verdict:
    """Return the verdict on a claim about how the mask `ours` differs from `theirs`. The interval of the difference
    decides, but the claim is undecided if the paper's measure has the other sign. If too little was gained to compute
    that measure, the interval decides alone."""
    if theirs is None or ours is None:
        return make_verdict(claim, row, DASH, None, 1)
    sides = [mask_sides(items, task) for items in (theirs, ours)]
    changes = [rest.assign(value=rest.after - rest.before, mask=k) for k, (_, _, rest) in enumerate(sides)]
    delta = estimates(pd.concat(changes), ("mask",), {"mask": 0}).get((1,))
    found = make_verdict(claim, row, f"all tests: {', '.join(sorted_tasks(changes[0]))}", delta, 1)
    before, after = (for_each_gained(fit, rest) for fit, _, rest in sides)
    if before is None or after is None:
        return found._replace(difference=f"{found.difference}; the paper's measure: {DASH}, too little was gained")
    agrees = (after > before) == (delta is not None and delta.value > 0)
    beside = f"{found.difference}; the paper's measure, % for each % gained: {after:+.3f} against {before:+.3f}"
    return found._replace(difference=beside, outcome=found.outcome if agrees else "undecided")
