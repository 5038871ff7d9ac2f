"""Renders the tests of a frozen benchmark, and nothing to train on, and digests their scenes, texts and pixels.

Digests ignore where the split file lies and its row numbers.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import progress_bars
from menagerie.envs.core.records import LETTERS
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.benchmark import Item
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.frozen.benchmark import Digests, Frozen, load_frozen
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import Split, is_made_by, read_split


def make_frozen(benchmark: Frozen, root: Path, workers: int) -> Path:
    """Render what the atlas below `root` lacks, write the split file of the tests and check its digests.

    Raises `UserError` if scenes, texts or pixels differ from the benchmark's.
    """
    recipe, tested = benchmark.recipe, benchmark.tested()
    folder = SplitFolder(root, load_world(recipe.world), benchmark.resolution)
    print(f"{benchmark.name}: {sum(map(len, tested.values()))} scenes", flush=True)
    with progress_bars("factors") as progress:
        path = folder.make(recipe, workers, progress, f"frozen-{benchmark.name}.h5", lambda: tested)
    check_digests(benchmark, digests_of(tests_in(read_split(path), recipe)))
    return path


def tests_in(split: Split, recipe: SplitRecipe) -> dict[str, SplitTests]:
    """The tests of a recipe that a split has."""
    names = [name for name in recipe.all_tests if name in split.subsets]
    return {name: SplitTests(SplitDataset(split, name, preload=False)) for name in names}


def frozen_in(split: Split) -> Frozen | None:
    """The frozen benchmark whose tests a split has, all of them, as their digests prove."""
    for benchmark in map(load_frozen, FROZEN):
        recipe = benchmark.recipe
        if split.resolution == benchmark.resolution and is_made_by(split, recipe):
            return benchmark if digests_of(tests_in(split, recipe)) == benchmark.parts else None
    return None


def digest_of_rows(rows: Iterable[object]) -> str:
    """The digest of rows that JSON can hold."""
    hashed = hashlib.sha256()
    for row in rows:
        hashed.update(json.dumps(row).encode() + b"\n")
    return hashed.hexdigest()[:LETTERS]


def scene_row(subset: str, item: Item) -> tuple[str | int, ...]:
    """The part of an item that the digest of scenes covers; a file of scores holds all of it too."""
    return subset, item.task, item.record, item.cluster, item.true, len(item.images), len(item.texts)


def digests_of(tests: dict[str, SplitTests]) -> Digests:
    """The digests of tests. Images are hashed once for each record."""
    items = [(name, item) for name, test in tests.items() for item in test.items]
    pixels = hashlib.sha256()
    for test in tests.values():
        for part in pixel_bytes(test):
            pixels.update(part)
    texts = ((name, item.record, item.task, item.texts) for name, item in items)
    scenes = (scene_row(*both) for both in items)
    return Digests(digest_of_rows(scenes), digest_of_rows(texts), pixels.hexdigest()[:LETTERS])


def pixel_bytes(test: SplitTests) -> Iterator[bytes]:
    """Yield, for each record, a line with its subset, its scene and the images' shape, then the bytes of its image and
    of its counterfactual's."""
    records, pictures, subset = test.data.records, test.data.pictures, test.data.subset
    for i, (scene, counterfactual) in enumerate(zip(records.scenes, records.counterfactual.tolist(), strict=True)):
        images = pictures.images(subset, [i, counterfactual])
        yield f"{subset}\0{scene.key}\0{images[0].shape}\0".encode()
        yield from map(np.ndarray.tobytes, images)


def check_digests(benchmark: Frozen, found: Digests) -> None:
    """Raise unless the digests that this machine finds are the benchmark's."""
    wanted = benchmark.parts
    if not all(wanted):
        lines = "; ".join(f'{name} = "{value}"' for name, value in found._asdict().items())
        raise UserError(f"{benchmark.name} has no digests yet; write them below [digests] in its file: {lines}")
    if others := [name for name in Digests._fields if getattr(found, name) != getattr(wanted, name)]:
        first = others[0]
        raise UserError(
            f"{benchmark.name}: its {' and '.join(others)} here differ from the benchmark's ({first} "
            f"{getattr(found, first)} in place of {getattr(wanted, first)}), so that no number counts; install the "
            "program anew, or report it with the processor and the versions of numba and numpy (docs/benchmarks.md)"
        )
