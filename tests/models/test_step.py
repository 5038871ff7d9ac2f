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
from menagerie.envs.core.identity import seed_of
from menagerie.envs.core.processes import call
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.checkpoint import build_scorer
from menagerie.models.contract import contract_texts
from menagerie.models.objectives import contrastive_loss
from menagerie.models.ranks import Share
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of, specs
from menagerie.models.scorer import to_device
from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training import loaders
from menagerie.models.training.batch_loss import batch_loss
from menagerie.models.training.device_images import DeviceImages, device_batches
from menagerie.models.training.feed import Feed
from menagerie.models.training.loaders import SharedMemoryFeed, batches, raise_messages
from menagerie.models.training.targets import Claims, targets_of
from tests.helpers.scorers import caption, graph
from tests.helpers.splits import make_split

NANO = TowerConfig("nano", resolution=32)
RECIPE = Recipe(steps=4, batch=8)
READERS = ("clip", "oc-clip", "clip-phrases", "flair", "cs-clip", "c2lip", "captioner", "classifier")  # all kinds


@pytest.fixture(scope="module")
def spatial(tmp_path_factory):
    """Training data with relations, so that the local loss has something to do."""
    recipe = SpatialRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=5)
    return SplitDataset(make_split(tmp_path_factory.mktemp("spatial"), recipe, resolution=32), "train")


def built(name, data):
    torch.manual_seed(0)
    return build_scorer(name, NANO, text_space(NANO, data.texts()), dict(spec_of(name).smoke))


def faked(scorer, batch, mode):
    """Weights and batch on a fake CUDA device."""
    own = dict(scorer.named_parameters()) | dict(scorer.named_buffers())
    shapes = {key: (value.shape, value.dtype) for key, value in own.items()}
    with mode:
        weights = {key: torch.empty(shape, dtype=dtype, device="cuda") for key, (shape, dtype) in shapes.items()}
        return weights, to_device(fake(batch, mode), "cuda")


def fake(embedding, mode):
    """Every tensor of a batch as a fake one on the CPU."""
    if isinstance(embedding, torch.Tensor):
        return mode.from_tensor(embedding)
    if isinstance(embedding, tuple):
        parts = [fake(part, mode) for part in embedding]
        return type(embedding)(*parts) if hasattr(embedding, "_fields") else tuple(parts)
    return embedding


class Step(torch.nn.Module):
    """The forward pass and the loss as one module, whose weights can be put in place."""

    def __init__(self, scorer):
        super().__init__()
        self.scorer = scorer

    def forward(self, batch, recipe):
        return batch_loss(self.scorer, batch, recipe)


def step_on_fake_gpu(name, data, recipe=RECIPE, held=False):
    scorer = built(name, data)
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


@pytest.mark.parametrize("name", specs())
def test_the_forward_pass_and_the_loss_stay_on_the_gpu_and_never_wait(name, spatial):
    loss = step_on_fake_gpu(name, spatial)
    assert loss.shape == ()
    assert loss.device.type == "cuda"


def test_picking_images_on_the_gpu_never_waits(spatial):
    loss = step_on_fake_gpu("clip", spatial, held=True)
    assert loss.shape == ()
    assert loss.device.type == "cuda"


@pytest.mark.parametrize("share", [None, Share(1, 2)])
def test_batches_of_images_on_the_device_are_those_of_loaders(share, spatial):
    """In the same order of memory too, on which sums of floats depend. Loaders get no pixels to pass on."""
    reader, recipe = built("clip", spatial).reader, replace(RECIPE, steps=len(spatial), batch=2)
    feeds = [Feed(spatial, reader, recipe, 3, ("captions",), share) for _ in range(2)]
    brought, picked = (
        list(islice(device_batches(feed, 1, len(spatial), torch.device("cpu"), room=room), 4))
        for feed, room in zip(feeds, (0, spatial.images(range(len(spatial))).nbytes), strict=True)
    )
    assert [feed.numbered for feed in feeds] == [False, True]
    assert feeds[1][1].images.dtype == torch.int64
    for one, other in zip(flat(brought), flat(picked), strict=True):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def test_the_check_can_fail(spatial, monkeypatch):
    """Waiting once, as a look at the loss does, is seen."""

    def waits(self, images, texts, targets, recipe):
        loss = contrastive_loss(self.similarity(images, texts), self.logit_scale(), targets)
        return loss * (1 if loss.item() > 0 else 2)

    monkeypatch.setattr("menagerie.models.networks.clip.CLIPScorer.loss", waits)
    with pytest.raises(DataDependentOutputException):
        step_on_fake_gpu("clip", spatial)


@pytest.mark.parametrize("name", READERS)
def test_batches_are_the_same_for_any_number_of_workers(name, spatial):
    scorer = built(name, spatial)
    feed = Feed(spatial, scorer.reader, RECIPE, 3)
    alone = list(batches(feed, 1, 4, torch.device("cpu"), 0))
    helped = list(batches(feed, 1, 4, torch.device("cpu"), 2))
    assert len(alone) == len(helped) == 3
    for one, other in zip(flat(alone), flat(helped), strict=True):
        assert torch.equal(one, other)


