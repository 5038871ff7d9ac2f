"""Attention: who competes with whom, and what is left to the default tokens."""

import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.networks.oc_clip import (
    competitive_attention,
    focused_attention,
    regular_attention,
    visual_slots,
)
from tests.helpers.scorers import images, scorer, texts


def logits(*shape: int) -> torch.Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def reference(query_logits: torch.Tensor, default_logits: torch.Tensor) -> torch.Tensor:
    """Equation 1 as it is written: softmax over all queries, defaults included."""
    return torch.cat([query_logits, default_logits], dim=-2).softmax(-2)


def test_shares_of_a_patch_sum_to_one_over_queries_and_default_tokens():
    queries, defaults = logits(2, 3, 9), logits(2, 4, 9)
    attention = competitive_attention(queries, torch.ones(2, 3, 1, dtype=torch.bool), defaults)
    shares = reference(queries, defaults)
    torch.testing.assert_close(attention, shares[:, :3])
    torch.testing.assert_close(attention.sum(-2) + shares[:, 3:].sum(-2), torch.ones(2, 9))


def test_default_tokens_take_patches_that_no_query_fits():
    """Patches 0-4 match the query, patches 5-8 match a default token."""
    queries, defaults = torch.full((1, 1, 9), 8.0), torch.full((1, 4, 9), 0.0)
    queries[..., 5:] = 0.0
    defaults[:, 2, 5:] = 8.0
    attention = competitive_attention(queries, torch.ones(1, 1, 1, dtype=torch.bool), defaults)
    assert (attention[..., :5] > 0.99).all()
    assert (attention[..., 5:] < 0.01).all()


def test_padded_queries_get_no_share():
    queries, defaults = logits(2, 3, 9), logits(2, 4, 9)
    present = torch.tensor([[True, True, False]])[..., None]
    attention = competitive_attention(queries, present, defaults)
    assert (attention[:, 2] == 0).all()
    torch.testing.assert_close(attention[:, :2], competitive_attention(queries[:, :2], present[:, :2], defaults))


def test_regular_attention_has_no_competition():
    """Each sums to one over the patches, whatever the others request."""
    queries, present = logits(2, 3, 9), torch.tensor([[True, True, False]])[..., None]
    attention = regular_attention(queries, present)
    torch.testing.assert_close(attention.sum(-1), torch.tensor([1.0, 1.0, 0.0]).expand(2, 3))
    torch.testing.assert_close(attention[:, :1], regular_attention(queries[:, :1], present[:, :1]))


def test_focused_attention_weighs_similarity_by_the_competitions_shares():
    """As written: exp(logit) times the share of equation 1, over the patches."""
    queries, defaults = logits(2, 3, 9).double(), logits(2, 4, 9).double()
    weights = queries.exp() * reference(queries, defaults)[:, :3]
    attention = focused_attention(queries, torch.ones(2, 3, 1, dtype=torch.bool), defaults)
    torch.testing.assert_close(attention, weights / weights.sum(-1, keepdim=True))


def test_focus_without_competitors_is_regular_attention():
    queries, present = logits(2, 3, 9), torch.tensor([[True, False, False]])[..., None]
    attention = focused_attention(queries, present, logits(2, 0, 9))
    torch.testing.assert_close(attention, regular_attention(queries, present))


def test_focused_attention_ignores_patches_that_no_query_fits():
    """Patches 0-2 are the query's, 3-8 no one's: in the competition alone they have a fifth of it."""
    queries, defaults = torch.zeros(1, 1, 9), torch.full((1, 1, 9), 2.0)
    queries[..., :3] = 6.0
    present = torch.ones(1, 1, 1, dtype=torch.bool)
    shares, focused = (attend(queries, present, defaults) for attend in (competitive_attention, focused_attention))
    assert shares[..., 3:].sum() / shares.sum() > 0.15
    assert focused[..., 3:].sum() < 0.001


def test_focus_without_competition_is_refused():
    with pytest.raises(UserError, match=r"--oc-clip.focus .* leave out --oc-clip.no-competitive"):
        scorer("oc-clip", competitive=False, focus=True)


def test_without_competition_scores_ignore_default_tokens():
    """The same weights score differently, and without competition default tokens have no part."""
    pair, alone = scorer("oc-clip"), scorer("oc-clip", competitive=False)
    alone.load_state_dict(pair.state_dict())
    graphs = [SceneGraph(("red cat", "white dog", "city"))] * 2
    scores = [model.similarity(model.encode_images(images(2)), texts(model, graphs)) for model in (pair, alone)]
    assert not torch.allclose(*scores)
    with torch.no_grad():
        alone.binding.default_tokens.add_(3.0)
    torch.testing.assert_close(alone.similarity(alone.encode_images(images(2)), texts(alone, graphs)), scores[1])


def test_visual_slots_are_weighted_means_of_values():
    attention = torch.tensor([[[0.9, 0.1, 0.0]]])
    values = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])
    torch.testing.assert_close(visual_slots(attention, values), torch.tensor([[[0.9, 0.1]]]), atol=1e-5, rtol=0)
    slot = visual_slots(torch.zeros(1, 1, 3), torch.eye(3)[None])
    torch.testing.assert_close(slot, torch.full((1, 1, 3), 1 / 3))  # a query that gets no patch has a finite slot
