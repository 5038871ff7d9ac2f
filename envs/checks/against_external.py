"""Compares our silhouettes and depth with those of external renderers."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from menagerie.envs.checks.external_renderers import EXTERNAL_RENDERERS, ExternalRendering
from menagerie.envs.drawing.camera import average, supersampling, view_of
from menagerie.envs.drawing.raster import trace
from menagerie.envs.render.stage import EntryKey, camera, mesh_in_slot
from menagerie.envs.scene import Scene

LEAST_OVERLAP = 0.97  # intersection over union of an object's masks
DEPTH_ERROR = 0.01  # share of the depth
# Least share of the common mask whose depth may differ by at most DEPTH_ERROR. The other samples lie on inner edges,
# where two renderers that round differently show a near leg or a far one.
LEAST_WITHIN = 0.999


class Agreement(NamedTuple):
    """Agreement of an external renderer with ours on one scene."""

    key: str
    overlap: float  # least intersection over union of the objects' masks
    within: float  # share of the common mask's samples whose depth agrees
    depth: float  # mean error there, as a share of the depth


def own_depth(scene: Scene, resolution: int) -> Float32[np.ndarray, "h w"]:
    """Return the depth in metres of every sample of our rasteriser; 0 where there is nothing."""
    view = camera(resolution, view_of(scene.view))
    depth = np.zeros((view.size, view.size), np.float32)
    for samples in trace([mesh_in_slot(EntryKey.of(obj, scene.view)) for obj in scene.objects], view):
        depth[samples.rows, samples.columns] = samples.depth
    return depth


def agreement(scene: Scene, mask: UInt8[np.ndarray, "h w"], external: ExternalRendering) -> Agreement:
    """Compare our composed mask of a scene with an external rendering at the resolution of our samples."""
    side = supersampling(len(mask))
    shares = [average((external.mask == k).astype(np.float32), side) for k in range(len(scene.objects) + 1)]
    theirs = np.argmax(shares, 0)
    overlaps = [
        ((mask == k) & (theirs == k)).sum() / max(((mask == k) | (theirs == k)).sum(), 1)
        for k in range(1, len(scene.objects) + 1)
    ]
    ours = own_depth(scene, len(mask))
    common = (ours > 0) & (external.mask > 0)
    error = (np.abs(ours - external.depth) / np.maximum(ours, 1e-6))[common]
    return Agreement(scene.key, float(min(overlaps)), float((error <= DEPTH_ERROR).mean()), float(error.mean()))


def compare_with(name: str, scenes: Sequence[Scene], masks: UInt8[np.ndarray, "n h w"]) -> list[Agreement]:
    """Return the agreement of the external renderer called `name` on each scene."""
    resolution = masks.shape[1]
    with closing(EXTERNAL_RENDERERS[name](resolution * supersampling(resolution))) as renderer:
        return [agreement(scene, mask, renderer.render(scene)) for scene, mask in zip(scenes, masks, strict=True)]


def external_report(scenes: Sequence[Scene], masks: UInt8[np.ndarray, "n h w"]) -> Iterator[tuple[str, float, float]]:
    """Yield, for all external renderers, a name, a value and the least value that is allowed."""
    for name in EXTERNAL_RENDERERS:
        results = compare_with(name, scenes, masks)
        worst, deepest = min(results, key=lambda a: a.overlap), min(results, key=lambda a: a.within)
        yield f"{name}: mask overlap, worst", worst.overlap, LEAST_OVERLAP
        yield f"{name}: share with a depth error below {DEPTH_ERROR:.0%}, worst", deepest.within, LEAST_WITHIN
        print(f"worst scenes: {worst.key}, {deepest.key}; mean depth error {np.mean([a.depth for a in results]):.4%}")
