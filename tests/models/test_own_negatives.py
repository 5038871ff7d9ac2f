"""Losses of CLIP's vectors in float64: InfoNCE, CE-CLIP, FSC-CLIP, and their gradients, against loops over images."""

import math

import pytest
import torch

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.networks.own_negatives import ImageEmbedding, TextEmbedding, text_loss
from menagerie.models.objectives import Targets
from tests.helpers.loss_loops import assert_same_gradients, info_nce, unit
from tests.helpers.scorers import images as pixels
from tests.helpers.scorers import scorer
from tests.helpers.scorers import texts as read

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


def test_ce_clip_loss_is_a_loop_with_the_threshold_of_the_step_before(vectors):
    images, texts, *_ = vectors
    model = scorer("ce-clip", rank_weight=0.3, text_weight=0.7).double().train()
    given, threshold = targets(), 0.0
    for _ in range(2):
        scale = model.logit_scale()
        found = model.loss(images, texts, given)
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
    model.loss(images, -texts, given)
    assert model.threshold.item() == pytest.approx(threshold.item(), abs=1e-12)


def test_text_loss_leaves_out_captions_without_false_captions():
    logits = torch.tensor([[1.0, 2.0, 3.0]] * 2, requires_grad=True)
    loss = text_loss(logits, torch.tensor([[False, True, True], [False, False, False]]))
    assert loss.item() == pytest.approx(math.log(1 + math.e) / 2)
    (slope,) = torch.autograd.grad(loss, logits)
    assert slope[0, 1:].abs().min() > 0
    assert not slope[1].any()


@pytest.mark.parametrize("name", ["clip", "negclip", "labclip"])
def test_infonce_is_a_loop_over_images_and_texts(name, vectors):
    """Images choose among all texts, captions among images; LABCLIP's texts pass its map."""
    images, texts, *_ = vectors
    model, given, compared = scorer(name).double(), targets(None), texts
    leaves = [images, texts, model.log_scale]
    if name == "labclip":
        model.map = torch.nn.Parameter(unit(torch.Generator().manual_seed(1), D, D))
        model.base.encode_texts = lambda text: text
        compared = torch.stack([torch.stack([row @ text for row in model.map]) for text in texts])
        compared, leaves = compared / compared.norm(dim=-1, keepdim=True), [*leaves, model.map]
        texts = model.encode_texts(texts)
    found = model.loss(images, texts, given)
    assert_same_gradients(found, info_nce(model.logit_scale(), images, compared, given.same, given.masked), leaves)


def test_labclip_starts_with_the_scores_of_its_base():
    model = scorer("labclip")
    graphs = [SceneGraph(("red cat", "city")), SceneGraph(("white dog", "red pig", "desert"))]
    one, other = (its.similarity(its.encode_images(pixels(3)), read(its, graphs)) for its in (model, model.base))
    torch.testing.assert_close(one, other)
    assert model.logit_scale().item() == 1


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
def test_fsc_clip_loss_is_a_loop(gamma, smoothing, vectors):
    images, texts, patches, words = vectors
    model = scorer("fsc-clip", global_weight=0.4, patch_weight=0.6, gamma=gamma, smoothing=smoothing).double()
    scale, given = model.logit_scale(), targets()
    present = torch.arange(T) < torch.tensor(LENGTHS)[:, None]
    found = model.loss(ImageEmbedding(images, patches), TextEmbedding(texts, words, present), given)
    expected = info_nce(scale, images, texts[:N], given.same, given.masked)
    for i in set(OWNER):
        rows = [i, *(N + k for k, owner in enumerate(OWNER) if owner == i)]
        whole = choice([scale * images[i] @ texts[j] for j in rows], gamma, smoothing)
        parts = choice([fit(scale, patches[i], words[j][: LENGTHS[j]]) for j in rows], gamma, smoothing)
        expected = expected + (0.4 * whole + 0.6 * parts) / len(set(OWNER))
    assert_same_gradients(found, expected, (images, texts, patches, words, model.log_scale))
