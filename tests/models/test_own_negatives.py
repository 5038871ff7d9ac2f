"""CE-CLIP and FSC-CLIP in float64: their losses and gradients are loops over images and their own false captions."""

import math

import pytest
import torch

from menagerie.models.networks.own_negatives import ImageEmbedding, TextEmbedding, text_loss
from menagerie.models.objectives import Targets
from menagerie.models.recipe import Recipe
from tests.helpers.loss_loops import assert_same_gradients, info_nce, unit
from tests.helpers.scorers import scorer

N, M, P, T, D = 4, 8, 5, 3, 6
OWNER = (0, 0, 1, 3)  # the third image has no false caption
LENGTHS = (3, 1, 2, 3, 2, 3, 1, 2)


@pytest.fixture
def vectors():
    generator = torch.Generator().manual_seed(0)
    return [unit(generator, *shape).requires_grad_() for shape in ((N, D), (M, D), (N, P, D), (M, T, D))]


def targets(owner=OWNER):
    """The false caption of the fourth image is true of the second, the first of the first image of the third, and one
    caption of the first image."""
    masked = torch.zeros(N, M, dtype=torch.bool)
    masked[1, 7] = masked[2, 4] = masked[0, 2] = True
    return Targets(torch.eye(N, M, dtype=torch.bool), masked, N, None if owner is None else torch.tensor(owner))


def test_ce_clip_is_a_loop_and_its_threshold_that_of_the_step_before(vectors):
    images, texts, *_ = vectors
    model = scorer("ce-clip", rank_weight=0.3, text_weight=0.7).double().train()
    given, threshold = targets(), 0.0
    for _ in range(2):
        scale = model.logit_scale()
        found = model.loss(images, texts, given, Recipe())
        own = [scale * images[i] @ texts[i] for i in range(N)]
        wrong = [scale * images[i] @ texts[N + k] for k, i in enumerate(OWNER)]
        rank = sum(torch.relu(threshold + x - own[i]) for x, i in zip(wrong, OWNER, strict=True)) / len(OWNER)
        contrast = 0.0
        for i in range(N):
            others = [scale * texts[i] @ texts[j] for j in range(N, M) if not given.masked[i, j]]
            contrast = contrast + (torch.stack(others).logsumexp(0) - others[0]) / N
        expected = info_nce(scale, images, texts, given.same, given.masked) + 0.3 * rank + 0.7 * contrast
        assert_same_gradients(found, expected, (images, texts, model.log_scale))
        threshold = (sum(own) / N - sum(wrong) / len(OWNER)).detach().clamp(0, 10)
        assert model.threshold.item() == pytest.approx(threshold.item(), abs=1e-12)
    model.eval()
    model.loss(images, -texts, given, Recipe())
    assert model.threshold.item() == pytest.approx(threshold.item(), abs=1e-12)


def test_captions_without_false_captions_have_no_part_in_the_text_loss():
    logits = torch.tensor([[1.0, 2.0, 3.0]] * 2, requires_grad=True)
    loss = text_loss(logits, torch.tensor([[False, True, True], [False, False, False]]))
    assert loss.item() == pytest.approx(math.log(1 + math.e) / 2)
    (slope,) = torch.autograd.grad(loss, logits)
    assert slope[0, 1:].abs().min() > 0
    assert not slope[1].any()


def choice(logits, gamma, smoothing):
    """HN of one image: its caption's logit first."""
    total, norm = 0.0, torch.stack(logits).logsumexp(0)
    for k, logit in enumerate(logits):
        share = smoothing / len(logits) + (1 - smoothing if k == 0 else 0)
        log = logit - norm
        total = total - share * (1 - log.exp()) ** gamma * log
    return total


def fit(scale, patches, words):
    """The log-sum-exp over a text's words, one by one."""
    fits = []
    for word in words:
        products = [float((word @ patch).detach()) for patch in patches]
        stretched = [(x - min(products)) / (max(products) - min(products)) for x in products]
        mean = sum(x / sum(stretched) * patch for x, patch in zip(stretched, patches, strict=True))
        fits.append(scale * mean @ word / mean.norm() / word.norm())
    return torch.stack(fits).logsumexp(0)


@pytest.mark.parametrize(("gamma", "smoothing"), [(2.0, 0.02), (0.0, 0.0), (1.5, 0.3)])
def test_fsc_clip_is_a_loop(gamma, smoothing, vectors):
    images, texts, patches, words = vectors
    model = scorer("fsc-clip", global_weight=0.4, patch_weight=0.6, gamma=gamma, smoothing=smoothing).double()
    scale, given = model.logit_scale(), targets()
    present = torch.arange(T) < torch.tensor(LENGTHS)[:, None]
    found = model.loss(ImageEmbedding(images, patches), TextEmbedding(texts, words, present), given, Recipe())
    expected = info_nce(scale, images, texts[:N], given.same, given.masked)
    for i in set(OWNER):
        rows = [i, *(N + k for k, owner in enumerate(OWNER) if owner == i)]
        whole = choice([scale * images[i] @ texts[j] for j in rows], gamma, smoothing)
        parts = choice([fit(scale, patches[i], words[j][: LENGTHS[j]]) for j in rows], gamma, smoothing)
        expected = expected + (0.4 * whole + 0.6 * parts) / len(set(OWNER))
    assert_same_gradients(found, expected, (images, texts, patches, words, model.log_scale))


def test_a_choice_among_equals_is_that_of_a_guess():
    """With gamma 0 and without smoothing: ln 2 for each image with one false caption."""
    model = scorer("fsc-clip", global_weight=1.0, patch_weight=0.0, gamma=0.0, smoothing=0.0).double()
    image = torch.eye(2, 3, dtype=torch.float64)
    embedding = ImageEmbedding(image, image[:, None].expand(-1, 2, -1))
    text = torch.cat([image, image])
    texts = TextEmbedding(text, text[:, None], torch.ones(4, 1, dtype=torch.bool))
    plain = Targets(torch.eye(2, 4, dtype=torch.bool), None, 2)
    more = model.loss(embedding, texts, plain._replace(owner=torch.tensor([0, 1])), Recipe())
    without = model.loss(embedding, texts, plain, Recipe())
    assert (more - without).item() == pytest.approx(math.log(2))
