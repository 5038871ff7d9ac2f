"""Other people's renderers see what ours sees."""

import numpy as np
import pytest

from envs.checks.against_external import LEAST_OVERLAP, LEAST_WITHIN, ask
from envs.checks.external_renderers import WITNESSES, open_witness
from envs.common.errors import UserError
from envs.render.renderer import Renderer
from envs.sampling import random_scenes

RESOLUTION = 96


@pytest.fixture(scope="module")
def seen(world):
    scenes = random_scenes(world, 5, seed=3)
    return scenes, Renderer(world, RESOLUTION).render(scenes).masks


@pytest.fixture(params=WITNESSES)
def witness(request):
    try:
        open_witness(request.param, 16).close()
    except UserError as error:
        pytest.skip(str(error))
    return request.param


def test_silhouettes_and_depth_agree(witness, seen):
    for found in ask(witness, *seen):
        assert found.overlap >= LEAST_OVERLAP, found
        assert found.within >= LEAST_WITHIN, found
        assert found.depth < 0.001


def test_a_wrong_camera_would_be_noticed(witness, seen):
    scenes, masks = seen
    shifted = np.roll(masks, 2, axis=2)
    assert min(found.overlap for found in ask(witness, scenes, shifted)) < LEAST_OVERLAP


def test_instances_are_told_apart(witness, seen):
    scenes, masks = seen
    swapped = np.where(masks == 1, 2, np.where(masks == 2, 1, masks)).astype(np.uint8)
    pairs = [n for n, scene in enumerate(scenes) if len(scene.things) == 2]
    assert max(found.overlap for found in ask(witness, [scenes[n] for n in pairs], swapped[pairs])) < 0.1


def test_an_unknown_witness_is_refused():
    with pytest.raises(UserError, match="did you mean 'pyrender'"):
        open_witness("pyrendr", 64)
