"""Which places layouts combine, and the one relation that any two objects of a layout have."""

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest

from menagerie.envs.catalog import load_animal
from menagerie.envs.core.errors import UserError
from menagerie.envs.custom.limits import advice, layout_measures, neighbours
from menagerie.envs.layouts import LAYOUTS, NEAR, Relation, holds, layout_of, relations_of, stated
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import LAYOUT_PLACES, PAIR_SLOTS, RELATIONS, SLOTS
from menagerie.envs.world import WORLDS
from menagerie.envs.worlds import random_in_layout

NUMBERS = range(1, 7)
NAMES = (*RELATIONS.values(), "front/behind")


def scene_in(places):
    return Scene("city", tuple(Object("cat", "red", place) for place in places))


def choices():
    return [places for layout in LAYOUTS.values() for n in NUMBERS for places in layout.choices(n)]


def test_there_are_thirteen_places_and_their_slots():
    assert (len(LAYOUT_PLACES), set(LAYOUT_PLACES) & set(PAIR_SLOTS)) == (13, set())
    assert list(LAYOUT_PLACES) == list(SLOTS)[-13:]
    for name, (column, row) in LAYOUT_PLACES.items():
        x, _, z = SLOTS[name].position
        assert np.sign(column) == np.sign(x)
        assert (z > 0) == (row == "high")


def test_choices_of_a_layout_are_different_and_in_order():
    numbers = {name: [len(layout.choices(n)) for n in NUMBERS] for name, layout in LAYOUTS.items()}
    assert numbers == {"apart": [6, 15, 20, 15, 6, 1], "rows": [6, 15, 20, 15, 6, 1], "overlap": [10, 4, 8, 3, 3, 3]}
    for places in choices():
        assert list(places) == sorted(set(places))
        assert tuple(obj.slot for obj in scene_in(places).objects) == places


def test_a_choice_is_drawn_as_often_as_any_other():
    layout, random = LAYOUTS["overlap"], np.random.default_rng(0)
    drawn = [layout.places(3, random) for _ in range(800)]
    counts = [drawn.count(places) for places in layout.choices(3)]
    assert sum(counts) == 800
    assert min(counts) > 70


def test_a_layout_has_no_more_than_six_places():
    for n in (0, 7):
        with pytest.raises(UserError, match=f"not for {n}"):
            LAYOUTS["rows"].choices(n)


def test_overlap_hides_by_the_front_place_of_the_column_and_near_objects_are_apart():
    for n in range(2, 7):
        for places in LAYOUTS["overlap"].choices(n):
            near = [place for place in places if LAYOUT_PLACES[place].row == "near"]
            assert len(near) == (1 if n < 4 else 2)
            assert all(NEAR[place] in places for place in near)
            at = [SLOTS[place].position[0] for place in near]
            assert all(abs(one - other) > 1 for one, other in combinations(at, 2))


def test_any_two_objects_of_a_layout_have_exactly_one_relation():
    for places in choices():
        scene = scene_in(places)
        relations = relations_of(scene)
        assert scene.relation is None
        assert [sorted(ends) for _, *ends in relations] == [list(ends) for ends in combinations(range(len(places)), 2)]


def test_relations_agree_with_positions():
    """Left objects have the smaller x, foremost ones the smaller y, upper ones the greater z."""
    for places in choices():
        for name, *ends in relations_of(scene_in(places)):
            first, second = (SLOTS[places[end]].position for end in ends)
            axis, sign = {"left/right": (0, 1), "front/behind": (1, 1), "above/under": (2, -1)}[name]
            assert sign * first[axis] < sign * second[axis]


def test_a_relation_by_hand():
    scene = scene_in(("near left", "front left", "front middle", "high right"))
    assert [obj.slot for obj in scene.objects] == ["front left", "front middle", "high right", "near left"]
    assert relations_of(scene) == (
        *(Relation("left/right", 0, 1), Relation("left/right", 0, 2), Relation("front/behind", 0, 3)),
        *(Relation("left/right", 1, 2), Relation("left/right", 3, 1), Relation("left/right", 3, 2)),
    )
    assert relations_of(scene_in(("high left", "front left"))) == (Relation("above/under", 1, 0),)


