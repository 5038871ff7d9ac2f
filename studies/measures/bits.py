"""How much of binding each layer of a scorer holds, on a probe set, as a measure of finished runs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import differing, plain
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.studies.frame.measure import Measure, Row
from menagerie.studies.frame.study import store_identity

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.image_store import ImageStore
    from menagerie.models.scorer import Scorer
    from menagerie.models.texts import Tensors
    from menagerie.models.towers.features import Features
    from menagerie.studies.codes.axes import ProbeAxes
    from menagerie.studies.runs.data import Material

IMAGE, TEXT, BOTH = "image", "text", "image and text"
MEAN, ALL = "mean", "all tokens"
CODE, SCORE = "code", "score"
NAMES = ("animal", "texture")  # of a thing
BLOCK = 64  # images or texts that are encoded at once
Probe = Callable[[str, str, str, np.ndarray, "ProbeAxes"], Iterator[Row]]
"""Reads the codes (v, p, q, d) of a part's layer."""


@dataclass(frozen=True)
class Bits(Measure):
    """Rows of (part, layer, read, measure, value, chance, refused): what probes read of the mean token of each layer of
    images and of texts, and of all tokens of images side by side; the geometry of codes; and the bits of scores,
    s(x, c) - s(x, c') for an image x, its caption c and the swapped one c'."""

    recipe: ProbeRecipe
    """The probe set."""
    store: Path
    """Folder of the image stores."""
    resolution: int
    """Side of its images, in pixels."""
    layers: tuple[str, ...] = ()
    """Layers that are read, as far as a scorer has them, of images and of texts; empty: all."""
    relation: bool = False
    """Ask which of two known things is left, and not which animal has which texture: captions state it."""

    @cached_property
    def settings(self) -> Row:
        """The probe set by what it shows, wherever its file lies."""
        images = store_identity(self.store, self.recipe.world, self.resolution)
        shown = {"recipe": differing(self.recipe), "images": images}
        shown |= {name: value for name in ("layers", "relation") if (value := getattr(self, name))}
        return {"name": type(self).__qualname__, "version": self.version, "settings": plain(shown)}

    @property
    def images(self) -> "ImageStore":
        """The store of the probe set's images."""
        from menagerie.envs.worlds import load_world
        from menagerie.generators.storage.image_store import ImageStore

        return ImageStore(self.store, load_world(self.recipe.world), self.resolution)

    @property
    def path(self) -> Path:
        """The file of the probe set."""
        from menagerie.generators.storage.split_file import split_name

        return self.images.folder / split_name(self.recipe)

    def make(self, workers: int) -> None:
        """Render what the store lacks of the probe set, and write its file."""
        from menagerie.studies.runs.split_file import make_splits

        make_splits(self.images, [self.recipe], workers)

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        return self.read(scorer)

    def read(self, scorer: "Scorer") -> Iterator[Row]:
        """The rows of a scorer in evaluation, whatever trained it. Images are framed for it."""
        from menagerie.models.library.pictures import FramedSplit, framing_for
        from menagerie.studies.measures.related import RelatedSplit, which_is_left

        kind, probe = (RelatedSplit, which_is_left) if self.relation else (FramedSplit, probed)
        left, right = (kind(self.path, name, framing_for(scorer)) for name in ProbeRecipe.tests)
        axes, numbers = scenes_of(left)
        image, text = chosen_layers(scorer, self.layers)
        yield from image_rows(scorer, left, axes, numbers, image, probe)
        yield from text_rows(scorer, (left, right), axes, numbers, text, probe)
        yield from score_rows(scorer, (left, right))


def scenes_of(data: "SplitDataset") -> "tuple[ProbeAxes, np.ndarray]":
    """The axes of a probe set, and the number of the record of each scene (v, p, q)."""
    from menagerie.generators.splits.probe_scenes import from_left
    from menagerie.studies.codes.axes import axes_of

    scenes = data.records.scenes
    things = list(map(from_left, scenes))
    if any(len(both) != 2 for both in things):
        raise UserError("layers are probed on scenes of two things side by side; make a probe set without a layout")
    animals, textures = (np.array([[getattr(it, name) for it in both] for both in things]) for name in NAMES)
    return axes_of(animals, textures, np.array([s.view for s in scenes]), np.array([s.background for s in scenes]))


