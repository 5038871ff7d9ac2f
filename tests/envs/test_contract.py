"""The contract of ingredients: what every built-in animal, texture, background, slot and view must be."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh

from menagerie.envs.catalog import load_animal, load_background, load_texture, names
from menagerie.envs.custom.limits import IN_PAIRS
from menagerie.envs.drawing.background import Rays
from menagerie.envs.drawing.camera import CAMERAS, SUNS, TARGET, Camera, View, view_of
from menagerie.envs.drawing.placement import pose_in_slot, read_poses
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.shapes.animal import TAGS
from menagerie.envs.shapes.mesh import animal_mesh
from menagerie.envs.shapes.patterns import BLACK
from menagerie.envs.slots import SLOTS
from menagerie.envs.world import PATTERNS, TWELVE_TEXTURES, WORLDS
from tests.envs.conftest import RESOLUTION

POINTS = np.random.default_rng(0).uniform(-2, 2, (20000, 3)).astype(np.float32)


def check_animal(name: str) -> None:
    """A closed body of its size on the ground, wound outward, with an eye, within the limits, with a stored pose."""
    animal, mesh = load_animal(name), animal_mesh(load_animal(name))
    solid = trimesh.Trimesh(mesh.vertices, mesh.faces)
    assert np.isfinite(mesh.vertices).all()
    assert solid.is_watertight
    assert solid.is_winding_consistent
    assert solid.volume > 0
    assert np.allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-3)
    assert ((solid.face_normals * mesh.normals[mesh.faces].mean(1)).sum(1) > 0).mean() > 0.98
    metres = (mesh.vertices - mesh.origin) * mesh.scale
    assert np.ptp(metres, axis=0).max() == pytest.approx(animal.size, rel=1e-4)
    assert metres[:, 2].min() == pytest.approx(animal.hover, abs=1e-4)
    assert 0 <= mesh.ambient.min() <= mesh.ambient.max() <= 1
    assert TAGS.index("eye") in animal.tags(mesh.vertices, 0.4 * mesh.cell)
    assert [limit for limit in IN_PAIRS if not limit.measure(name, animal).kept] == []
    assert name in read_poses()


def check_texture(name: str) -> None:
    """A colour at every point."""
    colors = load_texture(name).colors(POINTS)
    assert colors.shape == POINTS.shape
    assert np.isfinite(colors).all()
    assert 0 <= colors.min() <= colors.max() <= 1


def check_background(name: str) -> None:
    """Finite light, some of it from the sun, and no scenery before the objects, where the compositor never draws it."""
    background = load_background(name)
    drawn = background.draw(Rays(Camera(96)), background.light)
    for picture in (drawn.ambient, drawn.direct, drawn.points):
        assert picture.shape == (96, 96, 3)
        assert np.isfinite(picture).all()
    assert min(drawn.ambient.min(), drawn.direct.min()) >= 0
    assert drawn.direct.any(), "nothing for a shadow to darken"
    assert drawn.points[drawn.points[..., 2] > 0.01][:, 1].min() > 1.2


def check_slot(name: str) -> None:
    """Poses within the slot's bounds in every view, not the same in all."""
    slot = SLOTS[name]
    poses = [pose_in_slot("cat", name, view) for view in range(60)]
    assert len(set(poses)) == 60
    for pose in poses:
        assert min(abs(pose.yaw - yaw) for yaw in slot.yaws) <= slot.yaw_range
        assert abs(pose.position[0] - slot.position[0]) <= slot.shift_range[0] + 1e-9
        assert abs(pose.position[1] - slot.position[1]) <= slot.shift_range[1] + 1e-9
        assert abs(pose.scale / slot.scale - 1) <= slot.scale_range + 1e-9


CONTRACT = {"animals": check_animal, "textures": check_texture, "backgrounds": check_background}
CASES = [(check, name) for folder, check in CONTRACT.items() for name in names(folder)]
CASES += [(check_slot, name) for name in SLOTS]


@pytest.mark.parametrize(("check", "name"), CASES, ids=lambda part: part if isinstance(part, str) else part.__name__)
def test_ingredient_meets_its_contract(check, name):
    check(name)


def test_pattern_covers_half_of_any_texture():
    for name in ("red", "wood", "dotted"):
        bare, plain, banded = (load_texture(f"{pattern}{name}").colors(POINTS) for pattern in ("", "plain ", "banded "))
        assert (plain == bare).all()
        black = (banded != bare).any(1)
        assert black.mean() == pytest.approx(0.5, abs=0.03)
        assert (banded[black] == np.float32(BLACK)).all()


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


def test_worlds_name_only_built_in_ingredients():
    for world in WORLDS.values():
        for folder in CONTRACT:
            assert set(getattr(world, folder)) <= set(names(folder))


def test_single_animal_faces_both_ways():
    """Like the animals of pairs; else no single-object scene would show an animal facing left."""
    facing_right = [pose_in_slot("rabbit", "center", view).yaw > -90 for view in range(40)]
    assert 8 < sum(facing_right) < 32


def test_views_use_every_camera_and_sun():
    views = [view_of(number) for number in range(300)]
    assert {view.camera for view in views} == set(CAMERAS)
    assert {view.light for view in views} == set(SUNS)
    assert view_of(0) == View()


def test_cameras_look_at_the_middle_and_suns_shine_from_the_left_behind_them():
    for number in range(40):
        camera = Camera(100, view_of(number))
        assert np.allclose(camera.project(TARGET[None])[0, :2], 50, atol=1e-3)
        assert 6.9 < np.linalg.norm(camera.eye - TARGET) < 8
        assert np.allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-5)
        x, y, z = camera.view.sun
        assert np.isclose(x * x + y * y + z * z, 1, atol=1e-5)
        assert max(x, y) < 0
        assert z > 0.5
