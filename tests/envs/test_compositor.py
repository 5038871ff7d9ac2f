"""The compositor agrees with the direct renderer, in colours, shadows, depth and masks."""

import numpy as np
import pytest

from menagerie.envs.catalog import load_background
from menagerie.envs.checks.against_direct import TOUCHED_MEAN, TOUCHED_WORST, WHOLE_MEAN, compare_with_direct, psnr
from menagerie.envs.checks.direct import render_directly
from menagerie.envs.drawing.camera import VIEWS
from menagerie.envs.drawing.raster import Samples
from menagerie.envs.drawing.shading import Skin, shade, tonemap
from menagerie.envs.render.compositor import LIGHT_BOX
from menagerie.envs.render.renderables import EntryKey
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.shapes.vectors import dot, normalize
from menagerie.envs.slots import SLOTS, Slot
from tests.envs.conftest import RESOLUTION


def test_composed_scenes_agree_with_the_direct_renderer(renderer, scenes):
    images, masks = renderer.render(scenes)
    rows = zip(scenes, images, masks, renderer.areas(scenes), strict=True)
    results = [compare_with_direct(*row, renderer.world) for row in rows]
    assert np.mean([result.whole for result in results]) >= WHOLE_MEAN
    assert np.mean([result.touched for result in results]) >= TOUCHED_MEAN
    assert min(result.touched for result in results) >= TOUCHED_WORST
    assert max(result.masks_differ for result in results) < 0.01


def test_compiled_shader_agrees_with_its_formulas():
    """The compiled shader has the formulas of `Light` and `tonemap`."""
    random = np.random.default_rng(0)
    albedo, (specular, highlight, ambient) = random.random((99, 3), np.float32), random.random((3, 99), np.float32)
    sun, normals = VIEWS[0].sun, normalize(random.standard_normal((99, 3), np.float32))
    samples = Samples(*[None] * 5, normals, None, ambient, None)
    lights = [load_background(name).light for name in ("desert", "city")]
    for colors, light in zip(shade(samples, Skin(albedo, specular, highlight), lights, sun), lights, strict=True):
        toward = np.clip(dot(normals, sun), 0, 1)[:, None]
        dark = (albedo + specular[:, None] * np.float32(0.12)) * light.ambient(normals[:, 2:]) * ambient[:, None]
        shine = (highlight * (toward[:, 0] > 0))[:, None] * np.float32(light.sun)
        lit, unlit = tonemap(dark + light.direct(toward) * albedo + shine), tonemap(dark)
        np.testing.assert_allclose(colors, np.concatenate([lit, unlit], 1).T, atol=1e-6)


def test_left_object_is_left_in_the_image(renderer, scenes):
    _, masks = renderer.render(scenes[:4])
    for mask in masks:
        left, right = (np.nonzero(mask == instance)[1].mean() for instance in (1, 2))
        assert left < right


@pytest.fixture
def near_slots(monkeypatch):
    """Two slots in line with the sun, one of them before the other as the camera sees it."""
    still = {"yaw_range": 0.0, "shift_range": (0.0, 0.0), "scale_range": 0.0}
    monkeypatch.setitem(SLOTS, "near", Slot((-0.5, -0.5, 0.0), 1.0, (-25.0,), **still))
    monkeypatch.setitem(SLOTS, "far", Slot((0.35, 0.5, 0.0), 1.0, (-155.0,), **still))


def _near_and_far() -> Scene:
    return Scene("desert", (Object("elephant", "red", "near"), Object("rabbit", "white", "far")))


def _without_shadows_on_objects(renderer: Renderer, scene: Scene) -> np.ndarray:
    """Render with light boxes moved away, so that no object counts as near another's shadow."""
    numbers = renderer.atlas._room.view(np.float64)
    kept = numbers.copy()
    for obj in scene.objects:
        start = renderer.atlas.index[EntryKey.of(obj, scene.view)] // 8 + LIGHT_BOX
        numbers[start : start + 4] = (-2e6, -1e6, -2e6, -1e6)
    image = renderer.render([scene])[0][0]
    numbers[:] = kept
    return image


def test_object_shades_the_object_behind_it(near_slots, world):
    scene, renderer = _near_and_far(), Renderer(world, RESOLUTION)
    (image,), (mask,) = renderer.render([scene])
    far = mask == 1 + [obj.slot for obj in scene.objects].index("far")
    alone = renderer.render([Scene("desert", (Object("rabbit", "white", "far"),))])[0][0]
    darker = far & (alone.astype(int).sum(-1) - image.astype(int).sum(-1) > 60)
    assert darker.sum() > 0.05 * far.sum()
    direct = render_directly(scene, RESOLUTION, world)
    right = psnr((image.astype(float) - direct.image)[direct.touched] ** 2)
    off = _without_shadows_on_objects(renderer, scene)
    wrong = psnr((off.astype(float) - direct.image)[direct.touched] ** 2)
    assert right >= TOUCHED_WORST
    assert wrong < right - 6


def test_nearer_object_hides_the_farther(near_slots, world):
    scene, renderer = _near_and_far(), Renderer(world, RESOLUTION)
    _, (mask,) = renderer.render([scene])
    near = 1 + [obj.slot for obj in scene.objects].index("near")
    alone = renderer.render([Scene("desert", (Object("elephant", "red", "near"),))])[1][0] == 1
    other = renderer.render([Scene("desert", (Object("rabbit", "white", "far"),))])[1][0] == 1
    assert (alone & other).sum() > 10, "they overlap"
    assert (mask[alone & other] == near).mean() > 0.97
    assert (mask != render_directly(scene, RESOLUTION, world).mask).mean() < 0.003


def test_a_scene_of_four_objects_is_composed_as_it_is_drawn_directly(monkeypatch, world):
    for index, (x, y) in enumerate(((-1.1, 0.6), (-0.4, -0.6), (0.4, 0.6), (1.1, -0.6))):
        monkeypatch.setitem(SLOTS, f"place {index}", Slot((x, y, 0.0), 0.6, (-25.0,)))
    animals = ("elephant", "rabbit", "crocodile", "penguin")
    objects = tuple(Object(animal, "red", f"place {index}") for index, animal in enumerate(animals))
    scene = Scene("city", objects)
    renderer = Renderer(world, RESOLUTION)
    (image,), (mask,) = renderer.render([scene])
    result = compare_with_direct(scene, image, mask, *renderer.areas([scene]), world)
    assert set(np.unique(mask)) == {0, 1, 2, 3, 4}
    assert result.touched >= TOUCHED_WORST


def test_background_far_from_objects_stays_as_it_is(renderer, scenes):
    images, _ = renderer.render([scenes[0], Scene("desert", (Object("crocodile", "white", "center"),))])
    assert np.array_equal(images[0, :4], images[1, :4])
    assert EntryKey("elephant", "left", 0) in renderer.atlas.checked
