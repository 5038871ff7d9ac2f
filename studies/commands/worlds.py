"""Commands on worlds and recipes, lists of recipes and scorers, and a template of a study: a class each."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from menagerie.envs.core.command_help import help_requested, help_text, read_options
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import check_option_folder, write_text
from menagerie.envs.core.options import DATA, FIRST, PLACE, WHAT, docstring, list_options
from menagerie.envs.core.processes import serve
from menagerie.envs.core.progress import progress_bars
from menagerie.envs.core.validation import PROCESSES, SIDE, Range
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import FROZEN, describe_recipe, read_recipe, recipe_names
from menagerie.models.registry import spec_of, specs
from menagerie.models.towers.config import SMALL_TOWERS
from menagerie.studies.frame.cells import shipped_recipes

RENDERING = ("menagerie.envs.render.renderer",)  # modules of rendering processes
# What `menagerie new` writes, and what to do with it.
TEMPLATES = {
    "study": "menagerie run {file} --preset smoke",
    "benchmark": "menagerie transfer --check --benchmarks {file}:BENCHMARK --data-root DATA",
    "form": "menagerie import-hf FOLDER --form {file}:FORM --data-root DATA",
}


@dataclass(frozen=True)
class Make:
    """Write a split: a table of its scenes and captions, and their images."""

    recipe: Annotated[SplitRecipe, tyro.conf.arg(name=""), DATA] = field(default_factory=BindingRecipe)
    resolution: Annotated[int, DATA, FIRST, SIDE] = 64
    """Side of the square images, in pixels."""
    store: Annotated[Path, PLACE, FIRST] = Path("store")
    """Folder that contains the folders of worlds."""
    images: Annotated[Literal["all", "none"], DATA, FIRST] = "all"
    """Whether the file contains images, masks and texts (all); with none, they are made when they are read."""
    workers: Annotated[int, PLACE, FIRST, PROCESSES] = 1
    """Processes that render."""
    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report how many scenes each subset would have, and how much there is to render."""

    @classmethod
    def read(cls, arguments: list[str], command: str) -> "Make":
        """Read the options of `make`. They depend on the kind of the recipe, which is the first argument."""
        if arguments and not arguments[0].startswith("-"):
            start = cls(read_recipe(arguments[0]))
            description = f"{docstring(cls)} Its kind is {start.recipe.kind}."
            return read_options(cls, arguments[1:], f"{command} {arguments[0]}", description, start)
        recipes = {name: describe_recipe(name) for name in recipe_names()} if help_requested(arguments) else {}
        recipes["FILE.toml"] = "A recipe of your own; its fields are named as these options (docs/splits.md)."
        listed = "\n".join(f"  {name:<16}{text}" for name, text in recipes.items())
        about = "Options are those of `binding`; `make RECIPE --help` has those of another recipe:"
        return read_options(cls, arguments, f"{command} RECIPE", f"{docstring(cls)}\n{about}\n{listed}")

    def run(self) -> None:
        from menagerie.generators.storage.folder import SplitFolder
        from menagerie.generators.storage.pack import pack

        check_option_folder("--store", self.store)
        store = SplitFolder(self.store, load_world(self.recipe.world), self.resolution)
        if self.dry_run:
            counts, subsets = self.recipe.counts(), self.recipe.subsets()
            if self.recipe.trains:
                shown = f"{counts.train} of {counts.trainable} trainable pairs in train"
                print(f"{shown}, {counts.swapped} of them swapped too")
            for name, scenes in subsets.items():
                print(f"{name:<28}{len(scenes):>9} scenes")
            needed = store.describe_needed(self.recipe.with_counterfactuals(subsets))
            print(f"with the counterfactuals of tests {needed}")
            return
        if self.workers > 1:
            serve(RENDERING)
        with progress_bars("factors", "scenes") as progress:
            path = store.make(self.recipe, self.workers, progress)
            if self.images == "all":
                pack(path, progress)
        print(path)


