"""What the audit sees of things in small pictures of crowds, which others hide in part or entirely."""

from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.render.occlusion import area_table, hidden_shares
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.pixels import may_hide, wrong_ids
from menagerie.generators.audit.rendered import Renderings, mean_colors, miscoloured, wrong_colors
from menagerie.generators.audit.rows import Block

WORLD = replace(
    load_world("pug-textures"),
    animals=("armadillo", "bear", "camel", "caribou", "elephant", "rhinoceros", "rabbit", "penguin"),
    backgrounds=("arena", "circus"),
)


def scene(background: str, view: int, **places: str) -> Scene:
    things = (Thing(*text.split()[::-1], place.replace("_", " ")) for place, text in places.items())
    return Scene(background, tuple(things), view)


# A caribou of 29 pixels, half of them antlers before sand and a yellow thing.
ANTLERS = scene(
    "circus",
    1,
    back_right="grass rabbit",
    front_left="blue caribou",
    front_middle="red bear",
    front_right="asphalt camel",
    near_left="yellow rhinoceros",
    near_middle_right="orange penguin",
)
# A rhinoceros of which the horn shows, which isn't painted.
HORN = scene(
    "arena",
    1,
    back_right="asphalt rhinoceros",
    front_left="pink armadillo",
    front_middle="blue elephant",
    front_right="yellow caribou",
    near_left="purple penguin",
    near_middle_right="turquoise camel",
)


@pytest.fixture(scope="module")
def renderings(tmp_path_factory) -> Renderings:
    return Renderings(tmp_path_factory.mktemp("renderings"))


def painted(scene: Scene, animal: str, texture: str) -> Scene:
    """The scene with a thing in another texture."""
    things = (thing._replace(texture=texture) if thing.animal == animal else thing for thing in scene.things)
    return replace(scene, things=tuple(things))


@pytest.mark.parametrize(
    ("shown", "resolution", "animal", "alike"),
    [(ANTLERS, 32, "caribou", "dotted"), (HORN, 64, "rhinoceros", "white")],
    ids=["antlers", "horn"],
)
def test_what_shows_of_a_thing_may_have_another_mean_colour(renderings, shown, resolution, animal, alike):
    renderer, reference = renderings.of(WORLD, resolution)
    images, masks = renderer.render([shown])
    i = [thing.animal for thing in shown.things].index(animal)
    colors = reference.colors[animal, shown.background][None]
    true = np.array([WORLD.textures.index(shown.things[i].texture)])
    mean = mean_colors(images, masks, 6)[:, i]
    assert list(miscoloured(colors, mean, true, WORLD.textures)) == [(0, f"of {alike}")], "by its mean alone"
    assert list(wrong_colors([shown], images, masks, reference)) == []


@pytest.mark.parametrize("texture", ["red", "white", "dotted", "purple", "turquoise"])
def test_another_texture_is_found(renderings, texture):
    renderer, reference = renderings.of(WORLD, 32)
    images, masks = renderer.render([painted(ANTLERS, "caribou", texture)])
    ((number, text),) = wrong_colors([ANTLERS], images, masks, reference)
    assert (number, "blue caribou" in text) == (0, True)


def block(scenes: list[Scene], masks: np.ndarray, areas) -> Block:
    images = np.zeros((*masks.shape, 3), np.uint8)
    return Block(np.arange(len(scenes)), scenes, images, masks, hidden_shares(area_table(areas), masks), [])


@pytest.mark.parametrize(
    ("place", "least", "found"),
    [("back left", 0.0, 0), ("near left", 0.0, 0), ("back left", 0.25, 1), ("front right", 0.0, 1), ("left", 0.0, 1)],
)
def test_a_thing_may_be_hidden_entirely_if_no_scene_is_left_out(place, least, found):
    """Only in the middle and the back; in front something is lost."""
    both = Scene("arena", (Thing("bear", "red", "front left"), Thing("camel", "blue", place)))
    masks = np.zeros((1, 8, 8), np.uint8)
    masks[0, 2:6, 2:6] = 1 + [thing.animal for thing in both.things].index("bear")
    hiding = block([both], masks, [(16, 16)])
    assert len(list(wrong_ids([both], masks, may_hide(hiding, least)))) == found
