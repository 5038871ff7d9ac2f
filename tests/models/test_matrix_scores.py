"""Scores of all images with all texts, in blocks: those of `similarity` on everything at once."""

from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.generators.captions.templates import Caption
from menagerie.models.evaluation import scoring
from menagerie.models.evaluation.reranking import rerank
from menagerie.models.evaluation.scoring import encode_blocks, score_items, score_pool, text_vectors
from tests.helpers.scorers import caption, graph, scorer

IMAGES, TEXTS = 13, 11
KINDS = ("clip", "oc-clip", "flair", "fusion", "captioner")  # the embeddings of all but the first are no vectors


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
    return score_pool(model, pool, partial(encode_blocks, model, lambda numbers: pixels[numbers]))


@torch.no_grad()
def directly(model, pixels, texts):
    embeddings = (
        model.encode_images(model.pixel_scale(pixels)),
        model.encode_texts(model.read(*zip(*texts, strict=True))),
    )
    return model.similarity(*embeddings).numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_pool_scores_equal_those_of_all_pairs_at_once(kind, pixels):
    model, texts = scorer(kind), captions(TEXTS)
    found = scores(model, pixels, pool_of((text,) for text in texts))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, directly(model, pixels, texts), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_texts_of_a_pool_tie(kind, pixels):
    model, texts = scorer(kind), captions(5)
    found = scores(model, pixels, pool_of((text,) for text in [*texts, *texts]))
    assert (found[:, :5] == found[:, 5:]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_phrasings_of_a_text_are_averaged(kind, pixels):
    """Vectors as directions, as CLIP's zero-shot classifier has it; else scores."""
    model, texts = scorer(kind), captions(7)
    tasks = [texts[:3], texts[3:4], texts[4:]]
    found = scores(model, pixels, pool_of(map(tuple, tasks)))
    if kind == "clip":
        with torch.no_grad():
            embeddings = [model.encode_texts(model.read(*zip(*task, strict=True))) for task in tasks]
            means = torch.stack([normalize(normalize(embedding, dim=1).mean(0), dim=0) for embedding in embeddings])
            expected = model.similarity(model.encode_images(model.pixel_scale(pixels)), means).numpy()
    else:
        expected = np.stack([directly(model, pixels, task).mean(1) for task in tasks], 1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_images_and_texts_of_a_pool_are_encoded_once(pixels, monkeypatch):
    model, seen = scorer("clip"), []
    encode_images, encode_texts = model.encode_images, model.encode_texts
    monkeypatch.setattr(model, "encode_images", lambda pixels: seen.append("image") or encode_images(pixels))
    monkeypatch.setattr(model, "encode_texts", lambda texts: seen.append("text") or encode_texts(texts))
    scores(model, pixels, pool_of((text,) for text in captions(TEXTS)))
    assert (seen.count("image"), seen.count("text")) == (-(-IMAGES // 2), -(-TEXTS // 4))


def again(model, pixels, pool, first, top):
    return rerank(model, pool, partial(encode_blocks, model, lambda numbers: pixels[numbers]), first, top)


@pytest.mark.parametrize("kind", ["fusion", "captioner"])
def test_best_candidates_of_each_query_are_reranked(kind, pixels, monkeypatch):
    """By the second scorer, and all others behind them by the first; each needed pair is read once."""
    model, texts, top, read = scorer(kind), captions(TEXTS), 3, []
    torch.nn.init.normal_(model.head.weight)  # a captioner's starts at 0, where all texts tie
    pool = pool_of((text,) for text in texts)
    whole, first = directly(model, pixels, texts), directly(scorer("clip"), pixels, texts)
    score = model.pair_similarity
    monkeypatch.setattr(
        model, "pair_similarity", lambda *embeddings: read.append(len(embeddings[1].tokens.ids)) or score(*embeddings)
    )
    found = again(model, pixels, pool, first, top)
    pairs = set()
    for order, scores, before in ((found.by_image, whole, first), (found.by_text.T, whole.T, first.T)):
        for row, its in enumerate(order):
            ranks = sorted(range(len(its)), key=lambda k, row=row, before=before: -before[row, k])
            best = sorted(ranks[:top], key=lambda k, row=row, scores=scores: -scores[row, k])
            assert np.argsort(-its).tolist() == best + ranks[top:]
            np.testing.assert_allclose(its[best], scores[row, best], atol=1e-5)
            pairs |= {(row, k) if order is found.by_image else (k, row) for k in best}
    assert found.pairs == len(pairs) < IMAGES * TEXTS
    assert found.pairs <= sum(read) < found.pairs + 2 * -(-IMAGES // 2), "but for filled blocks"
    monkeypatch.setattr(scoring, "MOST_PAIRS", found.pairs - 1)
    with pytest.raises(UserError, match=r"the best 3 of each query are \d+ pairs.*lower --rerank-top"):
        again(model, pixels, pool, first, top)


def test_reranking_all_candidates_gives_the_second_scorers_scores(pixels):
    """Phrasings are averaged, and equal texts tie."""
    model, texts = scorer("fusion"), captions(7)
    pool = pool_of([tuple(texts[:3]), tuple(texts[3:4]), tuple(texts[4:]), tuple(texts[:3])])
    first = np.zeros((IMAGES, 4), np.float32)
    for top in (1, 9):  # all candidates tie with the best in the first pass
        found = again(model, pixels, pool, first, top)
        np.testing.assert_allclose(found.by_image, scores(model, pixels, pool), atol=1e-5)
        assert (found.by_image == found.by_text).all()
        assert (found.by_image[:, 0] == found.by_image[:, 3]).all()


class Shown(Benchmark):
    """Items over the images of this file."""

    def __init__(self, pixels, items):
        self.name, self.items, self.pixels = "shown", items, pixels

    def images(self, numbers):
        return self.pixels[list(numbers)]


@pytest.mark.parametrize(("kind", "encoded_texts"), [("captioner", 8), ("fusion", 8), ("clip", 18)])
def test_readers_of_pairs_encode_each_text_of_a_benchmark_once(kind, encoded_texts, pixels, monkeypatch):
    """Seven texts in two blocks of four; others encode a text with each of its images, as before."""
    texts, model, seen = captions(7), scorer(kind), []
    items = [Item(str(k), "swap", (k,), tuple(texts[j % 7] for j in range(k, k + 3))) for k in range(6)]
    encode, read = model.encode_texts, model.read
    monkeypatch.setattr(model, "read", lambda texts, graphs: seen.append(len(texts)) or read(texts, graphs))
    found = score_items(model, Shown(pixels, items))
    assert sum(seen) == encoded_texts
    with torch.no_grad():
        embedding = model.encode_images(model.pixel_scale(pixels)), encode(read(*zip(*texts, strict=True)))
        expected = model.similarity(*embedding).numpy()
    for item, scored in zip(items, found, strict=True):
        columns = [texts.index(text) for text in item.texts]
        np.testing.assert_allclose(scored, expected[list(item.images)][:, columns], atol=1e-5)


def test_texts_have_unit_vectors_if_the_scorer_has_any():
    texts = captions(7)
    found = text_vectors(scorer("clip"), [*texts, *texts])
    one, other = (found[text] for text in texts[:2])
    assert (len(found), one @ one) == (7, pytest.approx(1, abs=1e-6))
    assert one @ other < 1
    assert text_vectors(scorer("oc-clip"), texts) == {}
