"""The structured similarity (OC-CLIP, equation 2) and the graphs behind it."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
import torch

from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.relations import claims
from menagerie.generators.captions.templates import Caption
from menagerie.models.networks.graph_batch import GraphReader
from menagerie.models.objectives import Targets, contrastive_loss, local_relation_loss
from menagerie.models.texts import Texts
from menagerie.models.towers.tokenizers import WordTokenizer
from menagerie.models.training.targets import Claims, targets_of
from tests.helpers.scorers import OPTIONS, caption, graph, images, scorer, texts

RNG = np.random.default_rng(0)
GRAPHS = [graph(RNG, n, relation) for n, relation in [(1, False), (2, True), (3, True), (2, False), (2, True)]]


def scores(model, graphs, n_images=4):
    return model.similarity(model.encode_images(images(n_images)), texts(model, graphs))


def targets(graphs, mask=True):
    """Which texts are right of which images, as training finds it."""
    return targets_of([Caption(caption(g), g) for g in graphs], len(graphs), True, mask, Claims())


def truths(graphs):
    """Text j means the same as text i, and text j is true of image i: one pair after the other."""
    claimed = [claims(g) for g in graphs]
    same = torch.tensor([[one == other for other in claimed] for one in claimed])
    return same, torch.tensor([[one >= other for other in claimed] for one in claimed])


def test_similarity_is_equation_2():
    """Spelt out for one image and one graph with slots from its own attention."""
    model, one = scorer("oc-clip"), GRAPHS[2]
    embedding, text = model.encode_images(images(1)), texts(model, [one])
    attention = model.attention(embedding, text)[0] + 1e-8
    slots = attention / attention.sum(-1, keepdim=True) @ embedding.values[0]
    cosine = torch.nn.functional.cosine_similarity
    nodes = sum(cosine(text.phrases[i], slots[i], dim=0) for i in range(4))
    relation = text.predicates[0]
    predicted = model.relation.subject(torch.cat([relation, slots[0]])) + model.relation.object(
        torch.cat([relation, slots[1]])
    )
    expected = (1.5 * nodes + 0.5 * cosine(relation, predicted, dim=0)) / (1.5 * 4 + 0.5)
    torch.testing.assert_close(model.similarity(embedding, text)[0, 0], expected)


def test_alpha_has_no_gradient_without_relations():
    model = scorer("oc-clip")
    plain = [g for g in GRAPHS if not g.edges]
    scores(model, plain).sum().backward()
    assert model.alpha.grad is None
    model.zero_grad()
    scores(model, GRAPHS).sum().backward()
    assert model.alpha.grad.abs() > 0


@pytest.mark.parametrize("relation", ["additive", "joint"])
def test_a_relation_scorer_sees_who_is_subject(relation):
    model = scorer("oc-clip", relation=relation, alpha=1.0, beta=0.25)
    assert (model.alpha.item(), model.beta.item()) == (1.0, 0.25)
    there, back = GRAPHS[1], SceneGraph(GRAPHS[1].nodes, (Edge("to the left of", 1, 0),))
    assert (scores(model, [there]) != scores(model, [back])).all()


def test_first_of_the_altered_similarities_is_the_true_one():
    model = scorer("oc-clip")
    read = model.reader(Texts([caption(g) for g in GRAPHS], GRAPHS), torch.Generator().manual_seed(0))
    embedding, text = model.encode_images(images(5)), model.encode_texts(read)
    local = model.altered_similarities(embedding, text)
    has_edges = [bool(g.edges) for g in GRAPHS]
    assert local.shape == (sum(has_edges), 3)
    torch.testing.assert_close(local[:, 0], model.similarity(embedding, text).diagonal()[has_edges])
    assert (local[:, 0] != local[:, 1]).all()


def shuffled(n_nodes, edges, n=1):
    """What is drawn for `n` graphs of these nodes and edges."""
    graphs = [SceneGraph(tuple("abcde"[:n_nodes]), edges)] * n
    reader = GraphReader(WordTokenizer(("a", "b", "c", "d", "e", "r", "q", "to", "the", "left", "right", "of")), 5)
    return reader(Texts([""] * n, graphs), torch.Generator().manual_seed(0)).shuffled


def test_altered_similarities_are_scores_of_swapped_and_shuffled_graphs():
    """And each arrangement is in the column of its name."""
    model, one = scorer("oc-clip"), GRAPHS[2]
    embedding = model.encode_images(images(1))
    read = model.reader(Texts([""], [one]), torch.Generator().manual_seed(0))
    computed = model.altered_similarities(embedding, model.encode_texts(read))[0]
    edges = [one.edges, (one.edges[0]._replace(subject=1, object=0),)]
    drawn = read.shuffled
    edges.append((one.edges[0]._replace(subject=int(drawn.subjects), object=int(drawn.objects)),))
    expected = [model.similarity(embedding, texts(model, [SceneGraph(one.nodes, own)]))[0, 0] for own in edges]
    torch.testing.assert_close(computed, torch.stack(expected))
    for name, column in (("swapped", 1), ("shuffled", 2)):
        alone = model.altered_similarities(embedding, model.encode_texts(read), (name,))[0]
        torch.testing.assert_close(alone, computed[[0, column]])


@pytest.mark.parametrize(
    ("n_nodes", "subject", "object_"), [(n, *ends) for n in (2, 3, 4) for ends in permutations(range(n), 2)]
)
def test_shuffled_edges_are_uniform_over_what_equation_9_allows(n_nodes, subject, object_):
    """Neither end stays, both are different nodes, and it isn't the swap; every such edge equally often."""
    allowed = {
        (s, o)
        for s, o in product(range(n_nodes), range(n_nodes))
        if s != subject and o != object_ and s != o and (s, o) != (object_, subject)
    }
    assert len(allowed) == (n_nodes - 1) * (n_nodes - 2)
    draws = 500 * max(len(allowed), 1)
    drawn = shuffled(n_nodes, (Edge("r", subject, object_),), draws)
    assert drawn.exists.tolist() == [bool(allowed)] * draws
    if allowed:
        counts = Counter(zip(drawn.subjects[:, 0].tolist(), drawn.objects[:, 0].tolist(), strict=True))
        assert set(counts) == allowed
        assert max(abs(count - 500) for count in counts.values()) < 110  # five standard deviations


