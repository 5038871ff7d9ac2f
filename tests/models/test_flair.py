"""FLAIR: pooling by texts, its two losses, and several captions of an image."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from menagerie.generators.captions.relations import claims
from menagerie.generators.parsers.world_grammar import parse_caption
from menagerie.generators.sources.mixture import Mixture
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.checkpoint import build_scorer
from menagerie.models.networks.flair import ImageEmbedding, TextConditionedPooling, TextEmbedding
from menagerie.models.objectives import Targets
from menagerie.models.recipe import Recipe
from menagerie.models.training.feed import Feed
from tests.helpers.scorers import TEXTS, TOWERS, graph, images, scorer, texts
from tests.helpers.splits import make_split

WIDTH, HEADS = 8, 2


def test_pooling_has_the_papers_number_of_parameters():
    assert sum(p.numel() for p in TextConditionedPooling(512, 8).parameters()) == 1_053_696


@pytest.fixture
def pooling():
    torch.manual_seed(0)
    module = TextConditionedPooling(WIDTH, HEADS).double()
    with torch.no_grad():  # biases and norms start at 0 and 1
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, dtype=torch.float64))
    return module


def norm(layer, x):
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    return (x - x.mean()) / math.sqrt(x.var() + layer.eps) * weight + bias


def pooled(module, text, patches):
    """One text on one image, head by head, with a zero key and a zero value beside the patches."""
    attention = module.attention
    weights = attention.in_proj_weight.detach().numpy().reshape(3, WIDTH, WIDTH)
    biases = attention.in_proj_bias.detach().numpy().reshape(3, WIDTH)
    query = weights[0] @ norm(module.query_norm, text) + biases[0]
    keys = [weights[1] @ norm(module.key_norm, patch) + biases[1] for patch in patches] + [np.zeros(WIDTH)]
    values = [weights[2] @ norm(module.value_norm, patch) + biases[2] for patch in patches] + [np.zeros(WIDTH)]
    heads, size = [], WIDTH // HEADS
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = np.array([query[part] @ key[part] / math.sqrt(size) for key in keys])
        share = np.exp(scores) / np.exp(scores).sum()
        heads.append(sum(s * value[part] for s, value in zip(share, values, strict=True)))
    out = attention.out_proj
    return out.weight.detach().numpy() @ np.concatenate(heads) + out.bias.detach().numpy()


def test_pooling_is_a_loop_over_heads_and_patches(pooling):
    random = np.random.default_rng(0)
    queries, patches = random.standard_normal((3, 4, WIDTH)), random.standard_normal((3, 5, WIDTH))
    result = pooling(torch.from_numpy(queries), torch.from_numpy(patches)).detach().numpy()
    for i in range(3):
        for c in range(4):
            np.testing.assert_allclose(result[i, c], pooled(pooling, queries[i, c], patches[i]), rtol=1e-6)


def test_pooled_vectors_have_no_residual_path_from_the_text(pooling):
    """Without values every text gets the same: there is no residual path."""
    with torch.no_grad():
        pooling.attention.in_proj_weight[2 * WIDTH :] = 0
        pooling.attention.in_proj_bias[2 * WIDTH :] = 0
    queries, patches = torch.randn(1, 4, WIDTH, dtype=torch.float64), torch.randn(1, 5, WIDTH, dtype=torch.float64)
    result = pooling(queries, patches)
    torch.testing.assert_close(result, result[:, :1].expand_as(result))


# Its losses


def softplus(x):
    return math.log1p(math.exp(-abs(x))) + max(x, 0.0)


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize(("each", "negatives"), [(1, 0), (3, 0), (3, 2)])
def test_flair_losses_are_loops(pooling, each, negatives):
    """In float64. Text i + kn is caption k of image i; those behind are nobody's."""
    n = 4
    own, m, scale, bias = n * each, n * each + negatives, 6.0, -1.5
    random = np.random.default_rng(each)
    whole, patches, vectors = (random.standard_normal(shape) for shape in ((n, WIDTH), (n, 5, WIDTH), (m, WIDTH)))
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    draw = random.random(m)
    right = np.zeros((n, m), bool)
    for k in range(each):
        right[range(n), [i + k * n for i in range(n)]] = True
    right[0, 1] = True  # the first caption of image 1 means what one of image 0 means
    masked = np.zeros((n, m), bool)
    masked[2, 3] = True

    model = scorer("flair").double()
    model.pooling = pooling
    with torch.no_grad():
        model.log_scale.fill_(math.log(scale))
        model.bias.fill_(bias)
    images = ImageEmbedding(torch.from_numpy(whole), torch.from_numpy(patches))
    targets = Targets(torch.from_numpy(right), torch.from_numpy(masked), own)
    loss = model.loss(images, TextEmbedding(torch.from_numpy(vectors), torch.from_numpy(draw)), targets)

    def term(i, j, score):
        logit = scale * score + bias
        return 0.0 if masked[i, j] else softplus(-logit if right[i, j] else logit)

    chosen = [max((j + k * n for k in range(each)), key=lambda text: draw[text]) for j in range(n)]
    conditioned = multiple = 0.0
    for i in range(n):
        mine = [i + k * n for k in range(each)]
        for j in [*mine, *(chosen[other] for other in range(n) if other != i), *range(own, m)]:
            conditioned += term(i, j, cosine(pooled(pooling, vectors[j], patches[i]), vectors[j]))
        for j in range(m):
            multiple += term(i, j, cosine(whole[i], vectors[j]))
    assert loss.item() == pytest.approx((conditioned / (n + each - 1) + multiple / own) / 2, rel=1e-6)


