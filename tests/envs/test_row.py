"""Scenes as a row of patterns: where objects stand, what a pattern is, and what is refused."""

import numpy as np
import pytest

from menagerie.envs.render import image_identity
from menagerie.envs.render.renderer import Pictures
from menagerie.envs.render.row import NOISE, RowRenderer, name_pattern, object_columns, renderer_of
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import WORLDS
from menagerie.generators.splits.spatial import SpatialRecipe

SIDE, WIDTH = 40, 4
WORLD = WORLDS["row-15-textures"]


def pair(view: int = 0, first: str = "cat", second: str = "bear", slots: tuple[str, str] = ("left", "right")) -> Scene:
    return Scene("city", (Object(first, "red", slots[0]), Object(second, "grass", slots[1])), view)


@pytest.mark.parametrize("name", [name for name, world in WORLDS.items() if world.row])
def test_objects_stand_in_columns_in_the_order_of_their_slots(name):
    world = WORLDS[name]
    animals, (texture, *_), (background, *_) = world.animals[:2], world.textures, world.backgrounds
    objects = tuple(Object(animal, texture, slot) for animal, slot in zip(animals, ("left", "right"), strict=True))
    scenes = [Scene(background, objects, view) for view in range(300)]
    columns = [object_columns(scene, world.row) for scene in scenes]
    assert all(left < right for left, right in columns)
    assert {column for both in columns for column in both} == set(world.row.places)
    masks = renderer_of(world, SIDE).render(scenes[:20]).masks
    for mask, both in zip(masks, columns, strict=False):
        for number, column in enumerate(both, start=1):
            assert set(np.nonzero(mask == number)[1] // WIDTH) == {column}
        assert not (mask[0].any())
        assert not (mask[-1].any())
        assert not (mask[:, 0].any())
        assert not (mask[:, -1].any())


def test_column_is_the_mean_of_two_patterns():
    scene = pair()
    (image,), (mask,) = RowRenderer(WORLD, SIDE).render([scene])
    for number, obj in enumerate(scene.objects, start=1):
        mean = (name_pattern("animal", obj.animal, SIDE) + name_pattern("texture", obj.texture, SIDE)) / 2
        shown = np.broadcast_to(mean[:, None], image.shape)[mask == number]
        assert np.abs(image[mask == number] - shown).max() <= NOISE + 0.5
    ground = np.broadcast_to(name_pattern("background", "city", SIDE)[:, None], image.shape)[mask == 0]
    assert np.abs(image[mask == 0] - ground).max() <= NOISE + 0.5


def test_swap_exchanges_two_columns():
    scene, swap = pair(5), SpatialRecipe.swap(pair(5))
    renderer = RowRenderer(WORLD, SIDE)
    (image, other), (mask, mirrored) = renderer.render([scene, swap])
    assert (mask == mirrored).all()
    for number in (1, 2):
        mine, theirs = image[mask == number].astype(int), other[mask == 3 - number].astype(int)
        assert np.abs(mine - theirs).max() <= 2 * NOISE + 1
    assert renderer.areas([scene]) == [[(mask == number).sum() for number in (1, 2)]]


def test_row_image_depends_on_its_scene_alone():
    scenes = [pair(view) for view in range(30)]
    images = RowRenderer(WORLD, SIDE).render(scenes).images
    assert len({image.tobytes() for image in images}) == 30, "views in one layout differ"
    out = Pictures(np.ones((1, SIDE, SIDE, 3), np.uint8), np.ones((1, SIDE, SIDE), np.uint8))
    assert RowRenderer(WORLD, SIDE).render(scenes[7:8], out).images is out.images
    assert (out.images[0] == images[7]).all()
    assert not out.masks[0, 0].any()


def test_layouts_in_turn_are_of_the_view_alone():
    row = WORLDS["row-20-in-turn"].row
    shown = [object_columns(pair(view), row) for view in range(45)]
    assert len({*shown}) == 45
    assert shown == [object_columns(pair(view + 45, "crow", "pig"), row) for view in range(45)]
    alone = [object_columns(Scene("city", (Object("cat", "red", "center"),), view), row) for view in range(45)]
    assert all(single in both for (single,), both in zip(alone, shown, strict=True))
    assert {both.index(single) for (single,), both in zip(alone, shown, strict=True)} == {0, 1}


def test_every_world_has_its_own_identity():
    names = {image_identity(world, SIDE) for world in WORLDS.values()}
    assert len(names) == len(WORLDS)
