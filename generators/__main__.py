"""Splits from the command line.

python -m generators list                               # the built-in recipes
python -m generators make spatial --pairs 0.6 --dry-run # a recipe by name, with overrides
python -m generators make mine.toml                     # your own recipe
python -m generators make spatial --cluster slurm       # renders in a job array
python -m generators audit FILE                         # checks a split and the images of its store
python -m generators inspect FILE --html report.html    # its content: subsets, fractions, samples, co-occurrences
python -m generators pack FILE                          # one self-contained file to share
python -m generators export FILE --format coco --out F  # the format of another tool
python -m generators parse FILE --parser spacy-rules    # captions to scene graphs
python -m generators check                              # renders every scene of a world and checks it
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from envs.common.command_help import by_group, chosen_command, help_requested, help_text, read_options
from envs.common.errors import UserError, run_command
from envs.common.files import check_place
from envs.common.options import DATA, FIRST, PLACE, WHAT, Option, options_of
from envs.common.processes import serve
from envs.common.progress import progress_bars
from envs.common.ranges import PROCESSES, SIDE, Range
from generators.cluster.options import Cluster, check_cluster
from generators.splits.binding import BindingRecipe
from generators.splits.recipe import SplitRecipe
from generators.splits.recipe_file import SHIPPED, about, options_by_kind, read_recipe

if TYPE_CHECKING:
    from generators.audit.findings import Finding
    from generators.storage.image_store import ImageStore

RENDERING = ("envs.render.renderer",)  # what processes that render load


@dataclass(frozen=True)
class Make:
    """Render what is missing and write a split."""

    recipe: Annotated[SplitRecipe, tyro.conf.arg(name=""), DATA] = field(default_factory=BindingRecipe)
    resolution: Annotated[int, DATA, FIRST] = 64
    """Side of the square images, in pixels."""
    store: Annotated[Path, PLACE, FIRST] = Path("store")
    """Folder below which image stores live."""
    codec: Annotated[str, PLACE] = "none"
    """Compression of new shards: none, lz4 or zstd (the latter need hdf5plugin to read)."""
    workers: Annotated[int, PLACE, FIRST, PROCESSES] = 1
    """Processes that render."""
    cluster: Annotated[Cluster, tyro.conf.arg(name=""), PLACE] = field(default_factory=Cluster)
    """Where scenes are rendered; this doesn't affect the store."""
    tasks: Annotated[int, PLACE, Range(1, 10_000)] = 8
    """With --cluster, number of tasks that share the rendering."""
    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report how many scenes each subset would hold, and what rendering would take."""


@dataclass(frozen=True)
class List:
    """List the built-in recipes."""


@dataclass(frozen=True)
class Audit:
    """Check split files and the images of their stores; exit status 1 if a check fails."""

    files: tyro.conf.Positional[tuple[Path, ...]]
    """Split files, packed or not, or folders of exports."""
    pixels: str = "sample"
    """Images that are rendered again and compared byte for byte: a sample, or all. All are compared with their
    digests and their scenes."""
    world: Path | None = None
    """The TOML file of the splits' own world, to make the splits and their images again. Its Python files are run; the
    path that a split itself names is not opened."""


@dataclass(frozen=True)
class Inspect:
    """Report the content of a split file: its recipe, its subsets, and what of its world is in train."""

    file: tyro.conf.Positional[Path]
    """The split file."""
    html: Path | None = None
    """A page to write, with sample images and co-occurrences; an existing file is not overwritten."""


@dataclass(frozen=True)
class Pack:
    """Write a split and its images as one self-contained file to share."""

    file: tyro.conf.Positional[Path]
    """The split file."""
    out: Path = Path("packed.h5")
    """The file to write; an existing one is not overwritten."""
    codec: str = "none"
    """Compression: none, lz4 or zstd (the latter need hdf5plugin to read)."""


@dataclass(frozen=True)
class Export:
    """Write a split in the format of another tool, with a data sheet; an interrupted export is continued."""

    file: tyro.conf.Positional[Path]
    """The split file."""
    out: Path
    """The folder to write, new or of the same export."""
    format: str
    """webdataset, coco or sugarcrepe."""
    subsets: tuple[str, ...] = ()
    """Subsets to write; default: all."""


@dataclass(frozen=True)
class Parse:
    """Make scene graphs of captions; with two parsers, report how far they agree. Run again, it goes on from there."""

    file: tyro.conf.Positional[Path]
    """A text file with one caption a line, or COCO captions (.json)."""
    parser: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A parser with its options, NAME or NAME:OPTION=VALUE,OPTION=VALUE; give it twice to compare two."""
    out: Path = Path("graphs.json")
    """The file to write; an existing one is not overwritten."""
    parses: Path = Path("parses")
    """Folder of the graphs that are kept, for every parser."""
    allow_unanswered: bool = False
    """Take captions that a server doesn't answer as one node, in place of an error."""


