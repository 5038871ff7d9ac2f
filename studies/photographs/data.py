"""The split that a run is trained on and the tests in other worlds that it gets; tests whose captions leave out
textures."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from menagerie.envs.scene import Scene
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.hard_negatives.tasks import choices, possible
from menagerie.generators.captions.spec import CaptionSpec
from menagerie.generators.sources.mixture import Part
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import chosen_images
from menagerie.studies.runs.data import Material, SplitData, split_texts

TASKS = ("swap", "replace animal", "replace relation")
Samples = tuple[list[UInt8[np.ndarray, "h w 3"]], list[tuple[str, str]]]


class BareTests(SplitTests):
    """The tests of one subset of a spatial split, with captions without textures: "a lion left of a bear" against "a
    bear left of a lion"."""

    def __init__(self, data: SplitDataset) -> None:
        self.data, self.name = data, data.name
        spec = CaptionSpec(data.split.recipe, data.split.vocabulary)
        scenes = [without_textures(scene) for scene in data.records.scenes]
        self.choices = {task: choices(task, scenes, spec) for task in TASKS if possible(task, spec)}
        self.items = [item for task in self.choices for item in self._task_items(task)] + self._four_way()


def without_textures(scene: Scene) -> Scene:
    """Remove the textures from a scene, so that its captions leave them out."""
    return replace(scene, objects=tuple(obj._replace(texture="") for obj in scene.objects))


VALIDATION = "validation"
SAMPLES = 5  # images that a page shows of a test


@dataclass(frozen=True)
class Tested:
    """The tests of one split on what its training never shows."""

    label: str
    """The world that the tests' images show: the first part of the names of the tests."""
    split: SplitData
    file: Path = field(compare=False)
    bare: bool = False
    """Whether the tests' captions leave out textures: "a lion left of a bear"."""

    @property
    def subsets(self) -> dict[str, str]:
        """Map the names that tests have in the study to subsets of the split."""
        return {f"{self.label}/{subset}": subset for subset in self.split.recipe.judged}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decide the tests."""
        return {"label": self.label, **settings_of(self.split), **({"bare": True} if self.bare else {})}


@dataclass(frozen=True)
class TransferData:
    """A split to train on, or some of its images, with tests of any worlds."""

    train: SplitData
    world: str
    """The name of the training world in tables."""
    tested: tuple[Tested, ...]
    images: int = 0
    """Number of distinct images, drawn by seed from all; 0: all."""
    factor: str = ""
    """The factor that is changed in the synthetic world, for tables; empty: none."""

    @property
    def axes(self) -> dict[str, Any]:
        place = {"kind": self.kind, "trained_on": self.world, "images": self.images, "factor": self.factor}
        return self.train.axes | place

    @property
    def name(self) -> str:
        images = f"{self.images} images" if self.images else ""
        return " ".join(filter(None, (self.kind, self.world, images, self.factor)))

    @property
    def kind(self) -> str:
        return self.train.kind

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(name for test in self.tested for name in test.subsets)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that decide the data. Paths of world files aren't among them."""
        parts = {"images": self.images} if self.images else {}
        return settings_of(self.train) | parts | {"tests": [test.settings for test in self.tested]}

    @property
    def splits(self) -> tuple[SplitData, ...]:
        """The split that a run is trained on, and all splits that it is tested on."""
        return tuple(dict.fromkeys((self.train, *(test.split for test in self.tested))))

    def counts(self) -> dict[str, int]:
        return self.train.counts()

    def open(self, file: Path) -> Material:
        whole = self.train.open(file)
        tests, texts = {VALIDATION: whole.tests[VALIDATION]}, set(whole.texts)
        for test in self.tested:
            benches = tests_in(test)
            tests |= benches
            items = (item for bench in benches.values() for item in bench.items)
            texts.update(text for item in items for each in item.texts for text in all_of(each))
            texts.update(split_texts(next(iter(benches.values())).data.split))
        train, content = whole.train, whole.content
        if self.images and self.images < len(train):
            chosen = chosen_images(self.train.recipe.seed, len(train), self.images)
            train, content = Part(train, chosen), {k: content[item] for k, item in enumerate(chosen)}
        return Material(train, tests, sorted(texts), content, words=whole.words)


def settings_of(split: SplitData) -> dict[str, Any]:
    """The settings that decide a split, without the path of its world: images are named by the world's content."""
    settings = split.settings
    return settings | {"split": {name: value for name, value in settings["split"].items() if name != "world"}}


def all_of(caption: Any) -> list[str]:
    """Return a caption's text, and the nodes and predicates of its graph."""
    return [caption.text, *caption.graph.nodes, *(edge.predicate for edge in caption.graph.edges)]


def tests_in(test: Tested) -> dict[str, SplitTests]:
    """Open the benchmarks of a test, by their names."""
    split, kind = read_split(test.file), BareTests if test.bare else SplitTests
    test.split.check(split)
    return {name: kind(SplitDataset(split, subset, preload=False)) for name, subset in test.subsets.items()}


@lru_cache(maxsize=32)  # they are the same on every page of a study
def samples_of(test: Tested) -> Samples:
    """Return some images of a test, evenly spaced among its swaps, each with a true and a false caption; none if it has
    no swaps."""
    bench = next((bench for bench in tests_in(test).values() if len(bench.data)), None)
    swaps = [item for item in bench.items if item.task == "swap"] if bench else []
    if not swaps:
        return [], []
    chosen = [swaps[len(swaps) * (2 * k + 1) // (2 * SAMPLES)] for k in range(SAMPLES)]
    images = bench.images([item.images[0] for item in chosen]).permute(0, 2, 3, 1).numpy()
    return list(images), [(item.texts[0].text, item.texts[1].text) for item in chosen]
