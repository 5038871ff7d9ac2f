"""Geometry, alignment and edits of a scorer's embeddings on a probe set, as a measure of finished runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float

from menagerie.studies.frame.measure import Row
from menagerie.studies.measures.alignment import alignment, measure_edits, units
from menagerie.studies.measures.axes import ProbeAxes
from menagerie.studies.measures.geometry import geometry
from menagerie.studies.measures.measured import label_rows, no_number
from menagerie.studies.measures.probe_set import (
    BOTH,
    EMBEDDING,
    IMAGE,
    MEAN,
    TEXT,
    ProbeMeasure,
    captions_of,
    has_vectors,
    image_embeddings,
    probe_axes,
    text_embeddings,
    unknown_words_reason,
)

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.studies.runs.data import Material

EDITED = "edited image"
PLACE = {"layer": EMBEDDING, "read": MEAN, "measure": "share"}  # of refused rows


@dataclass(frozen=True)
class EmbeddingGeometry(ProbeMeasure):
    """Rows of (part, layer, read, measure, value, chance, refused), as those of `Bits`: of the embeddings of images and
    of texts, of both together, and of edited embeddings of images. There is a single refused row if a scorer has no
    such embeddings, or if the captions have words that no training text has."""

    version: ClassVar[int] = 3  # R2 of what a swap changes, without noise

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        both = self.opened(scorer)
        axes, numbers = probe_axes(both[0])
        reason = unknown_words_reason([text for data in both for text in data.records.captions], material.texts)
        if not has_vectors(scorer):
            reason = f"{type(scorer).__name__} has no single vector for each image and each text"
        if reason:
            yield no_number(reason).row(part=TEXT, **PLACE)
            return
        texts = [text_embeddings(scorer, captions_of(data))[numbers] for data in both]
        yield from geometry_rows(image_embeddings(scorer, both[0])[numbers], texts, axes)


def geometry_rows(
    images: Float[np.ndarray, "v p q d"], texts: Sequence[Float[np.ndarray, "v p q d"]], axes: ProbeAxes
) -> Iterator[Row]:
    """Yield the measures of images and of texts. The two orders of mention count as views of the same images."""
    twice, of_texts = axes.repeated(len(texts)), np.concatenate(texts)
    yield from label_rows(IMAGE, EMBEDDING, MEAN, geometry(images, axes))
    yield from label_rows(TEXT, EMBEDDING, MEAN, geometry(of_texts, twice))
    if images.shape != texts[0].shape:
        sizes = f"embeddings of {images.shape[-1]} numbers an image and {texts[0].shape[-1]} a text"
        yield no_number(f"{sizes} don't share a space").row(part=BOTH, **PLACE)
        return
    yield from label_rows(BOTH, EMBEDDING, MEAN, alignment(np.concatenate([images] * len(texts)), of_texts, twice))
    unit = units(texts[0])
    swapped = unit - unit[:, :, axes.swaps]
    yield from label_rows(EDITED, EMBEDDING, MEAN, measure_edits(images, axes, lambda moved: (moved * swapped).sum(-1)))
