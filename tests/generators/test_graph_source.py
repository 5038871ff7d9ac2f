"""Graphs with errors, and graphs that a parser makes of the caption alone."""

import pickle
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import build_dataclass
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.contents import phrases
from menagerie.generators.captions.graph import Edge, SceneGraph, with_moved_attributes, without_nodes
from menagerie.generators.parsers.graph_source import GraphSource, ReadGraphs, parser_digest
from menagerie.generators.parsers.registry import open_parser
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.vocabulary import Vocabulary

WORDS = Vocabulary.of(load_world("pug"))
KNOWN = dict(phrases(WORDS))
GRAPH = SceneGraph(("red cat", "white giant tortoise", "ocean floor"), (Edge("to the left of", 0, 1),))


def drawn(seed):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_nodes_are_dropped_as_often_as_requested(share):
    many = [without_nodes(GRAPH, share, drawn(seed)) for seed in range(3000)]
    lost = sum(3 - len(graph.nodes) for graph in many) / 9000
    expected = share - share**3 / 3  # where all three would go, one stays
    assert lost == pytest.approx(expected, abs=0.02)
    assert {len(graph.nodes) for graph in many} == {0.0: {3}, 1.0: {1}}.get(share, {1, 2, 3})


def test_edges_go_with_their_nodes_and_others_keep_their_ends():
    seen = {without_nodes(GRAPH, 0.5, drawn(seed)) for seed in range(200)}
    assert len(seen) == 7  # every subset but the empty one
    for graph in seen:
        whole = {"red cat", "white giant tortoise"} <= set(graph.nodes)
        assert len(graph.edges) == whole
        assert all(graph.nodes[edge.subject] == "red cat" for edge in graph.edges)
    last = SceneGraph(("desert", "red cat", "dog"), (Edge("above", 1, 2),))
    kept = [graph for seed in range(50) if "desert" not in (graph := without_nodes(last, 0.3, drawn(seed))).nodes]
    assert SceneGraph(("red cat", "dog"), (Edge("above", 0, 1),)) in kept


def test_what_is_dropped_at_a_lower_share_is_dropped_at_a_higher_one():
    for seed in range(200):
        few, many = (set(without_nodes(GRAPH, share, drawn(seed)).nodes) for share in (0.1, 0.3))
        assert many <= few


def test_attributes_move_to_the_other_object():
    seen = Counter(with_moved_attributes(GRAPH, 0.5, KNOWN, drawn(seed)).nodes for seed in range(2000))
    place = "ocean floor"
    assert seen.keys() == {
        ("red cat", "white giant tortoise", place),
        ("cat", "red white giant tortoise", place),
        ("white red cat", "giant tortoise", place),
        ("white cat", "red giant tortoise", place),
    }
    assert all(number == pytest.approx(500, abs=100) for number in seen.values())


@pytest.mark.parametrize(
    "graph",
    [
        SceneGraph(("red cat", "desert")),
        SceneGraph(("two red cats", "desert")),
        SceneGraph(("cat", "lion", "desert")),
        SceneGraph(("desert",)),
    ],
)
def test_what_has_nowhere_to_go_stays(graph):
    assert with_moved_attributes(graph, 1.0, KNOWN, drawn(0)) == graph


def test_attributes_go_to_bare_objects_too():
    graph = SceneGraph(("cat", "white lion", "desert"))
    assert with_moved_attributes(graph, 1.0, KNOWN, drawn(0)).nodes == ("white cat", "lion", "desert")


@pytest.mark.parametrize("source", [GraphSource(dropped_nodes=0.3), GraphSource(moved_attributes=0.6)])
def test_errors_depend_on_seed_and_caption_alone(source):
    captions = [f"caption {k}" for k in range(60)]
    one, again, other = (ReadGraphs(source, WORDS, seed) for seed in (0, 0, 1))
    read = [one(caption, GRAPH) for caption in captions]
    assert read == [again(caption, GRAPH) for caption in reversed(captions)][::-1]
    assert read == [pickle.loads(pickle.dumps(one))(caption, GRAPH) for caption in captions]
    assert read != [other(caption, GRAPH) for caption in captions]
    assert len(set(read)) > 2


