"""Estimates the time and space that rendering takes on this machine: renders a sample of the scenes and discards it."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.render.row import RowRenderer, renderer_of
from menagerie.envs.render.stage import EntryKey
from menagerie.envs.scene import Scene
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.scene_checks import RenderChecks

ENTRIES, SCENES, REPEATS = 12, 16, 32
# Seconds to start a rendering process, and to write a split file and read it back: measured once.
START_SECONDS, SPLIT_SECONDS = 3.0, 2.0


class Estimate(NamedTuple):
    """Number of scenes still to render, and the time and disk space for them."""

    scenes: int
    seconds: float
    megabytes: float


def estimate(store: ImageStore, scenes: Sequence[Scene], workers: int) -> Estimate:
    """Estimate time and space to add `scenes` to a store with `workers` processes, and to write a split of them."""
    missing = store.missing(scenes)
    if not missing:
        return Estimate(0, SPLIT_SECONDS, 0.0)
    drawn = renderer_of(store.world, store.resolution)
    waiting = store.renderer(workers=1).missing(missing)
    entry_seconds, entry_bytes = entry_cost(drawn, waiting)
    scene_seconds = scene_cost(drawn, store, missing[:: max(1, len(missing) // SCENES)][:SCENES])
    at_once = min(workers, max(len(waiting), 1))
    building = len(waiting) * entry_seconds / at_once + (START_SECONDS if at_once > 1 else 0)
    size = len(missing) * store.scene_bytes + len(waiting) * entry_bytes
    return Estimate(len(missing), building + len(missing) * scene_seconds + SPLIT_SECONDS, size / 1e6)


def entry_cost(renderer: Renderer | RowRenderer, waiting: Sequence[EntryKey]) -> tuple[float, float]:
    """Seconds and bytes per atlas entry, from a sample of neighbouring entries, which share a background."""
    if not waiting:
        return 0.0, 0.0
    middle = len(waiting) // 2
    sample = waiting[middle : middle + ENTRIES]
    renderer.build(sample[0])  # compiles the code and draws the background
    seconds, built = timed(lambda: list(map(renderer.build, sample)))
    return seconds / len(sample), sum(a.nbytes for entry in built for a in entry.arrays().values()) / len(sample)


def scene_cost(renderer: Renderer | RowRenderer, store: ImageStore, sample: Sequence[Scene]) -> float:
    """Seconds to compose, check and write a scene, given its entries."""
    renderer.render(sample)  # builds the entries and compiles the code
    disk = next(place for place in (store.root, *store.root.resolve().parents) if place.is_dir())  # on the store's disk
    with scratch_folder(disk) as folder:
        part, many = folder / "part.h5", list(sample) * REPEATS
        seconds, _ = timed(lambda: store.write_part(part, renderer, RenderChecks(), many, "none"))
    return seconds / len(many)


def timed(call: Callable) -> tuple[float, object]:
    """Call a function; returns the seconds that it took, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result
