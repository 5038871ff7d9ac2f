"""What grids share: a training run per model, place (fraction of pairs, of hard negatives, ...) and seed.

A grid is a subclass of `Grid` that names the recipe of its splits (`plain_recipe`), with presets and a `main`: see
`studies/binding_grid.py`. `--recipe` puts a recipe of the user's in its place, of any kind, and `--split` a file.
"""

import os
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import (
    SCENES,
    SEEDS,
    SHARE,
    SIDE,
    VIEWS,
)
from menagerie.generators.parsers.graph_source import GraphSource
from menagerie.generators.rules.hold_out import HELD_OUT, test_label
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.models.registry import specs
from menagerie.studies.runs.command_line import ModelOptions, RunOptions, only, scorer_options
from menagerie.studies.runs.data import FRACTIONS
from menagerie.studies.runs.split_file import SplitFile, describe_file

# `--tuned paper`: each model's recipe is its paper's.
PAPER_RECIPES = "paper"

AnyGrid = TypeVar("AnyGrid", bound="Grid")


@dataclass(frozen=True)
class Grid(ModelOptions, RunOptions):
    """The options of every grid."""

    plain_recipe: ClassVar[SplitRecipe] = BindingRecipe()
    """The recipe of its splits; its fields that are options too are replaced by these."""
    searched: ClassVar[frozenset[str]] = frozenset()
    """Fields of the recipe that the study searches over: no user's recipe decides them."""

    world: Annotated[str, DATA, FIRST] = "pug"
    """Vocabulary of the scenes: a name, or a TOML file."""
    resolution: Annotated[int, DATA, FIRST, SIDE] = 64
    """Side of the square images, in pixels."""
    models: Annotated[tuple[str, ...], WHAT, FIRST] = ("clip", "oc-clip")
    """Scorers by name, or FILE.py:Class of your own."""
    pairs: Annotated[tuple[float, ...], WHAT, FIRST, SHARE] = (0.2, 0.8)
    """Fractions of the trainable animal pairs."""
    hard_negatives: Annotated[tuple[float, ...], WHAT, FIRST, SHARE] = (0.0, 1.0)
    """Fractions of these pairs that have hard negatives too."""
    seeds: Annotated[int, WHAT, FIRST, SEEDS] = 1
    """Number of seeds, from 0; each decides split and training."""
    views: Annotated[int, DATA, VIEWS] = 16
    """Views of each training scene."""
    test_views: Annotated[int, DATA, VIEWS] = 4
    """Views of each test scene, none of them used in training."""
    test_scenes: Annotated[int, DATA, SCENES] = 400
    """The most scenes of a test subset."""
    template: Annotated[str, DATA] = ""
    """Template of all captions (docs/splits.md); empty takes the recipe's."""
    hold_out: Annotated[tuple[str, ...], DATA, FIRST] = ()
    """Rules such as "texture=red & animal=cat": matches are only in tests. Each rule has one (docs/splits.md)."""
    split: Annotated[tuple[Path, ...], DATA, FIRST] = ()
    """Split files made before, packed ones too. They take the place of all that decides a split."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names; None takes the study's own."""
    graph_source: Annotated[GraphSource, tyro.conf.arg(name=""), DATA] = field(default_factory=GraphSource)
    """The graphs that models read, of those that read any."""
    recipe: Annotated[Recipe, tyro.conf.arg(name=""), TRAINING] = field(
        # Chosen on validation, hardest cell of a world of six animals, 4 seeds: without the first phase
        # the few training pairs' fixed textures are memorised before textures themselves are learnt.
        default_factory=lambda: Recipe(steps=2000, single_object_phase=0.5, singles_share=0.95)
    )
    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report what would be rendered and trained, and how long it takes."""

    @property
    def recipe_given(self) -> SplitRecipe:
        """The recipe of the user's, or the study's own."""
        return self.base or self.plain_recipe

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The fields of the recipe that are varied, with their values."""
        return {name: getattr(self, name) for name in FRACTIONS}

    def split_of(self, seed: int, **place: Any) -> SplitRecipe:
        """The recipe of the split at one place of the grid."""
        plain = self.recipe_given
        values = {item.name: getattr(self, item.name) for item in fields(plain) if hasattr(self, item.name)}
        if not self.template:
            values["template"] = plain.template
        return replace(plain, **values | place | {"seed": plain.seed + seed})

    @cached_property
    def files(self) -> dict[SplitFile, Path]:
        """The split files that were given, opened once."""
        return {describe_file(file, len(self.split) > 1): file for file in self.split}

    @property
    def kind(self) -> str:
        """The kind of its splits."""
        return next(iter(self.files)).kind if self.split else self.recipe_given.kind

    @property
    def tests(self) -> tuple[str, ...]:
        """The test subsets, in the report's order."""
        if self.split:
            return tuple(dict.fromkeys(test for data in self.files for test in data.tests))
        return self.split_of(0, **self.places[0]).all_tests  # as at all places

    @property
    def places(self) -> list[dict[str, Any]]:
        """The places of the grid by axis, in its order."""
        if self.split:
            return [data.axes for data in self.files]
        return [dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values())]

    @property
    def task(self) -> str:
        """The kind of false caption that a model must reject, for the report."""
        return self._kind.task

    @property
    def title(self) -> str:
        """What the grid measures, in a few words."""
        return self._kind.title

    @property
    def unseen(self) -> tuple[str, ...]:
        """The tests on what no cell trains on: of hold-out rules, of unseen pairs, or of what else is unseen."""
        unseen = tuple(test for test in self.tests if test.endswith("unseen_pairs") or test.startswith(HELD_OUT))
        return unseen or tuple(test for test in self.tests if "unseen" in test)

    def label(self, test: str) -> str:
        """A test for people: with the rule that it is for, where it is for one."""
        rules = {data.hold_out for data in self.files} if self.split else {self.hold_out}
        return test_label(test, rules.pop()) if len(rules) == 1 else test  # several files may have several of one name

    @property
    def _kind(self) -> type[SplitRecipe]:
        from menagerie.generators.splits.recipe_file import KINDS

        return KINDS[self.kind]

    def with_recipe(self: AnyGrid, recipe: SplitRecipe) -> AnyGrid:
        """The grid with a recipe of the user's in place of its own, and options as that says.

        A fraction that the recipe states becomes the one value of its axis.
        """
        names = {item.name for item in fields(self)} & {item.name for item in fields(recipe)} - {"template"}
        values = {name: getattr(recipe, name) for name in names - self.searched}
        values |= {name: (values[name],) for name in values.keys() & set(FRACTIONS)}
        return replace(self, base=recipe, **values)

    def settled(self: AnyGrid) -> AnyGrid:
        """The grid in the world and the resolution of the split files that were given, if any."""
        if not self.split:
            return self
        sides = {data.side for data in self.files}
        if len(sides) > 1:
            raise UserError(
                f"--split: images of {' and '.join(map(str, sorted(sides)))} pixels; give files of one size"
            )
        if len(self.files) < len(self.split):
            raise UserError("--split: two files have the same content; give each once")
        return replace(self, world=next(iter(self.files)).world, resolution=sides.pop())