LEFT, RIGHT = "to the left of", "to the right of"
CHAIN = (Edge("r", 0, 1), Edge("r", 1, 2))
SEVERAL = [
    (4, CHAIN),
    (4, (*CHAIN, Edge("q", 0, 1))),
    (4, (Edge(LEFT, 0, 1), Edge(RIGHT, 2, 1))),
    (5, (*CHAIN, Edge("r", 2, 3))),
]


@pytest.mark.parametrize(("n_nodes", "edges"), SEVERAL)
def test_shuffled_edges_state_nothing_that_the_graph_or_its_swap_states(n_nodes, edges):
    """Drawn apart, each edge could state another one, and all of them together the truth."""
    nodes = tuple("abcde"[:n_nodes])
    back = tuple(edge._replace(subject=edge.object, object=edge.subject) for edge in edges)
    known = claims(SceneGraph(nodes, edges)) | claims(SceneGraph(nodes, back))
    drawn, seen = shuffled(n_nodes, edges, 12_000), set()
    assert drawn.exists.all()
    for subjects, objects in zip(drawn.subjects.tolist(), drawn.objects.tolist(), strict=True):
        new = tuple(Edge(e.predicate, s, o) for e, s, o in zip(edges, subjects, objects, strict=True))
        assert all(e.subject != n.subject and e.object != n.object for e, n in zip(edges, new, strict=True))
        assert not (claims(SceneGraph(nodes, new)) - set(nodes)) & known
        seen.add(new)
    options = [len({new[k] for new in seen}) for k in range(len(edges))]
    assert len(seen) == np.prod(options)  # each edge whatever the others are


def test_graph_without_other_ends_has_no_shuffled_version():
    """Three nodes in a ring, each related to each: whatever is drawn is stated or swapped."""
    ring = (Edge("r", 0, 1), Edge("r", 1, 2), Edge("r", 2, 0))
    assert not shuffled(3, ring).exists
    assert shuffled(4, ring).exists


