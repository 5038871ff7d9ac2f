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
from menagerie.studies.frame.estimate import estimate, estimates
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
# The model that SPARO is compared with in table 5, if it is among the models.
BESIDE = "clip-gap"
SAYS = """Masks of image vectors (table 5): accuracy in percent without and with the mask, all seeds. A mask is a
weight between 0 and 1 for each slot, or for each number, of the image's vector; vectors without slots are cut into as
many equal parts. It is trained on validation's items of one task, and the epoch that is best there is taken: the paper
overfits on purpose."""


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
        sides = {mask_column(place.shape, place.task, when): when for when in ("before", "after")}
        if set(sides) <= set(measured):
            found[place] = measured[[*ITEM, *sides]].rename(columns=sides).dropna()
    return found


def mask_table(masks: Mapping[MaskRow, pd.DataFrame]) -> Rows:
    """Return a table of accuracy on the task that a mask was trained on and on all others, before and after."""
    rows = []
    for place, items in masks.items():
        validation, trained = items.subset == "validation", items.task == place.task
        sides = [items[validation & trained], items[~validation & trained], other_tasks(items, place.task)]
        shown = [f"{percent_right(side.before):.1f} → {percent_right(side.after):.1f}" for side in sides]
        change = estimate(sides[-1], signed=True) if len(sides[-1]) else DASH
        rows.append([title_of(place.model), place.shape, place.task, *shown, str(change)])
    header = ["model", "a weight for each", "trained on", "there, on validation", "that task, tested"]
    return Rows("masks", [*header, "other tasks, tested", "their change, points"], rows, says=one_line(SAYS))


def other_tasks(items: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return the tested items of other tasks than that of a mask, with the change of each as its value."""
    others = items[(items.subset != "validation") & (items.task != task)]
    return others.assign(value=others.after - others.before)


def mask_verdicts(masks: Mapping[MaskRow, pd.DataFrame], task: str) -> Iterator[Verdict]:
    """Yield verdicts on the claims of table 5, about what masks trained on one task change on all others."""
    ours = MaskRow("sparo", "slots", task)
    claims = {
        ours._replace(shape="numbers"): (
            f"A mask of slots, trained on {task}, harms other tasks less than one of single numbers (table 5, in % of "
            "ImageNet for each % gained: −0.3 against −2.3); over all other tasks",
            f"{title_of(ours.model)}, a weight for each slot − for each number",
        ),
        ours._replace(model=BESIDE): (
            "... and less than one of equal parts of CLIP's vector with average pooling (table 5: −0.3 against −3.9)",
            f"{title_of(ours.model)} − {title_of(BESIDE)}, a weight for each slot",
        ),
    }
    for theirs, (claim, row) in claims.items():
        if theirs not in masks or ours not in masks:
            yield make_verdict(claim, row, DASH, None, 1)
            continue
        changes = [other_tasks(masks[place], task).assign(mask=k) for k, place in enumerate((theirs, ours))]
        delta = estimates(pd.concat(changes), ("mask",), {"mask": 0}).get((1,))
        yield make_verdict(claim, row, f"all tests: {', '.join(sorted_tasks(changes[0]))}", delta, 1)