# What the presets of every grid share.
SMOKE: dict[str, Any] = {
    "world": "tiny",
    "resolution": 32,
    "pairs": (0.5,),
    "test_views": 1,
    "test_scenes": 48,
    "architecture": "nano",
    "recipe": Recipe(steps=60, batch=32, warmup=5),
    "scorers": scorer_options("smoke"),
}
# The hardest cell of all scorers but controls, in a world small enough for many of them. Of its 28 pairs 6 are the
# test's and 6 validation's.
BREADTH: dict[str, Any] = {
    "world": "eight",
    "resolution": 32,
    "models": tuple(name for name, spec in specs().items() if not spec.control),
    "hard_negatives": (0.0,),
    "seeds": 3,
    "test_scenes": 200,
    "recipe": Recipe(steps=1000, single_object_phase=0.25),
}
APART: dict[str, float] = {"reserve": 0.2, "validation": 0.2}
# 224 px and ViT-B/16 as in OC-CLIP's paper, but from scratch unless --pretrained names weights; each model with
# the rates of its paper, and all with our number of steps.
PAPER: dict[str, Any] = {
    "resolution": 224,
    "pairs": (0.2, 0.4, 0.6, 0.8, 1.0),
    "hard_negatives": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "seeds": 3,
    "test_scenes": 2000,
    "architecture": "ViT-B-16",
    "tuned": PAPER_RECIPES,
    "recipe": Recipe(steps=10_000, batch=256, learning_rate=5e-4, warmup=1000, weight_decay=0.5),
    "scorers": scorer_options("paper"),
    "loaders": 4,
}


def chosen_alone(grid: AnyGrid) -> AnyGrid:
    """The grid with the options of its own models only."""
    return replace(grid, scorers=only(grid.scorers, grid.models))


def splits(grid: Grid) -> list[SplitRecipe]:
    """The recipes of all splits of the grid, in its order; none where files take their place."""
    if grid.split:
        return []
    return [grid.split_of(seed, **place) for seed in range(grid.seeds) for place in grid.places]


def cores(grid: Grid) -> int:
    """Processes that render: as configured, or one a core."""
    machine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return grid.workers or machine


def workers(grid: Grid) -> int:
    """Runs at once: as configured, or one a core, or one on cuda."""
    return grid.workers or (1 if grid.device.startswith("cuda") else cores(grid))