def test_local_loss_ignores_missing_alternatives():
    """Of two nodes there is only the swap; and no swap where that states the same."""
    model = scorer("oc-clip")
    two = SceneGraph(("red cat", "white dog"), (Edge("to the left of", 0, 1),))
    both = SceneGraph((*two.nodes, "city"), (two.edges[0], two.edges[0]._replace(subject=1, object=0)))
    read = model.reader(Texts([""] * 2, [two, both]), torch.Generator().manual_seed(0))
    embedding, text = model.encode_images(images(2)), model.encode_texts(read)
    computed = model.altered_similarities(embedding, text)
    assert computed.isneginf().tolist() == [[False, False, True], [False, True, False]]
    local_relation_loss(computed, model.logit_scale()).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    kept = torch.stack([computed[0, [0, 1]], computed[1, [0, 2]]])
    scale = model.logit_scale()
    torch.testing.assert_close(local_relation_loss(computed, scale), local_relation_loss(kept, scale))
    assert local_relation_loss(computed[:0], scale) == 0


WIDER = {"clip-attpool": {"heads": 4}}  # as its authors draw it, its vectors of 32 numbers differ more


NODES = ("red cat", "white dog")


@pytest.mark.parametrize(
    ("graphs", "same", "masked"),
    [
        # The same objects in another order mean the same; exchanged textures don't.
        ([(*NODES, "city"), ("white dog", "red cat", "city"), ("red dog", "white cat", "city")], [(0, 1), (1, 0)], []),
        # A lone red cat in the city is true of the image of a red cat and a white dog there, not the reverse.
        ([(*NODES, "city"), ("red cat", "city"), ("red cat", "desert")], [], [(0, 1)]),
        # A cat is true of a red cat, and of a cat beside a dog.
        ([("red cat", "city"), ("cat", "city"), ("cat", "white dog", "city")], [], [(0, 1), (2, 1)]),
        # What a caption denies is not what it claims.
        ([("red cat", "no white dog", "city"), (*NODES, "city")], [], []),
        ([SceneGraph(NODES, (Edge("left of", *ends),)) for ends in ((0, 1), (1, 0))], [], []),
    ],
    ids=["equal", "part", "vague", "denied", "turned"],
)
def test_texts_that_are_true_of_an_image_are_no_negatives_of_it(graphs, same, masked):
    marks = targets([graph if isinstance(graph, SceneGraph) else SceneGraph(graph) for graph in graphs])
    assert [pair for pair in map(tuple, marks.same.nonzero().tolist()) if pair[0] != pair[1]] == same
    assert marks.same.diagonal().all()
    assert list(map(tuple, marks.masked.nonzero().tolist())) == masked


@pytest.mark.parametrize("name", OPTIONS)
def test_the_first_loss_is_near_that_of_chance(name):
    """InfoNCE of the scores; of early fusion, whose scores are no cosines, its own loss: match or not, and InfoNCE."""
    rng = np.random.default_rng(3)
    graphs = list({claims(g): g for g in (graph(rng, 2) for _ in range(60))}.values())[:32]
    losses = []
    for seed in range(5):
        model = scorer(name, seed, **WIDER.get(name, {}))
        embeddings = model.encode_images(images(len(graphs))), texts(model, graphs)
        scored = contrastive_loss(model.similarity(*embeddings), model.logit_scale(), targets(graphs))
        losses.append((model.loss(*embeddings, targets(graphs)) if name == "fusion" else scored).item())
    chance = np.log(32) + (np.log(2) if name == "fusion" else 0)
    assert abs(np.mean(losses) / chance - 1) < 0.15


def vague(rng, n_objects):
    """A graph that may leave out textures and the place, deny an object, and relate objects either way round."""
    nodes = [node.split()[-1] if rng.random() < 0.3 else node for node in graph(rng, n_objects).nodes]
    nodes = nodes[:-1] if rng.random() < 0.3 else nodes
    nodes = ["no " + nodes[0], *nodes[1:]] if rng.random() < 0.1 else nodes
    if n_objects < 2 or rng.random() < 0.5:
        return SceneGraph(tuple(nodes))
    ends = (0, 1) if rng.random() < 0.5 else (1, 0)
    return SceneGraph(tuple(nodes), (Edge(str(rng.choice(["to the left of", "to the right of", "above"])), *ends),))


