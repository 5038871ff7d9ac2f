"""How well a scorer's attention maps agree with the true masks of animals, as a measure of finished runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.generators.trained_on import COLUMNS as TRAINED
from menagerie.generators.trained_on import FileScenes, Training, measure_overlap, overlap_columns
from menagerie.models.library.cells import checkpoint_training
from menagerie.studies.frame.measure import Measure, read_measured, write_measured
from menagerie.studies.runs.cell import CHECKPOINT, AnyJob, Report
from menagerie.studies.runs.data import Material, split_material

if TYPE_CHECKING:
    from menagerie.generators.storage.split_file import Split
    from menagerie.models.scorer import Scorer

# The measured numbers of each subset.
NUMBERS = ("subset", "overlap", "own_above_other", "threshold", "n")
MEASURED = (*NUMBERS, *TRAINED)


@dataclass(frozen=True)
class Attention(Measure):
    """A row of `MEASURED` for validation and for each test with scenes, at the threshold that is best on validation.
    One of the rows also has the maps of some scenes. A scorer without attention gives no rows. Scenes are left out by
    the rules of `menagerie.generators.trained_on`; a test without any scene left has no numbers."""

    version: ClassVar[int] = 2

    scenes: int = 4
    """Scenes whose maps are kept."""

    def rows(
        self, scorer: "Scorer", material: Material, seed: int, training: Training | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the mean overlap (intersection over union) of queries' maps with the masks of their own animals, and
        the share of scenes in which both maps overlap their own animal's mask more than the other's. Without
        `training` the scorer counts as trained on the split."""
        if "attention" not in scorer.capabilities:
            return
        from menagerie.generators.storage.dataset import SplitDataset
        from menagerie.models.evaluation.attention_maps import attention_maps, best_threshold, overlap

        split = material.train.split
        training, found, had, empty = training or trained_on_split(split), {}, {}, []
        for name in ("validation", *sorted(split.subsets.keys() - {"train", "validation"})):
            if len(data := SplitDataset(split, name)):
                had[name] = measure_overlap(training, split, name)
                scenes = [i for i in range(len(data)) if i not in had[name].left_out]
                empty += [name] * (not scenes)
                if name == "validation":  # the threshold may be chosen on what training had
                    scenes = scenes or [*range(len(data))]
                if scenes:
                    found[name] = scenes, attention_maps(scorer, data, scenes), data.masks(scenes).numpy()
        if "validation" not in found:
            raise UserError("the split has no scene in validation, on which the threshold of the maps is chosen")
        threshold = best_threshold(*found["validation"][1:])
        shown = min(found, key=lambda name: (not name.endswith("unseen_pairs"), name == "validation"))
        for name, (scenes, maps, masks) in found.items():
            if name in empty and name != shown:
                continue
            fit = overlap(maps, masks, threshold)
            chosen = evenly_apart(len(masks), self.scenes) if name == shown else []
            kept = {"shown": [scenes[i] for i in chosen], "objects": maps.objects[chosen], "rest": maps.rest[chosen]}
            numbers = dict(zip(NUMBERS, (name, fit.mean, fit.right, threshold, len(masks)), strict=True))
            yield numbers | overlap_columns(had[name]) | kept
        nothing = {"overlap": None, "own_above_other": None, "threshold": threshold, "n": 0, "shown": []}
        yield from ({"subset": name} | nothing | overlap_columns(had[name]) for name in empty if name != shown)


def trained_on_split(split: "Split") -> Training:
    """Return the training of a model that was trained on a split alone."""
    return Training((FileScenes(split.path, split.content),))


def evenly_apart(scenes: int, count: int) -> list[int]:
    """Return `count` evenly spaced numbers of scenes."""
    return [scenes * (2 * k + 1) // (2 * count) for k in range(count)]


@dataclass(frozen=True)
class AttentionJob(AnyJob):
    """The job that measures the attention of a finished run of another command."""

    cell: Path
    """Folder of the finished run."""
    model: str
    """Name of the run's scorer, or the user's class under the name by which it can be loaded here."""
    seed: int
    split: Path
    """The split file that the cell was trained on."""
    measure: Attention

    @property
    def id(self) -> str:
        return f"{self.cell.name}-{self.measure.file()}"

    @property
    def name(self) -> str:
        return f"attention of {self.model}, {self.cell.name}"

    @property
    def folder(self) -> Path:
        return self.cell / "measures"

    @property
    def group(self) -> str:
        """The split file, which takes seconds to open. Jobs with the same file go to one worker if it is idle."""
        return str(self.split)

    @property
    def ended(self) -> bool:
        return read_measured(self.cell, self.measure) is not None

    def run(self, report: Report, release: Callable[[], None]) -> None:
        """Measure the run, and write the rows."""
        import torch

        from menagerie.models.checkpoint import load_checkpoint

        torch.set_num_threads(self.threads)
        scorer = load_checkpoint(self.cell / CHECKPOINT, self.model).eval()
        training = checkpoint_training(self.cell / CHECKPOINT)
        rows = self.measure.rows(scorer, opened(self.split), self.seed, training)
        write_measured(self.cell, self.measure, None, list(rows))


opened = cache(split_material)
