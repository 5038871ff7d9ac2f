"""Scenes as tables of numbers, and back."""

from dataclasses import replace

import pytest

from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world, random_in_layout, random_scenes
from menagerie.generators.vocabulary import Vocabulary

PUG = load_world("pug")
SCENES = [*random_scenes(PUG, 200, seed=0, pairs=0.7), *random_in_layout(PUG, "apart", 50, seed=0)]


@pytest.mark.parametrize("sizes", [(), ("small", "big")])
@pytest.mark.parametrize("many", [0, 300], ids=["few names", "many names"])
def test_each_scene_has_the_numbers_of_its_names_and_comes_back(sizes, many):
    textures = (*(f"texture {k}" for k in range(many)), *PUG.textures)
    known = replace(Vocabulary.of(PUG), sizes=sizes, textures=textures)
    objects = [tuple(Object(*t[:3], sizes[i % 2] if sizes else "") for i, t in enumerate(s.objects)) for s in SCENES]
    scenes = [Scene(s.background, some, s.view) for s, some in zip(SCENES, objects, strict=True)]
    table = known.encode(scenes)
    none = 65535 if many else 255
    for row, scene in enumerate(scenes):
        numbers = [textures.index(obj.texture) for obj in scene.objects]
        assert table["texture"][row].tolist() == numbers + [none] * (table["texture"].shape[1] - len(numbers))
    assert ("size" in table) == bool(sizes)
    assert known.decode(table) == scenes
    assert known.decode({name: column[7:7] for name, column in table.items()}) == []
    assert len(known.encode([])["view"]) == 0


def test_an_unknown_name_or_number_raises():
    known, (scene, *_) = Vocabulary.of(PUG), SCENES
    with pytest.raises(ValueError, match="'moon'"):
        known.encode([scene, replace(scene, background="moon")])
    with pytest.raises(ValueError, match="'small'"):
        known.encode([replace(scene, objects=tuple(obj._replace(size="small") for obj in scene.objects))])
    with pytest.raises(OverflowError):
        known.encode([replace(scene, view=2**40)])
    for column, wrong in (("animal", 99), ("texture", 99), ("slot", 99)):
        table = known.encode([scene])
        table[column][0, 0] = wrong
        with pytest.raises(IndexError):
            known.decode(table)
    table = known.encode([scene])
    table["background"][:] = 99
    with pytest.raises(IndexError):
        known.decode(table)
