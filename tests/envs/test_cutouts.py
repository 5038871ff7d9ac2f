"""Cut-out photographs as animals of a world: how they are drawn, and that nothing else changes."""

import numpy as np
import pytest
from PIL import Image

from menagerie.envs.checks.against_direct import HIDDEN_APART, TOUCHED_WORST, UNCOVERED, compare_with_direct
from menagerie.envs.core.errors import UserError
from menagerie.envs.custom.cutouts import load_cutout
from menagerie.envs.custom.limits import IN_PAIRS
from menagerie.envs.drawing.billboard import contact, make_billboard
from menagerie.envs.drawing.camera import VIEWS, view_of
from menagerie.envs.drawing.placement import pose_in_slot
from menagerie.envs.render.entry import build_entry
from menagerie.envs.render.renderables import EntryKey, ground
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.scene_checks import RenderChecks
from tests.helpers.cutout_files import GREY, ORANGE, PALE, draw, world_of

SIDE = 48
LION = '[animal.lion]\ncutouts = ["lion.png"]\n'


@pytest.fixture
def folder(tmp_path):
    draw(tmp_path / "lion.png", PALE, dark=GREY)
    draw(tmp_path / "tall.png", ORANGE, width=70, height=150)
    return tmp_path


def one(folder, entries=LION, animals='["lion", "penguin"]', more=""):
    return load_world(world_of(folder, entries, animals, more))


def test_cutout_replaces_a_built_in_animal_in_its_world_only(folder):
    scene = Scene("desert", (Object("lion", "red", "left"), Object("penguin", "white", "right")))
    pug = load_world("pug")
    before = Renderer(pug, SIDE).render([scene])
    world = one(folder)
    ours = Renderer(world, SIDE).render([scene])
    assert np.array_equal(Renderer(pug, SIDE).render([scene]).images, before.images), "pug's lion is as it was"
    assert set(np.unique(ours.masks)) == {0, 1, 2}
    assert not np.array_equal(ours.masks == 1, before.masks == 1)
    assert np.array_equal(ours.masks == 2, before.masks == 2), "the penguin is the modelled one"


def entry_of(world, slot):
    return build_entry(EntryKey("lion", slot, 0), world.textures, world.backgrounds, SIDE, dict(world.cutouts))


def test_cutout_has_soft_edges_and_a_solid_inside(folder):
    alpha = entry_of(one(folder), "center").alpha
    assert (alpha == 255).mean() > 0.15
    soft = (alpha > 25) & (alpha < 230)
    assert 0.05 < soft.mean() < 0.5
    assert not alpha[0, 0]


def test_textured_cutout_keeps_the_photographs_brightness(folder):
    world = one(folder)
    scenes = [Scene("desert", (Object("lion", texture, "left"),)) for texture in world.textures]
    images, masks = Renderer(world, 96).render(scenes)
    red, white, green = (image[mask == 1].mean(0) for image, mask in zip(images, masks, strict=True))
    assert red[0] > 2 * max(red[1:]), "red"
    assert np.ptp(white) < 40
    assert green[1] > max(green[0], green[2])
    columns = np.flatnonzero((masks[1] == 1).any(0))
    middle = (columns[0] + columns[-1]) // 2
    rear, front = images[1][:, :middle][masks[1][:, :middle] == 1], images[1][:, middle:][masks[1][:, middle:] == 1]
    assert rear.mean() + 40 < front.mean(), "its dark half is darker"


def test_natural_cutout_keeps_the_photographs_colours(folder):
    world = one(folder, '[animal.lion]\ncutouts = ["tall.png"]\ntexture = "own"\n' + DRAWN_CAT, '["lion", "cat"]')
    assert world.textures == ("natural",)
    (image,), (mask,) = Renderer(world, 96).render([Scene("desert", (Object("lion", "natural", "left"),))])
    color = image[mask == 1].mean(0)
    assert np.abs(color / color.max() - np.array(ORANGE) / max(ORANGE)).max() < 0.15


DRAWN_CAT = '[animal.cat]\ncutouts = ["lion.png"]\ntexture = "own"\n'


def test_views_show_different_photographs(folder):
    world = one(folder, '[animal.lion]\ncutouts = ["lion.png", "tall.png"]\n')
    cutout = load_cutout(dict(world.cutouts)["lion"])
    shown = [cutout.photographs.index(cutout.photograph_for("lion", view)) for view in range(40)]
    assert 10 < sum(shown) < 30
    for slot in ("left", "above"):
        assert make_billboard(cutout, "lion", slot, 3).photograph is cutout.photographs[shown[3]], (
            "the same in all slots"
        )
    width, height = zip(*(cutout.metres(photograph) for photograph in cutout.photographs), strict=True)
    assert [max(sides) for sides in zip(width, height, strict=True)] == pytest.approx([1.4, 1.4])


@pytest.mark.parametrize("mirrored", [True, False])
def test_cutout_that_faces_left_is_mirrored_unless_forbidden(folder, mirrored):
    world = one(folder, f"{LION}mirrored = {str(mirrored).lower()}\n")
    scenes = [Scene("desert", (Object("lion", "white", slot),)) for slot in ("left", "left outward")]
    masks = Renderer(world, SIDE).render(scenes).masks
    heads = []
    for mask in masks == 1:
        rows, columns = np.nonzero(mask)
        top = columns[rows <= rows.min() + 2].mean()  # the head is what reaches highest
        heads.append(top > (columns.min() + columns.max()) / 2)
    assert heads == ([True, False] if mirrored else [True, True])


