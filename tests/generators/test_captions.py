"""Captions, graphs and hard negatives; every template keeps the same contract."""

import random
from functools import cache
from itertools import product

import pytest

from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import WORLDS
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import bag_of_words, states_all
from menagerie.generators.captions.contents import with_exchanged
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.relations import claims, compound_names
from menagerie.generators.captions.templates import TEMPLATES, Content, caption, write_caption
from menagerie.generators.parsers.world_grammar import parse_caption
from menagerie.generators.vocabulary import Vocabulary
from tests.helpers.splits import hard_negative


def pair(first="red", second="asphalt", background="ocean floor", view=0):
    return Scene(background, (Object("elephant", first, "left"), Object("giant tortoise", second, "right")), view)


def phrased(scene, template, objects=None):
    """The captions of a scene in all phrasings of a template."""
    numbers = range(len(TEMPLATES[template].phrasings))
    contents = (Content(scene, objects or scene.objects, phrasing=number) for number in numbers)
    return [write_caption(content, TEMPLATES[template]) for content in contents]


@pytest.mark.parametrize(
    ("template", "texts"),
    [
        (
            "conjunction",
            {
                "a red elephant and an asphalt giant tortoise on the ocean floor",
                "an asphalt giant tortoise and a red elephant on the ocean floor",
            },
        ),
        (
            "pug-relation",
            {
                "a photo of a red elephant to the left of an asphalt giant tortoise in ocean floor surroundings",
                "a photo of an asphalt giant tortoise to the right of a red elephant in ocean floor surroundings",
            },
        ),
    ],
)
def test_captions_read_as_english_in_both_orders(template, texts):
    assert {caption(pair(view=view), 0, template).text for view in range(20)} == texts


def test_phrasings_of_a_free_template_read_as_english():
    objects = "a red elephant and an asphalt giant tortoise"
    assert {made.text for made in phrased(pair(), "free-conjunction")} >= {
        f"{objects} on the ocean floor",
        f"on the ocean floor there is {objects}",
        f"the ocean floor with {objects}",
    }


def test_a_false_relation_is_not_stated():
    scene = pair()
    true = caption(scene, 0, "relation").graph
    (edge,) = true.edges
    assert states_all(true, scene)
    assert not states_all(true._replace(edges=(edge._replace(subject=edge.object, object=edge.subject),)), scene)
    assert not states_all(true._replace(edges=(edge._replace(predicate="above"),)), scene)
    assert not states_all(true._replace(edges=(edge._replace(object=2),)), scene)


@cache
def singles_of(world):
    """Scenes of one animal: of large worlds some, drawn until they have every animal, texture, size and background."""
    every = random.Random(0).sample(singles := list(world.singles()), len(singles))
    if len(every) < 50:
        return every
    parts = [{scene.background, *scene.objects[0]._replace(slot="")} for scene in every]
    lacking, count = set().union(*parts), 0
    while lacking:
        lacking -= parts[count]
        count += 1
    return every[:count]


def pairs_of(world, slots):
    """Pairs of two animals in two textures, with every animal, texture and background."""
    singles = singles_of(world)
    for a, b in zip(singles, reversed(singles), strict=True):
        objects = (a.objects[0]._replace(slot=slots[0]), b.objects[0]._replace(slot=slots[1]))
        if objects[0].animal != objects[1].animal and objects[0].texture != objects[1].texture:
            yield Scene(a.background, objects)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("world", WORLDS.values(), ids=lambda world: world.name)
