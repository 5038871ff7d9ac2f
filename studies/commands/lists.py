"""Commands that list what there is, check a world, and write a study to start from: a class each."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text
from menagerie.envs.core.processes import serve
from menagerie.envs.core.progress import progress_bars
from menagerie.envs.core.validation import PROCESSES, SIDE, Range
from menagerie.generators.splits.recipe_file import SHIPPED, about
from menagerie.models.registry import specs
from menagerie.models.towers.config import SMALL_TOWERS
from menagerie.studies.commands.make import RENDERING

TEMPLATE = Path(__file__).with_name("own_study.txt")


@dataclass(frozen=True)
class CheckWorld:
    """Render every scene of a world in memory; check visibility, frame, spatial captions, and that no two are alike."""

    world: str = "pug"
    """A world by name, or a TOML file."""
    resolution: Annotated[int, SIDE] = 64
    """Side of the square images, in pixels."""
    view: Annotated[int, Range(0, 1_000_000)] = 0
    """Number of the view."""
    workers: Annotated[int, PROCESSES] = 2
    """Processes that render factors."""

    def run(self) -> bool:
        """Print the problems, if any, and the time taken."""
        from menagerie.envs.worlds import load_world
        from menagerie.generators.storage.scene_checks import check_factorial

        start = time.perf_counter()
        with progress_bars("factors", "scenes") as progress:
            world = load_world(self.world)
            if self.workers > 1:
                serve(RENDERING)
            scenes, problems = check_factorial(world, self.resolution, self.view, self.workers, progress)
        for problem in problems[:20]:
            print(problem)
        seconds = time.perf_counter() - start
        print(f"{scenes} scenes rendered and checked in {seconds:.1f} s; {len(problems)} problems")
        return bool(problems)


@dataclass(frozen=True)
class Recipes:
    """List the built-in recipes."""

    def run(self) -> None:
        """Print the name and description of every built-in recipe."""
        for name in SHIPPED:
            print(f"{name:<16}{about(name)}")


@dataclass(frozen=True)
class Scorers:
    """List the scorers and towers that studies can train."""

    def run(self) -> None:
        """Print the names, below the options that take them."""
        scorers = {name: ", ".join(filter(None, (spec.title, spec.source))) for name, spec in specs().items()}
        sizes = {name: size["vision_cfg"] for name, size in SMALL_TOWERS.items()}
        towers = {name: f"layers: {size['layers']}, width: {size['width']}" for name, size in sizes.items()}
        listed = {
            "scorers, for --models": scorers | {"FILE.py:Class": "one of your own (docs/scorers.md)"},
            "towers, for --architecture": towers | {"ViT-B-16": "or any of open_clip, also with --pretrained"},
        }
        print("usage: python studies/STUDY.py --models NAME ... --architecture NAME [OPTIONS]")
        for title, names in listed.items():
            print(f"\n{title}:")
            for name, text in names.items():
                print(f"  {name:<18}{text}")


@dataclass(frozen=True)
class New:
    """Write a starting file for a study of your own: it runs as it is.

    menagerie new my_question.py
    menagerie run my_question.py --preset smoke
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A Python file that isn't there yet."""

    def run(self) -> None:
        """Write the file."""
        if self.file.suffix != ".py":
            raise UserError(f"{self.file} is no name of a Python file; write {self.file.with_suffix('.py')}")
        if self.file.exists():
            raise UserError(f"{self.file} is there already; choose another name, or delete it")
        write_text(self.file, TEMPLATE.read_text("utf-8"))
        print(f"{self.file}: run it by `menagerie run {self.file} --preset smoke`")