def test_cutout_darkens_the_ground_at_its_feet(folder):
    world, view = one(folder), view_of(0)
    cutout = load_cutout(dict(world.cutouts)["lion"])
    points = ground("desert", SIDE, view).light_points
    standing, floating = (
        contact(make_billboard(cutout, "lion", slot, 0), points, view.sun) for slot in ("left", "above")
    )
    assert standing.min() < 0.6
    assert (standing < 0.9).mean() < 0.03, "near them only"
    assert floating.min() == 1
    entry = entry_of(world, "left")
    assert entry.shadow.min() < 80, "and it throws a shadow"


@pytest.mark.parametrize("slots", [("left", "right"), ("above", "under")])
def test_composed_cutouts_agree_with_the_direct_renderer(folder, slots):
    more = '[animal.cat]\ncutouts = ["tall.png"]\n'
    world = one(folder, LION + more, '["lion", "cat", "rabbit"]')
    for other in ("cat", "rabbit"):
        scene = Scene("city", (Object("lion", "grass", slots[0]), Object(other, "red", slots[1])), 2)
        renderer = Renderer(world, SIDE)
        images, masks = renderer.render([scene])
        result = compare_with_direct(scene, images[0], masks[0], *renderer.areas([scene]), world)
        assert result.touched > TOUCHED_WORST
        assert result.masks_differ < 0.05
        assert not result.cut
        assert min(result.uncovered) > UNCOVERED


def test_cutouts_and_bodies_hide_one_another_in_layouts(folder):
    world = one(folder, LION + '[animal.cat]\ncutouts = ["tall.png"]\n', '["lion", "cat", "rabbit", "elephant"]')
    places = {"lion": "near left", "rabbit": "front left", "elephant": "near middle right", "cat": "front middle"}
    objects = tuple(Object(animal, "red", place) for animal, place in places.items())
    scene, renderer = Scene("city", objects, 2), Renderer(world, SIDE)
    images, masks = renderer.render([scene])
    result = compare_with_direct(scene, images[0], masks[0], *renderer.areas([scene]), world)
    assert result.touched > TOUCHED_WORST
    assert result.hidden_apart < HIDDEN_APART
    assert result.false_relations == 0
    assert not result.cut
    shown = dict(zip((obj.animal for obj in scene.objects), result.uncovered, strict=True))
    assert shown["lion"] < 0.95, "by a body"
    assert shown["rabbit"] == shown["cat"] == 1


def test_photograph_too_small_for_a_resolution_is_refused(folder):
    draw(folder / "lion.png", width=45, height=40)
    Renderer(one(folder), 64)
    with pytest.raises(UserError, match="pixels along its longest side, too few for scenes of 224; it needs 4"):
        Renderer(one(folder), 224)


def test_every_scene_of_cutouts_passes_the_render_checks(folder):
    more = '[animal.cat]\ncutouts = ["tall.png", "lion.png"]\n'
    lists = 'textures = ["red", "white"]\nbackgrounds = ["desert"]\nsizes = ["small", "big"]\n'
    world = one(folder, LION + more, '["lion", "cat"]', lists)
    scenes = list(world.factorial((0, 1)))
    renderer = Renderer(world, 32)
    assert RenderChecks().problems(scenes, *renderer.render(scenes), renderer.areas(scenes)) == []


def test_cutout_stands_in_its_slot_and_faces_the_camera(folder):
    cutout = load_cutout(dict(one(folder).cutouts)["lion"])
    for slot in SLOTS:
        for view in range(6):
            board, pose = make_billboard(cutout, "lion", slot, view), pose_in_slot("lion cut-out", slot, view)
            assert board.foot == pytest.approx(pose.position)
            assert board.across[0] > np.cos(np.radians(21)), "hardly squeezed"
            assert board.flipped == (abs(pose.yaw) > 90)


def test_cutout_keeps_the_limits_by_its_longer_side(folder):
    world = one(folder, '[animal.lion]\ncutouts = ["tall.png"]\n')
    found = [limit.measure("lion", load_cutout(dict(world.cutouts)["lion"])) for limit in IN_PAIRS]
    assert all(measured.kept for measured in found)
    assert found[4].value < found[3].value + 10 < 36, "narrow"


def test_background_of_several_pictures_shows_one_in_each_view(folder):
    for name, color in {"a": (200, 40, 40), "b": (40, 200, 40)}.items():
        Image.new("RGB", (64, 64), color).save(folder / f"{name}.png")
    path = folder / "park.toml"
    path.write_text('extends = "tiny"\nbackgrounds = ["park"]\n[background.park]\nimage = ["a.png", "b.png"]\n')
    world = load_world(str(path))
    numbers = {VIEWS.index(view_of(view)) % 2: view for view in range(30)}
    scenes = [Scene("park", (Object("rabbit", "white", "center"),), numbers[k]) for k in (0, 1)]
    first, second = Renderer(world, SIDE).render(scenes).images[:, 2, 2].astype(int)
    assert first[0] > first[1]
    assert second[1] > second[0]
