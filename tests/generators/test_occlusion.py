"""How much of objects others hide."""

import numpy as np
import pytest

from menagerie.envs.render.occlusion import hidden_shares
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.pictures import hidden_of

WORLD = load_world("tiny")
PAIR = Scene("city", (Object("rabbit", "red", "left"), Object("penguin", "white", "right")))


def behind(view: int) -> Scene:
    """An elephant before a rabbit, and a crocodile beside them."""
    places = {"elephant": "front left", "rabbit": "near left", "crocodile": "front right"}
    return Scene("city", tuple(Object(animal, "red", place) for animal, place in places.items()), view)


def test_hidden_shares_of_masks_agree_with_cases_done_by_hand():
    masks = np.zeros((2, 4, 4), np.uint8)
    masks[0, :2], masks[0, 3, 0] = 1, 2
    shares = hidden_shares([(8, 4), (6,)], masks)
    assert shares.shape == (2, 8)
    assert shares[0, :2].tolist() == [0, 0.75]
    assert shares[1, 0] == 1, "nothing of it shows"
    assert np.isnan(shares[0, 2:]).all()
    more = hidden_shares([(5, 1), (6,)], masks)
    assert more[0].tolist()[:2] == [0, 0], "an edge may give an object more pixels than it has alone"


def test_an_atlas_has_how_much_each_object_covers_alone():
    renderer = Renderer(WORLD, 32)
    shares = hidden_of(renderer, [behind(1), PAIR, behind(0)])
    assert shares[1, :2].tolist() == [0, 0]
    for scene, found in zip((behind(1), behind(0)), shares[[0, 2]], strict=True):
        names = [obj.animal for obj in scene.objects]
        (mask,) = renderer.render([scene]).masks
        for k, obj in enumerate(scene.objects):
            alone = renderer.render([Scene("city", (obj,), scene.view)]).masks.sum()
            assert found[k] == pytest.approx(max(0, 1 - (mask == k + 1).sum() / alone), abs=0.06)
        assert found[names.index("rabbit")] > 0.1
        assert found[names.index("crocodile")] == 0
