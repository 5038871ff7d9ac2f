"""Scores of all images with all texts, in blocks: those of `similarity` on everything at once."""

from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.generators.captions.templates import Caption
from menagerie.models.evaluation import scoring
from menagerie.models.evaluation.scoring import encoded, score_pool
from tests.helpers.scorers import caption, graph, scorer

IMAGES, TEXTS = 13, 11
KINDS = ("clip", "oc-clip", "flair")  # the codes of the last two are no vectors


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several chunks of several blocks, of which the last are not full."""
    for name, value in (("BLOCK", 2), ("CHUNK", 4), ("TEXTS", 4)):
        monkeypatch.setattr(scoring, name, value)


@pytest.fixture(scope="module")
def pixels():
    return torch.randint(0, 256, (IMAGES, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def captions(n):
    rng = np.random.default_rng(0)
    graphs = [graph(rng, 1 + k % 2, relation=bool(k % 2)) for k in range(n)]
    return [Caption(caption(own), own) for own in graphs]


def pool_of(texts):
    texts = list(texts)
    return Pool("", (), tuple(range(IMAGES)), tuple(texts), tuple((row, row % len(texts)) for row in range(IMAGES)))


def scores(model, pixels, pool):
    return score_pool(model, pool, partial(encoded, model, lambda numbers: pixels[numbers]))


@torch.no_grad()
def directly(model, pixels, texts):
    codes = model.encode_images(model.pixel_scale(pixels)), model.encode_texts(model.read(*zip(*texts, strict=True)))
    return model.similarity(*codes).numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_those_of_everything_at_once(kind, pixels):
    model, texts = scorer(kind), captions(TEXTS)
    found = scores(model, pixels, pool_of((text,) for text in texts))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, directly(model, pixels, texts), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_texts_tie(kind, pixels):
    model, texts = scorer(kind), captions(5)
    found = scores(model, pixels, pool_of((text,) for text in [*texts, *texts]))
    assert (found[:, :5] == found[:, 5:]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_phrasings_are_averaged(kind, pixels):
    """Vectors as directions, as CLIP's zero-shot classifier has it; else scores."""
    model, texts = scorer(kind), captions(7)
    groups = [texts[:3], texts[3:4], texts[4:]]
    found = scores(model, pixels, pool_of(map(tuple, groups)))
    if kind == "clip":
        with torch.no_grad():
            codes = [model.encode_texts(model.read(*zip(*group, strict=True))) for group in groups]
            means = torch.stack([normalize(normalize(code, dim=1).mean(0), dim=0) for code in codes])
            expected = model.similarity(model.encode_images(model.pixel_scale(pixels)), means).numpy()
    else:
        expected = np.stack([directly(model, pixels, group).mean(1) for group in groups], 1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_vectors_are_encoded_once(pixels, monkeypatch):
    model, seen = scorer("clip"), []
    encode_images, encode_texts = model.encode_images, model.encode_texts
    monkeypatch.setattr(model, "encode_images", lambda pixels: seen.append("image") or encode_images(pixels))
    monkeypatch.setattr(model, "encode_texts", lambda texts: seen.append("text") or encode_texts(texts))
    scores(model, pixels, pool_of((text,) for text in captions(TEXTS)))
    assert (seen.count("image"), seen.count("text")) == (-(-IMAGES // 2), -(-TEXTS // 4))


def test_scores_that_are_no_numbers_are_refused(pixels):
    model = scorer("clip")
    with torch.no_grad():
        next(iter(model.backbones()["text"])).fill_(float("nan"))
    with pytest.raises(UserError, match="not finite numbers; train it again"):
        scores(model, pixels, pool_of((text,) for text in captions(3)))


def test_a_matrix_beyond_memory_is_refused(pixels, monkeypatch):
    monkeypatch.setattr(scoring, "MOST_BYTES", 4 * IMAGES * 3 - 1)
    with pytest.raises(UserError, match="13 images with 3 texts take more than"):
        scores(scorer("clip"), pixels, pool_of((text,) for text in captions(3)))
