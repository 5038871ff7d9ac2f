"""What a study on photographs is configured with; presets are in `studies/real_data.py`."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from menagerie.envs.core.options import DATA, FIRST, PLACE, TRAINING, WHAT
from menagerie.envs.core.validation import SEEDS, SHARE, SIDE, Range
from menagerie.generators.parsers.registry import DEFAULT
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.registry import spec_of
from menagerie.studies.frame.grid import Grid
from menagerie.studies.runs.command_line import EXECUTION, ModelOptions, RunOptions

NONE = "none"  # of --from: no trained weights
# What doesn't decide the result of any cell: a folder goes on with more of it.
FURTHER = EXECUTION | {"seeds", "check", "data_root", "images", "parses", "benchmarks"}
FURTHER |= {"allow_missing", "allow_unanswered", "unknown_words"}


class TrainedOn(NamedTuple):
    """What a cell is trained on, beside its seed."""

    sources: str
    parser: str
    mix: float
    start: str


@dataclass(frozen=True)
class Config(ModelOptions, RunOptions):
    """One study on photographs."""

    models: Annotated[tuple[str, ...], WHAT, FIRST] = ("clip", "oc-clip")
    """Scorers by name, or FILE.py:Class of your own."""
    sources: Annotated[tuple[str, ...], WHAT, FIRST] = ("coco",)
    """Training sources: those of a+b together, a and b apart."""
    parser: Annotated[tuple[str, ...], WHAT, FIRST] = (DEFAULT,)
    """Parsers of captions, for models that read scene graphs. NAME or NAME:OPTION=VALUE,… (docs/parsing.md)."""
    mix: Annotated[tuple[float, ...], WHAT, FIRST, SHARE] = (0.0,)
    """Shares of rendered scenes in each batch, from 0 to 1."""
    starts: Annotated[tuple[str, ...], tyro.conf.arg(name="from"), WHAT, FIRST] = ()
    """Weights to start with: a run, a cell, a checkpoint, or none. Of the same models and towers."""
    seeds: Annotated[int, WHAT, FIRST, SEEDS] = 1
    """Number of seeds, from 0."""
    benchmarks: Annotated[tuple[str, ...], WHAT, FIRST] = ()
    """What models are scored on in the end. None takes all that are complete in --data-root."""
    check: Annotated[bool, WHAT, FIRST] = False
    """Only report what is complete on disk. And what to get for the rest, from where, under which licence."""
    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report what would be trained, and how long it takes."""
    data_root: Annotated[Path, DATA, FIRST] = Path("data")
    """Folder of sources and benchmarks (docs/transfer.md)."""
    images: Annotated[tuple[str, ...], DATA] = ()
    """Folders of images that lie elsewhere, such as coco/train2017=/data/coco/train2017."""
    caption: Annotated[str, DATA] = ""
    """How captions are made of sources that know several ways; empty takes the first of each."""
    rehearse: Annotated[bool, DATA] = False
    """Render scenes of --world as the files of COCO into --out, and train on these in place of photographs."""
    split: Annotated[tuple[Path, ...], DATA] = ()
    """A split file for --mix."""
    world: Annotated[str, DATA] = "pug"
    """World of the scenes for --mix, without --split and --recipe."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names."""
    resolution: Annotated[int, DATA, FIRST, SIDE] = 64
    """Side of the square images, in pixels."""
    allow_missing: Annotated[bool, DATA] = False
    """Score the other records of a benchmark where images are missing."""
    allow_unknown: Annotated[bool, DATA] = False
    """Train although it can't be found out which photographs tests have, for want of files; the counts say so."""
    allow_unanswered: Annotated[bool, DATA] = False
    """Take captions to which a parser's server gave no answer as one node."""
    unknown_words: Annotated[Literal["refuse", "skip"], DATA] = "refuse"
    """What a model with a vocabulary of its own does with other words of benchmarks."""
    epochs: Annotated[float, TRAINING, FIRST, Range(0.0, 1_000_000.0)] = 20.0
    """Passes over the photographs. As many steps with any --mix; 0 takes --steps."""
    parses: Annotated[Path, PLACE] = Path("parses")
    """Folder of the graphs that are kept, also by menagerie parse."""

    def with_recipe(self, recipe: SplitRecipe) -> "Config":
        """The study with scenes of a recipe of the user's."""
        return replace(self, base=recipe, world=recipe.world)


def grid_of(config: Config) -> Grid:
    """The grid of one place that the study's rendered scenes, towers and recipes are those of."""
    recipe = config.base or BindingRecipe(world=config.world)
    shared = {item.name for item in fields(Config)} & {item.name for item in fields(Grid)}
    plain = Grid(**{name: getattr(config, name) for name in shared - {"base", "recipe"}}, recipe=config.recipe)
    return plain.with_recipe(replace(recipe, world=config.world))


def places(config: Config) -> list[TrainedOn]:
    """What cells are trained on, in the order of tables."""
    return [
        TrainedOn(sources, parser, mix, start)
        for sources in config.sources
        for parser in config.parser
        for mix in config.mix
        for start in config.starts or (NONE,)
    ]


def parser_of(model: str, parser: str) -> str:
    """The parser that matters to a model: none to one that reads captions alone."""
    return parser if "graphs" in spec_of(model).reads else DEFAULT


def chosen(config: Config) -> Iterator[tuple[str, TrainedOn]]:
    """Every model at every place, once: a model that reads captions alone is the same with every parser."""
    every = (
        (model, place._replace(parser=parser_of(model, place.parser)))
        for place in places(config)
        for model in config.models
    )
    return iter(dict.fromkeys(every))


def constant(config: Config) -> dict[str, Any]:
    """The axes that don't vary, with their value."""
    rows = [place._asdict() for _, place in chosen(config)]
    return {name: rows[0][name] for name in TrainedOn._fields if len({row[name] for row in rows}) == 1}
