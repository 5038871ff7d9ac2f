"""Scorers whose results are known: they recognise images of the store in the folder where a study runs.

One knows the truth, one says its opposite, one says the same of everything, one draws. Users' own classes, so that they
take part in every study: `oracles.py:Perfect`.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.relations import claims
from menagerie.generators.captions.templates import caption
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.split_file import read_split
from menagerie.models.scorer import Scorer
from menagerie.models.towers.preparation import Framing

CLAIMS, NODES = 64, 8  # the most of a scene or a text


class Facts(NamedTuple):
    """What is known of n images or texts, as numbers; 0 is nothing."""

    claims: Tensor  # (n, CLAIMS)
    nodes: Tensor  # (n, NODES): the objects of a scene, in the order of its mask, or the nodes of a text
    number: Tensor  # (n,): of the pixels or of the letters
    mask: Tensor  # (n, height * width) of images: 0 where no object is, else the number of one


def number(content: str | bytes) -> int:
    """A number above 0 that says all."""
    return zlib.crc32(content.encode() if isinstance(content, str) else content) + 1


def numbers(texts: Iterable[str], width: int) -> list[int]:
    """Numbers of texts, with zeros behind."""
    row = [number(text) for text in texts]
    return row + [0] * (width - len(row))


class Album:
    """The scenes of all images in the folder `store`, read as they come."""

    def __init__(self) -> None:
        self.read: set[Path] = set()
        self.facts: dict[int, tuple[list[int], list[int], list[int]]] = {}

    def of(self, pixels: Tensor) -> tuple[list[int], list[int], list[int]]:
        """Claims, objects and mask of the scene that an image shows; nothing of one that isn't there."""
        key = number(pixels.numpy().tobytes())
        if key not in self.facts:
            self.read_new()
        return self.facts.get(key, ([0] * CLAIMS, [0] * NODES, [0] * pixels[0].numel()))

    def read_new(self) -> None:
        """Read the split files that weren't there before."""
        for path in sorted(set(Path("store").glob("*/*-p*-n*-s*.h5")) - self.read):
            self.read.add(path)
            split = read_split(path)
            swap = split.kind.swap
            for data in (SplitDataset(split, name, preload=False) for name in sorted(split.subsets) if name != "train"):
                everything = range(len(data))
                scenes, nothing = data.records.scenes, torch.zeros(len(data), 1, 1)
                shown = [(scenes, data.images(everything), data.masks(everything))] if scenes else []
                if data.has_counterfactuals:
                    shown.append(([swap(scene) for scene in scenes], data.counterfactual_images(everything), nothing))
                for group in shown:
                    for scene, image, mask in zip(*group, strict=True):
                        graph = caption(scene, 0, "relation").graph
                        truth = numbers(claims(graph), CLAIMS), numbers(map(phrase, scene.objects), NODES)
                        area = mask.expand(image.shape[1:]).flatten().tolist()
                        key = number(image.contiguous().numpy().tobytes())
                        if key not in self.facts or any(area):  # a counterfactual may be tested itself, with its mask
                            self.facts[key] = (*truth, area)


ALBUM = Album()


class Bytes(nn.Module):
    """Pixels as they are stored."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.framing = Framing(side)

    def forward(self, pixels: Tensor) -> Tensor:
        """0 to 255."""
        return pixels.float()


@dataclass(frozen=True)
class Reader:
    """Texts to `Facts`."""

    def __call__(self, texts, generator=None) -> Facts:
        """What the graphs claim."""
        rows = [numbers(claims(graph), CLAIMS) for graph in texts.graphs]
        nodes, words = [numbers(graph.nodes, NODES) for graph in texts.graphs], list(map(number, texts.captions))
        return Facts(*map(torch.tensor, (rows, nodes, words)), torch.zeros(len(rows), 0))


@dataclass(frozen=True)
class OracleConfig:
    """Which of them."""

    kind: str = "perfect"
    """perfect, inverted, constant or random."""


class Perfect(Scorer):
    """Says 1 of a text that is true of an image, else -1."""

    config_class = OracleConfig
    capabilities = frozenset({"attention"})
    kind = ""

    def __init__(self, towers, texts, config) -> None:
        super().__init__(towers, texts)
        self.config, self.reader, self.pixel_scale = config, Reader(), Bytes(towers.resolution)
        self.kind = type(self).kind or config.kind
        self.nothing = nn.Parameter(torch.zeros(1))  # so that there is something to train

    def encode_images(self, pixels) -> Facts:
        shown = pixels.round().clamp(0, 255).to(torch.uint8)
        rows = [ALBUM.of(image) if not self.training else ([0] * CLAIMS, [0] * NODES, [0]) for image in shown]
        own = [number(image.numpy().tobytes()) for image in shown]
        claimed, objects, masks = (torch.tensor(part) for part in zip(*rows, strict=True))
        return Facts(claimed, objects, torch.tensor(own), masks)

    def encode_texts(self, texts: Facts) -> Facts:
        return texts

    def similarity(self, images: Facts, texts: Facts) -> Tensor:
        return self.judge_setting(Facts(*(part[:, None] for part in images)), texts)

    def pair_similarity(self, images: Facts, texts: Facts) -> Tensor:
        return self.judge_setting(images, texts)

    def judge_setting(self, images: Facts, texts: Facts) -> Tensor:
        """By kind: each text of each image, or of its own."""
        held = (texts.claims[..., :, None] == images.claims[..., None, :]).any(-1)
        truth = 2.0 * (held | (texts.claims == 0)).all(-1) - 1
        drawn = torch.sin(images.number.double() * 1.37e-4 + texts.number.double() * 2.11e-4) * 43758.5453
        drawn = (2 * (drawn % 1) - 1).float()
        says = {"perfect": truth, "inverted": -truth, "constant": 0 * truth, "random": drawn}
        return says[self.kind] + self.nothing

    def attention(self, images: Facts, texts: Facts) -> Tensor:
        """A patch is a pixel: each node takes those of its object, of the other, or an equal share."""
        places = (texts.nodes[:, :, None] == images.nodes[:, None, :2]) & (texts.nodes > 0)[:, :, None]
        if self.kind == "inverted":
            places = places.flip(-1)
        areas = images.mask[:, None, None] == torch.arange(1, 3)[:, None]
        taken = (places[..., None] & areas).any(2).float()
        return torch.full_like(taken, 0.1) if self.kind == "constant" else taken

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        return {"vision": [], "text": []}


class Inverted(Perfect):
    """Says the opposite."""

    kind = "inverted"


class Constant(Perfect):
    """Says 0 of everything."""

    kind = "constant"


class Random(Perfect):
    """Says anything, but always the same of one image and one text."""

    kind = "random"
