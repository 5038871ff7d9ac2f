"""Tests of a split whose captions leave out textures: photographs in their own colours have none."""

from dataclasses import replace

from menagerie.envs.scene import Scene
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.hard_negatives.foils import TaskContext, choices, possible
from menagerie.generators.captions.templates import template_of
from menagerie.generators.storage.dataset import SplitDataset

TASKS = ("swap", "replace animal", "replace relation")


class BareTests(SplitTests):
    """One subset of a spatial split: "a lion left of a bear" against "a bear left of a lion"."""

    def __init__(self, data: SplitDataset) -> None:
        self.data, self.name = data, data.name
        recipe = data.split.recipe
        context = TaskContext(
            recipe["kind"], template_of(recipe), recipe["seed"], data.split.vocabulary, tuple(recipe["relations"])
        )
        scenes = [without_textures(scene) for scene in data.records.scenes]
        self.choices = {task: choices(task, scenes, context) for task in TASKS if possible(task, context)}
        self.items = [item for task in self.choices for item in self._task_items(task)] + self._quads()


def without_textures(scene: Scene) -> Scene:
    """What a caption describes that leaves out textures."""
    return replace(scene, things=tuple(thing._replace(texture="") for thing in scene.things))
