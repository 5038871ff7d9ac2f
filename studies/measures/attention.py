"""How well a scorer's attention maps agree with the true masks of animals, as a measure of finished runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.generators.trained_on import COLUMNS as TRAINED
from menagerie.generators.trained_on import FileScenes, Training, measure_overlap, overlap_columns
from menagerie.models.library.cells import checkpoint_training
from menagerie.studies.frame.measure import Measure, Row, read_measured, write_measured
from menagerie.studies.runs.cell import CHECKPOINT, AnyJob, Report
from menagerie.studies.runs.data import Material, split_material

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer

NUMBERS = ("subset", "overlap", "own_above_other", "threshold", "n")  # of each subset
MEASURED = (*NUMBERS, *TRAINED)


@dataclass(frozen=True)
class Attention(Measure):
    """A row of `MEASURED` for validation and for each test with scenes, at the threshold that is best on validation.
    One of the rows also has the maps of some scenes. A scorer without attention gives no rows. Scenes are left out by
    the rules of `menagerie.generators.trained_on`; a test without any scene left has no numbers."""

    version: ClassVar[int] = 2

    scenes: int = 4
    """Scenes whose maps are kept."""

    def rows(self, scorer: "Scorer", material: Material, seed: int, training: Training | None = None) -> Iterator[Row]:
        """Yield the mean overlap (intersection over union) of queries' maps with the masks of their own animals, and
        the share of scenes in which both maps overlap their own animal's mask more than the other's. Without
        `training` the scorer counts as trained on the split."""
        if "attention" not in scorer.capabilities:
            return
        from menagerie.generators.storage.dataset import SplitDataset
        from menagerie.models.evaluation.attention_maps import attention_maps, best_threshold, overlap

        split, measured, had = material.train.split, {}, {}
        training = training or Training((FileScenes(split.path, split.content),))
        for name in ("validation", *sorted(split.subsets.keys() - {"train", "validation"})):
            if len(data := SplitDataset(split, name)):
                had[name] = measure_overlap(training, split, name)
                scenes = [i for i in range(len(data)) if i not in had[name].left_out]
                chosen = scenes or [*range(len(data))] * (name == "validation")  # the threshold may be chosen on these
                found = (attention_maps(scorer, data, chosen), data.masks(chosen).numpy()) if chosen else None
                if name == "validation":
                    threshold = best_threshold(*found)
                if scenes:
                    measured[name] = scenes, *found
        if "validation" not in had:
            raise UserError("the split has no scene in validation, on which the threshold of the maps is chosen")
        shown = min(measured, key=lambda name: (not name.endswith("unseen_pairs"), name == "validation"), default="")
        for name, (scenes, maps, masks) in measured.items():
            fit = overlap(maps, masks, threshold)
            few = [len(scenes) * (2 * k + 1) // (2 * self.scenes) for k in range(self.scenes)] if name == shown else []
            kept = {"shown": [scenes[i] for i in few], "objects": maps.objects[few], "rest": maps.rest[few]}
            numbers = dict(zip(NUMBERS, (name, fit.mean, fit.right, threshold, len(masks)), strict=True))
            yield numbers | overlap_columns(had[name]) | kept
        nothing = {"overlap": None, "own_above_other": None, "threshold": threshold, "n": 0, "shown": []}
        yield from ({"subset": name} | nothing | overlap_columns(had[name]) for name in had if name not in measured)


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
        import torch

        from menagerie.models.checkpoint import load_checkpoint

        torch.set_num_threads(self.threads)
        scorer = load_checkpoint(self.cell / CHECKPOINT, self.model).eval()
        training = checkpoint_training(self.cell / CHECKPOINT)
        rows = self.measure.rows(scorer, opened(self.split), self.seed, training)
        write_measured(self.cell, self.measure, None, list(rows))


opened = cache(split_material)
