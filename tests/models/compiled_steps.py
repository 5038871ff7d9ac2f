"""Takes compiled steps of scorers on a split and prints how they compare with plain ones, as JSON. A script of its own:
the tests' process checks types in Python at each call, which no graph can hold."""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch._dynamo.utils import counters

from menagerie.envs.core.errors import UserError
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.texts import Tensors
from menagerie.models.training.batch_loss import step_loss
from menagerie.models.training.feed import Feed
from tests.models.test_precision import RECIPE, built, cosine

COMPILED = replace(RECIPE, compile=True)


class Branching(CLIPScorer):
    """Reads a number of its embedding, which a graph can't."""

    def encode_texts(self, texts: Tensors) -> torch.Tensor:
        embedding = super().encode_texts(texts)
        return embedding if embedding.sum().item() > 0 else -embedding


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


def refused(data: SplitDataset) -> str:
    """What is said of a scorer that can't be compiled."""
    scorer, batch = built("clip", data)
    scorer.__class__ = Branching
    try:
        step_loss(scorer, batch, COMPILED)
    except UserError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    torch.set_num_threads(1)
    # Its graphs are those of --compile; what is left out is the code for them, which takes a minute.
    torch.compile = partial(torch.compile, backend="eager")
    data = SplitDataset(Path(sys.argv[1]), "train")
    print(json.dumps({name: compared(name, data) for name in sys.argv[2:]} | {"refused": refused(data)}))
