"""External renderers draw the same silhouettes and depth as ours."""

import numpy as np
import pytest

from menagerie.envs.checks.external_renderers import (
    EXTERNAL_RENDERERS,
    LEAST_OVERLAP,
    LEAST_WITHIN,
    compare_with_external,
)
from menagerie.envs.core.errors import UserError
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.worlds import random_scenes

RESOLUTION = 96


@pytest.mark.parametrize("name", EXTERNAL_RENDERERS)
def test_silhouettes_and_depth_agree(name, world):
    """And a camera that is shifted by two pixels, or objects that are exchanged, are noticed."""
    try:
        EXTERNAL_RENDERERS[name](16).close()
    except UserError as error:
        pytest.skip(str(error))
    scenes = random_scenes(world, 3, seed=3)
    masks = Renderer(world, RESOLUTION).render(scenes).masks
    pair = next(n for n, scene in enumerate(scenes) if len(scene.objects) == 2)
    swapped = np.array([0, 2, 1], np.uint8)[masks[pair]]
    given = np.stack([*masks, np.roll(masks[pair], 2, axis=1), swapped])
    *sound, shifted, exchanged = compare_with_external(name, [*scenes, scenes[pair], scenes[pair]], given)
    for result in sound:
        assert result.overlap >= LEAST_OVERLAP, result
        assert result.within >= LEAST_WITHIN, result
        assert result.depth < 0.001
    assert shifted.overlap < LEAST_OVERLAP
    assert exchanged.overlap < 0.1
