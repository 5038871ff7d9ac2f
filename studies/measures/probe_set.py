"""What measures on a probe set share: its scenes, the axes of embeddings, the layers that a scorer makes of its images
and texts, and measured numbers.

z[view, p, q, ...] is the embedding of a scene in a view, p an ordered pair of animals (left, right), q an ordered pair
of different textures (of the left, of the right)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Num, Shaped

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import changed_fields, json_value
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.probe_scenes import objects_from_left
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import read_split, split_name
from menagerie.models.layers import image_features, image_layer_names, text_features, text_layer_names
from menagerie.models.library.pictures import FramedSplit, framing_for
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Texts
from menagerie.models.towers.features import Features
from menagerie.studies.analysis.intervals import NOTHING, Estimate, mean_over_seeds
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.measure import Measure, Row
from menagerie.studies.frame.parts import Rows
from menagerie.studies.frame.study import store_identity
from menagerie.studies.runs.data import make_splits

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset

IMAGE, TEXT, BOTH = "image", "text", "image and text"
EMBEDDING = "embedding"
MEAN, ALL_TOKENS = "mean", "all tokens"
BLOCK = 64  # images or texts that are encoded at once
Place = tuple[str, str]
"""A layer, and what is read of it: the mean token, or equally many tokens side by side."""
VECTOR: Place = EMBEDDING, MEAN
Layers = dict[Place, Float[np.ndarray, "n d"]]


@dataclass(frozen=True)
class Measured:
    """The result of a measure: a number, its value if nothing of what is measured is known, why there is no number."""

    value: float | None
    chance: float | None
    refused: str = ""

    def row(self, **place: str) -> Row:
        """Return a row of a table, which begins with what the number is of; raises for a number that isn't finite."""
        numbers = {name: its if its is None else float(its) for name, its in vars(self).items() if name != "refused"}
        if not np.isfinite([its for its in numbers.values() if its is not None]).all():
            raise ValueError(f"{place} is {numbers}")
        return place | numbers | {"refused": self.refused}


def no_number(reason: str, chance: float | None = None) -> Measured:
    return Measured(None, chance, reason)


def share_right(margins: Float[np.ndarray, "..."]) -> Measured:
    """Return the share of choices between two that are right, with a positive margin; a margin of 0 is one half."""
    return Measured(float(np.heaviside(margins, 0.5).mean(dtype=float)), 0.5)


def label_rows(part: str, layer: str, read: str, found: tuple[Measured, ...]) -> Iterator[Row]:
    """Yield a row (part, layer, read, measure, value, chance, refused) for each number of a result, a named tuple."""
    for name, its in found._asdict().items():
        yield its.row(part=part, layer=layer, read=read, measure=name)


@dataclass(frozen=True, eq=False)
class ProbeAxes:
    """The ordered pairs of a probe set, each in both orders. Animals and textures are numbers from 0."""

    animals: Int[np.ndarray, "p 2"]
    textures: Int[np.ndarray, "q 2"]
    backgrounds: Int[np.ndarray, "v p q"]
    """The number of each scene's background, drawn anew for each view. A scene, its swap and its mirror share it."""

    @property
    def kinds(self) -> tuple[int, int]:
        """How many animals and textures there are."""
        return int(self.animals.max()) + 1, int(self.textures.max()) + 1

    @cached_property
    def swaps(self) -> Int[np.ndarray, " q"]:
        """For each ordered pair of textures, the number of the pair in the other order."""
        return reversed_numbers(self.textures)

    @cached_property
    def mirrors(self) -> Int[np.ndarray, " p"]:
        """For each ordered pair of animals, the number of the pair in the other order."""
        return reversed_numbers(self.animals)

    @cached_property
    def groups(self) -> Int[np.ndarray, " p"]:
        """For each ordered pair of animals, the number of the unordered pair. Folds hold out whole unordered pairs, so
        that all views of a scene, its swap and its mirror are in the same fold: random splits of scenes would leak."""
        return np.unique(np.sort(self.animals, 1), axis=0, return_inverse=True)[1].reshape(-1)

    @cached_property
    def half(self) -> Int[np.ndarray, " h"]:
        """For each unordered pair of textures, the number of one of its two orders."""
        return np.flatnonzero(self.textures[:, 0] < self.textures[:, 1])

    def repeated(self, times: int) -> "ProbeAxes":
        """Return the axes of embeddings whose views are all views of these axes, several times."""
        return ProbeAxes(self.animals, self.textures, np.concatenate([self.backgrounds] * times))

    def swap_differences(self, z: Float[np.ndarray, "v p q d"]) -> Float[np.ndarray, "v p h d"]:
        """Return D, the embedding of each scene minus that of its swap, for one order of each pair of textures."""
        return z[:, :, self.half] - z[:, :, self.swaps[self.half]]

    def folds(self, count: int) -> Int[np.ndarray, " p"]:
        """Return the number of a fold for each ordered pair of animals; both orders are in the same fold."""
        number = int(self.groups.max()) + 1
        if number < count:
            raise UserError(f"{count} folds need {count} pairs of animals, and the probe set has {number}")
        return (np.random.default_rng(0).permutation(number) % count)[self.groups]

    def check(self, embeddings: Num[np.ndarray, "v p q *rest"], least: int = 1) -> None:
        """Raise `UserError` unless embeddings fit these axes, are finite, and have at least `least` views."""
        if embeddings.shape[:3] != (shape := self.backgrounds.shape):
            raise UserError(
                f"embeddings {embeddings.shape} don't fit the probe set's (views, animal pairs, texture pairs) {shape}"
            )
        if len(embeddings) < least:
            raise UserError(f"embeddings of {least} views are needed, not of {len(embeddings)}")
        if not np.isfinite(embeddings).all():
            raise UserError("an embedding of the probe set isn't finite")


