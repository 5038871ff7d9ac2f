"""The options of `studies/real_data.py`, and the places at which it trains."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import product, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, PLACE, TRAINING, WHAT
from menagerie.envs.core.validation import SHARE, SIDE, Range, Several
from menagerie.generators.parsers.registry import DEFAULT
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.registry import spec_of
from menagerie.studies.frame.grids import Grid
from menagerie.studies.frame.options import GROWS, Axis, ModelOptions
from menagerie.studies.frame.study import Study

if TYPE_CHECKING:
    from menagerie.generators.sources.folders import Given

NONE = "none"  # of --from: no trained weights


class TrainedOn(NamedTuple):
    """What a cell is trained on, apart from its seed."""

    sources: str
    parser: str
    mix: float
    start: str


@dataclass(frozen=True)
class PhotographStudy(ModelOptions, Study):
    """The options of training on photographs."""

    sources: Axis[str] = ("coco",)
    """Training sources: a+b trains on both, a b on each."""
    parser: Axis[str] = (DEFAULT,)
    """Parsers of captions, for models that read graphs. NAME or NAME:OPTION=VALUE,… (docs/parsing.md)."""
    false_captions: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """False captions for losses that take some: made, made:WAY,WAY, a published NAME, a FILE.jsonl (real-data.md)."""
    mix: Annotated[Axis[float], SHARE] = (0.0,)
    """Shares of rendered scenes in each batch, from 0 to 1."""
    starts: Annotated[tuple[str, ...], tyro.conf.arg(name="from"), WHAT, FIRST, GROWS, Several()] = ()
    """Weights to start with: a run, a cell, a checkpoint, or none. They must be of the same models and towers."""
    benchmarks: Annotated[tuple[str, ...], WHAT, FIRST, GROWS] = ()
    """Benchmarks on which models are scored in the end. Without any, all that are complete in --data-root."""
    check_only: Annotated[bool, tyro.conf.arg(name="check"), WHAT, FIRST, GROWS] = False
    """Only report which data are complete, and what to get for others. Says from where and under which licence."""
    data_root: Annotated[Path, DATA, FIRST, GROWS] = Path("data")
    """Folder of sources and benchmarks (docs/transfer.md)."""
    images: Annotated[tuple[str, ...], DATA, GROWS] = ()
    """Folders of images that lie elsewhere, such as coco/train2017=/data/coco/train2017."""
    caption: Annotated[str, DATA] = ""
    """Kind of captions, for sources with several kinds; empty takes the first kind of each."""
    rehearse: Annotated[bool, DATA] = False
    """Render scenes of --world into --out as files of COCO, and train on these instead of photographs."""
    split: Annotated[tuple[Path, ...], DATA] = ()
    """A split file for --mix."""
    world: Annotated[str, DATA] = "pug"
    """World of the scenes for --mix, without --split and --recipe."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names."""
    resolution: Annotated[int, DATA, FIRST, SIDE] = 64
    """Side of the square images, in pixels."""
    allow_missing: Annotated[bool, DATA, GROWS] = False
    """Score the other records of a benchmark where images are missing."""
    allow_unknown: Annotated[bool, DATA] = False
    """Train even if files are missing that list the photographs of tests; the counts say so."""
    allow_unanswered: Annotated[bool, DATA, GROWS] = False
    """Take a graph of one node for captions without an answer of the parser's server."""
    unknown_words: Annotated[Literal["refuse", "skip"], DATA, GROWS] = "refuse"
    """What to do if a model's own vocabulary lacks words of a benchmark: refuse the benchmark, or skip the words."""
    epochs: Annotated[float, TRAINING, FIRST, Range(0.0, 1_000_000.0)] = 20.0
    """Passes over the photographs at --mix 0. They decide the steps, the same with any --mix; 0 takes --steps."""
    parses: Annotated[Path, PLACE, GROWS] = Path("parses")
    """Folder of the graphs that are kept, also by menagerie parse."""

    @property
    def folders(self) -> "Given":
        """Map each folder that `--images` replaces to those given. Raises if sources read it and several are given."""
        from menagerie.generators.benchmarks import registry as benchmarks
        from menagerie.generators.sources import registry as sources
        from menagerie.studies.scoring.check import folders_given

        known = [sources.load_source(name) for name in sources.names()]
        given = folders_given(self.images, [*known, *map(benchmarks.load_benchmark, benchmarks.names())])
        read_by_sources = (name for spec in known for name in spec.images)
        if twice := next((name for name in read_by_sources if len(given.get(name, ())) > 1), None):
            raise UserError(f"--images {twice} is given {len(given[twice])} times; training reads one folder for it")
        return {name: tuple(map(Path.resolve, paths)) for name, paths in given.items()}

    def with_recipe(self, recipe: SplitRecipe) -> "PhotographStudy":
        return replace(self, base=recipe, world=recipe.world)

    def training_places(self) -> Iterator[tuple[str, TrainedOn]]:
        """Yield each model at each place, once; a model that reads no graphs has only the default parser."""
        every = (
            (model, place if "graphs" in spec_of(model).reads else place._replace(parser=DEFAULT))
            for place in starmap(TrainedOn, product(self.sources, self.parser, self.mix, self.starts or (NONE,)))
            for model in self.models
        )
        return iter(dict.fromkeys(every))

    def plain_grid(self, images: int = 0) -> Grid:
        """Return a grid with a single place; for a number of photographs with as many steps as the epochs take."""
        shared = {item.name for item in fields(self)} & {item.name for item in fields(Grid)} - {"base"}
        plain = Grid(**{name: getattr(self, name) for name in shared})
        plain = plain.with_recipe(replace(self.base or BindingRecipe(), world=self.world))
        if not (images and self.epochs):
            return plain
        steps = max(1, math.ceil(self.epochs * images / plain.recipe.batch))
        return replace(plain, recipe=replace(plain.recipe, steps=steps))