PAIRS = [(("left outward", "right"), "left/right"), (("above", "under"), "above/under")]


@pytest.mark.parametrize(("slots", "relation"), PAIRS)
def test_a_pair_has_the_relation_of_its_scene(slots, relation):
    assert relations_of(scene_in(slots)) == (Relation(relation, 0, 1),)
    assert scene_in(slots).relation == relation


def test_counting_scenes_and_single_objects_have_no_relation():
    assert relations_of(scene_in(("lower left", "lower right", "upper left"))) == ()
    assert relations_of(scene_in(("center",))) == ()


def test_a_statement_and_its_converse_are_never_both_true():
    for name in NAMES:
        for first, second in permutations(LAYOUT_PLACES, 2):
            truths = holds(name, first, second), holds(name, second, first)
            assert truths in {(True, False), (False, True), (False, False), (None, None)}
            assert (truths[0] is True) == (stated(first, second) == name)


def test_a_level_axis_makes_a_statement_false_and_others_are_unsaid():
    assert holds("front/behind", "front left", "front right") is False
    assert holds("above/under", "high left", "high right") is False
    assert holds("left/right", "front middle", "back middle") is False
    assert holds("left/right", "front left", "near left") is None, "a little to the left"
    assert holds("front/behind", "front left", "back right") is None, "in front, and to the left"
    assert holds("above/under", "back left", "front right") is None, "higher in the image"


def test_the_layout_of_a_scene_is_known_by_its_places():
    for name, layout in LAYOUTS.items():
        for n in NUMBERS:
            for places in layout.choices(n):
                found = layout_of(scene_in(places))
                assert found == name or set(places) <= set(LAYOUTS[found].singles), (name, places)
    assert layout_of(scene_in(("front left", "near left"))) == "overlap"
    assert layout_of(scene_in(("front left", "back left"))) == "rows"
    assert layout_of(scene_in(("left", "right"))) is None
    assert layout_of(scene_in(("near left", "near right"))) is None


@pytest.mark.parametrize("name", ["squirrel", "armadillo"])
def test_the_built_in_animals_that_come_nearest_keep_the_limits_of_layouts(name):
    """Of all, the squirrel comes nearest to the frame and to its neighbours, and the armadillo is the narrowest."""
    found = layout_measures(name, load_animal(name))
    assert [measure.name for measure in found if not measure.kept] == []
    assert min(found[0].value - 1.2, found[1].value, found[3].value - 12) < 0.1


@pytest.mark.parametrize(("size", "missed"), [(2.2, ["frame", "neighbours"]), (0.9, ["width"])])
def test_an_animal_that_does_not_fit_is_reported(size, missed):
    animal = replace(load_animal("squirrel"), size=size)
    lines = {m.name: advice(m) for m in layout_measures("squirrel", animal) if not m.kept}
    assert [name.split()[-1] for name in lines] == missed
    assert all(("greater" if missed == ["width"] else "smaller") in line for line in lines.values())


def test_planes_are_between_objects_that_stand_together():
    """Half-way between any two places of a row that a layout combines lies a plane that bounds both."""
    for places in choices():
        for one, other in combinations(places, 2):
            if LAYOUT_PLACES[one].row == LAYOUT_PLACES[other].row:
                middle = (SLOTS[one].position[0] + SLOTS[other].position[0]) / 2
                assert middle in set(neighbours(one)) & set(neighbours(other))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_scenes_in_layouts_have_every_number_of_different_animals(layout):
    scenes = random_in_layout(WORLDS["pug-textures"], layout, 50, seed=0)
    assert scenes == random_in_layout(WORLDS["pug-textures"], layout, 50, seed=0)
    assert [len(scene.objects) for scene in scenes[:5]] == [2, 3, 4, 5, 6]
    for scene in scenes:
        assert len({obj.animal for obj in scene.objects}) == len(scene.objects)
        assert tuple(obj.slot for obj in scene.objects) in LAYOUTS[layout].choices(len(scene.objects))
    assert max(len(scene.objects) for scene in random_in_layout(WORLDS["tiny"], layout, 9, seed=0)) == 4
