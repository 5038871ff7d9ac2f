"""Sizes: distinguishable in every slot, the same pose, and no effect on worlds without them."""

import numpy as np
import pytest

from menagerie.envs.custom.world_file import load_own_world
from menagerie.envs.drawing.placement import pose_in_slot
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import PAIR_SLOTS, SIZES, SLOTS
from menagerie.envs.worlds import load_world

WORLD = load_world("tiny-sizes")


@pytest.fixture(scope="module")
def renderer():
    return Renderer(WORLD, 64)


def alone(animal, slot, size, view=0):
    return Scene("city", (Object(animal, "white", slot, size),), view)


@pytest.mark.parametrize("animal", WORLD.animals)
def test_big_is_visibly_larger_than_small_in_every_slot(renderer, animal):
    scenes = [alone(animal, slot, size) for slot in PAIR_SLOTS for size in ("small", "big")]
    masks = renderer.render(scenes).masks
    areas = (masks > 0).sum((1, 2)).reshape(-1, 2)
    assert (areas[:, 0] >= 24).all(), "enough pixels to know it by"
    assert (areas[:, 1] > 1.8 * areas[:, 0]).all()


def test_no_view_makes_a_small_object_as_large_as_a_big_one():
    for slot in SLOTS.values():
        assert SIZES["small"] * (1 + slot.scale_range) < 0.9 * SIZES["big"] * (1 - slot.scale_range)


def test_an_animal_has_one_pose_in_all_sizes(renderer):
    for animal, slot in (("rabbit", "left"), ("penguin", "above"), ("crocodile", "center")):
        small, big = (pose_in_slot(animal, slot, 3, size) for size in ("small", "big"))
        assert (small.yaw, small.position[:2]) == (big.yaw, big.position[:2])
        assert small.scale == SIZES["small"] * big.scale
        scenes = [alone(animal, slot, size, 3) for size in ("small", "big")]
        small, big = (np.nonzero(mask.any(1))[0].max() for mask in renderer.render(scenes).masks)
        assert abs(small - big) <= 4, "it stands, or hangs, where the big one does"


def test_a_big_object_is_what_a_world_without_sizes_shows(renderer):
    objects = (Object("elephant", "red", "left", "big"), Object("rabbit", "grass", "right", "big"))
    sized = Scene("desert", objects)
    plain = Scene("desert", tuple(obj._replace(size="") for obj in objects))
    images, masks = Renderer(load_world("tiny"), 64).render([plain])
    assert np.array_equal(renderer.render([sized]).images, images)
    assert np.array_equal(renderer.render([sized]).masks, masks)


def test_sizes_are_part_of_a_scene_where_there_are_any():
    assert alone("rabbit", "center", "").key == "white rabbit@center|city|0"
    assert alone("rabbit", "center", "small").key == "small white rabbit@center|city|0"
    assert alone("rabbit", "center", "small") != alone("rabbit", "center", "big")


def test_a_world_holds_every_animal_in_every_size():
    plain = load_world("tiny")
    assert len(set(WORLD.singles())) == 2 * len(list(plain.singles()))
    assert (
        len(set(WORLD.factorial())) == len(list(WORLD.factorial())) == 2 * 24 + 4 * (len(list(plain.factorial())) - 24)
    )
    assert all(WORLD.check(scene) for scene in WORLD.singles())


def own(folder, text):
    (folder / "mine.toml").write_text(text)
    return load_own_world(folder / "mine.toml")


def test_a_world_of_ones_own_has_the_sizes_that_it_names(tmp_path):
    assert own(tmp_path, 'extends = "tiny"\nsizes = ["big", "small"]').sizes == ("big", "small")
    assert own(tmp_path, 'extends = "tiny-sizes"').sizes == ("small", "big")
    assert own(tmp_path, 'extends = "tiny-sizes"\nsizes = []').sizes == ()
    assert own(tmp_path, 'extends = "tiny"').sizes == ()