@pytest.mark.parametrize("seed", range(4))
def test_targets_equal_a_comparison_pair_by_pair(seed):
    """Also where claims are known from batches before, and with negatives behind the images' own texts."""
    rng, known = np.random.default_rng(seed), Claims()
    for _ in range(3):
        graphs = [vague(rng, int(rng.integers(1, 4))) for _ in range(40)]
        graphs += [graphs[k] for k in rng.integers(40, size=8)]
        same, true = truths(graphs)
        assert (true & ~same).any()
        said = [Caption(caption(g), g) for g in graphs]
        for mask in (True, False):
            marks = targets_of(said, 48, True, mask, known)
            assert torch.equal(marks.same, same)
            assert torch.equal(marks.masked, true & ~same) if mask else marks.masked is None
            assert marks.matched == 48
            # The last 28 as negatives: never right, and masked where they happen to mean what the image's own does.
            marks = targets_of(said, 20, True, mask, known)
            negative = (torch.arange(48) >= 20).expand(20, 48)
            assert torch.equal(marks.same, same[:20] & ~negative)
            assert torch.equal(
                marks.masked, (true & ~same if mask else torch.zeros_like(same))[:20] | (same[:20] & negative)
            )
            assert marks.matched == 20


def test_incomplete_captions_are_positives_only_if_their_words_are_equal():
    """Whatever their graphs claim."""
    texts = [Caption(text, SceneGraph(("cat",))) for text in ("a cat", "a cat on a mat", "a cat", "a mat", "a cat")]
    marks = targets_of(texts, 4, False, False, Claims())
    assert marks.same.int().tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert marks.masked.int().tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_local_loss_is_weighted_as_equations_4_to_6_say(weight):
    """Each image and text scored by itself, in float64; the sums of the paper over B images, divided by 2B."""
    model, n = scorer("oc-clip", local_weight=weight, local_negatives=("swapped",)).double(), len(GRAPHS)
    pixels = images(n).double()
    read = model.reader(Texts([caption(g) for g in GRAPHS], GRAPHS), torch.Generator().manual_seed(0))
    scale = model.logit_scale().item()

    def score(i, one):
        return scale * model.similarity(model.encode_images(pixels[i : i + 1]), texts(model, [one])).item()

    logits = np.array([[score(i, one) for one in GRAPHS] for i in range(n)])
    itc = sum(2 * logits[i, i] - np.logaddexp.reduce(logits[i]) - np.logaddexp.reduce(logits[:, i]) for i in range(n))
    rel = 0.0
    for i, one in enumerate(GRAPHS):
        if one.edges:
            back = SceneGraph(one.nodes, (one.edges[0]._replace(subject=1, object=0),))
            rel += logits[i, i] - np.logaddexp(logits[i, i], score(i, back))
    marks = Targets(torch.eye(n, dtype=torch.bool), None, n)
    computed = model.loss(model.encode_images(pixels), model.encode_texts(read), marks).item()
    assert computed == pytest.approx(-(itc + weight * rel) / (2 * n), rel=1e-6)


def test_local_mean_divides_by_the_number_of_texts_with_relations():
    """A mean over the k texts that have them, so 2B / k times as much."""
    n, k = len(GRAPHS), sum(bool(g.edges) for g in GRAPHS)
    marks = Targets(torch.eye(n, dtype=torch.bool), None, n)
    local = []
    for local_mean in (False, True):
        losses = []
        for weight in (1.0, 0.0):
            model = scorer("oc-clip", local_mean=local_mean, local_weight=weight)
            read = model.reader(Texts([caption(g) for g in GRAPHS], GRAPHS), torch.Generator().manual_seed(0))
            losses.append(model.loss(model.encode_images(images(n)), model.encode_texts(read), marks))
        local.append((losses[0] - losses[1]).item())
    assert local[1] / local[0] == pytest.approx(2 * n / k, rel=1e-3)
