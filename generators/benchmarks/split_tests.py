"""A test subset of a split as a benchmark: every task that applies to it, and four-way items of two images and two
captions."""

from collections.abc import Iterator, Sequence

from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import FOUR_WAY, Benchmark, Item
from menagerie.generators.captions.hard_negatives.tasks import TASKS, TaskCaptions, applies
from menagerie.generators.captions.spec import CaptionSpec
from menagerie.generators.captions.templates import Caption
from menagerie.generators.storage.dataset import SplitDataset


class SplitTests(Benchmark):
    """A benchmark made of one subset of a split. Image i belongs to record i; counterfactuals' images follow. An item's
    task is one of the choices, or `FOUR_WAY`: an image and its counterfactual with both captions."""

    def __init__(self, data: SplitDataset) -> None:
        self.data, self.name = data, data.name
        self.choices = subset_choices(data)
        self.items = [item for task in self.choices for item in self._task_items(task)] + self._four_way()

    @property
    def tasks(self) -> list[str]:
        """All tasks of the subset, and four-way items."""
        return [*self.choices, FOUR_WAY]

    def _task_items(self, task: str) -> list[Item]:
        suited = enumerate(zip(self.data.records.scenes, self.choices[task], strict=True))
        cluster = self.data.split.kind.cluster
        return [
            Item(scene.key, task, (i,), choice, cluster(scene), TASKS[task].true_texts)
            for i, (scene, choice) in suited
            if choice
        ]

    def _four_way(self) -> list[Item]:
        swaps = ((item, item.images[0]) for item in self._task_items("swap"))
        return [item._replace(task=FOUR_WAY, images=(image, len(self.data) + image)) for item, image in swaps]

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        """Images of records, or of counterfactuals; a call must not mix both."""
        n = len(self.data)
        if all(number < n for number in numbers):
            return self.data.images(numbers)
        return self.data.counterfactual_images([number - n for number in numbers])

    def blocks(self, numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
        """Yield batches of images, with records' and counterfactuals' images in separate batches."""
        n = len(self.data)
        yield from super().blocks([number for number in numbers if number < n], size)
        yield from super().blocks([number for number in numbers if number >= n], size)


Choices = dict[str, Sequence[TaskCaptions | None]]


def subset_choices(data: SplitDataset) -> Choices:
    """For each task that applies to a scene of the subset, the choice for each scene; None for a scene to which it
    doesn't apply. The task `swap` is taken from the file."""
    split, r = data.split, data.records
    if not all(r.negatives):
        raise UserError(f"some scenes of this subset of {split.path} have no hard negative to score")
    true, false = map(Caption, r.captions, r.graphs), map(Caption, r.negatives, r.negative_graphs)
    found: Choices = {"swap": list(zip(true, false, strict=True))}
    spec = CaptionSpec(split.recipe, split.vocabulary)
    for name, task in split.kind.tasks_of(data.subset).items():
        if applies(task, spec) and (any(captions := [task.write(scene, spec) for scene in r.scenes]) or not captions):
            found[name] = captions
    return found