def flat(embedding):
    """All tensors in a batch, in order."""
    if isinstance(embedding, torch.Tensor):
        return [embedding]
    return [tensor for part in embedding for tensor in flat(part)] if isinstance(embedding, tuple | list) else []


def test_negatives_are_texts_without_an_image(spatial):
    scorer = built("clip", spatial)
    pairs = np.flatnonzero(~spatial.strata["single_object"])[:4]
    batch = Feed(spatial, scorer.reader, RECIPE, 0, ("captions",)).batch(pairs, 0)
    n = len(pairs)
    assert batch.texts.shape[0] == 2 * n
    assert batch.targets.same.shape == (n, 2 * n)
    assert batch.targets.matched == n
    assert not batch.targets.same[:, n:].any()
    assert batch.targets.owner.tolist() == list(range(n))
    assert not batch.targets.masked[torch.arange(n), n + torch.arange(n)].any()  # its own hard negative is one
    more = contrastive_loss(torch.zeros(n, 2 * n), torch.tensor(1.0), batch.targets)
    without = Feed(spatial, scorer.reader, RECIPE, 0).batch(pairs, 0).targets
    assert more > contrastive_loss(torch.zeros(n, n), torch.tensor(1.0), without)


def test_owners_of_negatives_are_their_images(spatial):
    """Lone animals have no swapped caption, and each kind comes after the other."""
    scorer, single = built("clip", spatial), spatial.strata["single_object"]
    items = np.concatenate([np.flatnonzero(single)[:2], np.flatnonzero(~single)[:3]])[[2, 0, 3, 1, 4]]
    recipe = Recipe(steps=4, batch=5, text_negatives=("swap", "replace"))
    targets = Feed(spatial, scorer.reader, recipe, 0).batch(items, 0).targets
    assert targets.owner.tolist() == [0, 2, 4, 0, 1, 2, 3, 4]
    assert targets.matched + len(targets.owner) == targets.same.shape[1]


def test_without_complete_captions_only_equal_texts_are_right():
    rng = np.random.default_rng(0)
    graphs = [graph(rng, 2) for _ in range(5)]
    texts = [Caption(caption(g), g) for g in [*graphs, graphs[0]]]
    targets = targets_of(texts, 6, complete=False, mask=True, known=Claims())
    expected = torch.eye(6, dtype=torch.bool)
    expected[0, 5] = expected[5, 0] = True
    assert torch.equal(targets.same, expected)
    assert not targets.masked.any()


def test_a_rectangular_loss_is_what_it_says():
    """Rows over all texts, columns over the images' own: computed by hand."""
    similarity = torch.tensor([[0.9, 0.1, 0.5], [0.2, 0.8, 0.4]])
    graphs = [Caption(text, None) for text in ("a", "b", "c")]
    targets = targets_of(graphs, 2, complete=False, mask=False, known=Claims())
    logits = 2.0 * similarity
    rows = -(logits.log_softmax(1)[0, 0] + logits.log_softmax(1)[1, 1]) / 2
    columns = -(logits[:, :2].T.log_softmax(1)[0, 0] + logits[:, :2].T.log_softmax(1)[1, 1]) / 2
    torch.testing.assert_close(contrastive_loss(similarity, torch.tensor(2.0), targets), (rows + columns) / 2)


def test_seeds_of_steps_are_those_of_their_number(spatial):
    scorer = built("clip", spatial)
    feed = Feed(spatial, scorer.reader, RECIPE, 7)
    again = feed.batch(feed.sampler.indices(2), seed_of(7, "step", 2))
    assert all(torch.equal(a, b) for a, b in zip(flat(feed[2]), flat(again), strict=True))
    assert contract_texts()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_batch_without_room_in_shared_memory_is_told_of(processes, spatial, monkeypatch):
    """A process that prepares batches drops one that it finds no room for, and the run would wait for ever."""
    feed = Feed(spatial, built("clip", spatial).reader, RECIPE, 3)
    need = sum(tensor.numel() * tensor.element_size() for tensor in flat(feed[0]))
    monkeypatch.setattr(loaders, "free_shared", lambda: need * processes)
    assert all(map(torch.equal, flat(next(raise_messages([SharedMemoryFeed(feed, processes)[0]]))), flat(feed[0])))
    monkeypatch.setattr(loaders, "free_shared", lambda: need * processes - 1)
    with pytest.raises(UserError, match=f"{need * processes} bytes are needed at once, but /dev/shm"):
        next(raise_messages([SharedMemoryFeed(feed, processes)[0]]))


class Killed(Dataset):
    """Batches that the system kills a process for."""

    def __getitem__(self, step):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_prepares_batches_and_is_killed_is_one_clear_error():
    """As a worker calls the training; torch has two tracebacks for it."""
    with pytest.raises(UserError, match=r"a process of this command has ended: killed, .*--loaders"):
        call(lambda: next(batches(Killed(), 0, 1, torch.device("cpu"), workers=1)))