RECIPES = [
    BindingRecipe(world="tiny", pairs=1.0, views=1, test_views=1, template="free-conjunction", negated=0.5),
    BindingRecipe(world="tiny", pairs=1.0, views=1, test_views=1, mentioned=0.5, attributes=0.5),
    SpatialRecipe(world="tiny", pairs=1.0, views=1, test_views=1, template="statement-relation"),
    SpatialRecipe(world="eight", pairs=0.2, views=1, test_views=1, test_scenes=30, attributes=0.5),
    CountingRecipe(world="tiny", views=1, test_views=1),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.kind} {recipe.template}")
def test_the_grammar_gives_the_generators_graphs_from_the_caption_alone(recipe):
    """What a model reads of a graph it could read of the caption: none of it is of the scene alone."""
    read = ReadGraphs(GraphSource(graphs="rules"), WORDS, 0)
    texts = {}
    for name, scenes in recipe.subsets().items():
        for scene in scenes:
            texts |= {text.text: text.graph for text in recipe.texts(name, scene) if text}
    assert len(texts) > 50
    nothing = SceneGraph(("nothing",))
    assert {caption: read(caption, nothing) for caption in texts} == texts


def test_what_is_no_caption_of_ours_is_one_node_of_the_grammar():
    parser = open_parser("rules")
    assert parser("a man on a horse") == SceneGraph(("a man on a horse",))
    assert parser("a red cat above a lion in the desert").edges == (Edge("above", 0, 1),)
    assert parser.counts().fell_back == {"not of our worlds": 1}
    assert open_parser("rules:world=tiny").identity() != parser.identity()
    assert open_parser("rules:world=tiny")("a red orca in the desert").nodes == ("a red orca in the desert",)


def test_a_source_is_plain_or_says_where():
    assert GraphSource().plain
    assert GraphSource().trained_with == GraphSource()
    both = GraphSource(dropped_nodes=0.1)
    train, test = (replace(both, graphs_at=place) for place in ("train", "test"))
    assert (both.trained_with, train.trained_with, test.trained_with) == (train, train, GraphSource())
    assert (test.at("train"), test.at("test")) == (GraphSource(), both)
    assert parser_digest("generator") == ""
    assert parser_digest("rules") == parser_digest("rules") != parser_digest("rules:world=tiny")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"graphs": "rulse"}, "did you mean 'rules'"),
        ({"graphs": "rules:wrld=tiny"}, "did you mean 'world'"),
        ({"graphs_at": "tests", "dropped_nodes": 0.1}, "did you mean 'test'"),
        ({"graphs_at": "test"}, "--graphs-at test changes nothing"),
        ({"dropped_nodes": 1.5}, "--dropped-nodes must be at most 1, got 1.5"),
        ({"moved_attributes": -0.1}, "--moved-attributes must be at least 0"),
    ],
)
def test_a_wrong_source_is_named(fields, message):
    with pytest.raises(UserError, match=message):
        build_dataclass(GraphSource, fields)


def test_a_parser_that_isnt_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(UserError, match=r"pip install 'binding-menagerie\[spacy\]'"):
        parser_digest("spacy-rules")


def test_with_spacy_captions_of_ours_have_their_objects():
    pytest.importorskip("spacy", reason="spaCy is not installed")
    try:
        read = ReadGraphs(GraphSource(graphs="spacy-rules"), WORDS, 0)
    except UserError as error:
        pytest.skip(str(error))
    nodes = read("a red cat to the left of a white dog in the desert", GRAPH).nodes
    assert {"red cat", "white dog", "desert"} <= set(nodes)
