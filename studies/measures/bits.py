"""How much of binding each layer of a scorer holds, on a probe set, as a measure of finished runs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
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
    from menagerie.models.towers.features import Features
    from menagerie.studies.codes.axes import ProbeAxes
    from menagerie.studies.runs.data import Material

IMAGE, TEXT, BOTH = "image", "text", "image and text"
MEAN, ALL = "mean", "all tokens"
CODE, SCORE = "code", "score"
BLOCK = 64  # images or texts that are encoded at once


@dataclass(frozen=True)
class Bits(Measure):
    """Rows of (part, layer, read, measure, value, chance, refused): what probes read of the mean token of each layer of
    images and of texts, and of all tokens of images side by side; the geometry of codes, and how they agree; and the
    bits of scores, s(x, c) - s(x, c') for an image x, its caption c and the swapped one c'."""

    recipe: ProbeRecipe
    """The probe set."""
    store: Path
    """Folder of the image stores."""
    resolution: int
    """Side of its images, in pixels."""

    @cached_property
    def settings(self) -> Row:
        """The probe set by what it shows, wherever its file lies."""
        images = store_identity(self.store, self.recipe.world, self.resolution)
        shown = {"recipe": differing(self.recipe), "images": images}
        return {"name": type(self).__qualname__, "version": self.version, "settings": plain(shown)}

    @property
    def images(self) -> "ImageStore":
        """The store of the probe set's images."""
        from menagerie.envs.worlds import load_world
        from menagerie.generators.storage.image_store import ImageStore

        return ImageStore(self.store, load_world(self.recipe.world), self.resolution)

    def make(self, workers: int) -> None:
        """Render what the store lacks of the probe set, and write its file."""
        from menagerie.studies.runs.split_file import make_splits

        make_splits(self.images, [self.recipe], workers)

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        from menagerie.generators.storage.dataset import SplitDataset
        from menagerie.generators.storage.pixels import open_split
        from menagerie.generators.storage.split_file import split_name

        split = open_split(self.images.folder / split_name(self.recipe))
        left, right = (SplitDataset(split, name) for name in ProbeRecipe.tests)
        axes, numbers = scenes_of(left)
        yield from image_rows(scorer, left, axes, numbers)
        yield from text_rows(scorer, (left, right), axes, numbers)
        yield from score_rows(scorer, (left, right))


def scenes_of(data: "SplitDataset") -> "tuple[ProbeAxes, np.ndarray]":
    """The axes of a probe set, and the number of the record of each scene (v, p, q)."""
    from menagerie.envs.slots import place_of
    from menagerie.studies.codes.axes import axes_of

    scenes = data.records.scenes
    things = [sorted(scene.things, key=lambda thing: place_of(thing.slot)) for scene in scenes]
    if any(len(both) != 2 for both in things):
        raise UserError("layers are probed on scenes of two things side by side; make a probe set without a layout")
    animals, textures = (np.array([[getattr(it, name) for it in both] for both in things]) for name in NAMES)
    return axes_of(animals, textures, np.array([s.view for s in scenes]), np.array([s.background for s in scenes]))


NAMES = ("animal", "texture")


def image_rows(scorer: "Scorer", data: "SplitDataset", axes: "ProbeAxes", numbers: np.ndarray) -> Iterator[Row]:
    """What each layer of images holds."""
    from menagerie.studies.codes.geometry import geometry

    def encode(some: range) -> "Features":
        return scorer.features(data.images(some))

    means, widest = read_layers(encode, len(data), scorer.layers)
    for layer, codes in means.items():
        yield from probed(IMAGE, layer, MEAN, codes[numbers], axes)
    for layer, codes in widest.items():
        yield from probed(IMAGE, layer, ALL, codes[numbers], axes)
    if CODE in means:
        yield from named(IMAGE, CODE, MEAN, geometry(means[CODE][numbers], axes))


def text_rows(
    scorer: "Scorer", both: "tuple[SplitDataset, SplitDataset]", axes: "ProbeAxes", numbers: np.ndarray
) -> Iterator[Row]:
    """What each layer of texts holds, texts in both orders of mention as further views: a probe of "left" can't read
    what is named first."""
    from menagerie.models.texts import Texts
    from menagerie.studies.codes.axes import ProbeAxes
    from menagerie.studies.codes.geometry import geometry

    found = []
    for data in both:

        def encode(some: range, data: "SplitDataset" = data) -> "Features":
            captions, graphs = zip(*data.captions(some, [0] * len(some)), strict=True)
            return scorer.text_features(Texts(captions, graphs))

        found.append(read_layers(encode, len(data), scorer.text_layers)[0])
    twice = ProbeAxes(axes.animals, axes.textures, np.concatenate([axes.backgrounds] * 2))
    for layer in found[0]:
        codes = np.concatenate([of_order[layer][numbers] for of_order in found])
        yield from probed(TEXT, layer, MEAN, codes, twice)
        if layer == CODE:
            yield from named(TEXT, CODE, MEAN, geometry(codes, twice))


def read_layers(
    encode: "Callable[[range], Features]", count: int, layers: Iterable[str]
) -> tuple[dict[str, Float[np.ndarray, "n d"]], dict[str, Float[np.ndarray, "n e"]]]:
    """The mean token of each layer, and all tokens of the layer "tokens" side by side, if all are there in each."""
    from menagerie.models.towers.features import TOKENS

    means: dict[str, list[np.ndarray]] = {name: [] for name in layers}
    side_by_side: list[np.ndarray] = []
    for start in range(0, count, BLOCK):
        found = encode(range(start, min(start + BLOCK, count)))
        for name, parts in means.items():
            parts.append(found.mean(name).float().cpu().numpy())
        if TOKENS in found and bool(found.present[TOKENS].all()):
            side_by_side.append(found[TOKENS].flatten(1).float().cpu().numpy())
    whole = len(side_by_side) == -(-count // BLOCK) and len({part.shape[1] for part in side_by_side}) == 1
    return {name: np.concatenate(parts) for name, parts in means.items()}, (
        {TOKENS: np.concatenate(side_by_side)} if whole else {}
    )


def probed(part: str, layer: str, read: str, codes: Float[np.ndarray, "v p q d"], axes: "ProbeAxes") -> Iterator[Row]:
    from menagerie.studies.codes.probes import bound

    yield from named(part, layer, read, bound(codes, axes))


def named(part: str, layer: str, read: str, found: tuple[Any, ...]) -> Iterator[Row]:
    from menagerie.studies.codes.measured import rows

    yield from ({"part": part, "layer": layer, "read": read} | row for row in rows(found))


def score_rows(scorer: "Scorer", both: "tuple[SplitDataset, SplitDataset]") -> Iterator[Row]:
    """Bits of scores, and the share of scenes whose own caption has the higher one."""
    from menagerie.studies.codes.bits import bits

    margins = np.concatenate([margins_of(scorer, data) for data in both])
    right = float(((margins > 0) + 0.5 * (margins == 0)).mean())
    place = {"part": BOTH, "layer": SCORE, "read": SCORE}
    its = bits(margins)
    yield place | {"measure": "bits", "value": its.value, "chance": its.chance, "refused": its.refused}
    yield place | {"measure": "scene", "value": right, "chance": 0.5, "refused": ""}


def margins_of(scorer: "Scorer", data: "SplitDataset") -> Float[np.ndarray, " n"]:
    """The score of each image with its caption less that with the swapped one."""
    import torch

    found: list[torch.Tensor] = []
    with torch.no_grad():
        for start in range(0, len(data), BLOCK):
            some = range(start, min(start + BLOCK, len(data)))
            images = scorer.encode_images(scorer.pixel_scale(data.images(some).to(scorer.device)))
            draws = [0] * len(some)
            texts = data.captions(some, draws), data.negatives(some, draws)
            true, false = (
                scorer.paired(images, scorer.encode_texts(scorer.read(*zip(*these, strict=True)))) for these in texts
            )
            found.append((true - false).float().cpu())
    return torch.cat(found).numpy()
