"""What measures on a probe set share: its images, its file, its scenes in the order of the embeddings' axes, and the
layers that a scorer makes of its images and texts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from menagerie.envs.core.identity import changed_fields, json_value
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.studies.frame.measure import Measure, Row
from menagerie.studies.frame.study import store_identity
from menagerie.studies.measures.axes import ProbeAxes, axes_of

if TYPE_CHECKING:
    from menagerie.generators.captions.templates import Caption
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.folder import SplitFolder
    from menagerie.models.library.pictures import FramedSplit
    from menagerie.models.scorer import Scorer
    from menagerie.models.towers.features import Features

IMAGE, TEXT, BOTH = "image", "text", "image and text"
EMBEDDING = "embedding"
MEAN, ALL_TOKENS = "mean", "all tokens"
KINDS = ("animal", "texture")
BLOCK = 64  # images or texts that are encoded at once
Layers = dict[tuple[str, str], Float[np.ndarray, "n d"]]
"""Embeddings by layer and by what is read of it: the mean token, or equally many tokens side by side."""


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
        """The settings that decide the numbers, besides the cell: the probe set's images, not the path of its file."""
        changed = {name: value for name, value in changed_fields(self).items() if name not in ("store", "resolution")}
        images = store_identity(self.store, self.recipe.world, self.resolution)
        shown = changed | {"recipe": changed_fields(self.recipe), "images": images}
        return {"name": type(self).__qualname__, "version": self.version, "settings": json_value(shown)}

    @property
    def images(self) -> "SplitFolder":
        """The folder of the probe set's file."""
        from menagerie.envs.worlds import load_world
        from menagerie.generators.storage.folder import SplitFolder

        return SplitFolder(self.store, load_world(self.recipe.world), self.resolution)

    def make(self, workers: int) -> None:
        """Render the probe set's objects that the atlas lacks, and write its file."""
        from menagerie.studies.runs.data import make_splits

        make_splits(self.images, [self.recipe], workers)

    def opened(self, scorer: "Scorer", kind: "type[FramedSplit] | None" = None) -> "tuple[FramedSplit, FramedSplit]":
        """Return the scenes with captions that mention the left object first, and the same scenes with captions that
        mention the right object first. Images are framed for the scorer."""
        from menagerie.generators.storage.split_file import read_split, split_name
        from menagerie.models.library.pictures import FramedSplit, framing_for

        split = read_split(self.images.folder / split_name(self.recipe))
        left, right = ((kind or FramedSplit)(split, name, framing_for(scorer)) for name in ProbeRecipe.tests)
        return left, right


def probe_axes(data: "SplitDataset") -> tuple[ProbeAxes, Int[np.ndarray, "v p q"]]:
    """Return the axes of a probe set, and the number of each scene's record."""
    from menagerie.generators.splits.probe_scenes import objects_from_left

    scenes = data.records.scenes
    objects = [objects_from_left(scene) for scene in scenes]
    animals, textures = (np.array([[getattr(its, name) for its in both] for both in objects]) for name in KINDS)
    return axes_of(animals, textures, np.array([s.view for s in scenes]), np.array([s.background for s in scenes]))


def has_vectors(scorer: "Scorer") -> bool:
    """Whether a scorer has a single vector for each image and each text."""
    from menagerie.models.layers import image_layer_names, text_layer_names

    return EMBEDDING in image_layer_names(scorer) and EMBEDDING in text_layer_names(scorer)


def image_layers(scorer: "Scorer", data: "SplitDataset", wanted: Sequence[tuple[str, str]]) -> Layers:
    """Return what is `wanted` of the layers of a probe set's images."""
    from menagerie.models.layers import image_features

    names = list(dict.fromkeys(layer for layer, _ in wanted))
    return read_layers(lambda some: image_features(scorer, data.images(some), names), len(data), wanted)


def text_layers(scorer: "Scorer", texts: "Sequence[Caption]", wanted: Sequence[tuple[str, str]]) -> Layers:
    """Return what is `wanted` of the layers of texts."""
    from menagerie.models.layers import text_features
    from menagerie.models.texts import Texts

    names = list(dict.fromkeys(layer for layer, _ in wanted))

    def encode(some: range) -> "Features":
        return text_features(scorer, Texts(*zip(*texts[some.start : some.stop], strict=True)), names)

    return read_layers(encode, len(texts), wanted)


def read_layers(encode: "Callable[[range], Features]", count: int, wanted: Sequence[tuple[str, str]]) -> Layers:
    """Return what is `wanted` of the layers of `count` images or texts, which `encode` encodes block by block."""
    parts: dict[tuple[str, str], list[np.ndarray]] = {place: [] for place in wanted}
    for start in range(0, count, BLOCK) if parts else ():
        found = encode(range(start, min(start + BLOCK, count)))
        for (layer, read), blocks in parts.items():
            states = found.mean(layer) if read == MEAN else found[layer].flatten(1)
            blocks.append(states.float().cpu().numpy())
    return {place: np.concatenate(blocks) for place, blocks in parts.items()}


def image_vectors(scorer: "Scorer", data: "SplitDataset") -> Float[np.ndarray, "n d"]:
    """Return the single vector of each image of a probe set."""
    return image_layers(scorer, data, [(EMBEDDING, MEAN)])[EMBEDDING, MEAN]


def text_vectors(scorer: "Scorer", texts: "Sequence[Caption]") -> Float[np.ndarray, "n d"]:
    """Return the single vector of each text."""
    return text_layers(scorer, texts, [(EMBEDDING, MEAN)])[EMBEDDING, MEAN]


def captions_of(data: "SplitDataset") -> "list[Caption]":
    """Return the caption of each record of a probe set."""
    return data.captions(range(len(data)), [0] * len(data))


def unknown_words_reason(texts: Iterable[str], known: Iterable[str]) -> str:
    """Return which words of `texts` no known text has, as the reason for a refusal; empty if there are none."""
    said, there = ({word for text in some for word in text.split()} for some in (texts, known))
    odd = sorted(said - there)
    return f"no text of training says {', '.join(map(repr, odd))}" if odd else ""
