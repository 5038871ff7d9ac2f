"""What `studies/throughput.py growth` measures at one amount of data: functions that yield names and numbers."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from menagerie.envs.core.validation import SIDE, Range, Several
from menagerie.envs.render.occlusion import UNKNOWN
from menagerie.envs.scene import MOST_THINGS
from menagerie.envs.slots import SLOTS
from menagerie.envs.worlds import load_world

if TYPE_CHECKING:
    from menagerie.generators.storage.image_store import ImageStore

BATCHES, CALLS = (64, 4096), 50
LOOKED_UP, MOST_SHOWN, MOST_ALONE = 20_000, 10_000, 500
MEMORY = Path("/proc/self")
Part = Literal["index", "sampler", "files", "splits", "batches", "report"]
RUNS_OF_A_PLACE = 10  # two models, five seeds
Amounts = Annotated[tuple[int, ...], Range(10, 10**9), Several(1)]


@dataclass(frozen=True)
class Growth:
    """How listing, finding, sampling, making, opening, training and auditing grow with the number of scenes, a training
    step with its batch, and a report with its runs."""

    parts: Annotated[tuple[Part, ...], Several(1)] = ("index", "sampler", "splits")
    """What is measured: a store's index; the sampler of batches; a split of many shards, whose images have four pixels,
    in a process that may have few files open; splits of crowds, rendered, trained on once and audited; training steps;
    the report of a grid with invented results."""
    rows: Amounts = (50_000, 500_000, 5_000_000)
    """Numbers of synthetic scenes in indices and in shards, and of items in samplers."""
    scenes: Amounts = (1_000, 3_000, 10_000)
    """Training scenes of splits of crowds."""
    batches: Annotated[tuple[int, ...], Range(2, 10**5), Several(1)] = (64, 256, 1024)
    """Images per training step."""
    runs: Annotated[tuple[int, ...], Range(RUNS_OF_A_PLACE, 10**6), Several(1)] = (100, 1_000)
    """Numbers of training runs of the grid; rounded down to two models with five seeds at each place."""
    handles: Annotated[int, Range(32, 10**6)] = 256
    """Files that may be open while the many shards are read."""
    world: str = "eight-textures"
    """World of the splits."""
    resolution: Annotated[int, SIDE] = 32
    """Pixels along an image's side."""
    store: Path | None = None
    """Folder for stores and indices, which are deleted; the system's temporary folder if none is given."""


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return a call's processor time in seconds, and its result."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


class Peak:
    """The largest growth of this process's memory since this object was made, in MiB; NaN where there is no /proc."""

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
    """Measure a store's index of synthetic scenes, without shards."""
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
    yield "... memory, MiB", memory
    yield f"find {LOOKED_UP} scenes, s", looked_up


def found(index: Any, wanted: np.ndarray) -> Any:
    index.find(wanted)
    return index


def synthetic(start: int, rows: int) -> np.ndarray:
    """Return scene records that are all different, of two animals side by side, 64 in each view."""
    from menagerie.generators.vocabulary import SCENE_TYPE

    number, table = np.arange(start, start + rows), np.full(rows, -1, SCENE_TYPE)
    table["view"], table["background"], table["texture"][:, :2] = number // 64, 0, 0
    table["animal"][:, :2] = np.stack([number % 64 // 8, number % 8], 1)
    table["slot"][:, :2] = [list(SLOTS).index(place) for place in ("left", "right")]
    return table


def sampler_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """Time calls of the sampler: the first one, and the median of the later ones."""
    from menagerie.models.training.sampling import Stream

    for shuffle in (None, "feistel"):
        named = shuffle or "in memory"
        for batch in BATCHES:
            stream = Stream(amount, 0, "all", shuffle)
            first, _ = seconds(partial(stream.take, 0, batch))
            calls = [seconds(partial(stream.take, k * batch, batch))[0] for k in range(1, CALLS)]
            yield f"{named}, batch {batch}: first call, ms", 1000 * first
            yield f"{named}, batch {batch}: each other, ms", 1000 * median(calls)


def file_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """Measure a split of some rows of a store of synthetic shards."""
    import resource

    from menagerie.generators.storage.image_store import ImageStore
    from menagerie.generators.storage.pixels import PixelReader, open_split

    store = ImageStore(folder, load_world(config.world), SIDE.low)
    yield "write the shards, s", seconds(lambda: write_synthetic(store, amount))[0]
    path = split_of_some(store, amount)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(config.handles, before[1]), before[1]))
    try:
        opened, split = seconds(lambda: open_split(path))
        yield "shards", float(len(split.shards))
        yield "open the split, s", opened
        rows, peak = split.subsets["train"].rows, Peak()
        reader, random = PixelReader(split, verify=False), np.random.default_rng(1)
        for name, some in (("together", rows), ("in any order", random.permutation(rows)[:MOST_ALONE])):
            read = reader.read_all if name == "together" else lambda some: [reader.read(row) for row in some.tolist()]
            yield f"read an image of many {name}, ms", 1000 * seconds(partial(read, some))[0] / len(some)
        yield "... memory, MiB", peak.more()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def write_synthetic(store: "ImageStore", amount: int) -> None:
    """Fill a store with shards of black images."""
    from menagerie.generators.storage.image_store import SHARD_ROWS
    from menagerie.generators.storage.shards import Rendered, write_shard
    from menagerie.generators.storage.store_index import index_to_extend

    extend = partial(index_to_extend, store.folder, store.identity, store.vocabulary)
    index = extend()
    for start in range(0, amount, SHARD_ROWS):
        table = synthetic(start, min(SHARD_ROWS, amount - start))
        path = store.folder / f"shard-{len(index.shards):05d}.h5"
        pixels = [np.zeros((len(table), *shape), np.uint8) for shape in ((2, 2, 3), (2, 2))]
        rendered = Rendered(*pixels, np.full((len(table), MOST_THINGS), UNKNOWN, np.int32))
        write_shard(path, store.identity, store.vocabulary, table, rendered)
        index.append(path.name, table, "none")
    extend()


def split_of_some(store: "ImageStore", amount: int) -> Path:
    """Write a split of up to `MOST_SHOWN` random rows of a store; return its path."""
    from menagerie.generators.captions.graph import SceneGraph
    from menagerie.generators.storage.split_file import Records, write_split

    rows = np.unique(np.random.default_rng(0).integers(0, amount, MOST_SHOWN))
    texts, graphs = [""] * len(rows), [SceneGraph((), ())] * len(rows)
    scenes = store.vocabulary.decode(store.listing().records(rows))
    records = Records(scenes, rows, np.full(len(rows), -1), texts, texts, graphs, graphs)
    write_split(path := store.folder / "some.h5", store, {"kind": "binding"}, {"train": records}, "1.1")
    return path