def chosen_layers(scorer: "Scorer", named: Sequence[str]) -> tuple[list[str], list[str]]:
    """The layers of images and of texts that a scorer has: all, or those of these names."""
    image, text = scorer.layers, scorer.text_layers
    return [name for name in image if not named or name in named], [name for name in text if not named or name in named]


def image_rows(
    scorer: "Scorer", data: "SplitDataset", axes: "ProbeAxes", numbers: np.ndarray, layers: Sequence[str], probe: Probe
) -> Iterator[Row]:
    """What each of these layers of images holds."""
    from menagerie.models.towers.features import TOKENS

    wanted = [(layer, MEAN) for layer in layers] + [(TOKENS, ALL)] * (TOKENS in layers)
    found = read_layers(lambda some: scorer.features(data.images(some), layers), len(data), wanted)
    for (layer, read), codes in found.items():
        yield from probe(IMAGE, layer, read, codes[numbers], axes)


def text_rows(
    scorer: "Scorer",
    both: "tuple[SplitDataset, SplitDataset]",
    axes: "ProbeAxes",
    numbers: np.ndarray,
    layers: Sequence[str],
    probe: Probe,
) -> Iterator[Row]:
    """What each of these layers of texts holds, texts in both orders of mention as further views: a probe of "left"
    can't read what is named first."""
    from menagerie.models.texts import Texts
    from menagerie.studies.codes.axes import ProbeAxes

    def encode(data: "SplitDataset", some: range) -> "Features":
        captions, graphs = zip(*data.captions(some, [0] * len(some)), strict=True)
        return scorer.text_features(Texts(captions, graphs), layers)

    wanted = [(layer, MEAN) for layer in layers]
    found = [read_layers(partial(encode, data), len(data), wanted) for data in both]
    twice = ProbeAxes(axes.animals, axes.textures, np.concatenate([axes.backgrounds] * 2))
    for layer, read in wanted:
        yield from probe(TEXT, layer, read, np.concatenate([each[layer, read][numbers] for each in found]), twice)


def read_layers(
    encode: "Callable[[range], Features]", count: int, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Float[np.ndarray, "n d"]]:
    """Of each layer the mean token, or all tokens side by side, of which each image has as many."""
    parts: dict[tuple[str, str], list[np.ndarray]] = {place: [] for place in wanted}
    for start in range(0, count, BLOCK) if parts else ():
        found = encode(range(start, min(start + BLOCK, count)))
        for (layer, read), blocks in parts.items():
            states = found.mean(layer) if read == MEAN else found[layer].flatten(1)
            blocks.append(states.float().cpu().numpy())
    return {place: np.concatenate(blocks) for place, blocks in parts.items()}


def probed(part: str, layer: str, read: str, codes: Float[np.ndarray, "v p q d"], axes: "ProbeAxes") -> Iterator[Row]:
    """What probes read of a layer, and the geometry of a code."""
    from menagerie.studies.codes.geometry import geometry
    from menagerie.studies.codes.probes import bound

    yield from named(part, layer, read, bound(codes, axes))
    if layer == CODE:
        yield from named(part, layer, read, geometry(codes, axes))


def named(part: str, layer: str, read: str, found: tuple[Any, ...]) -> Iterator[Row]:
    from menagerie.studies.codes.measured import rows

    yield from ({"part": part, "layer": layer, "read": read} | row for row in rows(found))


def score_rows(scorer: "Scorer", both: "tuple[SplitDataset, SplitDataset]") -> Iterator[Row]:
    """Bits of scores, and the share of scenes whose true caption has a higher one than the false caption."""
    from menagerie.studies.codes.bits import bits

    margins = margins_of(scorer, both)
    right = float(((margins > 0) + 0.5 * (margins == 0)).mean())
    place = {"part": BOTH, "layer": SCORE, "read": SCORE}
    its = bits(margins)
    yield place | {"measure": "bits", "value": its.value, "chance": its.chance, "refused": its.refused}
    yield place | {"measure": "scene", "value": right, "chance": 0.5, "refused": ""}


def margins_of(scorer: "Scorer", both: "tuple[SplitDataset, SplitDataset]") -> Float[np.ndarray, " n"]:
    """The score of each image with its caption less that with the swapped one, in both orders of mention."""
    import torch

    def score(images: "Tensors", texts: Sequence[Any]) -> "torch.Tensor":
        return scorer.paired(images, scorer.encode_texts(scorer.read(*zip(*texts, strict=True))))

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
