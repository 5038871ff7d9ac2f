"""Every scene of a world is rendered, checked and captioned truly."""

import numpy as np

from menagerie.envs.render.renderer import Pictures, Renderer
from menagerie.envs.world import World
from menagerie.generators.storage.scene_checks import check_factorial, false_captions

WORLD = World("few", ("cat", "elephant", "penguin"), ("red", "white"), ("city", "desert"))


def test_a_world_passes_whole():
    stages = []
    count, problems = check_factorial(WORLD, 32, 0, 1, lambda stage, done, total: stages.append((stage, done == total)))
    assert count == len(list(WORLD.factorial())) == 3 * 2 * 2 + 2 * 2 * (3 * 2) * (2 * 2)
    assert problems == []
    assert ("scenes", True) in stages


def test_a_false_caption_is_named():
    scenes = [scene for scene in WORLD.factorial() if scene.relation][::7]
    images, masks = Renderer(WORLD, 32).render(scenes)
    exchanged = np.where(masks == 1, 2, np.where(masks == 2, 1, masks)).astype(np.uint8)
    assert false_captions(scenes, Pictures(images, masks)) == []
    assert len(false_captions(scenes, Pictures(images, exchanged))) == len(scenes)
