"""Scenes as tables of numbers, and back."""

from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.worlds import load_world, random_crowds, random_scenes
from menagerie.generators.vocabulary import SCENE_TYPE, Vocabulary

PUG = load_world("pug")
SCENES = [*random_scenes(PUG, 200, seed=0, pairs=0.7), *random_crowds(PUG, "apart", 50, seed=0)]


def by_hand(known, scene):
    """A scene's row, number by number."""
    columns = {name: [-1] * 8 for name in ("animal", "texture", "slot", "size")}
    for i, thing in enumerate(scene.things):
        columns["animal"][i] = known.animals.index(thing.animal)
        columns["texture"][i] = known.textures.index(thing.texture)
        columns["slot"][i] = known.slots.index(thing.slot)
        columns["size"][i] = known.sizes.index(thing.size) if thing.size else -1
    return (known.backgrounds.index(scene.background), scene.view, *columns.values())


@pytest.mark.parametrize("sizes", [(), ("small", "large")])
def test_each_scene_has_the_numbers_of_its_names_and_comes_back(sizes):
    known = replace(Vocabulary.of(PUG), sizes=sizes)
    things = [tuple(Thing(*t[:3], sizes[i % 2] if sizes else "") for i, t in enumerate(s.things)) for s in SCENES]
    scenes = [Scene(s.background, some, s.view) for s, some in zip(SCENES, things, strict=True)]
    table = known.encode(scenes)
    assert table.tobytes() == np.array([by_hand(known, scene) for scene in scenes], SCENE_TYPE).tobytes()
    assert known.decode(table) == scenes
    assert known.decode(table[7:7]) == []
    assert known.encode([]).shape == (0,)


def test_an_unknown_name_or_number_raises():
    known, (scene, *_) = Vocabulary.of(PUG), SCENES
    with pytest.raises(ValueError, match="'moon'"):
        known.encode([scene, replace(scene, background="moon")])
    with pytest.raises(ValueError, match="'small'"):
        known.encode([replace(scene, things=tuple(thing._replace(size="small") for thing in scene.things))])
    with pytest.raises(OverflowError):
        known.encode([replace(scene, view=2**40)])
    for column, wrong in (("animal", 99), ("texture", 99), ("texture", -1), ("slot", 99), ("size", 0)):
        table = known.encode([scene])
        table[column][0, 0] = wrong
        with pytest.raises(IndexError):
            known.decode(table)
    for wrong in (-1, 99):
        table = known.encode([scene])
        table["background"] = wrong
        with pytest.raises(IndexError):
            known.decode(table)
