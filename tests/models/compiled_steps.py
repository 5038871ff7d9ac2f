"""Takes compiled steps of OC-CLIP on a split and prints how they compare with plain ones, as JSON.

A script of its own: the tests' process checks types in Python at each call, which no graph can hold."""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch._dynamo.utils import counters

from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.texts import Tensors
from menagerie.models.training.batch_loss import step_loss
from menagerie.models.training.feed import Feed
from tests.models.test_precision import RECIPE, built, cosine

COMPILED = replace(RECIPE, compile=True)


def gradient(scorer: torch.nn.Module, batch: Tensors, recipe: object) -> tuple[float, torch.Tensor]:
    """The loss and the gradient of a step."""
    scorer.zero_grad(set_to_none=True)
    loss = step_loss(scorer, batch, recipe)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in scorer.parameters() if p.grad is not None])


def compared(name: str, data: SplitDataset) -> dict[str, float]:
    """The largest differences over batches with different numbers of phrases, and the number of graphs."""
    counters.clear()
    scorer, _ = built(name, data)
    feed = Feed(data, scorer.reader, RECIPE, 0, ())
    losses, cosines = [], []
    for number in range(6):
        (plain, plain_gradient), (loss, its) = (gradient(scorer, feed[number], r) for r in (RECIPE, COMPILED))
        losses.append(abs(loss - plain) / plain)
        cosines.append(cosine(its, plain_gradient))
    return {"loss": max(losses), "cosine": min(cosines), "graphs": counters["stats"]["unique_graphs"]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    # Its graphs are those of --compile; what is left out is the code for them, which takes a minute.
    torch.compile = partial(torch.compile, backend="eager")
    data = SplitDataset(Path(sys.argv[1]), "train")
    print(json.dumps(compared("oc-clip", data)))