def reversed_numbers(pairs: Int[np.ndarray, "n 2"]) -> Int[np.ndarray, " n"]:
    """Return, for each ordered pair, the number of the pair in the other order."""
    number = {(one, two): k for k, (one, two) in enumerate(pairs.tolist())}
    return np.array([number[two, one] for one, two in pairs.tolist()])


def axes_of(
    animals: Shaped[np.ndarray, "n 2"],
    textures: Shaped[np.ndarray, "n 2"],
    views: Shaped[np.ndarray, " n"],
    backgrounds: Shaped[np.ndarray, " n"],
) -> tuple[ProbeAxes, Int[np.ndarray, "v p q"]]:
    """Return the axes of a list of scenes, and `numbers`, with which `embeddings[numbers]` is z[view, p, q, ...] for
    embeddings in the list's order. Animals, textures, views and backgrounds are names or numbers. Raises `UserError`
    unless each view holds each ordered pair of animals with each one of textures once."""
    named = (views, backgrounds, animals, textures)
    view, background, animal, texture = (np.unique(names, return_inverse=True)[1].reshape(-1) for names in named)
    pairs, p = np.unique(animal.reshape(-1, 2), axis=0, return_inverse=True)
    bags, q = np.unique(texture.reshape(-1, 2), axis=0, return_inverse=True)
    shape = (int(view.max()) + 1, len(pairs), len(bags))
    place = np.ravel_multi_index((view, p.reshape(-1), q.reshape(-1)), shape)
    full = all(len(its) == (n := its.max() + 1) * (n - 1) > 0 for its in (pairs, bags))
    if not full or not np.array_equal(np.sort(place), np.arange(np.prod(shape))):
        parts = f"{shape[0]} views, {shape[1]} ordered pairs of animals and {shape[2]} of textures"
        raise UserError(f"a probe set of {parts} has each scene once, and there are {len(place)} scenes")
    numbers = np.argsort(place).reshape(shape)
    return ProbeAxes(pairs, bags, background[numbers]), numbers


@dataclass(frozen=True)
class ProbeMeasure(Measure):
    """A measure on the scenes of a probe set."""

    recipe: ProbeRecipe
    store: Path
    """Folder of atlases and split files."""
    resolution: int
    """Side of the probe set's images, in pixels."""

    @cached_property
    def settings(self) -> Row:
        """What decides the numbers, besides the cell: the probe set's images, not the path of its file."""
        changed = {name: value for name, value in changed_fields(self).items() if name not in ("store", "resolution")}
        images = store_identity(self.store, self.recipe.world, self.resolution)
        shown = changed | {"recipe": changed_fields(self.recipe), "images": images}
        return {"name": type(self).__qualname__, "version": self.version, "settings": json_value(shown)}

    @property
    def images(self) -> SplitFolder:
        return SplitFolder(self.store, load_world(self.recipe.world), self.resolution)

    def make(self, workers: int) -> None:
        """Render the probe set's objects that the atlas lacks, and write its file."""
        make_splits(self.images, [self.recipe], workers)

    def opened(self, scorer: Scorer, kind: type[FramedSplit] = FramedSplit) -> tuple[FramedSplit, FramedSplit]:
        """Return the scenes, framed for the scorer, with captions that mention the left object first, and the same
        scenes with captions that mention the right one first."""
        split = read_split(self.images.folder / split_name(self.recipe))
        left, right = (kind(split, name, framing_for(scorer)) for name in ProbeRecipe.tests)
        return left, right


