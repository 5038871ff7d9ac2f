"""How many bits of which animal has which texture each layer of a scorer holds, as a measure of finished runs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from menagerie.envs.core.identity import json_value
from menagerie.studies.frame.measure import Row
from menagerie.studies.measures.on_probes import ProbeMeasure, probe_axes

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.models.texts import Tensors
    from menagerie.models.towers.features import Features
    from menagerie.studies.embeddings.axes import ProbeAxes
    from menagerie.studies.runs.data import Material

IMAGE, TEXT, BOTH = "image", "text", "image and text"
MEAN, ALL = "mean", "all tokens"
EMBEDDING, SCORE = "embedding", "score"
BLOCK = 64  # images or texts that are encoded at once
Probe = Callable[[str, str, str, np.ndarray, "ProbeAxes"], Iterator[Row]]
"""From a part's name, a layer, what is read of it, its embeddings (v, p, q, d) and their axes to rows."""


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

    @cached_property
    def settings(self) -> Row:
        known = super().settings
        more = {name: json_value(value) for name in ("layers", "relation") if (value := getattr(self, name))}
        return known | {"settings": known["settings"] | more}

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        return self.read(scorer)

    def read(self, scorer: "Scorer") -> Iterator[Row]:
        """Yield the rows of a scorer in evaluation mode, whatever trained it. Images are framed for it."""
        from menagerie.studies.measures.related import RelatedSplit, bits_about_left

        kind, probe = (RelatedSplit, bits_about_left) if self.relation else (None, probe_rows)
        left, right = self.opened(scorer, kind)
        axes, numbers = probe_axes(left)
        image, text = chosen_layers(scorer, self.layers)
        yield from image_rows(scorer, left, axes, numbers, image, probe)
        yield from text_rows(scorer, (left, right), axes, numbers, text, probe)
        yield from score_bits_rows(scorer, (left, right))


def chosen_layers(scorer: "Scorer", named: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a scorer's layers of images and of texts: all, or those with these names."""
    from menagerie.models.layers import image_layers, text_layers

    image, text = image_layers(scorer), text_layers(scorer)
    return [name for name in image if not named or name in named], [name for name in text if not named or name in named]


def why_no_embeddings(scorer: "Scorer") -> str:
    """Return the reason why there are no embeddings to measure; empty if there are."""
    from menagerie.models.layers import image_layers, text_layers

    if EMBEDDING in image_layers(scorer) and EMBEDDING in text_layers(scorer):
        return ""
    return f"{type(scorer).__name__} has no single vector for each image and each text"


def image_rows(
    scorer: "Scorer", data: "SplitDataset", axes: "ProbeAxes", numbers: np.ndarray, layers: Sequence[str], probe: Probe
) -> Iterator[Row]:
    """Yield what probes read from each of these layers of images."""
    from menagerie.models.layers import image_features
    from menagerie.models.towers.features import TOKENS

    wanted = [(layer, MEAN) for layer in layers] + [(TOKENS, ALL)] * (TOKENS in layers)
    found = read_layers(lambda some: image_features(scorer, data.images(some), layers), len(data), wanted)
    for (layer, read), embeddings in found.items():
        yield from probe(IMAGE, layer, read, embeddings[numbers], axes)


def text_rows(
    scorer: "Scorer",
    both: "tuple[SplitDataset, SplitDataset]",
    axes: "ProbeAxes",
    numbers: np.ndarray,
    layers: Sequence[str],
    probe: Probe,
) -> Iterator[Row]:
    """Yield what probes read from each of these layers of texts. The two orders of mention count as different views, so
    that a probe of "left" can't read what is named first."""
    from menagerie.studies.embeddings.axes import ProbeAxes

    wanted = [(layer, MEAN) for layer in layers]
    found = [read_layers(partial(caption_features, scorer, data, layers=layers), len(data), wanted) for data in both]
    twice = ProbeAxes(axes.animals, axes.textures, np.concatenate([axes.backgrounds] * 2))
    for layer, read in wanted:
        yield from probe(TEXT, layer, read, np.concatenate([each[layer, read][numbers] for each in found]), twice)


def caption_features(
    scorer: "Scorer", data: "SplitDataset", some: range, layers: Sequence[str] | None = None
) -> "Features":
    """Return the layers of the captions of some records: those in `layers`, or all if it is None."""
    from menagerie.models.layers import text_features
    from menagerie.models.texts import Texts

    captions, graphs = zip(*data.captions(some, [0] * len(some)), strict=True)
    return text_features(scorer, Texts(captions, graphs), layers)


def read_layers(
    encode: "Callable[[range], Features]", count: int, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Float[np.ndarray, "n d"]]:
    """Return embeddings by layer and by what is read of it: the mean token, or equally many tokens side by side."""
    parts: dict[tuple[str, str], list[np.ndarray]] = {place: [] for place in wanted}
    for start in range(0, count, BLOCK) if parts else ():
        found = encode(range(start, min(start + BLOCK, count)))
        for (layer, read), blocks in parts.items():
            states = found.mean(layer) if read == MEAN else found[layer].flatten(1)
            blocks.append(states.float().cpu().numpy())
    return {place: np.concatenate(blocks) for place, blocks in parts.items()}


def probe_rows(
    part: str, layer: str, read: str, embeddings: Float[np.ndarray, "v p q d"], axes: "ProbeAxes"
) -> Iterator[Row]:
    """Yield what probes read of a layer, and the geometry of its embeddings if it is the last one."""
    from menagerie.studies.embeddings.geometry import geometry
    from menagerie.studies.embeddings.measured import label_rows
    from menagerie.studies.embeddings.probes import probe_binding

    yield from label_rows(part, layer, read, probe_binding(embeddings, axes))
    if layer == EMBEDDING:
        yield from label_rows(part, layer, read, geometry(embeddings, axes))


def score_bits_rows(scorer: "Scorer", both: "tuple[SplitDataset, SplitDataset]") -> Iterator[Row]:
    """Yield the bits of scores, and the share of true captions above the false one; a tie counts one half."""
    from menagerie.studies.embeddings.bits import margin_bits
    from menagerie.studies.embeddings.measured import label_rows

    yield from label_rows(BOTH, SCORE, SCORE, margin_bits(margins_of(scorer, both)))


def margins_of(scorer: "Scorer", both: "tuple[SplitDataset, SplitDataset]") -> Float[np.ndarray, " n"]:
    """Return each image's score with its caption minus that with the false one, for both orders of mention."""
    import torch

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