@dataclass(frozen=True)
class Check:
    """Render every scene of a world in memory; check visibility, frame, spatial captions, and that no two are alike."""

    world: str = "pug"
    """A world by name, or a TOML file."""
    resolution: Annotated[int, SIDE] = 64
    """Side of the square images, in pixels."""
    view: Annotated[int, Range(0, 1_000_000)] = 0
    """Number of the view."""
    workers: Annotated[int, PROCESSES] = 2
    """Processes that render factors."""


def make(command: Make) -> int:
    """Write the split and print its path."""
    from envs.worlds import load_world
    from generators.storage.image_store import ImageStore, codec_options
    from generators.storage.split_file import make_split

    codec_options(command.codec)
    check_place("--store", command.store)
    check_cluster(command.cluster)
    store = ImageStore(command.store, load_world(command.recipe.world), command.resolution)
    if command.dry_run:
        print_plan(command.recipe, store, command.workers)
        return 0
    scenes = command.recipe.scenes_to_render()
    missing = len(store.missing(scenes))
    print(f"{missing} scenes to render, {missing * store.scene_bytes / 1e6:.0f} MB")
    if command.cluster.engine == "none":
        if command.workers > 1:
            serve(RENDERING)
        store.add(scenes, command.workers, command.codec)
    else:
        from generators.storage.render_tasks import add_with_tasks

        add_with_tasks(store, command.recipe.world, scenes, command.cluster, command.tasks, command.codec)
    print(make_split(store, command.recipe))
    return 0


def print_plan(recipe: SplitRecipe, store: "ImageStore", workers: int) -> None:
    """Print the scenes that a split would hold, those that are still to be rendered, and what that takes."""
    from generators.storage.estimate import estimate

    counts = recipe.counts()
    print(f"{counts.train} of {counts.trainable} trainable pairs in train, {counts.swapped} of them swapped too")
    subsets = recipe.subsets()
    for name, scenes in subsets.items():
        print(f"{name:<28}{len(scenes):>9} scenes")
    scenes = recipe.with_partners(subsets)
    cost = estimate(store, scenes, workers)
    print(f"{len(scenes)} scenes in all, with the partners of tests; {cost.scenes} to render in {store.folder}")
    print(f"about {cost.seconds:.0f} s with --workers {workers}, {cost.megabytes:.0f} MB, by a sample rendered here")


def list_recipes(command: List) -> int:
    """Print the name and description of every built-in recipe."""
    for name in SHIPPED:
        print(f"{name:<16}{about(name)}")
    return 0


def audit(command: Audit) -> int:
    """Print every finding on each file; a file that can't be read is one line, and an error if it is the only one."""
    from generators.audit.several import audit_each

    if not command.files:
        raise UserError("audit needs a split file: 'python -m generators make' prints the path of its own")
    if command.world is not None:
        from envs.worlds import load_world

        load_world(str(command.world))
    serve(("generators.audit.run",))
    failed = False
    with progress_bars("read", "factors", "rendered again") as progress:
        for path, outcome in audit_each(command.files, command.pixels, progress, command.world):
            if isinstance(outcome, UserError) and len(command.files) == 1:
                raise outcome
            failed |= print_error(outcome) if isinstance(outcome, UserError) else print_findings(path, outcome)
    return int(failed)


def print_error(error: UserError) -> bool:
    """Print why a file can't be read; true, as that is a failure."""
    print(f"error: {error}", file=sys.stderr)
    return True


