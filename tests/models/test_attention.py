"""Self-attention with fewer copies, beside torch's own."""

import copy

import pytest
import torch
from torch import nn

from menagerie.models.towers.attention import SelfAttention, as_in_torch, with_fewer_copies
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig

SAMPLES, TOKENS, WIDTH, HEADS = 3, 5, 8, 2
CAUSAL = torch.full((TOKENS, TOKENS), -torch.inf).triu(1)
EACH = CAUSAL.repeat(SAMPLES * HEADS, 1, 1)
EACH[3] = 0  # one head of a sample sees all


def pair(**options):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, **options)
    ours = copy.deepcopy(theirs)
    with_fewer_copies(ours)
    return theirs, ours


def tokens():
    return torch.randn(SAMPLES, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1)).requires_grad_()


def passed(module, **options):
    """The output, and the gradients of input and weights."""
    given = tokens()
    out, weights = module(given, given, given, **{"need_weights": False} | options)
    out.square().sum().backward()
    return out, weights, [given.grad, *(parameter.grad for parameter in module.parameters())]


@pytest.mark.parametrize("mask", [None, CAUSAL, EACH], ids=["all", "causal", "each"])
@pytest.mark.parametrize("bias", [True, False])
def test_self_attention_equals_torchs_in_training(mask, bias):
    theirs, ours = pair(bias=bias)
    assert type(ours) is SelfAttention
    expected, _, slopes = passed(theirs, attn_mask=mask)
    got, weights, mine = passed(ours, attn_mask=mask)
    assert torch.equal(got, expected)
    assert weights is None
    for slope, other in zip(mine, slopes, strict=True):
        torch.testing.assert_close(slope, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["all", "causal"])
def test_self_attention_equals_torchs_in_evaluation_up_to_rounding(mask):
    theirs, ours = pair()
    for module in (theirs, ours):
        module.eval()
    given = tokens().detach()
    with torch.no_grad():
        expected, got = (
            module(given, given, given, need_weights=False, attn_mask=mask)[0] for module in (theirs, ours)
        )
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"need_weights": True},
        {"attn_mask": CAUSAL < 0},
        {"attn_mask": CAUSAL, "is_causal": True},
        {"key_padding_mask": torch.arange(SAMPLES * TOKENS).reshape(SAMPLES, TOKENS) % 4 == 1},
    ],
    ids=lambda options: next(iter(options)),
)
def test_calls_with_masks_or_weights_are_left_to_torch(options):
    theirs, ours = pair()
    expected, got = passed(theirs, **options), passed(ours, **options)
    assert torch.equal(got[0], expected[0])
    assert (got[1] is None) == (expected[1] is None)


def test_dropout_of_attention_acts_in_training_alone():
    _, ours = pair(dropout=0.5)
    whole = passed(ours.eval())[0]
    assert not torch.equal(passed(ours.train())[0], whole)
    assert torch.equal(passed(ours.eval())[0], whole)


@pytest.mark.parametrize("architecture", ["mini", "ViT-S-32-alt"])
def test_towers_use_self_attention_under_torchs_names_of_weights(architecture):
    towers = build_towers(TowerConfig(architecture, resolution=64), TextSpace(("a", "cat"), 8))
    attentions = [module for module in towers.model.modules() if isinstance(module, nn.MultiheadAttention)]
    assert len(attentions) >= 4
    assert {type(module) for module in attentions} == {SelfAttention}
    as_in_torch(towers.model)
    assert {type(module) for module in attentions} == {nn.MultiheadAttention}
    assert {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"} == attentions[0].state_dict().keys()
