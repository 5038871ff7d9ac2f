"""Facts of single kinds of splits that have evidence of their own; what holds of all kinds is in `test_recipes`."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.core.identity import generator
from menagerie.envs.slots import OUTWARD
from menagerie.envs.worlds import load_world
from menagerie.generators.rules.parser import parse_rule
from menagerie.generators.splits.binding import BindingRecipe, pair_scenes
from menagerie.generators.splits.dependence import divide_in_proportion, marked_textures
from menagerie.generators.splits.recipe import sample_scenes
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.split_file import split_name
from tests.generators.recipe_contract import alone, made, many, orders
from tests.generators.test_recipes import PLAIN

PUG = BindingRecipe(pairs=1.0, views=1, test_views=1, test_scenes=20)
EIGHT = BindingRecipe(world="eight", pairs=0.8, hard_negatives=0.0, views=4, test_views=2, test_scenes=7)


def test_relations_draw_their_own_pairs():
    train = SpatialRecipe(views=1, test_scenes=10).subsets()["train"]
    assert orders(train, "left/right") != orders(train, "above/under")


@pytest.mark.parametrize(
    ("relations", "slots"),
    [
        (("left/right", "above/under"), {"center", "above", "under"}),
        (("left/right",), {"center"}),
        (("above/under",), {"above", "under"}),
    ],
)
def test_single_objects_are_at_the_heights_of_pairs(relations, slots):
    assert {obj.slot for *_, obj in alone(made(replace(PLAIN["spatial"], relations=relations)).train)} == slots


def test_an_option_that_is_set_is_part_of_the_name():
    spatial = PLAIN["spatial"]
    assert split_name(replace(spatial, seen_order=True)) != split_name(spatial)


def test_textures_are_marked_evenly():
    mains, unseen = marked_textures(load_world("pug"), 3)
    assert set(Counter(mains.values()).values()) == set(Counter(unseen.values()).values()) == {5}
    assert all(mains[animal] != unseen[animal] for animal in mains)
    assert len({(mains[animal], unseen[animal]) for animal in mains}) == 12, "all pairs of textures occur"


def test_quotas_are_whole_and_nearest():
    assert divide_in_proportion(np.array([0.5, 0.25, 0.25]), 7).tolist() == [3, 2, 2]
    assert divide_in_proportion(np.array([1.0, 0.0]), 3).tolist() == [3, 0]


@pytest.mark.parametrize(
    ("fields", "both", "left"),
    [
        ({"mentioned": 0.5}, 0.25, 0.375),
        ({"mentioned": 0.0}, 0.0, 0.5),
        ({"salient": 1.0}, 0.0, 1.0),
        ({"mentioned": 0.5, "salient": 0.5}, 0.125, 0.6875),
    ],
)
def test_animals_are_mentioned_as_often_as_requested(fields, both, left):
    its = made(replace(PUG, **fields))
    rows = [(s, t.graph.nodes[:-1]) for s, (t, _) in zip(its.train, its.texts["train"], strict=True)]
    told = Counter((len(nodes), nodes[0].endswith(s.objects[0].animal)) for s, nodes in rows if len(s.objects) == 2)
    assert told.total() == 152 * 10
    assert (told[2, True] + told[2, False]) / told.total() == pytest.approx(both, abs=0.05)
    assert told[1, True] / told.total() == pytest.approx(left, abs=0.05)


def test_mentions_are_nested():
    less = replace(PLAIN["binding"], views=4)
    some, more = (replace(less, mentioned=m, attributes=m) for m in (0.3, 0.8))
    for scene in made(less).train:
        few, most = (recipe.texts("train", scene)[0].graph.nodes for recipe in (some, more))
        # If no object was drawn, one is mentioned all the same: it need not be among those of `more`.
        assert len(few) <= len(most)
        assert len(most) == 2 or all(any(other.endswith(node) for other in most) for node in few)


def outward(scene):
    return tuple(obj.slot.endswith(OUTWARD) for obj in scene.objects)


def beside(scenes):
    return [scene for scene in many(scenes) if scene.relation == "left/right"]


def test_a_rule_of_a_place_matches_objects_that_face_either_way():
    rule = parse_rule("slot=left & animal=elephant", load_world("eight"))
    matched = [scene for scene in beside(made(EIGHT).train) if rule.matches(scene)]
    assert {outward(scene)[0] for scene in matched} == {False, True}
    assert all(scene.objects[0].animal == "elephant" for scene in matched)
    held = made(replace(EIGHT, hold_out=("texture=red & animal=penguin",), test_scenes=400)).subsets["held_out"]
    assert len(set(map(outward, held))) == 4


def test_drawing_fewer_scenes_changes_no_facing():
    """Which scenes are drawn, and how they face, doesn't depend on what comes first."""
    world = load_world(EIGHT.world)
    scenes = pair_scenes(world, world.pairs[0], world.textures[:2], range(3))
    first = sample_scenes(EIGHT.keep(world, scenes), 7, generator(EIGHT.seed, "draw", "some"))
    assert EIGHT.sample(world, scenes, 7, "some") == first
    assert len(set(map(outward, first))) > 1