def probe_axes(data: "SplitDataset") -> tuple[ProbeAxes, Int[np.ndarray, "v p q"]]:
    """Return the axes of a probe set, and the number of each scene's record."""
    scenes = data.records.scenes
    objects = [[(obj.animal, obj.texture) for obj in objects_from_left(scene)] for scene in scenes]
    animals, textures = np.moveaxis(np.array(objects), -1, 0)
    return axes_of(animals, textures, np.array([s.view for s in scenes]), np.array([s.background for s in scenes]))


def has_vectors(scorer: Scorer) -> bool:
    """Whether a scorer has a single vector for each image and each text."""
    return EMBEDDING in image_layer_names(scorer) and EMBEDDING in text_layer_names(scorer)


def image_layers(scorer: Scorer, data: "SplitDataset", wanted: Sequence[Place] = (VECTOR,)) -> Layers:
    """Return what is `wanted` of the layers of a probe set's images; by default their single vectors."""
    return read_layers(lambda some, names: image_features(scorer, data.images(some), names), len(data), wanted)


def text_layers(scorer: Scorer, texts: Sequence[Caption], wanted: Sequence[Place] = (VECTOR,)) -> Layers:
    """Return what is `wanted` of the layers of texts; by default their single vectors."""

    def encode(some: range, names: list[str]) -> Features:
        return text_features(scorer, Texts(*zip(*texts[some.start : some.stop], strict=True)), names)

    return read_layers(encode, len(texts), wanted)


def read_layers(encode: Callable[[range, list[str]], Features], count: int, wanted: Sequence[Place]) -> Layers:
    """Return what is `wanted` of the layers of `count` images or texts, which `encode` encodes block by block."""
    names = list(dict.fromkeys(layer for layer, _ in wanted))
    parts: dict[Place, list[np.ndarray]] = {place: [] for place in wanted}
    for start in range(0, count, BLOCK) if parts else ():
        found = encode(range(start, min(start + BLOCK, count)), names)
        for (layer, read), blocks in parts.items():
            states = found.mean(layer) if read == MEAN else found[layer].flatten(1)
            blocks.append(states.float().cpu().numpy())
    return {place: np.concatenate(blocks) for place, blocks in parts.items()}


def captions_of(data: "SplitDataset") -> list[Caption]:
    return data.captions(range(len(data)), [0] * len(data))


def unknown_words_reason(texts: Iterable[str], known: Iterable[str]) -> str:
    """Return which words of `texts` no known text has, as the reason for a refusal; empty if there are none."""
    said, there = ({word for text in some for word in text.split()} for some in (texts, known))
    odd = sorted(said - there)
    return f"no text of training says {', '.join(map(repr, odd))}" if odd else ""


def seed_means(
    rows: pd.DataFrame, by: Sequence[str], least: float = 0.0, most: float = 1.0
) -> dict[tuple[Any, ...], Estimate]:
    """Return the mean over seeds of the values of each combination of `by`; places are pooled within a seed."""
    each = rows.dropna(subset="value").groupby([*by, "seed"], sort=False)["value"].mean()
    found = each.groupby(level=list(range(len(by))), sort=False)
    return {key if len(by) > 1 else (key,): mean_over_seeds(list(values), least, most) for key, values in found}


def table_by_model(
    name: str, rows: pd.DataFrame, by: Sequence[str], times: int = 100, digits: int = 1, **how: str
) -> Rows:
    """Return a table with a row for each combination of the columns `by`, and a column for each model: chance, and
    means over seeds with their intervals, of shares in percent or of plain numbers (`times` is 1)."""
    models, bounds = list(dict.fromkeys(rows["model"])), (0.0, 1.0) if times == 100 else (-np.inf, np.inf)
    means = seed_means(rows, (*by, "model"), *bounds)
    lines = []
    for key, its in rows.groupby(list(by), sort=False):
        found = (means.get((*key, model), NOTHING)._replace(times=times, digits=digits) for model in models)
        chance = its["chance"].astype(float).mean()
        lines.append((*key, DASH if np.isnan(chance) else f"{times * chance:.2g}", *map(str, found)))
    return Rows(name, (*by, "chance", *map(title_of, models)), lines, **how)
