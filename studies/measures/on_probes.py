"""What measures on a probe set share: its images, its file, and its scenes in the order of the embeddings' axes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import changed_fields, json_value
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.studies.frame.measure import Measure, Row
from menagerie.studies.frame.study import store_identity

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.folder import SplitFolder
    from menagerie.models.library.pictures import FramedSplit
    from menagerie.models.scorer import Scorer
    from menagerie.studies.embeddings.axes import ProbeAxes

NAMES = ("animal", "texture")  # of an object


@dataclass(frozen=True)
class ProbeMeasure(Measure):
    """A measure on the scenes of a probe set."""

    recipe: ProbeRecipe
    """The probe set."""
    store: Path
    """Folder of atlases and split files."""
    resolution: int
    """Side of the probe set's images, in pixels."""

    @cached_property
    def settings(self) -> Row:
        """The settings that decide the numbers, besides the cell. The path of the probe set's file isn't among them."""
        images = store_identity(self.store, self.recipe.world, self.resolution)
        shown = {"recipe": changed_fields(self.recipe), "images": images}
        return {"name": type(self).__qualname__, "version": self.version, "settings": json_value(shown)}

    @property
    def images(self) -> "SplitFolder":
        """The folder of the probe set's file."""
        from menagerie.envs.worlds import load_world
        from menagerie.generators.storage.folder import SplitFolder

        return SplitFolder(self.store, load_world(self.recipe.world), self.resolution)

    def make(self, workers: int) -> None:
        """Render the probe set's objects that the atlas lacks, and write its file."""
        from menagerie.studies.runs.split_file import make_splits

        make_splits(self.images, [self.recipe], workers)

    def opened(self, scorer: "Scorer", kind: "type[FramedSplit] | None" = None) -> "tuple[FramedSplit, FramedSplit]":
        """Return the scenes with captions that mention the left object first, and the same scenes with captions that
        mention the right object first. Images are framed for the scorer."""
        from menagerie.generators.storage.split_file import read_split, split_name
        from menagerie.models.library.pictures import FramedSplit, framing_for

        split = read_split(self.images.folder / split_name(self.recipe))
        left, right = ((kind or FramedSplit)(split, name, framing_for(scorer)) for name in ProbeRecipe.tests)
        return left, right


def probe_axes(data: "SplitDataset") -> "tuple[ProbeAxes, np.ndarray]":
    """Return the axes of a probe set, and the number of each scene's record, of shape (v, p, q)."""
    from menagerie.generators.splits.probe_scenes import objects_from_left
    from menagerie.studies.embeddings.axes import axes_of

    scenes = data.records.scenes
    objects = list(map(objects_from_left, scenes))
    if any(len(both) != 2 for both in objects):
        raise UserError("probes need scenes of two objects side by side; make a probe set without a layout")
    animals, textures = (np.array([[getattr(it, name) for it in both] for both in objects]) for name in NAMES)
    return axes_of(animals, textures, np.array([s.view for s in scenes]), np.array([s.background for s in scenes]))


def unknown_words_reason(texts: Iterable[str], known: Iterable[str]) -> str:
    """Return which words of `texts` no known text has, as the reason for a refusal; empty if there are none."""
    odd = sorted(words_in_texts(texts) - words_in_texts(known))
    return f"no text of training says {', '.join(map(repr, odd))}" if odd else ""


def words_in_texts(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in text.split()}
