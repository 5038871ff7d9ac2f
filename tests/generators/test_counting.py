"""Counting splits: captions state numbers of one animal, some of which train shows only singly."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.hard_negatives.swaps import other_number
from menagerie.generators.captions.phrases import counted, plural
from menagerie.generators.parsers.world_grammar import parse
from menagerie.generators.splits.counting import CountingRecipe

RECIPE = CountingRecipe(views=1, test_views=1, test_scenes=80)
TINY = replace(RECIPE, world="tiny", pairs=1.0)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10).map(lambda n: n / 10), st.integers(0, 99))
def test_held_animals_are_never_counted_in_train(pairs, seed):
    recipe = replace(RECIPE, pairs=pairs, seed=seed)
    subsets = recipe.subsets()
    counted_in = {name: {s.things[0].animal for s in scenes if len(s.things) > 1} for name, scenes in subsets.items()}
    assert len(counted_in["train"]) == recipe.counts().train
    for name in ("unseen_counts", "validation"):
        assert not counted_in["train"] & counted_in[name]
    assert not counted_in["unseen_counts"] & counted_in["validation"]
    assert {s.things[0].animal for s in subsets["train"] if len(s.things) == 1} == set(load_world("pug").animals)
    numbers = Counter(len(s.things) for s in subsets["train"])
    assert numbers[2] == numbers[3] == numbers[4]
    assert all(len({thing[:2] for thing in s.things}) == 1 for scenes in subsets.values() for s in scenes)


def test_captions_state_the_number_and_negatives_another():
    world = load_world("pug")
    for scene in RECIPE.subsets()["seen_counts"]:
        true, false = RECIPE.texts("seen_counts", scene)
        thing = scene.things[0]
        assert true.graph.nodes[0] == counted(thing.texture, thing.animal, len(scene.things))
        assert parse(true.text, world) == true.graph
        assert parse(false.text, world) == false.graph
        assert false.graph.nodes[0] != true.graph.nodes[0]
        assert len(other_number(scene).things) != len(scene.things)


def test_the_number_alone_is_uninformative():
    """Without the image, true and false numbers are alike: none is right more often than wrong."""
    recipe = replace(RECIPE, test_scenes=10_000, test_views=4)
    for name in recipe.tests:
        scenes = recipe.subsets()[name]
        true, false = (Counter(len(s.things) for s in its) for its in (scenes, map(other_number, scenes)))
        for number in range(1, 5):
            assert abs(true[number] - false[number]) < 0.05 * len(scenes)


def test_reads_as_english():
    assert counted("red", "cat", 1) == "red cat"
    assert counted("grass", "giant tortoise", 3) == "three grass giant tortoises"
    assert counted("", "goldfish", 2) == "two goldfish"
    assert [plural(word) for word in ("fox", "pony", "donkey", "caribou", "rhinoceros")] == [
        "foxes",
        "ponies",
        "donkeys",
        "caribou",
        "rhinoceroses",
    ]


@pytest.mark.parametrize("change", [{"hard_negatives": 0.5}, {"hold_out": ("animal=cat",)}])
def test_what_has_no_meaning_here_is_refused(change):
    with pytest.raises(UserError, match="no hard_negatives, no hold_out"):
        replace(RECIPE, **change)
