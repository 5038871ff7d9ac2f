"""How many bits of which animal has which texture each layer of a scorer holds, as a measure of finished runs; or of
which of two known objects is on the left, the question of the spatial grid."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float

from menagerie.envs.scene import Scene
from menagerie.generators.captioned import Indices
from menagerie.generators.captions.templates import TEMPLATES, Caption, content_of, write_caption
from menagerie.generators.splits.probe import RIGHT_FIRST
from menagerie.generators.splits.probe_scenes import mirror_probed, objects_from_left
from menagerie.models.library.pictures import FramedSplit
from menagerie.models.towers.features import TOKENS
from menagerie.studies.frame.measure import Row
from menagerie.studies.measures.axes import ProbeAxes
from menagerie.studies.measures.geometry import geometry
from menagerie.studies.measures.measured import bits, label_rows
from menagerie.studies.measures.probe_set import (
    ALL_TOKENS,
    BLOCK,
    BOTH,
    EMBEDDING,
    IMAGE,
    MEAN,
    TEXT,
    ProbeMeasure,
    captions_of,
    image_layers,
    probe_axes,
    text_layers,
)
from menagerie.studies.measures.probes import probe_binding, probe_left

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.models.texts import Tensors
    from menagerie.studies.runs.data import Material

SCORE = "score"
RELATION = TEMPLATES["relation"]


@dataclass(frozen=True)
class Bits(ProbeMeasure):
    """Rows of (part, layer, read, measure, value, chance, refused): what probes read from the mean token of each layer
    of images and of texts, and from all tokens of images side by side; the geometry of embeddings, unless `relation`;
    and the bits of scores, s(x, c) - s(x, c') for an image x, its caption c and the false caption c'."""

    version: ClassVar[int] = 3  # R2 and components of what a swap changes, without noise

    layers: tuple[str, ...] = ()
    """Names of the layers that are read, of images and texts; a scorer's missing ones are skipped. Empty: all."""
    relation: bool = False
    """Whether the question is which of two objects is left, and captions state the relation."""

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        return self.read(scorer)

    def read(self, scorer: "Scorer") -> Iterator[Row]:
        """Yield the rows of a scorer in evaluation mode, whatever trained it. Images are framed for it. The two orders
        of mention count as views of texts, so that a probe of "left" can't read what is named first."""
        both = self.opened(scorer, RelatedSplit if self.relation else None)
        axes, numbers = probe_axes(both[0])
        of_images, of_texts = chosen_layers(scorer, self.layers)
        wanted = [(layer, MEAN) for layer in of_images] + [(TOKENS, ALL_TOKENS)] * (TOKENS in of_images)
        for (layer, read), embeddings in image_layers(scorer, both[0], wanted).items():
            yield from self.probe(IMAGE, layer, read, embeddings[numbers], axes)
        wanted = [(layer, MEAN) for layer in of_texts]
        found = [text_layers(scorer, captions_of(data), wanted) for data in both]
        for layer, read in wanted:
            embeddings = np.concatenate([each[layer, read][numbers] for each in found])
            yield from self.probe(TEXT, layer, read, embeddings, axes.repeated(2))
        yield bits(margins_of(scorer, both)).row(part=BOTH, layer=SCORE, read=SCORE, measure="bits")

    def probe(
        self, part: str, layer: str, read: str, embeddings: Float[np.ndarray, "v p q d"], axes: ProbeAxes
    ) -> Iterator[Row]:
        """Yield what probes read of a layer, and the geometry of its embeddings if it is the last one."""
        place = {"part": part, "layer": layer, "read": read}
        if self.relation:
            yield bits(probe_left(embeddings, axes)).row(**place, measure="bits")
            return
        yield from label_rows(**place, found=probe_binding(embeddings, axes))
        if layer == EMBEDDING:
            yield from label_rows(**place, found=geometry(embeddings, axes))


class RelatedSplit(FramedSplit):
    """A probe set whose captions state which object is left, "a red cat to the left of a white dog", or which is right
    if the right object is mentioned first. In the false caption the objects are exchanged."""

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return [self._state_relation(self.records.scenes[i]) for i in indices]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        return [self._state_relation(mirror_probed(self.records.scenes[i])) for i in indices]

    def _state_relation(self, scene: Scene) -> Caption:
        objects = objects_from_left(scene)[:: -1 if self.subset == RIGHT_FIRST else 1]
        return write_caption(content_of(scene, 0, RELATION, objects), RELATION)


def chosen_layers(scorer: "Scorer", named: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a scorer's layers of images and of texts: all, or those with these names."""
    from menagerie.models.layers import image_layer_names, text_layer_names

    images, texts = (
        [name for name in layers if not named or name in named]
        for layers in (image_layer_names(scorer), text_layer_names(scorer))
    )
    return images, texts


def margins_of(scorer: "Scorer", both: "Sequence[SplitDataset]") -> Float[np.ndarray, " n"]:
    """Return each image's score with its caption minus that with the false one, for both orders of mention."""

    def score(images: "Tensors", texts: Sequence[Any]) -> "torch.Tensor":
        return scorer.pair_similarity(images, scorer.encode_texts(scorer.read(*zip(*texts, strict=True))))

    found: list[torch.Tensor] = []
    with torch.no_grad():
        for start in range(0, len(both[0]), BLOCK):
            some = range(start, min(start + BLOCK, len(both[0])))
            draws = [0] * len(some)
            images = scorer.encode_images(scorer.pixel_scale(both[0].images(some).to(scorer.device)))
            for data in both:  # the same images in the same order
                true, false = data.captions(some, draws), data.negatives(some, draws)
                found.append((score(images, true) - score(images, false)).float().cpu())
    return torch.cat(found).numpy()
