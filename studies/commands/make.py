"""Render what is missing and write a split."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from menagerie.envs.core.command_help import by_group, help_requested, help_text, read_options
from menagerie.envs.core.files import check_place
from menagerie.envs.core.options import DATA, FIRST, PLACE, WHAT, Option, options_of
from menagerie.envs.core.processes import serve
from menagerie.envs.core.validation import PROCESSES, SIDE, Range
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import SHIPPED, about, options_by_kind, read_recipe
from menagerie.studies.cluster.options import Cluster, check_cluster

if TYPE_CHECKING:
    from menagerie.generators.storage.image_store import ImageStore

RENDERING = ("menagerie.envs.render.renderer",)  # what processes that render load


@dataclass(frozen=True)
class Config:
    recipe: Annotated[SplitRecipe, tyro.conf.arg(name=""), DATA] = field(default_factory=BindingRecipe)
    resolution: Annotated[int, DATA, FIRST, SIDE] = 64
    """Side of the square images, in pixels."""
    store: Annotated[Path, PLACE, FIRST] = Path("store")
    """Folder below which image stores live."""
    codec: Annotated[Literal["none", "lz4", "zstd"], PLACE] = "none"
    """Compression of new shards; all but none need hdf5plugin to read."""
    workers: Annotated[int, PLACE, FIRST, PROCESSES] = 1
    """Processes that render."""
    cluster: Annotated[Cluster, tyro.conf.arg(name=""), PLACE] = field(default_factory=Cluster)
    """Where scenes are rendered; this doesn't affect the store."""
    tasks: Annotated[int, PLACE, Range(1, 10_000)] = 8
    """With --cluster, number of tasks that share the rendering."""
    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report how many scenes each subset would hold, and what rendering would take."""


def read(arguments: list[str], command: str) -> Config:
    """The options of `make`, which depend on the kind of its recipe; that comes first."""
    if arguments and not arguments[0].startswith("-"):
        start = Config(read_recipe(arguments[0]))
        description = f"{__doc__} Its kind is {start.recipe.kind}."
        return read_options(Config, arguments[1:], f"{command} {arguments[0]}", description, start)
    if requested := help_requested(arguments):
        print(help_of_all(command, everything=requested == "--help-all"))
        sys.exit()
    return read_options(Config, arguments, command, __doc__)


def help_of_all(command: str, everything: bool) -> str:
    """The help of `make` without a recipe: all of them, the options of all kinds, and those of each."""
    recipes = [Option(name, about(name)) for name in SHIPPED]
    recipes.append(Option("FILE.toml", "A recipe of your own; its fields are named as these options (docs/splits.md)."))
    by_kind = {f"kind {kind}": options for kind, options in options_by_kind().items()}
    alone = {option.usage for options in by_kind.values() for option in options}
    shared = [option for option in options_of(Config) if option.usage not in alone]
    about_defaults = "Defaults are those of `binding`; `make RECIPE --help` shows those of another recipe."
    groups = {"RECIPE": recipes, **by_group(shared), **by_kind}
    return help_text(f"{command} RECIPE", f"{__doc__}\n{about_defaults}", groups, everything)


def run(config: Config) -> int:
    """Write the split and print its path."""
    from menagerie.envs.worlds import load_world
    from menagerie.generators.storage.image_store import ImageStore
    from menagerie.generators.storage.shards import codec_options
    from menagerie.generators.storage.split_file import make_split

    codec_options(config.codec)
    check_place("--store", config.store)
    check_cluster(config.cluster, config.store)
    store = ImageStore(config.store, load_world(config.recipe.world), config.resolution)
    if config.dry_run:
        print_plan(config.recipe, store, config.workers)
        return 0
    scenes = config.recipe.scenes_to_render()
    missing = len(store.missing(scenes))
    print(f"{missing} scenes to render, {missing * store.scene_bytes / 1e6:.0f} MB")
    if config.cluster.engine == "none":
        if config.workers > 1:
            serve(RENDERING)
        store.add(scenes, config.workers, config.codec)
    else:
        from menagerie.studies.cluster.render_tasks import add_with_tasks

        add_with_tasks(store, config.recipe.world, scenes, config.cluster, config.tasks, config.codec)
    print(make_split(store, config.recipe))
    return 0


def print_plan(recipe: SplitRecipe, store: "ImageStore", workers: int) -> None:
    """Print the scenes that a split would hold, those that are still to be rendered, and what that takes."""
    from menagerie.generators.storage.estimate import estimate

    counts = recipe.counts()
    print(f"{counts.train} of {counts.trainable} trainable pairs in train, {counts.swapped} of them swapped too")
    subsets = recipe.subsets()
    for name, scenes in subsets.items():
        print(f"{name:<28}{len(scenes):>9} scenes")
    scenes = recipe.with_partners(subsets)
    cost = estimate(store, scenes, workers)
    print(f"{len(scenes)} scenes in all, with the partners of tests; {cost.scenes} to render in {store.folder}")
    print(f"about {cost.seconds:.0f} s with --workers {workers}, {cost.megabytes:.0f} MB, by a sample rendered here")
