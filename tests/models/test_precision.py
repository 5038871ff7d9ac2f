"""bf16 changes embeddings by their rounding and nothing after them; parts and recomputation don't change the
gradient."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of, specs
from menagerie.models.texts import leaves
from menagerie.models.training.encoding import batch_loss, checkpoint_blocks, encode_batch
from menagerie.models.training.feed import Feed
from menagerie.models.training.loop import build_optimizer, train_step
from tests.helpers.scorers import for_data

RECIPE = Recipe(steps=4, batch=16)
LOW = replace(RECIPE, precision="bf16")


def built(name, data):
    """A scorer in training, and a batch of its data."""
    scorer = for_data(name, data).train()
    if scorer.references:
        scorer.keep_references(data.images(np.arange(scorer.references)))
    pairs = np.flatnonzero(~data.strata["single_object"])[: RECIPE.batch]
    return scorer, Feed(data, scorer.reader, RECIPE, 0, spec_of(name).negatives).batch(pairs, 0)


def gradient(scorer, batch, recipe):
    """The loss and the gradient of a step, all parameters in one vector."""
    scorer.zero_grad(set_to_none=True)
    before = deepcopy(scorer.state_dict())  # a loss may have a state of its own
    torch.manual_seed(1)
    loss = batch_loss(scorer, batch, recipe)
    loss.backward()
    scorer.load_state_dict(before)
    grads = [p.grad.flatten() for p in scorer.parameters() if p.grad is not None]
    return loss.detach(), torch.cat(grads)


def cosine(one, other):
    return torch.cosine_similarity(one.double(), other.double(), dim=0).item()


@pytest.mark.parametrize("name", specs())
def test_bf16_accumulation_and_checkpointing_keep_loss_and_gradient(name, spatial):
    scorer, batch = built(name, spatial)
    (loss, full), (low_loss, low) = gradient(scorer, batch, RECIPE), gradient(scorer, batch, LOW)
    assert not torch.equal(low, full)
    assert low_loss.item() == pytest.approx(loss.item(), rel=0.01)
    assert cosine(low, full) > 0.99
    assert low_loss.dtype == torch.float32
    scorer.eval()
    in_full, in_low = scores(scorer, batch, RECIPE), scores(scorer, batch, LOW)
    assert in_low.dtype == torch.float32
    assert len(in_low.unique()) >= 0.9 * len(in_full.unique())  # of bfloat16 most would tie
    scorer.train()
    in_three = gradient(scorer, batch, replace(RECIPE, accumulate=3))
    assert in_three[0].item() == pytest.approx(loss.item(), rel=1e-5)
    assert (in_three[1] - full).norm() < 1e-4 * full.norm()
    checkpoint_blocks(scorer)
    again = gradient(scorer, batch, RECIPE)
    assert torch.equal(again[0], loss)
    assert torch.equal(again[1], full)


@torch.no_grad()
def scores(scorer, batch, recipe):
    images, texts = encode_batch(scorer, scorer.pixel_scale(batch.images), batch.texts, recipe)
    assert all(part.dtype == torch.float32 for part in leaves((images, texts)) if part.is_floating_point())
    return scorer.similarity(images, texts)


def test_a_step_in_bf16_keeps_weights_and_moments_in_float32(spatial):
    scorer, batch = built("oc-clip", spatial)
    optimizer = build_optimizer(scorer, LOW)
    train_step(scorer, optimizer, batch, LOW, 0, 0)
    states = [value for state in optimizer.state.values() for value in state.values()]
    assert {part.dtype for part in [*states, *scorer.parameters()]} == {torch.float32}
