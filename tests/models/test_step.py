"""A step on a GPU waits for nothing, without a GPU: fake CUDA tensors raise on whatever would wait or change device.

`.item()`, `bool(tensor)`, boolean indexing and tensors of two devices raise there (PyTorch's FakeTensorMode).
"""

import os
import signal
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils.data import Dataset

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.processes import call_in_worker
from menagerie.models.objectives import contrastive_loss
from menagerie.models.ranks import Share
from menagerie.models.recipe import Recipe
from menagerie.models.registry import specs
from menagerie.models.scorer import to_device
from menagerie.models.texts import leaves, map_tensors
from menagerie.models.training import loaders
from menagerie.models.training.encoding import batch_loss
from menagerie.models.training.feed import Feed
from menagerie.models.training.loaders import DeviceImages, SharedMemoryFeed, batches, device_batches, raise_messages
from tests.helpers.scorers import for_data

RECIPE = Recipe(steps=4, batch=8)
READERS = ("clip", "oc-clip", "clip-phrases", "flair", "cs-clip", "c2lip", "captioner", "classifier")  # all kinds


def faked(scorer, batch, mode):
    """Weights and batch on a fake CUDA device."""
    own = dict(scorer.named_parameters()) | dict(scorer.named_buffers())
    shapes = {key: (value.shape, value.dtype) for key, value in own.items()}
    with mode:
        weights = {key: torch.empty(shape, dtype=dtype, device="cuda") for key, (shape, dtype) in shapes.items()}
        return weights, to_device(map_tensors(batch, mode.from_tensor), "cuda")


def tensors(batch):
    """All tensors in a batch, or in a list of batches, in order."""
    return [leaf for leaf in leaves(tuple(batch)) if isinstance(leaf, torch.Tensor)]


class Step(torch.nn.Module):
    """The forward pass and the loss as one module, whose weights can be put in place."""

    def __init__(self, scorer):
        super().__init__()
        self.scorer = scorer

    def forward(self, batch, recipe):
        return batch_loss(self.scorer, batch, recipe)


def step_on_fake_gpu(name, data, recipe=RECIPE, held=False):
    scorer = for_data(name, data)
    pairs = np.flatnonzero(~data.strata["single_object"])[:8]
    feed = Feed(data, scorer.reader, recipe, 0, ("captions",))
    feed.numbered = held
    batch = feed.batch(pairs, 0)
    mode = FakeTensorMode(allow_non_fake_inputs=False)
    weights, there = faked(scorer, batch, mode)
    prefixed = {f"scorer.{key}": value for key, value in weights.items()}
    with mode:
        if held:
            every = DeviceImages(torch.empty((len(data), 32, 32, 3), dtype=torch.uint8, device="cuda"), True)
            there = there._replace(images=every.pick(there.images))
        return torch.func.functional_call(Step(scorer), prefixed, (there, recipe))


@pytest.mark.parametrize(("name", "held"), [*((name, False) for name in specs()), ("clip", True)])
def test_a_step_never_waits_for_the_gpu(name, held, spatial):
    """Nor does picking images that are held on it."""
    loss = step_on_fake_gpu(name, spatial, held=held)
    assert loss.shape == ()
    assert loss.device.type == "cuda"


@pytest.mark.parametrize("share", [None, Share(1, 2)])
def test_batches_picked_on_the_device_equal_those_of_loaders(share, spatial):
    """In the same order of memory too, on which sums of floats depend. Loaders get no pixels to pass on."""
    reader, recipe = for_data("clip", spatial).reader, replace(RECIPE, steps=len(spatial), batch=2)
    feeds = [Feed(spatial, reader, recipe, 3, ("captions",), share) for _ in range(2)]
    brought, picked = (
        list(islice(device_batches(feed, 1, len(spatial), torch.device("cpu"), room=room), 4))
        for feed, room in zip(feeds, (0, spatial.images(range(len(spatial))).nbytes), strict=True)
    )
    assert [feed.numbered for feed in feeds] == [False, True]
    assert feeds[1][1].images.dtype == torch.int64
    for one, other in zip(tensors(brought), tensors(picked), strict=True):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def test_a_wait_for_the_gpu_is_noticed(spatial, monkeypatch):
    """Waiting once, as a look at the loss does, is seen."""

    def waits(self, images, texts, targets):
        loss = contrastive_loss(self.similarity(images, texts), self.logit_scale(), targets)
        return loss * (1 if loss.item() > 0 else 2)

    monkeypatch.setattr("menagerie.models.networks.clip.CLIPScorer.loss", waits)
    with pytest.raises(DataDependentOutputException):
        step_on_fake_gpu("clip", spatial)


@pytest.mark.parametrize("name", READERS)
def test_batches_are_equal_with_and_without_workers(name, spatial):
    scorer = for_data(name, spatial)
    feed = Feed(spatial, scorer.reader, RECIPE, 3)
    alone = list(batches(feed, 1, 4, torch.device("cpu"), 0))
    helped = list(batches(feed, 1, 4, torch.device("cpu"), 2))
    assert len(alone) == len(helped) == 3
    for one, other in zip(tensors(alone), tensors(helped), strict=True):
        assert torch.equal(one, other)


def test_owners_of_negatives_are_their_images(spatial):
    """Lone animals have no swapped caption, and each kind comes after the other."""
    scorer, single = for_data("clip", spatial), spatial.strata["single_object"]
    items = np.concatenate([np.flatnonzero(single)[:2], np.flatnonzero(~single)[:3]])[[2, 0, 3, 1, 4]]
    recipe = Recipe(steps=4, batch=5, text_negatives=("swap", "replace"))
    targets = Feed(spatial, scorer.reader, recipe, 0).batch(items, 0).targets
    assert targets.owner.tolist() == [0, 2, 4, 0, 1, 2, 3, 4]
    assert targets.matched + len(targets.owner) == targets.same.shape[1]


@pytest.mark.parametrize("processes", [1, 2])
def test_batch_that_exceeds_shared_memory_is_an_error(processes, spatial, monkeypatch):
    """A process that prepares batches drops one that it finds no room for, and the run would wait for ever."""
    feed = Feed(spatial, for_data("clip", spatial).reader, RECIPE, 3)
    need = sum(tensor.numel() * tensor.element_size() for tensor in tensors(feed[0]))
    monkeypatch.setattr(loaders, "free_shared_memory", lambda: need * processes)
    assert all(
        map(torch.equal, tensors(next(raise_messages([SharedMemoryFeed(feed, processes)[0]]))), tensors(feed[0]))
    )
    monkeypatch.setattr(loaders, "free_shared_memory", lambda: need * processes - 1)
    with pytest.raises(UserError, match=f"{need * processes} bytes are needed at once, but /dev/shm"):
        next(raise_messages([SharedMemoryFeed(feed, processes)[0]]))


class Killed(Dataset):
    """Batches that the system kills a process for."""

    def __getitem__(self, step):
        os.kill(os.getpid(), signal.SIGKILL)


def test_killed_loader_process_is_one_error():
    """As a worker calls the training; torch has two tracebacks for it."""
    with pytest.raises(UserError, match=r"a process of this command has ended: killed, .*--loaders"):
        call_in_worker(lambda: next(batches(Killed(), 0, 1, torch.device("cpu"), workers=1)))
