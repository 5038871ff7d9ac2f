"""What does each part of a model bring? OC-CLIP's tables 6 and 7, figures 3 and 4, on our world.

    python studies/ablations.py --preset smoke
    python studies/ablations.py                      # laptop: half the steps of the grids, 3 seeds
    python studies/ablations.py --rows coefficients  # alpha and beta; dimensions: figure 4
    python studies/ablations.py --rows "dim=32 layers=1" "model=clip" "graphs=rules"
    python studies/ablations.py --preset oracle      # other models, errors in scene graphs
    python studies/ablations.py --preset negatives   # false captions for all models; masks, phases
    python studies/ablations.py --preset partial     # captions that leave out objects and textures

Each row changes the model by one line of configuration: from the model's paper (studies/analysis/papers.py), from the
study (studies/analysis/ablation_rows.py), or your own. It is trained on the hardest cells of the spatial and the
binding grid, if it can change something there. Rows whose parser can't run here are left out, with the reason. Ends
with `report.html`, `ablations.csv` and `ablations.tex` in `--out`. Run again, it skips what is finished.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, FIRST, MODEL, TRAINING, WHAT
from menagerie.envs.core.processes import call_in_child
from menagerie.envs.core.validation import SEEDS, STEPS, Range
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.models.spec import ScorerSpec
from menagerie.studies import binding_grid, spatial_grid
from menagerie.studies.analysis.ablation_rows import (
    ablation_spec,
    base_row,
    can_matter,
    model_in_line,
    parse_line,
    requested_rows,
)
from menagerie.studies.analysis.papers import ABLATIONS
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import PAPER_RECIPES, place_line, recipe_line, without_recipe
from menagerie.studies.frame.checks import check_rows
from menagerie.studies.frame.command import main
from menagerie.studies.frame.options import GROWS
from menagerie.studies.frame.study import SplitStudy, Study
from menagerie.studies.runs.command_line import ScorerOptions, scorer_options
from menagerie.studies.runs.data import FRACTIONS

if TYPE_CHECKING:
    from menagerie.studies.frame.parts import Part
    from menagerie.studies.frame.records import Records

GRIDS = {"spatial": spatial_grid.PRESETS, "binding": binding_grid.PRESETS}


@dataclass(frozen=True)
class AblationStudy(Study):
    """Ablations"""

    model: Annotated[str, MODEL, FIRST] = "oc-clip"
    """The model whose parts are varied."""
    rows: Annotated[tuple[str, ...], WHAT, FIRST, GROWS] = ()
    """Rows by name, lines such as "dim=32 layers=1", or groups: coefficients, dimensions, partial, oracle, negatives,
    losses. Without any, all rows that the model names, but not these groups."""
    splits: Annotated[tuple[str, ...], DATA, FIRST] = tuple(GRIDS)
    """Splits to train on: spatial, binding. A recipe or a file of yours takes their place."""
    hold_out: Annotated[tuple[str, ...], DATA, FIRST] = ()
    """Rules such as "texture=red & animal=cat": matches are only in tests. Each rule has a test of its own
    (docs/splits.md)."""
    split: Annotated[tuple[Path, ...], DATA, FIRST] = ()
    """An existing split file, packed or not."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names."""
    cell: Annotated[str, DATA, FIRST] = "laptop"
    """Preset of the two grids whose hardest cell is trained. The grids are binding_grid.py and spatial_grid.py."""
    seen_order: Annotated[bool, DATA] = False
    """Also test the orders of animals in training, on splits with orders: whether a model fits, besides whether it
    generalises."""
    steps: Annotated[int, TRAINING, FIRST, Range(0, STEPS.high)] = 0
    """Optimiser steps; 0 takes the preset's."""
    seeds: Annotated[int, WHAT, FIRST, SEEDS] = 3
    """Number of seeds, 0 to seeds - 1."""
    models: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = ("oc-clip",)
    """The models of all rows; `fill_in` sets them."""
    scorers: Annotated[ScorerOptions, tyro.conf.Fixed, tyro.conf.Suppress, GROWS] = field(
        default_factory=partial(scorer_options, "small")
    )
    """The options of models before a row changes them: those of the grids' preset (`cell`)."""

    @property
    def spec(self) -> ScorerSpec:
        return ablation_spec(self.model)

    @property
    def title(self) -> str:
        return f"Ablations of {base_row(self.spec)}"

    @property
    def lines(self) -> Mapping[str, str]:
        """The options that each row changes, by the row's name."""
        return requested_rows(self.model, self.rows).lines

    @cached_property
    def grids(self) -> dict[str, SplitStudy]:
        """Map the name of each split to its grid, reduced to a single cell."""
        return {split: self.grid(split)[0] for split in self.split_names}

    @property
    def split_names(self) -> tuple[str, ...]:
        return ("own",) if self.base or self.split else self.splits

    def grid(self, split: str) -> tuple[SplitStudy, str]:
        """Return the grid of a split, reduced to its hardest cell or to the user's recipe or file; and why the preset's
        tuned recipes aren't used, or "". They are used only if the models of all rows were tuned, so that rows don't
        differ in that too."""
        kind = "spatial" if self.base is not None and self.base.relational else "binding"
        presets = GRIDS[kind if self.split_names == ("own",) else choose("split", split, GRIDS)]
        grid = self.narrow(presets[choose("preset of the grids", self.cell, presets)])
        if self.seen_order and not grid.split and hasattr(grid, "seen_order"):
            grid = replace(grid, seen_order=True)
        shared = {name: getattr(self, name) for name in ("store", "device", "threads")}
        recipe = replace(grid.recipe, steps=self.steps or grid.recipe.steps)
        grid = replace(grid, models=self.models_of_rows, recipe=recipe, **shared)
        if grid.tuned in ("", PAPER_RECIPES) or not (lacking := without_recipe(grid.tuned, self.models_of_rows)):
            return grid, ""
        return replace(grid, tuned=""), f"the grid's own for all rows, because {', '.join(lacking)} wasn't tuned"

    def narrow(self, grid: SplitStudy) -> SplitStudy:
        """Reduce a grid to its hardest cell, or to the user's recipe or file."""
        if self.base:
            return replace(grid.with_recipe(self.base), hold_out=self.hold_out)
        if self.split:
            return replace(grid, split=self.split).fill_in()
        return replace(grid, pairs=(min(grid.pairs),), hard_negatives=(0.0,), hold_out=self.hold_out)

    @property
    def models_of_rows(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(model_in_line(self.spec, line) for line in self.lines.values()))

    def with_recipe(self, recipe: SplitRecipe) -> "AblationStudy":
        return replace(self, base=recipe, hold_out=recipe.hold_out)

    def fill_in(self) -> "AblationStudy":
        """Return the study with the models of its rows and their options. Raise without any `splits`, for several files
        in `split`, and for `split` together with a recipe or hold-out rules."""
        if not self.splits:
            raise UserError("--splits needs spatial, binding or both, got none")
        if len(self.split) > 1 or (self.split and (self.base or self.hold_out)):
            raise UserError("--split takes one file here, and neither --recipe nor --hold-out beside it")
        return replace(self, models=self.models_of_rows, scorers=next(iter(self.grids.values())).scorers)

    def check(self) -> None:
        """Raise for a row that can't be built."""
        call_in_child(check_rows, {self.lines[arm.labels["row"]]: arm.cell for arm in self.arms if not arm.cell.seed})

    @cached_property
    def arms(self) -> list[Arm]:
        """The runs: one for each row, each split on which the row can matter, and each seed."""
        return [
            self.arm(split, row, seed)
            for split, grid in self.grids.items()
            for row, line in self.lines.items()
            if can_matter(self.spec, line, grid.kind)
            for seed in range(self.seeds)
        ]

    @cached_property
    def first(self) -> dict[int, Arm]:
        """Map the index of each arm that only scores with other graphs to the arm that trains the same weights, if the
        study has one."""
        by_id = {arm.id: arm for arm in self.arms}
        others = {k: arm.cell for k, arm in enumerate(self.arms) if arm.cell.graphs.trained_with != arm.cell.graphs}
        found = {k: by_id.get(cell.trained_as.id) for k, cell in others.items()}
        return {k: arm for k, arm in found.items() if arm}

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        return (arm for k, arm in enumerate(self.arms) if k not in self.first or known.over(self.first[k]))

    def arm(self, split: str, row: str, seed: int) -> Arm:
        """Return a run of a row. If the row changes the training recipe, a stage before the model keeps its own
        recipe."""
        grid, line = self.grids[split], self.lines[row]
        model, values = model_in_line(self.spec, line), parse_line(self.spec, line)
        training = {item.name: values.pop(item.name) for item in fields(Recipe) if item.name in values}
        try:
            place = {name: getattr(grid, name)[0] for name in FRACTIONS} | values
            files = grid.files
            arm = grid.of_file(model, seed, *files, **values) if files else grid.at(model, seed, **place)
        except UserError as error:
            raise error.at(f"row {line!r}") from error
        cell = replace(arm.cell, recipe=replace(arm.cell.recipe, **training))
        return arm._replace(cell=cell, labels={"split": split, "row": row})

    def label(self, test: str) -> str:
        return next(iter(self.grids.values())).label(test)

    def notes(self) -> dict[str, str]:
        notes = {}
        for split, grid in self.grids.items():
            axes = next(arm.cell.axes for arm in self.arms if arm.labels["split"] == split)
            notes[f"{split} cell"] = f"{place_line(grid, axes)}; {recipe_line(grid, self.model)}"
            notes[f"{split} recipes"] = self.grid(split)[1]
        notes |= {
            f"row {row}": f"left out: {why}" for row, why in requested_rows(self.model, self.rows).left_out.items()
        }
        return {name: text for name, text in notes.items() if text}

    def page(self, records: "Records") -> "Iterable[Part]":
        from menagerie.studies.pages.ablations import parts

        return parts(self, records)

    def export(self, records: "Records") -> None:
        from menagerie.studies.pages.ablations import export_ablations

        export_ablations(self, records)


PRESETS: dict[str, AblationStudy] = {
    "smoke": AblationStudy(rows=("no local loss", "regular attention"), cell="smoke", seeds=1, steps=40),
    # Half of the grids' steps: after all of them most rows are at 99 %.
    "laptop": AblationStudy(steps=1000),
    # Eight animals at 32 px.
    "oracle": AblationStudy(rows=("oracle",), cell="breadth", seen_order=True),
    "negatives": AblationStudy(rows=("negatives",), cell="breadth", seen_order=True),
    "losses": AblationStudy(rows=("losses",), cell="breadth", seen_order=True),
    # Captions that leave out objects and textures, with enough steps to fit them.
    "partial": AblationStudy(rows=("partial",), cell="breadth", steps=3000),
    "paper": AblationStudy(rows=(*ABLATIONS["oc-clip"].rows, "coefficients"), cell="paper"),
}

if __name__ == "__main__":
    main(PRESETS)
