"""`python -m generators make` writes a split, `python -m generators audit FILE` proves one."""

from dataclasses import dataclass, field
from pathlib import Path

import tyro

from envs.errors import run_command
from generators.binding import BindingRecipe


@dataclass(frozen=True)
class Make:
    """Render what is missing and write an attribute-binding split."""

    recipe: tyro.conf.OmitArgPrefixes[BindingRecipe] = field(default_factory=BindingRecipe)
    resolution: int = 64
    """Side of the square images, in pixels."""
    store: Path = Path("store")
    """Folder below which image stores live."""
    codec: str = "none"
    """Compression of new shards: none, lz4 or zstd (the latter need hdf5plugin to read)."""
    workers: int = 1
    """Processes that render."""


@dataclass(frozen=True)
class Audit:
    """Check a split file from itself alone; exit status 1 if a check fails."""

    file: tyro.conf.Positional[Path]
    """The split file."""


def make(command: Make) -> int:
    """Write the split and print where it is."""
    from envs.world import load_world
    from generators.binding import binding_scenes
    from generators.split_file import make_binding_split
    from generators.store import ImageStore

    store = ImageStore(command.store, load_world(command.recipe.world), command.resolution)
    scenes = [scene for subset in binding_scenes(command.recipe).values() for scene in subset]
    missing = len(store.missing(scenes))
    print(f"{missing} scenes to render, {missing * store.scene_bytes / 1e6:.0f} MB")
    store.add(scenes, command.workers, command.codec)
    print(make_binding_split(store, command.recipe))
    return 0


def audit(command: Audit) -> int:
    """Print every finding."""
    from rich.console import Console
    from rich.table import Table

    from generators.audit import audit as find

    findings = find(command.file)
    table = Table("check", "", "detail", title=str(command.file))
    for claim, holds, detail in findings:
        table.add_row(claim, "ok" if holds else "FAILED", detail)
    Console().print(table)
    failed = sum(not finding.holds for finding in findings)
    print(f"{len(findings) - failed} checks hold, {failed} fail")
    return 1 if failed else 0


def main() -> int:
    """Run the subcommand given on the command line."""
    command = tyro.extras.subcommand_cli_from_dict({"make": Make, "audit": Audit}, prog="python -m generators")
    return make(command) if isinstance(command, Make) else audit(command)


if __name__ == "__main__":
    run_command(main)