def test_flair_scores_each_text_with_the_vector_that_it_pools():
    """Image i as text j pools it, against text j."""
    model = scorer("flair")
    rng = np.random.default_rng(0)
    graphs = [graph(rng, 2) for _ in range(3)]
    embedding, text = model.encode_images(images(2)), texts(model, graphs)
    together = model.similarity(embedding, text)
    for i in range(2):
        for j in range(3):
            vector = text.vectors[j]
            seen = model.pooling(vector[None, None], embedding.patches[i : i + 1])[0, 0]
            torch.testing.assert_close(together[i, j], torch.cosine_similarity(seen, vector, dim=0))


# Several captions


def batch_of(data, captions, size=6, **recipe):
    reader = build_scorer("flair", TOWERS, TEXTS, {"captions": captions, "heads": 2}).reader
    keep = []

    class Keeping(type(reader)):
        def __call__(self, texts, generator=None):
            keep.append((list(texts.captions), list(texts.graphs), texts.matched))
            return super().__call__(replace(texts, captions=["a red cat" for _ in texts.captions]), generator)

    keeping = Keeping(reader.tokenizer, reader.context, reader.captions)
    pairs = np.flatnonzero(~data.strata["single_object"])
    pairs = pairs[:: max(1, len(pairs) // size)][:size]
    batch = Feed(data, keeping, Recipe(batch=size, **recipe), 0).batch(pairs, 0)
    return batch, pairs, *keep[0]


@pytest.mark.parametrize("name", ["binding", "spatial"])
def test_further_captions_are_parts_of_the_images_own(name, data, spatial):
    data = data if name == "binding" else spatial
    batch, pairs, captions, graphs, own = batch_of(data, 4)
    n = len(pairs)
    assert own == batch.targets.matched == len(captions) == 4 * n
    assert captions[:n] == [data.records.captions[i] for i in pairs]
    fewer = 0
    for k in range(1, 4):
        for i, item in enumerate(pairs):
            part = graphs[k * n + i]
            assert claims(part) <= claims(data.records.graphs[item])
            assert parse_caption(captions[k * n + i], data.split.vocabulary) == part
            fewer += len(part.nodes) < len(data.records.graphs[item].nodes)
            assert batch.targets.same[i, k * n + i]
    assert 0.2 < fewer / (3 * n) < 0.9


def test_parts_of_incomplete_captions_add_nothing(tmp_path):
    """Parts are of the caption, not of the scene."""
    recipe = BindingRecipe(
        world="tiny", pairs=1.0, mentioned=0.5, attributes=0.5, negated=0.5, views=1, test_views=1, test_scenes=5
    )
    data = SplitDataset(make_split(tmp_path, recipe, resolution=16), "train")
    everything = range(len(data))
    own, *parts = data.several(everything, everything, 3)
    assert [text.text for text in own] == data.records.captions
    for texts_ in parts:
        assert all(claims(part.graph) <= claims(whole.graph) for part, whole in zip(texts_, own, strict=True))
        assert not any("no " in part.text for part in texts_)


def test_mixtures_give_several_captions(data):
    mixture = Mixture([data, data], [0.5, 0.5])
    there = [3, len(data) + 3]
    lists = mixture.several(there, [1, 2], 3)
    assert [len(texts_) for texts_ in lists] == [2, 2, 2]
    assert [texts_[0] for texts_ in lists] == [texts_[0] for texts_ in data.several([3], [1], 3)]


def test_parts_of_captions_mention_the_first_slot_first(tmp_path):
    """In a split that mentions the left object first, so do parts: "to the right of" isn't in its vocabulary."""
    recipe = SpatialRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=5, mention_order="slots")
    data = SplitDataset(make_split(tmp_path, recipe, resolution=16), "train")
    everything = range(len(data))
    for texts_ in data.several(everything, everything, 3):
        assert not any("right of" in text.text or "under" in text.text for text in texts_)
    drawn = data.negatives(everything, everything, "replace")
    assert not any("right of" in text.text or "under" in text.text for text in drawn if text)
