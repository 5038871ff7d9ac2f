"""The question of the spatial grid on a probe set: which of two known objects is on the left?"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from menagerie.envs.scene import Scene
from menagerie.generators.captioned import Indices
from menagerie.generators.captions.templates import TEMPLATES, Caption, content_of, write_caption
from menagerie.generators.splits.probe import RIGHT_FIRST
from menagerie.generators.splits.probe_scenes import mirror_probed, objects_from_left
from menagerie.models.library.pictures import FramedSplit
from menagerie.studies.embeddings.axes import ProbeAxes
from menagerie.studies.embeddings.bits import margin_bits
from menagerie.studies.embeddings.linear import one_core, standardise
from menagerie.studies.embeddings.measured import label_rows
from menagerie.studies.embeddings.probes import left_margins
from menagerie.studies.frame.measure import Row

TEMPLATE = TEMPLATES["relation"]


class RelatedSplit(FramedSplit):
    """A probe set whose captions state which object is left, "a red cat to the left of a white dog", or which is right
    if the right object is mentioned first. In the false caption the objects are exchanged."""

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return [self._state_relation(self.records.scenes[i]) for i in indices]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        return [self._state_relation(mirror_probed(self.records.scenes[i])) for i in indices]

    def _state_relation(self, scene: Scene) -> Caption:
        objects = objects_from_left(scene)[:: -1 if self.subset == RIGHT_FIRST else 1]
        return write_caption(content_of(scene, 0, TEMPLATE, objects), TEMPLATE)


@one_core
def bits_about_left(
    part: str, layer: str, read: str, embeddings: Float[np.ndarray, "v p q d"], axes: ProbeAxes
) -> Iterator[Row]:
    """Yield the bits that a layer holds about which object is left, and the share of scenes that probes tell rightly. A
    tie counts one half. A probe for each animal says whether it is left."""
    axes.check(embeddings)
    margins, _ = left_margins(standardise(embeddings), axes)
    yield from label_rows(part, layer, read, margin_bits(margins))
