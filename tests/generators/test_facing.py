"""Facing says nothing of the place: drawn for each scene, the same for a scene and its swap."""

from collections import Counter
from dataclasses import replace

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.slots import OUTWARD, place_of
from menagerie.envs.worlds import load_world
from menagerie.generators.rules.rule import parse_rule
from menagerie.generators.splits.binding import BindingRecipe, pair_scenes
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.recipe import draw
from menagerie.generators.splits.spatial import SpatialRecipe

RECIPES = [
    BindingRecipe(world="eight", pairs=0.8, hard_negatives=0.5, views=4, test_views=2),
    SpatialRecipe(world="eight", pairs=0.8, hard_negatives=0.5, views=2, test_views=2),
    DependenceRecipe(world="eight", pairs=0.8, information=0.4, views=8, test_views=2),
]


def beside(scenes):
    return [scene for scene in scenes if scene.relation == "left/right"]


def outward(scene):
    return tuple(thing.slot.endswith(OUTWARD) for thing in scene.things)


def inward(scene):
    return replace(scene, things=tuple(thing._replace(slot=place_of(thing.slot)) for thing in scene.things))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.kind)
def test_all_ways_to_face_are_as_frequent(recipe):
    """In train, within five standard deviations; pairs are drawn with their swaps, so they count as half as many."""
    scenes = beside(recipe.subsets()["train"])
    ways = Counter(map(outward, scenes))
    assert len(ways) == 4
    deviation = (0.25 * 0.75 / (len(scenes) / 2)) ** 0.5
    assert all(abs(count / len(scenes) - 0.25) < 5 * deviation for count in ways.values())


@pytest.mark.parametrize("recipe", RECIPES[:2], ids=lambda recipe: recipe.kind)
def test_a_hard_negative_differs_in_its_swap_alone(recipe):
    train = set(recipe.subsets()["train"])
    whichever = set(map(inward, train))
    both = [scene for scene in beside(train) if inward(recipe.swap(scene)) in whichever]
    assert both
    assert all(recipe.swap(scene) in train for scene in both)


def test_sizes_have_no_part_in_it():
    """A scene and its swap face alike in a world with sizes too."""
    recipe = replace(RECIPES[0], world="tiny-sizes", pairs=1.0, hard_negatives=1.0)
    train = set(recipe.subsets()["train"])
    assert all(recipe.swap(scene) in train for scene in beside(train))


def test_rules_speak_of_places():
    rule = parse_rule("slot=left & animal=elephant", load_world("eight"))
    matched = [scene for scene in beside(RECIPES[0].subsets()["train"]) if rule.matches(scene)]
    assert {outward(scene)[0] for scene in matched} == {False, True}
    assert all(scene.things[0].animal == "elephant" for scene in matched)
    with pytest.raises(UserError, match="slot"):
        parse_rule("slot='left outward'", load_world("eight"))


def test_what_rules_hold_out_faces_either_way():
    recipe = replace(RECIPES[0], hard_negatives=0.0, hold_out=("texture=red & animal=penguin",))
    assert len(set(map(outward, recipe.subsets()["held_out"]))) == 4


def test_a_test_faces_as_all_of_its_scenes_would():
    """Which scenes are drawn, and how they face, doesn't depend on what comes first."""
    recipe = replace(RECIPES[0], test_scenes=7)
    world = load_world(recipe.world)
    scenes = pair_scenes(world, world.pairs[0], world.textures[:2], range(3))
    first = draw(recipe.kept(world, scenes), 7, generator(recipe.seed, "draw", "some"))
    assert recipe.drawn(world, scenes, 7, "some") == first
    assert len({outward(scene) for scene in first}) > 1
