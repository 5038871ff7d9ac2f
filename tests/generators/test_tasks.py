"""Every task's true caption is true, its false one false, and says what the task asks."""

from itertools import product

import pytest

from envs.scene import Scene, Thing
from envs.world import load_world
from generators.audit import mentions, true_nodes, words
from generators.tables import Vocabulary
from generators.tasks import TASKS, choices, possible

WORLD = load_world("pug")
VOCABULARY = Vocabulary.of(WORLD)
SCENES = [
    Scene(background, (Thing("cat", first, "left"), Thing("giant tortoise", second, "right")), view)
    for background, first, second, view in product(WORLD.backgrounds, WORLD.textures, WORLD.textures, range(3))
    if first != second
]


@pytest.mark.parametrize("task", TASKS)
def test_contract(task):
    for scene, (true, false) in zip(SCENES, choices(task, SCENES, 0, VOCABULARY), strict=True):
        assert set(true.graph.nodes) <= true_nodes(scene)
        assert not set(false.graph.nodes) <= true_nodes(scene)
        assert mentions(true.text, true.graph)
        assert mentions(false.text, false.graph)
        assert len(true.graph.nodes) == len(false.graph.nodes)


def test_what_each_task_changes():
    for scene in SCENES:
        textures = {thing.texture for thing in scene.things}
        swap, one, texture, animal = (choices(task, [scene], 0, VOCABULARY)[0] for task in TASKS)
        assert words(swap.true.text) == words(swap.false.text)
        assert len(one.true.graph.nodes) == 2, "one animal and the background"
        assert {node.split()[0] for node in (one.true.graph.nodes[0], one.false.graph.nodes[0])} == textures
        (new,) = words(texture.false.text) - words(texture.true.text)
        assert new in set(WORLD.textures) - textures
        gone = words(animal.true.text) - words(animal.false.text)
        assert set(gone) <= {"cat", "giant", "tortoise", "a"}
        assert texture.true == animal.true == swap.true


def test_both_things_are_asked_for():
    for task in ("one animal", "replace animal", "replace texture"):
        asked = choices(task, SCENES, 0, VOCABULARY)
        changed = [set(true.graph.nodes) - set(false.graph.nodes) for true, false in asked]
        cats = sum("cat" in node for nodes in changed for node in nodes)
        assert 0 < cats < len(SCENES)


def test_a_world_of_two_textures_has_none_to_replace_with():
    two = Vocabulary(("cat", "pig"), ("red", "white"), ("city",), VOCABULARY.slots)
    assert [task for task in TASKS if possible(task, two)] == ["swap", "one animal"]
