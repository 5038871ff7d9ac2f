"""Scorers that read the graphs of OC-CLIP and are not OC-CLIP: the sum of phrases, late interaction of phrases."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.models.networks.late_interaction import TextEmbedding, graph_phrases
from tests.helpers.scorers import caption, graph, images, scorer, texts

NAMES = ("clip-phrases", "filip-phrases")
GRAPHS = [
    SceneGraph(("red cat", "white dog", "desert"), (Edge("to the left of", 0, 1),)),
    SceneGraph(("grass pig", "city")),
    SceneGraph(("red cat",)),
]


def vectors(model, phrases):
    """The unit vector of each phrase, encoded alone."""
    reader = model.reader
    alone = [model.model.encode_text(reader.tokenizer([phrase], reader.context))[0] for phrase in phrases]
    return F.normalize(torch.stack(alone), dim=-1)


def test_an_edge_is_a_phrase_with_both_its_nodes():
    assert list(graph_phrases(GRAPHS[0])) == ["red cat", "white dog", "desert", "red cat to the left of white dog"]


@torch.no_grad()
def test_the_sum_of_phrases_is_that_of_phrases_encoded_alone():
    model = scorer("clip-phrases")
    found = texts(model, GRAPHS)
    for embedding, its in zip(found, GRAPHS, strict=True):
        expected = F.normalize(vectors(model, graph_phrases(its)).sum(0), dim=0)
        torch.testing.assert_close(embedding, expected, atol=1e-5, rtol=0)
    pixels = images(3)
    expected = F.normalize(model.model.encode_image(pixels), dim=-1) @ found.T
    torch.testing.assert_close(model.similarity(model.encode_images(pixels), found), expected, atol=1e-6, rtol=0)


@torch.no_grad()
def test_late_interaction_takes_the_best_patch_of_each_phrase():
    model = scorer("filip-phrases")
    patches = model.encode_images(images(3))
    torch.testing.assert_close(patches.norm(dim=-1), torch.ones(patches.shape[:2]))
    found = model.similarity(patches, texts(model, GRAPHS))
    for i, image in enumerate(patches):
        for j, its in enumerate(GRAPHS):
            scores = [max(float(vector @ patch) for patch in image) for vector in vectors(model, graph_phrases(its))]
            assert found[i, j].item() == pytest.approx(np.mean(scores), abs=1e-5)


@torch.no_grad()
def test_phrases_do_not_compete_for_patches():
    """Nothing competes: doubling the vector of a phrase changes nothing, which competition would share out."""
    model = scorer("filip-phrases")
    patches, embedding = model.encode_images(images(2)), texts(model, [SceneGraph(("red cat", "white dog"))])
    same = TextEmbedding(embedding.vectors[:1].expand(2, -1), embedding.phrases)
    alone = texts(model, [SceneGraph(("red cat",))])
    torch.testing.assert_close(model.similarity(patches, same), model.similarity(patches, alone))


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_order_of_phrases_is_ignored_and_direction_of_edges_is_not(name):
    model = scorer(name)
    one = SceneGraph(("red cat", "white dog", "desert"), (Edge("to the left of", 0, 1),))
    reordered = SceneGraph(("desert", "white dog", "red cat"), (Edge("to the left of", 2, 1),))
    turned = SceneGraph(one.nodes, (Edge("to the left of", 1, 0),))
    pixels = model.encode_images(images(4))
    scores, again, other = (model.similarity(pixels, texts(model, [its])) for its in (one, reordered, turned))
    torch.testing.assert_close(scores, again, atol=1e-5, rtol=0)
    assert (scores - other).abs().max() > 1e-4


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_scorers_of_phrases_read_no_captions(name):
    model, rng = scorer(name), np.random.default_rng(0)
    graphs = [graph(rng, 1 + k % 3, relation=k % 3 == 1) for k in range(8)]
    embeddings = model.encode_images(images(8))
    read = (model.read(captions, graphs) for captions in (list(map(caption, graphs)), ["a dog"] * 8))
    first, second = (model.similarity(embeddings, model.encode_texts(its)) for its in read)
    assert torch.equal(first, second)
    assert first.abs().max() <= 1 + 1e-6
