"""The split that a run is trained on, and its tests in other worlds, some with captions without textures."""

from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menagerie.generators.trained_on import chosen_images
from menagerie.studies.runs.data import Material, SplitData, split_texts

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.split_tests import SplitTests

ASKED = ("swap", "replace animal", "replace relation")


@dataclass(frozen=True)
class TestedSplit:
    """The tests of a split on what its training never shows."""

    label: str
    """The world of the tests' images, with which the names of the tests begin."""
    split: SplitData
    file: Path = field(compare=False)
    bare: bool = False
    """Whether the tests' captions don't mention textures: "a lion left of a bear"."""

    @property
    def subsets(self) -> dict[str, str]:
        """Map the names of the tests in the study to subsets of the split."""
        return {f"{self.label}/{subset}": subset for subset in self.split.recipe.judged}

    @property
    def settings(self) -> dict[str, Any]:
        return {"label": self.label, **settings_of(self.split), **({"bare": True} if self.bare else {})}

    def open(self) -> "dict[str, SplitTests]":
        """Open the benchmarks, by the names of the tests."""
        from menagerie.generators.benchmarks.split_tests import SplitTests
        from menagerie.generators.storage.dataset import SplitDataset
        from menagerie.generators.storage.split_file import read_split

        self.split.check(split := read_split(self.file))
        tests = {name: SplitTests(SplitDataset(split, subset, preload=False)) for name, subset in self.subsets.items()}
        return {name: without_textures(test) if self.bare else test for name, test in tests.items()}


@dataclass(frozen=True)
class TransferData:
    """A split to train on, or some of its images, with tests in any worlds."""

    train: SplitData
    world: str
    """The name of the training world in tables."""
    tested: tuple[TestedSplit, ...]
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
        from menagerie.generators.sources.mixture import CaptionedSubset  # loads torch, which a plan doesn't need

        whole = self.train.open(file)
        tests, texts = {"validation": whole.tests["validation"]}, set(whole.texts)
        for benches in (test.open() for test in self.tested):
            tests |= benches
            for its in (text for bench in benches.values() for item in bench.items for text in item.texts):
                texts.update((its.text, *its.graph.nodes, *(edge.predicate for edge in its.graph.edges)))
            texts.update(split_texts(next(iter(benches.values())).data.split))
        train, content = whole.train, whole.content
        if self.images and self.images < len(train):
            chosen = chosen_images(self.train.recipe.seed, len(train), self.images)
            train, content = CaptionedSubset(train, chosen), {k: content[item] for k, item in enumerate(chosen)}
        return Material(train, tests, sorted(texts), content, words=whole.words)


def settings_of(split: SplitData) -> dict[str, Any]:
    """Return the settings that decide a split, but not the path of its world, whose content names images."""
    settings = split.settings
    return settings | {"split": {name: value for name, value in settings["split"].items() if name != "world"}}


def without_textures(test: "SplitTests") -> "SplitTests":
    """Return tests of a spatial split with captions that have no textures: "a lion left of a bear"."""
    from menagerie.generators.captions.hard_negatives.tasks import TASKS, applies, choices
    from menagerie.generators.captions.spec import CaptionSpec

    bare, data = copy(test), test.data
    spec, scenes = CaptionSpec(data.split.recipe, data.split.vocabulary), []
    for scene in data.records.scenes:
        scenes.append(replace(scene, objects=tuple(obj._replace(texture="") for obj in scene.objects)))
    bare.choices = {task: choices(task, scenes, spec) for task in ASKED if applies(TASKS[task], spec)}
    bare.items = [item for task in bare.choices for item in bare._task_items(task)] + bare._four_way()
    return bare
