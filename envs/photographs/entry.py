"""Atlas entries of cut-outs: the same arrays as of modelled animals, so that one compositor puts both together."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32, UInt8

from menagerie.envs.backgrounds import load_background
from menagerie.envs.drawing.camera import average, supersampling
from menagerie.envs.drawing.card import Card, Seen, card_of, card_shadow, contact, seen_by
from menagerie.envs.drawing.cutout import Cutout
from menagerie.envs.drawing.shadows import SOFTNESS, ShadowMap, receiving_points, visibility
from menagerie.envs.drawing.view import View, view_of
from menagerie.envs.photographs.surface import lit_and_unlit, skins
from menagerie.envs.render.entry import Entry, EntryKey
from menagerie.envs.render.stage import Ground, camera, ground, to_bytes


def build_cutout_entry(
    key: EntryKey, cutout: Cutout, textures: tuple[str, ...], backgrounds: tuple[str, ...], resolution: int
) -> Entry:
    """Render the entry of a cut-out for all the given textures and backgrounds."""
    view, side = view_of(key.view), supersampling(resolution)
    card = card_of(cutout, *key)
    seen = seen_by(camera(resolution, view), card, side)
    shadows = card_shadow(card, view.sun)
    coverage = average(seen.alpha, side)
    share = np.maximum(coverage, np.float32(1e-6))
    receivers = light_points_on(card, seen, view)
    masks = [_ground_shadow(ground(name, resolution, view), shadows, card, seen, view, side) for name in backgrounds]
    return Entry(
        corner=np.array([seen.top, seen.left], np.int64),
        alpha=to_bytes(coverage),
        depth=average(seen.depth * seen.alpha, side) / share,
        light=average(receivers * seen.alpha[..., None], side) / share[..., None],
        colors=np.stack([np.stack(row) for row in _layers(card, cutout, seen, view, textures, backgrounds, side)]),
        shadow_box=np.array([box for box, _ in masks], np.int64).reshape(-1, 4),
        shadow=np.concatenate([mask.reshape(-1) for _, mask in masks]),
        map_corner=np.array([shadows.row, shadows.column], np.int64),
        map_depth=shadows.depth,
    )


def light_points_on(card: Card, seen: Seen, view: View) -> Float32[np.ndarray, "h w 3"]:
    """Where what is seen of a card receives light, in light space."""
    return receiving_points(seen.world, np.broadcast_to(card.normal, seen.world.shape), view.sun)


def _layers(
    card: Card,
    cutout: Cutout,
    seen: Seen,
    view: View,
    textures: tuple[str, ...],
    backgrounds: tuple[str, ...],
    side: int,
) -> Iterator[list[UInt8[np.ndarray, "h w 6"]]]:
    """For each texture, the lit and the unlit layer on each background."""
    for surface in skins(card, cutout, seen, textures):
        lights = [load_background(name).light for name in backgrounds]
        both = (np.concatenate(lit_and_unlit(card, seen, surface, light, view), -1) for light in lights)
        yield [to_bytes(average(colors * seen.alpha[..., None], side)) for colors in both]


def _ground_shadow(
    backdrop: Ground, shadows: ShadowMap, card: Card, seen: Seen, view: View, side: int
) -> tuple[tuple[int, int, int, int], UInt8[np.ndarray, "h w"]]:
    """The share of the sun that the card leaves on a background, cut to where it is below 1 (row, column, height,
    width). A pixel's mean counts a sample by what the card leaves visible of it."""
    points = backdrop.light_points
    sunlit = contact(card, points, view.sun)
    height, width = shadows.depth.shape
    near = (np.abs(points[..., 0] - shadows.column - width / 2) < width / 2 + SOFTNESS) & (
        np.abs(points[..., 1] - shadows.row - height / 2) < height / 2 + SOFTNESS
    )
    sunlit[near] *= visibility(shadows, points[near])
    bare = np.ones(near.shape, np.float32)
    rows, columns = (slice(at * side, at * side + n) for at, n in zip(seen[:2], seen.alpha.shape, strict=True))
    bare[rows, columns] -= seen.alpha
    uncovered = average(bare, side)
    mean = np.where(uncovered > 0, average(sunlit * bare, side) / np.maximum(uncovered, np.float32(1e-6)), 1)
    mask = to_bytes(mean.astype(np.float32))
    lines, across = np.nonzero(mask < 255)
    if not len(lines):
        return (0, 0, 0, 0), mask[:0, :0]
    top, left, bottom, right = lines.min(), across.min(), lines.max() + 1, across.max() + 1
    return (int(top), int(left), int(bottom - top), int(right - left)), mask[top:bottom, left:right]
