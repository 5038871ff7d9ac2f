"""Which places layouts combine, and the one relation that any two objects of a layout have."""

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest

from menagerie.envs.catalog import load_animal
from menagerie.envs.core.errors import UserError
from menagerie.envs.custom.limits import IN_LAYOUTS, neighbours
from menagerie.envs.layouts import LAYOUTS, NEAR, layout_of
from menagerie.envs.relations import RELATIONS, pair_slots, relation_from, truth
from menagerie.envs.scene import Object, RelatedObjects, Scene
from menagerie.envs.slots import LAYOUT_SLOTS, SLOTS
from menagerie.envs.world import WORLDS
from menagerie.envs.worlds import random_in_layout

NUMBERS = range(1, 7)


def scene_in(*places):
    return Scene("city", tuple(Object("cat", "red", place) for place in places))


def choices():
    return [places for layout in LAYOUTS.values() for n in NUMBERS for places in layout.choices(n)]


def test_columns_and_rows_agree_with_positions_and_numbers_of_slots_stay():
    assert list(LAYOUT_SLOTS) == list(SLOTS)[-13:]
    for slot in map(SLOTS.get, LAYOUT_SLOTS):
        assert np.sign(slot.column) == np.sign(slot.position[0])
        assert (slot.position[2] > 0) == (slot.row == "high")


def test_choices_of_a_layout_are_different_and_in_order():
    numbers = {name: [len(layout.choices(n)) for n in NUMBERS] for name, layout in LAYOUTS.items()}
    assert numbers == {"apart": [6, 15, 20, 15, 6, 1], "rows": [6, 15, 20, 15, 6, 1], "overlap": [10, 4, 8, 3, 3, 3]}
    for places in choices():
        assert list(places) == sorted(set(places))
        assert tuple(obj.slot for obj in scene_in(*places).objects) == places
    for n in (0, 7):
        with pytest.raises(UserError, match=f"not for {n}"):
            LAYOUTS["rows"].choices(n)


def test_a_choice_is_drawn_as_often_as_any_other():
    layout, random = LAYOUTS["overlap"], np.random.default_rng(0)
    drawn = [layout.places(3, random) for _ in range(800)]
    assert min(drawn.count(places) for places in layout.choices(3)) > 70


def test_overlap_hides_by_the_front_place_of_the_column_and_near_objects_are_apart():
    for n in range(2, 7):
        for places in LAYOUTS["overlap"].choices(n):
            near = [place for place in places if SLOTS[place].row == "near"]
            assert len(near) == (1 if n < 4 else 2)
            assert all(NEAR[place] in places for place in near)
            at = [SLOTS[place].position[0] for place in near]
            assert all(abs(one - other) > 1 for one, other in combinations(at, 2))


def test_any_two_objects_of_a_layout_have_exactly_one_relation_which_agrees_with_positions():
    """Left objects have the smaller x, foremost ones the smaller y, upper ones the greater z."""
    for places in choices():
        scene = scene_in(*places)
        relations = scene.relations
        assert [sorted(ends) for _, *ends in relations] == [list(ends) for ends in combinations(range(len(places)), 2)]
        assert scene.relation == (relations[0].name if len(places) == 2 else None)
        for name, *ends in relations:
            first, second = (SLOTS[places[end]].position for end in ends)
            axis, sign = {"left/right": (0, 1), "front/behind": (1, 1), "above/under": (2, -1)}[name]
            assert sign * first[axis] < sign * second[axis]


def test_relations_of_places_agree_with_cases_done_by_hand():
    scene = scene_in("near left", "front left", "front middle", "high right")
    assert [obj.slot for obj in scene.objects] == ["front left", "front middle", "high right", "near left"]
    assert scene.relations == (
        *(("left/right", 0, 1), ("left/right", 0, 2), ("front/behind", 0, 3)),
        *(("left/right", 1, 2), ("left/right", 3, 1), ("left/right", 3, 2)),
    )
    assert scene_in("high left", "front left").relations == (RelatedObjects("above/under", 1, 0),)
    assert scene_in("left outward", "right").relations == (RelatedObjects("left/right", 0, 1),)
    for slots in (("lower left", "lower right"), ("center",), ("above", "left"), ("center", "left", "right")):
        assert scene_in(*slots).relation is None


@pytest.mark.parametrize("name", RELATIONS)
def test_pairs_stand_in_the_slots_of_their_relation(name):
    relation = RELATIONS[name]
    assert relation_from(*relation.slots) == name
    assert scene_in(*relation.slots).relation == name
    assert set(relation.slots) == set(relation.single_slots) or name == "left/right"
    assert (relation.slots in pair_slots()) != (name == "front/behind")


def test_a_statement_and_its_converse_are_never_both_true():
    for name in RELATIONS:
        for first, second in permutations(LAYOUT_SLOTS, 2):
            truths = truth(name, first, second), truth(name, second, first)
            assert truths in {(True, False), (False, True), (False, False), (None, None)}
            assert (truths[0] is True) == (relation_from(first, second) == name)


@pytest.mark.parametrize(
    ("name", "first", "second", "known"),
    [
        ("front/behind", "front left", "front right", False),
        ("above/under", "high left", "high right", False),
        ("left/right", "front middle", "back middle", False),
        ("left/right", "front left", "near left", None),  # a little to the left
        ("front/behind", "front left", "back right", None),  # in front, and to the left
        ("above/under", "back left", "front right", None),  # higher in the image
    ],
)
def test_a_level_axis_makes_a_statement_false_and_others_are_unsaid(name, first, second, known):
    assert truth(name, first, second) is known


def test_the_layout_of_a_scene_is_known_by_its_places():
    for layout in LAYOUTS.values():
        for n in NUMBERS:
            for places in layout.choices(n):
                found = layout_of(scene_in(*places))
                assert found == layout or set(places) <= set(found.singles), (layout, places)
    assert layout_of(scene_in("front left", "near left")) == LAYOUTS["overlap"]
    assert layout_of(scene_in("front left", "back left")) == LAYOUTS["rows"]
    assert layout_of(scene_in("left", "right")) is None
    assert layout_of(scene_in("near left", "near right")) is None


@pytest.mark.parametrize("name", ["squirrel", "armadillo"])
def test_the_built_in_animals_that_come_nearest_keep_the_limits_of_layouts(name):
    """Of all, the squirrel comes nearest to the frame and to its neighbours, and the armadillo is the narrowest."""
    found = [limit.measure(name, load_animal(name)) for limit in IN_LAYOUTS]
    assert all(measured.kept for measured in found)
    assert min(found[0].value - 1.2, found[1].value, found[3].value - 12) < 0.1


@pytest.mark.parametrize(("size", "missed"), [(2.2, ["frame", "neighbours"]), (0.9, ["width"])])
def test_an_animal_that_does_not_fit_is_reported(size, missed):
    animal = replace(load_animal("squirrel"), size=size)
    found = [limit.measure("squirrel", animal) for limit in IN_LAYOUTS]
    assert [measured.limit.name.split()[-1] for measured in found if not measured.kept] == missed
    assert all(("greater" if size < 1 else "smaller") in measured.advice for measured in found if not measured.kept)


def test_planes_are_between_objects_that_stand_together():
    """Half-way between any two places of a row that a layout combines lies a plane that bounds both."""
    for places in choices():
        for one, other in combinations(places, 2):
            if SLOTS[one].row == SLOTS[other].row:
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
