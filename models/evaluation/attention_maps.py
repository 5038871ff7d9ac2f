"""Compares the attention of a scorer's queries with the masks of the objects.

Figure 8 of OC-CLIP only shows attention maps. Our scenes have masks of their objects, as a ground truth.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.scorer import Scorer

BLOCK = 64


class Maps(NamedTuple):
    """Attention maps of n scenes of two objects, at the image's resolution.

    A map is a query's share of each patch, divided by its mean share: up to a factor, the weights with which the slot
    averages the patches' values (figure 9). Uniform attention gives 1 everywhere. A scorer with `phrase_maps` gives
    those in place of attention.
    """

    objects: Float[np.ndarray, "n 2 h w"]  # in the order of the scene's objects, as in the masks
    rest: Float[np.ndarray, "n h w"]  # the default tokens' share of each patch, 0..1; 0 without competition


class Overlap(NamedTuple):
    """Overlap of each object's attention map with the masks."""

    obj: Float[np.ndarray, "n 2"]  # intersection over union with the mask of the object that the query names
    other: Float[np.ndarray, "n 2"]  # ... with the other object's mask

    @property
    def mean(self) -> float:
        """Mean overlap with the mask of the object that the query names."""
        return float(self.obj.mean())

    @property
    def right(self) -> float:
        """Share of scenes in which both maps overlap more with their own object than with the other."""
        return float((self.obj > self.other).all(1).mean())


@torch.no_grad()
def attention_maps(scorer: Scorer, data: SplitDataset, indices: Sequence[int]) -> Maps:
    """Return the attention maps of the objects named in true captions; raise for a scorer without attention."""
    if "attention" not in scorer.capabilities:
        raise UserError(f"{type(scorer).__name__} has no attention maps")
    scorer.eval()
    parts = [_block(scorer, data, indices[start : start + BLOCK]) for start in range(0, len(indices), BLOCK)]
    return Maps(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _block(scorer: Scorer, data: SplitDataset, indices: Sequence[int]) -> Maps:
    captions = [data.records.captions[i] for i in indices]
    graphs = [data.records.graphs[i] for i in indices]
    pixels = scorer.pixel_scale(data.images(indices).to(scorer.device))
    order = [nodes_of_objects(data, i) for i in indices]
    if read := getattr(scorer, "phrase_maps", None):  # phrases don't compete for patches
        phrases = [[graph.nodes[node] for node in its] for graph, its in zip(graphs, order, strict=True)]
        patches = of_objects = read(scorer.encode_images(pixels), captions, phrases)
    else:
        patches = scorer.attention(scorer.encode_images(pixels), scorer.encode_texts(scorer.read(captions, graphs)))
        rows = torch.arange(len(patches), device=patches.device)[:, None]
        of_objects = patches[rows, torch.tensor(order, device=patches.device)]
    objects = enlarge(of_objects / of_objects.mean(-1, keepdim=True).clamp_min(1e-8), pixels.shape[-1])
    left = 1 - patches.sum(1, keepdim=True)
    config = scorer.config
    if read or not getattr(config, "competitive", True) or getattr(config, "focus", False):  # shares don't sum to 1
        left = torch.zeros_like(left)
    rest = enlarge(left.clamp(0, 1), pixels.shape[-1])[:, 0]
    return Maps(objects.cpu().numpy(), rest.cpu().numpy())


def nodes_of_objects(data: SplitDataset, index: int) -> list[int]:
    """Find the indices of a scene's two objects among the nodes of its caption's graph; raise unless there are two and
    each has a node."""
    scene, nodes = data.records.scenes[index], data.records.graphs[index].nodes
    names = [phrase(obj) for obj in scene.objects]
    if len(names) != 2 or not set(names) <= set(nodes):
        raise UserError(
            f"{data.name} shows {', '.join(names)} and its caption names {', '.join(nodes)}; attention is measured on "
            "scenes of two objects that captions name one by one"
        )
    return [nodes.index(name) for name in names]


def enlarge(patches: Float[Tensor, "n q p"], size: int) -> Float[Tensor, "n q size size"]:
    """Enlarge square maps of patches to the image's resolution, bilinearly."""
    side = round(patches.shape[-1] ** 0.5)
    return F.interpolate(patches.float().unflatten(-1, (side, side)), size=size, mode="bilinear", align_corners=False)


def overlap(maps: Maps, masks: UInt8[np.ndarray, "n h w"], threshold: float) -> Overlap:
    """Return the intersection over union of thresholded maps with the masks of both objects."""
    chosen = maps.objects > threshold
    shown = np.stack([masks == 1, masks == 2], 1)
    return Overlap(iou(chosen, shown), iou(chosen, shown[:, ::-1]))


def iou(first: Bool[np.ndarray, "n 2 h w"], second: Bool[np.ndarray, "n 2 h w"]) -> Float[np.ndarray, "n 2"]:
    """Intersection over union; 0 if both are empty."""
    together, either = (first & second).sum((2, 3)), (first | second).sum((2, 3))
    return together / np.maximum(either, 1)


def best_threshold(maps: Maps, masks: UInt8[np.ndarray, "n h w"]) -> float:
    """Return the threshold with the greatest mean overlap with the objects that queries name."""
    candidates = np.linspace(0.5, 12.5, 49)
    return float(max(candidates, key=lambda threshold: overlap(maps, masks, threshold).mean))
