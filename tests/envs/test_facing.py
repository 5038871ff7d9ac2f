"""Objects that face outward: slots of their own at the same places."""

from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.drawing.placement import pose_in_slot
from menagerie.envs.relations import RELATIONS
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import OUTWARD, PAIR_SLOTS, SLOTS, facings, place_of
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.scene_checks import RenderChecks


def pair(left, right):
    """A rabbit and a penguin in two slots."""
    return Scene("city", (Object("rabbit", "red", left), Object("penguin", "white", right)))


def test_outward_slots_are_the_inward_ones_turned_round():
    """Scene tables hold numbers of slots: their order stays."""
    assert tuple(SLOTS)[:11] == PAIR_SLOTS
    assert PAIR_SLOTS[-2:] == ("left outward", "right outward")
    for side in ("left", "right"):
        inward, outward = (SLOTS[slot] for slot in facings(side))
        assert outward == replace(inward, yaws=tuple(-180.0 - yaw for yaw in inward.yaws))


def test_every_place_of_pairs_is_faced_both_ways():
    for slot in {slot for relation in RELATIONS.values() for slot in relation.slots}:
        yaws = {yaw for facing in facings(slot) for yaw in SLOTS[facing].yaws}
        assert yaws == {-27.0, -153.0}


@pytest.mark.parametrize("left", ["left", "left outward"])
@pytest.mark.parametrize("right", ["right", "right outward"])
def test_the_relation_is_that_of_the_places(left, right):
    scene = pair(left, right)
    assert scene.relation == "left/right"
    assert [obj.animal for obj in scene.objects] == ["rabbit", "penguin"]
    assert [place_of(obj.slot) for obj in scene.objects] == ["left", "right"]


def test_one_place_is_for_one_object():
    with pytest.raises(UserError, match="a slot for each"):
        pair("left", "left outward")


@pytest.mark.parametrize("slot", ["left", "right"])
def test_an_object_faces_the_side_that_its_slot_says(slot):
    for view in range(20):
        inward, outward = (np.cos(np.radians(pose_in_slot("cat", at, view).yaw)) for at in (slot, slot + OUTWARD))
        assert inward * outward < 0
        assert inward > 0 if slot == "left" else inward < 0


def test_scenes_that_face_outward_are_rendered_and_checked():
    """As many pictures as ways to face; the objects cover about as much whichever way they face."""
    scenes = [pair(left, right) for left in facings("left") for right in facings("right")]
    scenes += [replace(scene, view=3) for scene in scenes]
    renderer, checks = Renderer(load_world("tiny"), 48), RenderChecks()
    pictures = renderer.render(scenes)
    assert checks.problems(scenes, *pictures, renderer.areas(scenes)) == []  # equal pictures would be one
    covered = np.stack([(pictures.masks == k).sum((1, 2)) for k in (1, 2)])
    assert (covered.max(1) < 1.5 * covered.min(1)).all()