@dataclass(frozen=True)
class CheckWorld:
    """Render every scene of a world in memory; check visibility, frame, relations, and that no two images are equal."""

    world: str = "pug"
    """A world by name, or a TOML file."""
    resolution: Annotated[int, SIDE] = 64
    """Side of the square images, in pixels."""
    view: Annotated[int, Range(0, 1_000_000)] = 0
    """Number of the view."""
    workers: Annotated[int, PROCESSES] = 2
    """Processes that render factors."""

    def run(self) -> bool:
        from menagerie.generators.storage.scene_checks import check_factorial

        start = time.perf_counter()
        with progress_bars("factors", "scenes") as progress:
            world = load_world(self.world)
            if self.workers > 1:
                serve(RENDERING)
            scenes, problems = check_factorial(world, self.resolution, self.view, self.workers, progress)
        print(*problems[:20], sep="\n", end="\n" * bool(problems))
        seconds = time.perf_counter() - start
        print(f"{scenes} scenes rendered and checked in {seconds:.1f} s; {len(problems)} problems")
        return bool(problems)


@dataclass(frozen=True)
class Recipes:
    """List the built-in recipes, and those of frozen benchmarks."""

    def run(self) -> None:
        print(*(f"{name:<16}{describe_recipe(name)}" for name in recipe_names()), sep="\n")
        print("\nfrozen benchmarks (menagerie evaluate MODEL --splits NAME):")
        print(*(f"{name:<16}{describe_recipe(name)}" for name in FROZEN), sep="\n")


@dataclass(frozen=True)
class Scorers:
    """List the scorers and towers that studies can train, and who has tuned recipes; or the options of a scorer."""

    name: Annotated[str, tyro.conf.Positional] = ""
    """A scorer, or file.py:Class of your own; empty: all."""

    def run(self) -> None:
        if self.name:
            print(scorer_help(self.name))
            return
        scorers = {name: ", ".join(filter(None, (spec.title, spec.source))) for name, spec in specs().items()}
        sizes = {name: size["vision_cfg"] for name, size in SMALL_TOWERS.items()}
        towers = {name: f"layers: {size['layers']}, width: {size['width']}" for name, size in sizes.items()}
        listed = {
            "scorers, for --models": scorers | {"FILE.py:Class": "one of your own (docs/scorers.md)"},
            "towers, for --architecture": towers | {"ViT-B-16": "or any of open_clip, also with --pretrained"},
            "recipes of scorers, for --tuned": {name: ", ".join(models) for name, models in shipped_recipes().items()}
            | {"''": "none: all models alike"},
        }
        print("usage: python studies/STUDY.py --models NAME ... --architecture NAME [OPTIONS]")
        for title, names in listed.items():
            print(f"\n{title}:", *(f"  {name:<18}{text}" for name, text in names.items()), sep="\n")


def scorer_help(name: str) -> str:
    """Describe a scorer and its options, with its paper's values as defaults."""
    spec = spec_of(name)
    about = [", ".join(filter(None, (spec.title, spec.source))), spec.about]
    if paper := ", ".join(f"{field} {value}" for field, value in spec.scratch.items()):
        about.append(f"Its paper trains with: {paper}.")
    options = {"options": [*list_options(spec.config, None, f"{spec.name}.")]}
    return help_text(f"python studies/STUDY.py --models {name}", "\n".join(filter(None, about)), options, True)


@dataclass(frozen=True)
class New:
    """Write a template of a study, a benchmark or a form of the Hugging Face hub of your own.

    menagerie new my_question.py
    menagerie run my_question.py --preset smoke
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A Python file that doesn't exist yet."""
    kind: Literal["study", "benchmark", "form"] = "study"
    """What it is; a benchmark is scored by `menagerie transfer`, a form read by `menagerie import-hf`."""

    def run(self) -> None:
        if self.file.suffix != ".py":
            raise UserError(f"{self.file} isn't the name of a Python file; write {self.file.with_suffix('.py')}")
        if self.file.exists():
            raise UserError(f"{self.file} exists already; choose another name, or delete it")
        write_text(self.file, Path(__file__).with_name(f"own_{self.kind}.txt").read_text("utf-8"))
        print(f"{self.file}: run it by `{TEMPLATES[self.kind].format(file=self.file)}`")
