"""Renders the tests of a frozen benchmark, and nothing to train on."""

from pathlib import Path

from menagerie.envs.core.progress import progress_bars
from menagerie.envs.worlds import load_world
from menagerie.generators.frozen.benchmark import Frozen
from menagerie.generators.frozen.digests import check_digests, digests_of, tests_in
from menagerie.generators.storage.folder import SplitFolder


def make_frozen(benchmark: Frozen, root: Path, workers: int) -> Path:
    """Render what the atlas below `root` lacks, write the split file of the tests and check its digests.

    Raises `UserError` if scenes, texts or pixels differ from the benchmark's.
    """
    recipe, tested = benchmark.recipe, benchmark.tested()
    folder = SplitFolder(root, load_world(recipe.world), benchmark.resolution)
    print(f"{benchmark.name}: {sum(map(len, tested.values()))} scenes", flush=True)
    with progress_bars("factors") as progress:
        path = folder.make(recipe, workers, progress, f"frozen-{benchmark.name}.h5", lambda: tested)
    check_digests(benchmark, digests_of(tests_in(benchmark, path)))
    return path
