"""The same scene is the same bytes, however it is rendered."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.drawing.placement import read_poses
from menagerie.envs.render import entry_identity
from menagerie.envs.render.renderer import Pictures, Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS, Slot
from menagerie.envs.world import World
from tests.envs.conftest import RESOLUTION


@pytest.fixture(scope="module")
def rendered(renderer, scenes):
    return renderer.render(scenes)


def test_mask_has_a_number_for_each_object(renderer, rendered, scenes):
    images, masks = rendered
    assert images.shape == (len(scenes), RESOLUTION, RESOLUTION, 3)
    assert images.dtype == masks.dtype == np.uint8
    for scene, mask in zip(scenes, masks, strict=True):
        assert set(np.unique(mask)) == set(range(len(scene.objects) + 1))
    assert renderer.render([]).images.shape == (0, RESOLUTION, RESOLUTION, 3)


def test_image_depends_neither_on_batch_nor_on_order(renderer, rendered, scenes):
    images, masks = rendered
    backward = renderer.render(scenes[::-1])
    assert all(np.array_equal(part[::-1], whole) for part, whole in zip(backward, (images, masks), strict=True))
    for index, scene in enumerate(scenes):
        assert np.array_equal(renderer.render([scene])[0][0], images[index])


def test_workers_and_their_cache_give_the_same_bytes(world, rendered, scenes, tmp_path):
    steps = []
    parallel = Renderer(world, RESOLUTION, tmp_path, workers=2)
    parallel.prepare(scenes[:1], lambda done, total: steps.append((done, total)))
    records = 2 + len(world.backgrounds)  # the objects', and those of the view's backgrounds
    assert steps == [(done, records) for done in range(1, records + 1)]
    warm = Renderer(world, RESOLUTION, tmp_path)
    warm.prepare(scenes[:1], lambda done, total: steps.append((done, total)))
    assert len(steps) == records, "everything was in the folder"
    for one in (parallel, warm):
        assert np.array_equal(one.render(scenes[:1])[0], rendered[0][:1])


def test_identity_depends_on_what_determines_pixels():
    world = World("one", ("cat",), ("red",), ("city",))
    others = [replace(world, textures=("white",)), replace(world, backgrounds=("desert",)), replace(world, own="duck")]
    names = {entry_identity(64, world), entry_identity(65, world), *(entry_identity(64, other) for other in others)}
    assert len(names) == 5
    assert entry_identity(64, replace(world, name="another", animals=("dog",))) == entry_identity(64, world)


def test_mask_covers_the_pixels_of_its_object(renderer, rendered, scenes):
    """Another texture changes every pixel of an object's mask, and none beyond its soft edge."""
    for scene, mask in zip(scenes[:4], rendered.masks, strict=False):
        for number, obj in enumerate(scene.objects, start=1):
            other = obj._replace(texture="red" if obj.texture == "white" else "white")
            objects = tuple(other if named == obj else named for named in scene.objects)
            before, after = renderer.render([scene, replace(scene, objects=objects)]).images.astype(int)
            moved, inside = np.abs(after - before).max(-1) > 0, np.pad(mask == number, 1)
            near = np.any([np.roll(inside, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)], 0)[1:-1, 1:-1]
            assert (moved[mask == number]).mean() > 0.9  # tagged parts, as eyes, keep their colours
            assert not (moved & ~near).any()


def test_animal_that_faces_left_mirrors_one_that_faces_right(world, monkeypatch):
    """Bodies are symmetric, and so is the first camera: only light tells left from right."""
    still = {"yaw_range": 0.0, "shift_range": (0.0, 0.0), "scale_range": 0.0}
    monkeypatch.setitem(SLOTS, "here", Slot((-0.6, 0.2, 0.0), 0.9, (-27.0,), **still))
    monkeypatch.setitem(SLOTS, "there", Slot((0.6, 0.2, 0.0), 0.9, (-153.0,), **still))
    animals = [name for name in world.animals if read_poses()[name].roll == 0][:3]
    few = replace(world, textures=("red",), backgrounds=("desert",))
    scenes = [Scene("desert", (Object(name, "red", slot),)) for name in animals for slot in ("here", "there")]
    masks = Renderer(few, RESOLUTION).render(scenes).masks
    assert animals
    assert (masks[::2] != masks[1::2, :, ::-1]).mean() < 0.002


def test_given_memory_is_filled(renderer, rendered, scenes):
    out = Pictures(*(np.full_like(part, 7) for part in rendered))
    pictures = renderer.render(scenes, out)
    assert pictures.images is out.images
    assert all(map(np.array_equal, pictures, rendered))


def test_world_and_scene_import_no_numpy():
    program = (
        "import sys, menagerie.envs.world, menagerie.envs.scene\nprint({'numpy', 'numba', 'torch'} & {*sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "set()"
