"""Geometry, alignment and edits of a scorer's embeddings on a probe set, as a measure of finished runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from menagerie.studies.embeddings.alignment import alignment, units
from menagerie.studies.embeddings.axes import ProbeAxes
from menagerie.studies.embeddings.edits import measure_edits
from menagerie.studies.embeddings.geometry import geometry
from menagerie.studies.embeddings.measured import Measured, label_rows, no_number
from menagerie.studies.frame.measure import Row
from menagerie.studies.measures.bits import (
    BOTH,
    EMBEDDING,
    IMAGE,
    MEAN,
    TEXT,
    caption_features,
    read_layers,
    why_no_embeddings,
)
from menagerie.studies.measures.on_probes import ProbeMeasure, probe_axes, unknown_words_reason

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.models.towers.features import Features
    from menagerie.studies.runs.data import Material

EDITED = "edited image"
SHARE = "share"  # the binding share S of texts, by which accuracy on unseen pairs is predicted


@dataclass(frozen=True)
class EmbeddingGeometry(ProbeMeasure):
    """Rows of (part, layer, read, measure, value, chance, refused), as those of `Bits`: of the embeddings of images and
    of texts, of both together, and of edited embeddings of images. There is a single refused row if a scorer has no
    such embeddings, or if the captions have words that no training text has."""

    version: ClassVar[int] = 3  # R2 and components of what a swap changes, without noise

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        from menagerie.models.layers import image_features

        both = self.opened(scorer)
        axes, numbers = probe_axes(both[0])
        captions = (text for data in both for text in data.records.captions)
        if reason := why_no_embeddings(scorer) or unknown_words_reason(captions, material.texts):
            yield from label_rows(TEXT, EMBEDDING, MEAN, RefusedMeasures(no_number(reason)))
            return

        def embeddings_of(encode: "Callable[[range], Features]") -> np.ndarray:
            return read_layers(encode, numbers.size, [(EMBEDDING, MEAN)])[EMBEDDING, MEAN][numbers]

        images = embeddings_of(lambda some: image_features(scorer, both[0].images(some), [EMBEDDING]))
        texts = [embeddings_of(partial(caption_features, scorer, data, layers=[EMBEDDING])) for data in both]
        yield from geometry_rows(images, texts, axes)


class RefusedMeasures(NamedTuple):
    """Stands in place of all measures where they are refused."""

    share: Measured


def geometry_rows(
    images: Float[np.ndarray, "v p q d"], texts: Sequence[Float[np.ndarray, "v p q d"]], axes: ProbeAxes
) -> Iterator[Row]:
    """Yield the measures of images and of texts. The two orders of mention count as views of the same images."""
    twice = ProbeAxes(axes.animals, axes.textures, np.concatenate([axes.backgrounds] * len(texts)))
    of_texts, of_images = np.concatenate(texts), np.concatenate([images] * len(texts))
    yield from label_rows(IMAGE, EMBEDDING, MEAN, geometry(images, axes))
    yield from label_rows(TEXT, EMBEDDING, MEAN, geometry(of_texts, twice))
    if images.shape != texts[0].shape:
        reason = (
            f"embeddings of {images.shape[-1]} numbers an image and {texts[0].shape[-1]} a text don't share a space"
        )
        yield from label_rows(BOTH, EMBEDDING, MEAN, RefusedMeasures(no_number(reason)))
        return
    yield from label_rows(BOTH, EMBEDDING, MEAN, alignment(of_images, of_texts, twice))
    unit = units(texts[0])
    swapped = unit - unit[:, :, axes.swaps]
    yield from label_rows(EDITED, EMBEDDING, MEAN, measure_edits(images, axes, lambda moved: (moved * swapped).sum(-1)))
