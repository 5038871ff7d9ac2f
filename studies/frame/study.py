"""A study: its options, a plan of training runs, and a page (docs/extending.md has one). Imports neither torch nor
pandas, and opens no file.

`plan` is a pure function, which is called again after each finished run. So a study can be stopped, resumed and
extended without a state of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import changed_fields
from menagerie.envs.core.options import docstring
from menagerie.generators.parsers.graph_source import GraphSource
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.studies.frame.arm import Arm, InventedResults, KnownResults
from menagerie.studies.frame.cells import cell_of, recipe_line
from menagerie.studies.frame.measure import Measure
from menagerie.studies.frame.options import AnyOptions, SplitOptions, StudyOptions
from menagerie.studies.frame.parts import Part
from menagerie.studies.frame.records import Records, write_cells_and_results
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.data import FRACTIONS, CellData, SplitData, SplitFile


@dataclass(frozen=True)
class AnyStudy(AnyOptions, ABC):
    """A study: its options, and the two methods that each study defines, `plan` and `page`."""

    called: ClassVar[str] = "runs"
    """What the study's arms are called, in words."""
    alone: ClassVar[bool] = True
    """Whether only one command at a time may work in the study's folder."""
    decides: ClassVar[tuple[str, ...]] = ()
    """Options that the study decides itself, so that nobody can give them."""

    @abstractmethod
    def plan(self, known: KnownResults) -> Iterable[Arm]:
        """Return all arms that follow from what is known, finished ones too, in the order of the results."""

    @abstractmethod
    def page(self, records: Records) -> Iterable[Part]:
        """Yield the parts of the report, the answer first."""

    @property
    def title(self) -> str:
        """The heading of the report: the first line of the class's docstring."""
        return docstring(type(self)).partition("\n")[0].removesuffix(".")

    def label(self, test: str) -> str:
        return test

    def check(self) -> None:
        """Raise for what can't work in this study, beyond what the frame checks of options and arms."""

    def check_given(self, preset: "AnyStudy") -> None:
        """Raise for what can't work, before split files are opened and anything is planned."""

    def fill_in(self) -> "AnyStudy":
        """Return the study with the settings of the split files that were given, if any."""
        return self

    def idle_options(self, preset: "AnyStudy") -> Iterable[str]:
        """Yield a line for each option that differs from its preset's but changes nothing; the command prints them."""
        return ()

    def instead(self) -> int | None:
        """Do what an option requests in place of a run, such as a check; returns the exit status, or None if no such
        option is given."""

    def forecast(self) -> bool:
        """Print what a run would make, and return True; False leaves that to the frame, which times a step too."""
        return False

    def prepare(self, out: Path) -> "AnyStudy":
        """Prepare in the folder `out` what the plan needs; returns the study with it."""
        return self

    def measures(self, arm: Arm, records: Records) -> Mapping[str, Any]:
        """Return further columns of an arm's results, such as its cost."""
        return {}

    def measurements(self, arm: Arm) -> Sequence[Measure]:
        """Return the measures to take of an arm's trained scorer, besides its accuracy."""
        return ()

    def tables(self, records: Records) -> None:
        """Write `cells.jsonl` and `results.csv`; called after each finished arm."""
        write_cells_and_results(records)

    def export(self, records: Records) -> None:
        """Write further files of the study into its folder, after its page."""

    def conclude(self, records: Records) -> None:
        """Print the main results when the study has ended."""

    def as_recorded(self) -> "AnyStudy":
        """Return the study as its folder and page record it, without passwords and the work of `prepare`."""
        return self

    def notes(self) -> dict[str, str]:
        """Return facts about the runs; the command prints them, and the report lists them below its configuration."""
        return {}


@dataclass(frozen=True)
class Study(StudyOptions, AnyStudy):
    """A study that trains models. Of several commands in one folder each trains the cells that no other trains."""

    alone: ClassVar[bool] = False


