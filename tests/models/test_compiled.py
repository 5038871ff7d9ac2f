"""A compiled step is one graph, with the loss and the gradient of a plain one, whatever the number of texts.

It is taken in a process of its own: that of the tests checks types in Python at each call, which no graph can hold.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from menagerie.envs.core.processes import call_in_child
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.training.encoding import step_loss
from menagerie.models.training.feed import Feed
from menagerie.studies.runs.machine import start_server
from tests.models.test_precision import RECIPE, built, cosine

COMPILED = replace(RECIPE, compile=True)


def gradient(scorer, batch, recipe):
    """The loss and the gradient of a step."""
    scorer.zero_grad(set_to_none=True)
    loss = step_loss(scorer, batch, recipe)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in scorer.parameters() if p.grad is not None])


def compare(path: Path) -> tuple[float, float, int]:
    """The largest differences of OC-CLIP's steps over batches with different numbers of phrases; how many graphs."""
    from torch._dynamo.utils import counters

    torch.set_num_threads(1)
    # Its graphs are those of --compile; what is left out is the code for them, which takes a minute.
    torch.compile = partial(torch.compile, backend="eager")
    data = SplitDataset(path, "train")
    scorer, _ = built("oc-clip", data)
    feed = Feed(data, scorer.reader, RECIPE, 0, ())
    losses, cosines = [], []
    for number in range(6):
        (plain, plain_gradient), (loss, its) = (gradient(scorer, feed[number], r) for r in (RECIPE, COMPILED))
        losses.append(abs(loss - plain) / plain)
        cosines.append(cosine(its, plain_gradient))
    return max(losses), min(cosines), counters["stats"]["unique_graphs"]


def test_compiled_step_is_one_graph_for_batches_of_any_size(spatial):
    start_server(1)
    loss, likeness, graphs = call_in_child(compare, spatial.split.path)
    assert loss < 1e-5
    assert likeness > 0.99999
    assert 1 <= graphs <= 3, "sizes that differ become variables: not a graph for each of six batches"
