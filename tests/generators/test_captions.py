"""Captions, graphs and hard negatives; every template keeps the same contract."""

import pytest

from envs.scene import Scene, Thing
from envs.slots import RELATIONS
from envs.world import WORLDS
from generators.audit import mentions, states, words
from generators.captions import TEMPLATES, caption, hard_negative, swap_textures
from generators.graph import SceneGraph
from generators.relations import claims


def pair(first="red", second="asphalt", background="ocean floor", view=0):
    return Scene(background, (Thing("elephant", first, "left"), Thing("giant tortoise", second, "right")), view)


def test_reads_as_english():
    texts = {caption(pair(view=view), 0).text for view in range(20)}
    assert texts == {
        "a red elephant and an asphalt giant tortoise on the ocean floor",
        "an asphalt giant tortoise and a red elephant on the ocean floor",
    }


def test_relations_read_as_english_both_ways():
    texts = {caption(pair(view=view), 0, "relation").text for view in range(20)}
    assert texts == {
        "a red elephant to the left of an asphalt giant tortoise on the ocean floor",
        "an asphalt giant tortoise to the right of a red elephant on the ocean floor",
    }


def test_a_false_relation_is_not_stated():
    scene = pair()
    true = caption(scene, 0, "relation").graph
    (edge,) = true.edges
    assert states(true, scene)
    assert not states(true._replace(edges=(edge._replace(subject=edge.object, object=edge.subject),)), scene)
    assert not states(true._replace(edges=(edge._replace(predicate="above"),)), scene)
    assert not states(true._replace(edges=(edge._replace(object=2),)), scene)


def test_mention_order_is_balanced():
    first = [caption(pair(view=view), 0).text.startswith("a red") for view in range(400)]
    assert 160 < sum(first) < 240


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("slots", RELATIONS, ids=RELATIONS.get)
@pytest.mark.parametrize("world", WORLDS.values(), ids=lambda world: world.name)
def test_contract(template, world, slots):
    """True, false and of the same words, for every animal, texture and background."""
    lone = list(world.singles())
    for scene in lone:
        one = caption(scene, 0, template)
        assert states(one.graph, scene)
        assert mentions(one.text, one.graph)
        assert hard_negative(scene, 0, template) is None
    for a, b in zip(lone, reversed(lone), strict=True):
        things = (a.things[0]._replace(slot=slots[0]), b.things[0]._replace(slot=slots[1]))
        if things[0].animal == things[1].animal or things[0].texture == things[1].texture:
            continue
        scene = Scene(a.background, things)
        true, negative = caption(scene, 5, template), hard_negative(scene, 5, template)
        assert states(true.graph, scene)
        assert not states(negative.graph, scene)
        assert states(negative.graph, swap_textures(scene))
        assert words(true.text) == words(negative.text)
        assert true.text != negative.text
        assert mentions(negative.text, negative.graph)


def test_two_things_of_one_texture_have_no_negative():
    assert hard_negative(pair("red", "red"), 0) is None


def test_claims_ignore_mention_order_and_nothing_else():
    a = SceneGraph(("red cat", "white dog", "city"))
    assert claims(a) == claims(SceneGraph(("city", "white dog", "red cat")))
    assert claims(a) != claims(SceneGraph(("white cat", "red dog", "city")))
