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


@pytest.fixture(scope="module")
def drawn(world):
    scenes = random_scenes(world, 3, seed=3)
    return scenes, Renderer(world, RESOLUTION).render(scenes).masks


@pytest.fixture(scope="module", params=EXTERNAL_RENDERERS)
def external(request):
    try:
        EXTERNAL_RENDERERS[request.param](16).close()
    except UserError as error:
        pytest.skip(str(error))
    return request.param


def test_silhouettes_and_depth_agree(external, drawn):
    for result in compare_with_external(external, *drawn):
        assert result.overlap >= LEAST_OVERLAP, result
        assert result.within >= LEAST_WITHIN, result
        assert result.depth < 0.001


def test_shifted_camera_is_noticed(external, drawn):
    scenes, masks = drawn
    shifted = np.roll(masks[:1], 2, axis=2)
    assert min(result.overlap for result in compare_with_external(external, scenes[:1], shifted)) < LEAST_OVERLAP


def test_swapped_instances_are_noticed(external, drawn):
    scenes, masks = drawn
    swapped = np.where(masks == 1, 2, np.where(masks == 2, 1, masks)).astype(np.uint8)
    pairs = [n for n, scene in enumerate(scenes) if len(scene.objects) == 2][:1]
    results = compare_with_external(external, [scenes[n] for n in pairs], swapped[pairs])
    assert max(result.overlap for result in results) < 0.1
