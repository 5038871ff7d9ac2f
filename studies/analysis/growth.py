"""Measures how time and memory grow with the amount of data, for `studies/throughput.py growth`.

Times are processor time. An exponent e says that twice the amount takes 2^e times as long; it is taken between the last
two amounts, because a constant share hides it in small ones.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import numpy as np

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.core.validation import SIDE, Range
from menagerie.envs.worlds import load_world

Part = Literal["index", "sampler", "splits"]
Amounts = Annotated[tuple[int, ...], Range(10, 10**9)]
BATCHES, CALLS, LOOKED_UP = (64, 4096), 50, 20_000
MEMORY = Path("/proc/self")


@dataclass(frozen=True)
class Growth:
    """How listing, finding, sampling, making, opening and auditing grow with the number of scenes."""

    parts: tuple[Part, ...] = ("index", "sampler", "splits")
    """What is measured: a store's index, the sampler of batches, splits of crowds with their images."""
    rows: Amounts = (50_000, 500_000, 5_000_000)
    """Scenes of synthetic indices, and items of samplers."""
    scenes: Amounts = (1_000, 3_000, 10_000)
    """Training scenes of splits."""
    world: str = "eight-textures"
    """World of the splits."""
    resolution: Annotated[int, SIDE] = 32
    """Pixels along an image's side."""
    store: Path | None = None
    """Folder for stores and indices, which are deleted; the system's temporary folder if none is given."""


Row = dict[str, float]


def growth(config: Growth) -> int:
    """Measure and print."""
    from menagerie.studies.runs.machine import processor

    print(f"processor time; {processor()}")
    for part in config.parts:
        amounts = config.scenes if part == "splits" else config.rows
        rows = [measured(PARTS[part], config, amount) for amount in amounts]
        print_table(f"{part}, by number of scenes", amounts, rows)
    return 0


def measured(measure: Callable[[Growth, Path, int], Iterator[tuple[str, float]]], config: Growth, amount: int) -> Row:
    """Measure in a folder that is deleted afterwards."""
    with scratch_folder(config.store) as folder:
        return dict(measure(config, folder, amount))


def print_table(title: str, amounts: Sequence[int], rows: Sequence[Row]) -> None:
    """Print a line for each measure, and its exponent."""
    print(f"\n{title:<42}" + "".join(f"{amount:>12}" for amount in amounts) + f"{'exponent':>10}")
    for name in rows[-1]:
        values = [row[name] for row in rows]
        line = f"{name:<42}" + "".join(f"{value:>12.3g}" for value in values)
        print(line + (f"{exponent(amounts[-2:], values[-2:]):>10.2f}" if len(rows) > 1 else ""), flush=True)


def exponent(amounts: Sequence[int], values: Sequence[float]) -> float:
    """The e of value ~ amount^e between two amounts."""
    (few, many), (small, large) = amounts, values
    return log(large / small) / log(many / few) if min(values) > 0 else float("nan")


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """The processor time of a call, and what it gives."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


class Peak:
    """How much the memory of this process exceeds, at most, what it was at first, in MB; not a number off Linux."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            (MEMORY / "clear_refs").write_text("5")  # from now on the peak counts anew
        self.before = self._now("VmRSS")

    def more(self) -> float:
        return self._now("VmHWM") - self.before

    def _now(self, name: str) -> float:
        try:
            lines = (MEMORY / "status").read_text().splitlines()
        except OSError:
            return float("nan")
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def index_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """A store's index of synthetic scenes, without shards."""
    from menagerie.generators.storage.image_store import SHARD_ROWS
    from menagerie.generators.storage.store_index import StoreIndex, index_to_extend
    from menagerie.generators.vocabulary import Vocabulary

    known = Vocabulary.of(load_world(config.world))

    def listed() -> float:
        index, times = index_to_extend(folder, "synthetic", known), []
        for start in range(0, amount, SHARD_ROWS):
            table = synthetic(start, min(SHARD_ROWS, amount - start))
            times.append(seconds(partial(index.append, f"shard-{start}", table, "none"))[0])
        return median(times)

    whole, each = seconds(listed)
    ended, _ = seconds(lambda: index_to_extend(folder, "synthetic", known))
    drawn = np.random.default_rng(0).integers(0, amount, LOOKED_UP)
    wanted = np.concatenate([synthetic(int(row), 1) for row in drawn])
    peak = Peak()
    opened, index = seconds(lambda: found(StoreIndex(folder, "synthetic"), wanted[:1]))
    memory = peak.more()
    looked_up, _ = seconds(lambda: index.find(wanted))
    assert np.array_equal(index.find(wanted), drawn)
    yield "list all shards, s", whole
    yield "list one shard, ms", 1000 * each
    yield "end an addition, s", ended
    yield "open and find one scene, s", opened
    yield "... memory, MB", memory
    yield f"find {LOOKED_UP} scenes, s", looked_up


def found(index: Any, wanted: np.ndarray) -> Any:
    index.find(wanted)
    return index


def synthetic(start: int, rows: int) -> np.ndarray:
    """Scene records that are all different: two animals in a hundred thousand scenes of each view."""
    from menagerie.generators.vocabulary import SCENE_TYPE

    number, table = np.arange(start, start + rows), np.full(rows, -1, SCENE_TYPE)
    table["view"], within = number // 100_000, number % 100_000
    for place, base in enumerate((1, 100)):
        table["animal"][:, place], table["slot"][:, place] = within // base % 100, place
    table["background"], table["texture"][:, :2] = within // 10_000, 0
    return table


def sampler_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """A call of the sampler, past the first of a pass, which is timed apart."""
    from menagerie.models.training.sampling import Stream

    for shuffle in (None, "feistel"):
        named = shuffle or "in memory"
        for batch in BATCHES:
            stream = Stream(amount, 0, "all", shuffle)
            first, _ = seconds(partial(stream.take, 0, batch))
            calls = [seconds(partial(stream.take, k * batch, batch))[0] for k in range(1, CALLS)]
            yield f"{named}, batch {batch}: first call, ms", 1000 * first
            yield f"{named}, batch {batch}: each other, ms", 1000 * median(calls)


def split_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """A split of crowds: planned, rendered, written, opened, loaded, audited."""
    from menagerie.generators.audit.run import audit
    from menagerie.generators.splits.crowd import CrowdRecipe
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.image_store import ImageStore
    from menagerie.generators.storage.pixels import open_split
    from menagerie.generators.storage.split_file import make_split

    few = {"things": (2, 3), "test_things": (2, 3), "searches": (), "triplets": ()}
    recipe = CrowdRecipe(world=config.world, train_scenes=amount, test_scenes=100, views=4, test_views=1, **few)
    store = ImageStore(folder, load_world(config.world), config.resolution)
    planned, scenes = seconds(recipe.scenes_to_render)
    store.add(scenes[:100])  # renders the factors
    yield "plan, s", planned
    yield "render, s", seconds(lambda: store.add(scenes))[0]
    made, path = seconds(lambda: make_split(store, recipe))
    yield "write the split, s", made
    opened, split = seconds(lambda: open_split(path))
    yield "open it, s", opened
    peak = Peak()
    loaded, data = seconds(lambda: SplitDataset(split, "train", preload=True))
    yield "read its images, s", loaded
    yield "... memory over that of the images", peak.more() * 2**20 / data.images([0])[0].nbytes / len(data)
    yield "audit, s", seconds(lambda: audit(path))[0]


PARTS = {"index": index_growth, "sampler": sampler_growth, "splits": split_growth}
