"""All pairs in chunks of images give the scores and gradients of all at once, and take their memory chunk by chunk."""

import pytest
import torch

from menagerie.models import texts as chunks
from menagerie.models.networks.graph_batch import GraphBatch
from menagerie.models.objectives import Targets
from menagerie.models.texts import Texts
from tests.helpers.scorers import caption, images, scorer, texts
from tests.models.test_similarity import GRAPHS

NAMES = [
    ("oc-clip", {}),
    ("oc-clip", {"focus": True}),
    ("oc-clip", {"competitive": False}),
    ("oc-clip", {"relation": "joint"}),
    ("filip", {}),
    ("filip-phrases", {}),
    ("flair", {}),
]
N = 5
ALONE = [graph._replace(edges=()) for graph in GRAPHS]


def step(model, graphs, n=N):
    """Scores, loss and gradients."""
    model.zero_grad(set_to_none=True)
    read = Texts([caption(graph) for graph in graphs], graphs)
    drawn = model.reader(read, torch.Generator().manual_seed(0))  # altered graphs, for the local loss
    image, text = model.encode_images(images(n)), model.encode_texts(drawn)
    scores = model.similarity(image, text)
    targets = Targets(torch.eye(n, dtype=torch.bool), None, n)
    loss = model.loss(image, text, targets) + scores.square().sum()
    loss.backward()
    return scores.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("graphs", [GRAPHS, ALONE], ids=["edges", "nodes"])
@pytest.mark.parametrize(("name", "options"), NAMES)
def test_chunks_give_the_scores_and_gradients_of_all_at_once(name, options, graphs, monkeypatch):
    model = scorer(name, **options)
    scores, gradient = step(model, graphs)
    monkeypatch.setattr(chunks, "MOST_BYTES", 0)
    monkeypatch.setattr(chunks, "rows_in_chunk", lambda size: 2)
    again = step(model, graphs)
    assert not torch.equal(again[1], gradient)  # another order of sums: the chunks were used
    assert (again[0] - scores).abs().max() < 1e-5 * scores.abs().max()
    assert (again[1] - gradient).norm() < 1e-5 * gradient.norm()
    with torch.no_grad():
        quiet = model.similarity(model.encode_images(images(N)), texts(model, graphs))
    torch.testing.assert_close(quiet, scores, rtol=1e-5, atol=1e-6)


def test_images_that_fit_into_memory_are_compared_at_once():
    """A laptop's step has the bytes it always had."""
    model = scorer("oc-clip")
    image, text = model.encode_images(images(N)), texts(model, GRAPHS)
    assert chunks.fits_in_memory(len(image.keys), model._bytes_of_an_image(image, text))
    assert torch.equal(model.similarity(image, text), model._all_pairs(image, text))


@pytest.mark.parametrize("graphs", [GRAPHS, ALONE], ids=["edges", "nodes"])
def test_equal_graphs_are_compared_once(graphs):
    model, again = scorer("oc-clip"), [*graphs, *graphs[::-1]]
    image, text = model.encode_images(images(N)), texts(model, again)
    assert len(text.graphs.once().phrase_of_node) == len(dict.fromkeys(graphs)) < len(again)
    weight, found = torch.rand(N, len(again)), []
    for scores in (model.similarity, model._all_pairs):
        values = scores(image, text)
        found.append([values, *torch.autograd.grad((values * weight).sum(), list(image), retain_graph=True)])
    for once, each in zip(*found, strict=True):
        torch.testing.assert_close(once, each, rtol=1e-4, atol=1e-6)


def test_memory_between_the_passes_grows_with_the_chunk_alone(monkeypatch):
    """Twice the images keep no more between the passes than their embeddings and scores."""
    model = scorer("oc-clip")
    text = texts(model, ALONE * 8)
    assert isinstance(text.graphs, GraphBatch)

    def kept(n):
        image, saved = model.encode_images(images(n)), []

        def pack(tensor):
            saved.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model.similarity(image, text)
        return sum(saved)

    plain = kept(8)
    monkeypatch.setattr(chunks, "MOST_BYTES", 0)
    assert kept(8) < plain / 4
