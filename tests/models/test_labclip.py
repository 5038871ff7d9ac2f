"""LABCLIP: it starts as the frozen model and trains a map alone."""

import numpy as np
import pytest
import torch

from menagerie.models.checkpoint import build_scorer
from menagerie.models.objectives import Targets
from menagerie.models.recipe import Recipe
from tests.helpers.scorers import TEXTS, TOWERS, graph, images, scorer, texts

RNG = np.random.default_rng(0)
GRAPHS = [graph(RNG, n) for n in (1, 2, 2, 1, 2)]


@pytest.fixture
def model():
    return build_scorer("labclip", TOWERS, TEXTS, base=scorer("clip", seed=4))


def test_it_starts_with_the_scores_of_its_base(model):
    scores = model.similarity(model.encode_images(images(4)), texts(model, GRAPHS))
    base = model.base
    torch.testing.assert_close(scores, base.similarity(base.encode_images(images(4)), texts(base, GRAPHS)))
    assert model.logit_scale().item() == 1
    assert model.map.shape == (32, 32)


def test_its_loss_is_a_loop_over_captions_and_swaps(model):
    """In float64: images among 2B texts, captions among B images, of the mapped texts."""
    model, generator = model.double(), torch.Generator().manual_seed(0)
    n, width = 4, 32
    with torch.no_grad():
        model.map.copy_(torch.randn(width, width, generator=generator, dtype=torch.float64))
        model.log_scale.fill_(np.log(3.0))
    x, y = (torch.randn(k, width, generator=generator, dtype=torch.float64) for k in (n, 2 * n))
    model.base.encode_texts = lambda texts: y
    x = torch.nn.functional.normalize(x, dim=-1)
    loss = model.loss(x, model.encode_texts(None), Targets(torch.eye(n, 2 * n, dtype=torch.bool), None, n), Recipe())
    mapped = y.numpy() @ model.map.detach().numpy().T
    cosines = x.numpy() @ (mapped / np.linalg.norm(mapped, axis=1, keepdims=True)).T
    rows = sum(np.log(np.exp(3 * cosines[i]).sum()) - 3 * cosines[i, i] for i in range(n)) / n
    columns = sum(np.log(np.exp(3 * cosines[:, j]).sum()) - 3 * cosines[j, j] for j in range(n)) / n
    assert loss.item() == pytest.approx((rows + columns) / 2, rel=1e-6)
