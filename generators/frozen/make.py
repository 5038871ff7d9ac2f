"""Renders the tests of a frozen benchmark, and nothing to train on."""

from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import plain
from menagerie.envs.core.progress import progress_bars
from menagerie.envs.core.reading import Inaccessible
from menagerie.envs.worlds import load_world
from menagerie.generators.frozen.benchmark import Frozen
from menagerie.generators.frozen.digests import check_digests, digests_of, tests_in
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import BESIDE, read_split, recipe_version, recorded


def make_frozen(benchmark: Frozen, root: Path, workers: int) -> Path:
    """Render what the atlas below `root` lacks, write the split file of the tests and check its digests.

    Raises `UserError` if scenes, texts or pixels differ from the benchmark's.
    """
    recipe = benchmark.recipe
    folder = SplitFolder(root, load_world(recipe.world), benchmark.resolution)
    tested = benchmark.tested()
    path = folder.folder / f"frozen-{benchmark.name}.h5"
    print(f"{benchmark.name}: {sum(map(len, tested.values()))} scenes", flush=True)
    if not is_made(path, benchmark, folder.identity):
        with progress_bars("factors") as progress:
            folder.write(path, recipe, tested, workers, progress)
    check_digests(benchmark, digests_of(tests_in(benchmark, path)))
    return path


def is_made(path: Path, benchmark: Frozen, store: str) -> bool:
    """Whether an undamaged file of the benchmark's recipe is there already; its digests are checked afterwards."""
    try:
        split = read_split(path)
    except Inaccessible:
        raise
    except UserError:
        return False
    written = {name: value for name, value in split.recipe.items() if name not in BESIDE}
    same = split.recipe_version == recipe_version(benchmark.recipe) and split.identity == store
    return same and written == plain(recorded(benchmark.recipe))
