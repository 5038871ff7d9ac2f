"""The tests of a split in a world of photographs, opened; some with captions without textures. Loads torch."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.hard_negatives.tasks import TASKS, applies, choices
from menagerie.generators.captions.spec import CaptionSpec
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.split_file import read_split
from menagerie.studies.runs.data import SplitData

ASKED = ("swap", "replace animal", "replace relation")


class BareTests(SplitTests):
    """Tests of a spatial split whose captions have no textures: "a lion left of a bear", "a bear left of a lion"."""

    def __init__(self, data: SplitDataset) -> None:
        self.data, self.name = data, data.name
        spec = CaptionSpec(data.split.recipe, data.split.vocabulary)
        bare = [tuple(obj._replace(texture="") for obj in scene.objects) for scene in data.records.scenes]
        scenes = [replace(scene, objects=objects) for scene, objects in zip(data.records.scenes, bare, strict=True)]
        self.choices = {task: choices(task, scenes, spec) for task in ASKED if applies(TASKS[task], spec)}
        self.items = [item for task in self.choices for item in self._task_items(task)] + self._four_way()


def open_photograph_tests(data: SplitData, file: Path, subsets: Mapping[str, str], bare: bool) -> dict[str, SplitTests]:
    """Open the benchmarks of a split's subsets, by the names of the tests; `bare`: with captions without textures."""
    split, kind = read_split(file), BareTests if bare else SplitTests
    data.check(split)
    return {name: kind(SplitDataset(split, subset, preload=False)) for name, subset in subsets.items()}