def print_findings(path: Path, findings: "Sequence[Finding]") -> bool:
    """Print the findings on a file and how many hold; whether one fails."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("check", "", "detail", title=str(path))
    for finding in findings:
        word = "skipped" if finding.skipped else "ok" if finding.holds else "FAILED"
        table.add_row(finding.claim, word, escape(finding.detail))
    Console().print(table)
    failed = sum(not finding.holds for finding in findings)
    skipped = sum(finding.skipped for finding in findings)
    print(f"{len(findings) - failed - skipped} checks hold, {failed} fail" + f", {skipped} skipped" * bool(skipped))
    return failed > 0


def inspect(command: Inspect) -> int:
    """Print facts and subsets; with --html, write the page and print its path."""
    from rich.console import Console
    from rich.table import Table

    from generators.inspection.summary import COLUMNS, facts, open_inspected, subset_rows
    from generators.storage.pack import check_free

    if command.html:
        check_free(command.html, "--html")
    split = open_inspected(command.file)
    fact_table = Table.grid(padding=(0, 2))
    subsets = Table(box=None, collapse_padding=True, pad_edge=False)  # fits 80 columns
    for fact in facts(split).items():
        fact_table.add_row(*fact)
    for i, name in enumerate(COLUMNS):
        subsets.add_column(name, justify="right" if i else "left", no_wrap=not i)
    for row in subset_rows(split):
        subsets.add_row(*row.texts)
    Console(markup=False, emoji=False, highlight=False).print(str(command.file), "", fact_table, "", subsets, sep="\n")
    if command.html:
        from generators.inspection.split_page import write_page

        write_page(split, command.html)
        print(command.html)
    return 0


def pack(command: Pack) -> int:
    """Write the packed file and print its path."""
    from generators.storage.pack import pack as write

    with progress_bars("pack", "check") as progress:
        write(command.file, command.out, command.codec, progress)
    print(command.out)
    return 0


def export(command: Export) -> int:
    """Write the export, and print the number of samples in it and of records left out."""
    from generators.export.write import export as write

    with progress_bars("export") as progress:
        counts = write(command.file, command.format, command.out, command.subsets, progress)
    for name, (samples, records) in counts.items():
        left_out = (
            f"; {records - samples} left out, {command.format} has no place for them" if samples < records else ""
        )
        print(f"{name}: {samples} of {records} records{left_out}")
    print(command.out)
    return 0


def parse(command: Parse) -> int:
    """Print the counts of each parser and the agreement of two, and the path that was written."""
    from generators.sources.captions_file import parse_file

    parse_file(command.file, command.parser, command.out, command.parses, command.allow_unanswered)
    print(command.out)
    return 0


def check(command: Check) -> int:
    """Print the problems, if any, and the time taken."""
    import time

    from envs.worlds import load_world
    from generators.audit.factorial import check_factorial

    start = time.perf_counter()
    with progress_bars("factors", "scenes") as progress:
        world = load_world(command.world)
        if command.workers > 1:
            serve(RENDERING)
        scenes, problems = check_factorial(world, command.resolution, command.view, command.workers, progress)
    for problem in problems[:20]:
        print(problem)
    seconds = time.perf_counter() - start
    print(f"{scenes} scenes rendered and checked in {seconds:.1f} s; {len(problems)} problems")
    return int(bool(problems))


COMMANDS: dict[str, tuple[type, Callable[..., int]]] = {
    "make": (Make, make),
    "list": (List, list_recipes),
    "audit": (Audit, audit),
    "inspect": (Inspect, inspect),
    "pack": (Pack, pack),
    "export": (Export, export),
    "parse": (Parse, parse),
    "check": (Check, check),
}


def read_make(arguments: list[str], command: str) -> Make:
    """The options of `make`, which depend on the kind of its recipe; that comes first."""
    if arguments and not arguments[0].startswith("-"):
        start = Make(read_recipe(arguments[0]))
        description = f"{Make.__doc__} Its kind is {start.recipe.kind}."
        return read_options(Make, arguments[1:], f"{command} {arguments[0]}", description, start)
    if requested := help_requested(arguments):
        print(make_help(command, everything=requested == "--help-all"))
        sys.exit()
    return read_options(Make, arguments, command, Make.__doc__)


def make_help(command: str, everything: bool) -> str:
    """The help of `make` without a recipe: all of them, the options of all kinds, and those of each."""
    recipes = [Option(name, about(name)) for name in SHIPPED]
    recipes.append(Option("FILE.toml", "A recipe of your own; its fields are named as these options (docs/splits.md)."))
    own = {f"kind {kind}": options for kind, options in options_by_kind().items()}
    alone = {option.usage for options in own.values() for option in options}
    shared = [option for option in options_of(Make) if option.usage not in alone]
    about_defaults = "Defaults are those of `binding`; `make RECIPE --help` shows those of another recipe."
    groups = {"RECIPE": recipes, **by_group(shared), **own}
    return help_text(f"{command} RECIPE", f"{Make.__doc__}\n{about_defaults}", groups, everything)


def described(name: str, kind: type) -> str:
    """What the help of a command says before its options."""
    if name != "parse" or not help_requested(sys.argv[2:]):
        return kind.__doc__ or ""
    from generators.parsers.registry import describe

    return f"{kind.__doc__}\n\nparsers and their options:\n{describe()}"


def main() -> int:
    """Run the command named first, with the options after it."""
    command = "python -m generators"
    name = chosen_command(command, __doc__, COMMANDS)
    kind, run = COMMANDS[name]
    if name == "make":
        return make(read_make(sys.argv[2:], f"{command} make"))
    return run(read_options(kind, sys.argv[2:], f"{command} {name}", described(name, kind)))


if __name__ == "__main__":
    run_command(main)
