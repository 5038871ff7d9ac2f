"""Every built-in animal, texture and background meets the same requirements."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh

from menagerie.envs.catalog import load_animal, load_background, load_texture, names
from menagerie.envs.custom.limits import IN_PAIRS
from menagerie.envs.drawing.background import Rays
from menagerie.envs.drawing.camera import Camera
from menagerie.envs.drawing.placement import place, read_poses
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.shapes.animal import TAGS
from menagerie.envs.shapes.mesh import animal_mesh
from menagerie.envs.shapes.patterns import BLACK
from menagerie.envs.slots import SLOTS
from menagerie.envs.world import PATTERNS, TWELVE_TEXTURES, WORLDS
from tests.envs.conftest import RESOLUTION


@pytest.mark.parametrize("name", names("animals"))
def test_mesh_is_closed_finite_and_wound_outward(name):
    mesh = animal_mesh(load_animal(name))
    solid = trimesh.Trimesh(mesh.vertices, mesh.faces)
    assert np.isfinite(mesh.vertices).all()
    assert solid.is_watertight
    assert solid.is_winding_consistent
    assert solid.volume > 0
    assert np.allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-3)
    outward = (solid.face_normals * mesh.normals[mesh.faces].mean(1)).sum(1)
    assert (outward > 0).mean() > 0.98


@pytest.mark.parametrize("name", names("animals"))
def test_animal_has_its_size_and_stands_on_the_ground(name):
    animal, mesh = load_animal(name), animal_mesh(load_animal(name))
    metres = (mesh.vertices - mesh.origin) * mesh.scale
    assert np.ptp(metres, axis=0).max() == pytest.approx(animal.size, rel=1e-4)
    assert metres[:, 2].min() == pytest.approx(animal.hover, abs=1e-4)
    assert (mesh.ambient >= 0).all()
    assert (mesh.ambient <= 1).all()


@pytest.mark.parametrize("name", names("animals"))
def test_animal_shows_an_eye(name):
    animal, mesh = load_animal(name), animal_mesh(load_animal(name))
    assert TAGS.index("eye") in animal.tags(mesh.vertices, 0.4 * mesh.cell)


@pytest.mark.parametrize("name", names("animals"))
def test_animal_keeps_the_limits(name):
    """Inside the frame, never over to the side of the other object of a pair, and of a fair width in every slot,
    whichever way it faces."""
    assert [limit for limit in IN_PAIRS if not limit.measure(name, load_animal(name)).kept] == []


def test_every_animal_has_a_settled_pose():
    assert set(read_poses()) == set(names("animals"))


@pytest.mark.parametrize("name", names("textures"))
def test_texture_is_a_colour(name):
    points = np.random.default_rng(0).uniform(-2, 2, (20000, 3)).astype(np.float32)
    colors = load_texture(name).colors(points)
    assert colors.shape == (20000, 3)
    assert np.isfinite(colors).all()
    assert colors.min() >= 0
    assert colors.max() <= 1


def test_a_pattern_covers_any_texture():
    points = np.random.default_rng(0).uniform(-2, 2, (20000, 3)).astype(np.float32)
    for name in ("red", "wood", "dotted"):
        bare, plain, banded = (load_texture(f"{pattern}{name}").colors(points) for pattern in ("", "plain ", "banded "))
        assert (plain == bare).all()
        black = (banded != bare).any(1)
        assert black.mean() == pytest.approx(0.5, abs=0.03)
        assert (banded[black] == np.float32(BLACK)).all()


@pytest.mark.parametrize("name", names("backgrounds"))
def test_background_is_finite_light_behind_the_objects(name):
    background = load_background(name)
    drawn = background.draw(Rays(Camera(96)), background.light)
    for picture in (drawn.ambient, drawn.direct, drawn.points):
        assert picture.shape == (96, 96, 3)
        assert np.isfinite(picture).all()
    assert drawn.ambient.min() >= 0
    assert drawn.direct.min() >= 0
    assert drawn.direct.any(), "nothing for a shadow to darken"
    raised = drawn.points[drawn.points[..., 2] > 0.01]
    assert raised[:, 1].min() > 1.2, "the compositor never draws scenery in front of objects"


@pytest.mark.parametrize("textures", [TWELVE_TEXTURES, PATTERNS], ids=["twelve", "patterns"])
def test_textures_differ_under_every_light(world, textures):
    """Mean colours of the same animal in two textures are far apart, whatever the light."""
    renderer = Renderer(replace(world, textures=textures), RESOLUTION)
    for background in world.backgrounds:
        scenes = [Scene(background, (Object("rabbit", texture, "center"),)) for texture in textures]
        images, masks = renderer.render(scenes)
        means = np.array([image[mask == 1].mean(0) for image, mask in zip(images, masks, strict=True)])
        apart = np.linalg.norm(means[:, None] - means[None], axis=-1) + 1e3 * np.eye(len(means))
        assert apart.min() > 30, (background, textures, means)


def test_worlds_name_only_what_exists():
    for world in WORLDS.values():
        assert set(world.animals) <= set(names("animals"))
        assert set(world.textures) <= set(names("textures"))
        assert set(world.backgrounds) <= set(names("backgrounds"))


def test_views_differ_within_the_slots_bounds():
    poses = [place("rabbit", "left", view) for view in range(50)]
    assert len({pose.yaw for pose in poses}) == 50
    slot = SLOTS["left"]
    for pose in poses:
        assert abs(pose.yaw - slot.yaws[0]) <= slot.yaw_range
        assert abs(pose.scale / slot.scale - 1) <= slot.scale_range + 1e-9
        assert abs(pose.position[0] - slot.position[0]) <= slot.shift_range[0]
    assert place("rabbit", "left", 3) == place("rabbit", "left", 3)


def test_a_single_animal_faces_both_ways():
    """Like the animals of pairs; else no single-object scene would show an animal facing left."""
    facing_right = [place("rabbit", "center", view).yaw > -90 for view in range(40)]
    assert 8 < sum(facing_right) < 32