def test_single_objects_have_a_caption_graph_and_negatives_that_agree(template, world):
    for scene in singles_of(world):
        one = caption(scene, 0, template)
        assert states_all(one.graph, scene)
        assert parse_caption(one.text, world) == one.graph
        assert hard_negative(scene, 0, template) is None
        (obj,) = scene.objects
        for bare in phrased(scene, template, (obj._replace(texture=""),)):
            assert bare.graph.nodes == (f"{obj.size} {obj.animal}".strip(), scene.background)
            assert parse_caption(bare.text, world) == bare.graph


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("world", WORLDS.values(), ids=lambda world: world.name)
def test_contract(template, world):
    """True, false and of the same words, for every swap and relation, every animal, texture and background."""
    for exchanges, slots in product(("texture", "slot"), [its.slots for its in RELATIONS.values()]):
        for scene in pairs_of(world, slots):
            true, negative = caption(scene, 5, template), hard_negative(scene, 5, template, exchanges)
            assert states_all(true.graph, scene)
            assert parse_caption(true.text, world) == true.graph
            assert bool(true.graph.edges) == TEMPLATES[template].relation
            if exchanges == "slot" and not true.graph.edges:
                continue  # two objects exchange their slots, and nothing that the caption states changes
            assert not states_all(negative.graph, scene), (exchanges, slots)
            assert states_all(negative.graph, with_exchanged(scene, (0, 1), exchanges)), (exchanges, slots)
            assert bag_of_words(true.text) == bag_of_words(negative.text)
            assert true.text != negative.text
            assert parse_caption(negative.text, world) == negative.graph


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(("world", "views"), [("tiny", 3), ("tiny-sizes", 1)])
def test_one_text_means_one_scene(template, world, views):
    """Up to views and the order of mention; captions without a relation don't state the slots."""
    means = {}
    for scene in load_world(world).factorial(range(views)):
        where = scene.objects if TEMPLATES[template].relation else {obj._replace(slot="") for obj in scene.objects}
        means.setdefault(caption(scene, 0, template).text, set()).add((scene.background, frozenset(where)))
    assert all(len(meant) == 1 for meant in means.values())


def test_two_objects_of_one_texture_have_no_negative():
    assert hard_negative(pair("red", "red"), 0) is None


def test_claims_ignore_mention_order_and_nothing_else():
    a = SceneGraph(("red cat", "white dog", "city"))
    assert claims(a) == claims(SceneGraph(("city", "white dog", "red cat")))
    assert claims(a) != claims(SceneGraph(("white cat", "red dog", "city")))


def test_names_of_several_words_are_wholes():
    """A sea lion is no lion, one or several of them; without names there is no telling."""
    names = compound_names(Vocabulary(("lion", "sea lion"), ("red",), ("city", "ice floor"), ()))
    assert names == {"sea lion", "sea lions", "ice floor"}
    for node, shorter in (("small red sea lion", "small sea lion"), ("three red sea lions", "three sea lions")):
        graph, noun = SceneGraph((node, "ice floor")), node.split()[-1]
        assert claims(SceneGraph((shorter,)), names) < claims(graph, names)
        assert not claims(SceneGraph((noun,)), names) <= claims(graph, names)
        assert claims(SceneGraph((noun,))) <= claims(graph)
        assert not claims(SceneGraph(("floor",)), names) <= claims(graph, names)
    bare = SceneGraph(("lion", "cat"), (Edge("above", 0, 1),))
    assert not claims(bare, names) <= claims(SceneGraph(("sea lion", "cat"), (Edge("above", 0, 1),)), names)


@pytest.mark.parametrize("world", WORLDS.values(), ids=lambda world: world.name)
def test_no_name_of_a_world_that_ships_ends_in_another(world):
    """Else a caption would imply another one by its names alone."""
    nouns = (*world.animals, *world.backgrounds)
    assert [noun for noun in nouns for other in nouns if noun.endswith(f" {other}")] == []


def test_a_fuller_caption_implies_a_shorter_one():
    cat, red = claims(SceneGraph(("cat", "city"))), claims(SceneGraph(("red cat", "white giant tortoise", "city")))
    assert cat < red
    assert not claims(SceneGraph(("cat", "desert"))) <= red
    assert not claims(SceneGraph(("white cat", "city"))) <= red
    assert claims(SceneGraph(("giant tortoise", "city"))) < red
    under, above = Edge("under", 1, 0), Edge("above", 0, 1)
    bare = claims(SceneGraph(("cat", "lion", "city"), (under,)))
    assert bare < claims(SceneGraph(("red cat", "white lion", "city"), (above,)))
    assert not bare <= claims(SceneGraph(("red cat", "white lion", "city"), (Edge("above", 1, 0),)))
