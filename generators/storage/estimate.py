"""Estimates the time and space that rendering takes on this machine: renders a sample of the scenes and discards it."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.drawing.camera import View, view_of
from menagerie.envs.render.atlas import Atlas
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.render.row import RowRenderer, renderer_of
from menagerie.envs.render.stage import EntryKey
from menagerie.envs.scene import Scene
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.scene_checks import RenderChecks

ENTRIES, SCENES, REPEATS = 24, 16, 32
# Seconds to start rendering processes, and to load compiled code and write a split: measured once, on an idle machine.
START_SECONDS, SPLIT_SECONDS = 1.0, 0.7


class Estimate(NamedTuple):
    """Number of scenes still to render, and the time and disk space for them."""

    scenes: int
    seconds: float
    megabytes: float


class EntryCost(NamedTuple):
    """What atlas entries cost."""

    seconds: float
    """To build and write an entry, given its backgrounds."""
    view_seconds: float
    """To draw the backgrounds of one camera and sun, which all of its entries share."""
    bytes: float
    """Size of an entry."""


def estimate(store: ImageStore, scenes: Sequence[Scene], workers: int) -> Estimate:
    """Estimate time and space to add `scenes` to a store with `workers` processes, and to write a split of them."""
    missing = store.missing(scenes)
    if not missing:
        return Estimate(0, SPLIT_SECONDS, 0.0)
    drawn = renderer_of(store.world, store.resolution)
    waiting = by_view(store.renderer(workers=1).missing(missing))
    entries = sum(map(len, waiting))
    cost = entry_cost(drawn, waiting, disk_of(store)) if waiting else EntryCost(0.0, 0.0, 0.0)
    scene_seconds = scene_cost(drawn, store, missing[:: max(1, len(missing) // SCENES)][:SCENES])
    at_once = min(workers, max(entries, 1))
    # Each process draws the backgrounds of every view, because processes take entries in turn.
    building = entries * cost.seconds / at_once + len(waiting) * cost.view_seconds
    starting = START_SECONDS if at_once > 1 else 0.0
    size = len(missing) * store.scene_bytes + entries * cost.bytes
    return Estimate(len(missing), starting + building + len(missing) * scene_seconds + SPLIT_SECONDS, size / 1e6)


def by_view(keys: Sequence[EntryKey]) -> list[list[EntryKey]]:
    """Group keys by camera and sun, on which backgrounds depend."""
    views: dict[View, list[EntryKey]] = {}
    for key in keys:
        views.setdefault(view_of(key.view), []).append(key)
    return list(views.values())


def disk_of(store: ImageStore) -> Path:
    """Return a folder that exists on the disk of a store, which may not exist yet."""
    return next(place for place in (store.root, *store.root.resolve().parents) if place.is_dir())


def entry_cost(renderer: Renderer | RowRenderer, views: Sequence[Sequence[EntryKey]], disk: Path) -> EntryCost:
    """Build and write neighbouring entries of the view that lacks most, and an entry of another view. Neighbours share
    animals as often as all entries do."""
    *others, most = sorted(views, key=len)
    sample = most[max(0, len(most) - ENTRIES) // 2 :][:ENTRIES]
    renderer.build(sample[:1])  # compiles the code and draws the background
    with scratch_folder(disk) as folder:
        atlas = Atlas(folder / "atlas.bin")
        seconds, _ = timed(lambda: [atlas.append(key, renderer.build([key])[0]) for key in sample])
        size = atlas.path.stat().st_size / len(sample)
    first = timed(lambda: renderer.build(others[-1][:1]))[0] if others else 0.0
    return EntryCost(seconds / len(sample), max(0.0, first - seconds / len(sample)), size)


def scene_cost(renderer: Renderer | RowRenderer, store: ImageStore, sample: Sequence[Scene]) -> float:
    """Seconds to compose, check and write a scene, given its entries."""
    renderer.render(sample)  # builds the entries and compiles the code
    with scratch_folder(disk_of(store)) as folder:
        part, many = folder / "part.h5", list(sample) * REPEATS
        seconds, _ = timed(lambda: store.write_part(part, renderer, RenderChecks(), many, "none"))
    return seconds / len(many)


def timed(call: Callable) -> tuple[float, object]:
    """Call a function; returns the seconds that it took, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result