@dataclass(frozen=True)
class SplitStudy(SplitOptions, Study):
    """A study whose arms are runs on splits of one kind in one world, trained alike but for what it varies."""

    def at(self, model: str, seed: int, **place: Any) -> Arm:
        """Return the run of a model at a place, whose names are fields of the split, of the training recipe, of the
        model's options, of the source of its graphs, or `TOWERS`; each of one of these. They override tuning."""
        split, rest = self.divide_place(model, place)
        recipe = self.split_of(seed, **split)
        further = tuple(name for name in split if name not in FRACTIONS)
        resolution = rest.get("resolution", self.resolution)
        data = SplitData(recipe, store_identity(self.store, recipe.world, resolution), further)
        return Arm(self.make_arm(model, data, recipe.seed, rest), place)

    def of_file(self, model: str, seed: int, data: SplitFile, **place: Any) -> Arm:
        """Return the run of a model on a split file; `place` as in `at`, without fields of the split."""
        split, rest = self.divide_place(model, place)
        if split:
            raise UserError(f"{min(split)} is decided by the file of --split; leave it out")
        return Arm(self.make_arm(model, data, data.seed + seed, rest), data.axes | place, self.files[data])

    def divide_place(self, model: str, place: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split a place into fields of the split's recipe and others; raises for a field of nothing, or of several."""
        kinds = (self.recipe_given, Recipe, spec_of(model).config, GraphSource)
        owners = [*({item.name for item in fields(kind)} for kind in kinds), TOWERS]
        for name in place:
            what = f"field of the split (its kind is {self.kind}), of training, of {model} or of its towers"
            choose(what, name, sorted(set().union(*owners)))
            if sum(name in names for names in owners) > 1:
                raise UserError(f"{name} is a field of several: the split, training, {model}; vary another field")
        split = {name: value for name, value in place.items() if name in owners[0]}
        return split, {name: value for name, value in place.items() if name not in split}

    def make_arm(self, model: str, data: CellData, seed: int, place: Mapping[str, Any]) -> Cell:
        """Make the training run of a model, with the values of `place` in its recipe, options, graphs and towers."""
        spec = spec_of(model)
        names = [{item.name for item in fields(kind)} for kind in (Recipe, spec.config, GraphSource)]
        training, options, graphs = ({name: place[name] for name in place if name in each} for each in names)
        towers = {name: place[name] for name in TOWERS if name in place}
        recipe, source = replace(self.recipe, **training), replace(self.graph_source, **graphs)
        cell = cell_of(replace(self, recipe=recipe, graph_source=source, **towers), model, data, seed)
        # Values of the place override those of tuning.
        given = {"towers": replace(cell.towers, **towers), "recipe": replace(cell.recipe, **training)}
        if options:
            given["options"] = changed_fields(spec.make_config(cell.options | options))
        if cell.base:
            given["base"] = replace(cell.base, towers=given["towers"])
        return replace(cell, **given)

    def with_recipe(self, recipe: SplitRecipe) -> "SplitStudy":
        """Return the study with a user's recipe, also in options of the same names; what it varies gets one value."""
        names = {item.name for item in fields(self)} & {item.name for item in fields(recipe)} - {"template"}
        values = {name: getattr(recipe, name) for name in names - self.searched}
        values |= {name: (values[name],) for name in values.keys() & self.growing()}
        return replace(self, base=recipe, **values)

    def fill_in(self) -> "SplitStudy":
        """Return the study in the world and the resolution of the split files that were given, if any."""
        if not self.split:
            return self
        sides = sorted({data.side for data in self.files})
        if len(sides) > 1:
            raise UserError(f"--split: images of {sides[0]} and {sides[1]} pixels; give files of one size")
        if len(self.files) < len(self.split):
            raise UserError("--split: two files have the same content; give each once")
        return replace(self, world=next(iter(self.files)).world, resolution=sides.pop())

    def notes(self) -> dict[str, str]:
        """Return each model's recipe in a line, and which models are left out."""
        lines = {f"recipe of {model}": recipe_line(self, model) for model in self.models}
        if self.recipe.text_negatives and (idle := [m for m in self.models if not spec_of(m).takes_negatives]):
            lines["left out"] = f"{', '.join(idle)}: no loss of theirs takes false captions (--text-negatives)"
        return lines


TOWERS = ("architecture", "pretrained", "tokenizer", "resolution")


@cache
def store_identity(store: Path, world: str, resolution: int) -> str:
    """Return the identity of the images of a world at a resolution (`image_identity`), without rendering any."""
    from menagerie.envs.worlds import load_world
    from menagerie.generators.storage.folder import SplitFolder

    return SplitFolder(store, load_world(world), resolution).identity


def grid(study: SplitStudy, **axes: Any) -> Iterator[Arm]:
    """Yield an arm for each seed, place (one value of each axis; with `--split` each file) and model whose loss can use
    the recipe's false captions. Raises for an axis that isn't several values. Begin each with its hardest value, for a
    study that is stopped early."""
    for name, values in axes.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise UserError(f"{name} of a grid takes several values, got {values!r}; for one write ({values!r},)")
    places = study.files if study.split else [dict(zip(axes, each, strict=True)) for each in product(*axes.values())]
    for seed, where, model in product(study.seed_numbers, places, study.models):
        arm = study.of_file(model, seed, where) if study.split else study.at(model, seed, **where)
        if takes_negatives(arm.cell):
            yield arm


def takes_negatives(cell: Cell) -> bool:
    """Whether a cell's model can take the false captions of its recipe; True if the recipe has none."""
    return spec_of(cell.model).takes_negatives or not cell.recipe.text_negatives


def all_arms(study: AnyStudy) -> tuple[Arm, ...]:
    """Return all arms that a study trains in the longest case, each once."""
    known = InventedResults()
    while True:
        arms = {arm.id: arm for arm in study.plan(known)}
        if arms.keys() <= known.ended:
            return tuple(arms.values())
        known.ended |= arms.keys()
