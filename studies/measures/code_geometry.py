"""The geometry and the alignment of a scorer's codes, and edits of codes, on a probe set, as a measure of finished
runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from menagerie.studies.codes.alignment import alignment, units
from menagerie.studies.codes.axes import ProbeAxes
from menagerie.studies.codes.edits import edits
from menagerie.studies.codes.geometry import geometry
from menagerie.studies.codes.measured import Measured, refused
from menagerie.studies.frame.measure import Row
from menagerie.studies.measures.bits import BOTH, CODE, IMAGE, MEAN, TEXT, named, read_captions, read_layers
from menagerie.studies.measures.on_probes import ProbeMeasure, lacking, scenes_of

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.models.towers.features import Features
    from menagerie.studies.runs.data import Material

EDITED = "edited image"
SHARE = "share"  # the text's binding share S, which is to predict unseen pairs


@dataclass(frozen=True)
class CodeGeometry(ProbeMeasure):
    """Rows of (part, layer, read, measure, value, chance, refused), as those of `Bits`: of the codes of images and of
    texts, of both together, and of image codes that are edited. A single refused row if a scorer has no such codes, or
    if the captions have words that no training text has."""

    version: ClassVar[int] = 3  # R2 and components of what a swap changes, without noise

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        both = self.opened(scorer)
        axes, numbers = scenes_of(both[0])
        captions = (text for data in both for text in data.records.captions)
        if reason := without_codes(scorer) or lacking(captions, material.texts):
            yield from named(TEXT, CODE, MEAN, Refused(refused(reason)))
            return

        def codes_of(encode: "Callable[[range], Features]") -> np.ndarray:
            return read_layers(encode, numbers.size, [(CODE, MEAN)])[CODE, MEAN][numbers]

        images = codes_of(lambda some: scorer.features(both[0].images(some), [CODE]))
        texts = [codes_of(partial(read_captions, scorer, data, layers=[CODE])) for data in both]
        yield from code_rows(images, texts, axes)


class Refused(NamedTuple):
    """Stands in place of all measures where they are refused."""

    share: Measured


def without_codes(scorer: "Scorer") -> str:
    """Return the reason why there are no codes to measure; "" if there are some."""
    if CODE in scorer.layers and CODE in scorer.text_layers:
        return ""
    return f"{type(scorer).__name__} has no single vector for each image and each text"


def code_rows(
    images: Float[np.ndarray, "v p q d"], texts: Sequence[Float[np.ndarray, "v p q d"]], axes: ProbeAxes
) -> Iterator[Row]:
    """Yield what is measured of codes of images, and of texts in both orders of mention. The orders are further views,
    each with the same images."""
    twice = ProbeAxes(axes.animals, axes.textures, np.concatenate([axes.backgrounds] * len(texts)))
    told, shown = np.concatenate(texts), np.concatenate([images] * len(texts))
    yield from named(IMAGE, CODE, MEAN, geometry(images, axes))
    yield from named(TEXT, CODE, MEAN, geometry(told, twice))
    if images.shape != texts[0].shape:
        reason = f"codes of {images.shape[-1]} numbers an image and {texts[0].shape[-1]} a text aren't of one space"
        yield from named(BOTH, CODE, MEAN, Refused(refused(reason)))
        return
    yield from named(BOTH, CODE, MEAN, alignment(shown, told, twice))
    unit = units(texts[0])
    swapped = unit - unit[:, :, axes.swaps]
    yield from named(EDITED, CODE, MEAN, edits(images, axes, lambda moved: (moved * swapped).sum(-1)))
