"""FILIP: both similarities and both losses are the paper's, by loops in float64, with their gradients."""

import pytest
import torch

from menagerie.models.networks.late_interaction import Words
from menagerie.models.networks.pairs import draw_wrong_images, draw_wrong_texts
from menagerie.models.objectives import Targets
from tests.helpers.scorers import scorer

N, M, P, T, D = 3, 5, 4, 6, 7
LENGTHS = (6, 1, 3, 2, 5)


def unit(generator, *shape):
    return torch.nn.functional.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


@pytest.fixture
def embeddings():
    """Unit vectors of patches and words, as leaves of the graph; the last two texts belong to no image."""
    generator = torch.Generator().manual_seed(0)
    patches, words = unit(generator, N, P, D).requires_grad_(), unit(generator, M, T, D).requires_grad_()
    return patches, Words(words, torch.arange(T) < torch.tensor(LENGTHS)[:, None])


def model_of(symmetric, **options):
    model = scorer("filip", symmetric=symmetric, **options).double()
    with torch.no_grad():
        model.log_scale.fill_(1.3)
    return model


def loop(patches, words, i, j):
    """Both similarities of image i and text j."""
    dots = [[(patches[i, k] * words.vectors[j, r]).sum() for r in range(LENGTHS[j])] for k in range(P)]
    by_patches = sum(torch.stack(row).max() for row in dots) / P
    by_words = sum(torch.stack([row[r] for row in dots]).max() for r in range(LENGTHS[j])) / LENGTHS[j]
    return by_patches, by_words


@pytest.mark.parametrize("symmetric", [True, False])
def test_filip_score_is_a_loop_over_patches_and_words(symmetric, embeddings):
    model, (patches, words) = model_of(symmetric), embeddings
    scores = model.similarity(patches, words)
    for i in range(N):
        for j in range(M):
            by_patches, by_words = loop(patches, words, i, j)
            expected = (by_patches + by_words) / 2 if symmetric else by_words
            assert scores[i, j].item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("symmetric", [True, False])
def test_filip_loss_and_gradients_are_a_loop(symmetric, embeddings):
    """Images choose by patches among all texts, texts by words among images; one pair is neither right nor wrong."""
    model, (patches, words) = model_of(symmetric), embeddings
    masked = torch.zeros(N, M, dtype=torch.bool)
    masked[2, 0] = True
    loss = model.loss(patches, words, Targets(torch.eye(N, M, dtype=torch.bool), masked, N))
    scale, total = model.logit_scale(), 0.0
    for own in range(N):
        row = [scale * loop(patches, words, own, j)[int(not symmetric)] for j in range(M) if not masked[own, j]]
        column = [scale * loop(patches, words, i, own)[1] for i in range(N) if not masked[i, own]]
        mine = [scale * part for part in loop(patches, words, own, own)]
        total = total + (torch.stack(row).logsumexp(0) - mine[int(not symmetric)]) / (2 * N)
        total = total + (torch.stack(column).logsumexp(0) - mine[1]) / (2 * N)
    torch.testing.assert_close(loss, total, atol=1e-12, rtol=1e-12)
    leaves = (patches, words.vectors, model.log_scale)
    for one, other in zip(torch.autograd.grad(loss, leaves), torch.autograd.grad(total, leaves), strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("symmetric", [True, False])
def test_filip_loss_with_few_negatives_is_a_loop_over_the_drawn_ones(symmetric, embeddings):
    """An equal caption, the third's, is never one of the first image's."""
    model, (patches, words) = model_of(symmetric, negatives=2), embeddings
    same = torch.eye(N, M, dtype=torch.bool)
    same[0, 2] = same[2, 0] = True
    targets = Targets(same, None, N)
    torch.manual_seed(3)
    loss = model.loss(patches, words, targets)
    torch.manual_seed(3)
    texts, others = draw_wrong_texts(targets, 2), draw_wrong_images(targets, 2)
    assert others.usable.sum(1).tolist() == [1, 2, 1]
    scale, total = model.logit_scale(), 0.0
    for own in range(N):
        wrong = [own, *texts.number[own][texts.usable[own]].tolist()]
        row = torch.stack([scale * loop(patches, words, own, j)[int(not symmetric)] for j in wrong])
        wrong = [own, *others.number[own][others.usable[own]].tolist()]
        column = torch.stack([scale * loop(patches, words, i, own)[1] for i in wrong])
        total = total - (row.log_softmax(0)[0] + column.log_softmax(0)[0]) / (2 * N)
    torch.testing.assert_close(loss, total, atol=1e-12, rtol=1e-12)
    for one, other in zip(*(torch.autograd.grad(x, (patches, words.vectors)) for x in (loss, total)), strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=1e-10)
