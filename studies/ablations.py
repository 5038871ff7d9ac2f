"""What does each part of a model bring? OC-CLIP's tables 6 and 7, figures 3 and 4, on our world.

    python studies/ablations.py --preset smoke
    python studies/ablations.py                      # laptop: half the steps of the grids, 3 seeds
    python studies/ablations.py --rows coefficients  # alpha and beta; dimensions: figure 4
    python studies/ablations.py --rows "dim=32 layers=1" "model=clip" "graphs=rules"
    python studies/ablations.py --preset oracle      # other models, errors in scene graphs
    python studies/ablations.py --preset negatives   # false captions for all models; masks, phases
    python studies/ablations.py --preset partial     # captions that leave out objects and textures

Each row changes the model by one line of configuration: from the model's paper (studies/analysis/ablations.toml), from
this study's groups, or your own. It is trained on the hardest cells of both grids, if it can change something there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated

import tyro

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import file_names
from menagerie.envs.core.options import DATA, FIRST, MODEL, TRAINING, WHAT
from menagerie.envs.core.validation import SEEDS, STEPS, Range, Several
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.spec import ScorerSpec
from menagerie.studies import binding_grid, spatial_grid
from menagerie.studies.analysis.papers import ABLATIONS, ablations_of
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import PAPER_RECIPES, place_line, read_recipes, recipe_line
from menagerie.studies.frame.claims import claim_parts
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import Grid
from menagerie.studies.frame.options import GROWS
from menagerie.studies.frame.parts import Curves, Facts, Heading, HeatMap, Paragraph, Part, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.rows import (
    BOTH,
    ablation_spec,
    base_row,
    can_matter,
    explain_rows,
    model_in_line,
    parse_line,
    requested_rows,
    row_arm,
    row_claims,
    row_parts,
    table_columns,
)
from menagerie.studies.frame.study import SplitStudy, Study
from menagerie.studies.runs.cell import CHECKPOINT, Cell
from menagerie.studies.runs.command_line import ScorerOptions, scorer_options
from menagerie.studies.runs.results import read_result

GRIDS: Mapping[str, Mapping[str, Grid]] = {"spatial": spatial_grid.PRESETS, "binding": binding_grid.PRESETS}


@dataclass(frozen=True)
class HardestCells(Study):
    """A study at the hardest cells of both grids"""

    splits: Annotated[tuple[str, ...], DATA, FIRST, Several(least=1)] = tuple(GRIDS)
    """Grids whose hardest cell is trained. A recipe of yours takes their place."""
    cell: Annotated[str, DATA, FIRST] = "laptop"
    """Preset of the grids whose hardest cell is trained: its world, resolution and pairs."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("own",) if self.base else self.splits

    def with_recipe(self, recipe: SplitRecipe) -> "HardestCells":
        return replace(self, base=recipe)

    def hardest(self, split: str) -> Grid:
        """Return the grid of a split, reduced to its hardest cell or to the user's recipe."""
        own = "spatial" if self.base and self.base.relational else "binding"
        presets = GRIDS[own if split == "own" else choose("split", split, GRIDS)]
        grid = presets[choose("preset of the grids", self.cell, presets)]
        alike = {name: getattr(self, name) for name in ("store", "device", "threads", "models")}
        return self.narrow(replace(grid, **alike))

    def narrow(self, grid: Grid) -> Grid:
        if self.base:
            return grid.with_recipe(self.base)
        return replace(grid, pairs=(min(grid.pairs),), hard_negatives=(0.0,))


@dataclass(frozen=True)
class AblationStudy(HardestCells):
    """Ablations"""

    model: Annotated[str, MODEL, FIRST] = "oc-clip"
    """The model whose parts are varied."""
    rows: Annotated[tuple[str, ...], WHAT, FIRST, GROWS] = ()
    """Rows by name, lines such as "dim=32 layers=1", or groups: coefficients, dimensions, partial, oracle, negatives,
    losses. Without any, all rows of the model outside groups."""
    hold_out: Annotated[tuple[str, ...], DATA, FIRST] = ()
    """Rules such as "texture=red & animal=cat": matches are only in tests. Each rule has a test."""
    split: Annotated[tuple[Path, ...], DATA, FIRST] = ()
    """An existing split file, packed or not."""
    seen_order: Annotated[bool, DATA] = False
    """On splits with orders also test those of training: whether a model fits."""
    steps: Annotated[int, TRAINING, FIRST, Range(0, STEPS.high)] = 0
    """Optimiser steps; 0 takes the preset's."""
    seeds: Annotated[int, WHAT, FIRST, SEEDS] = 3
    """Number of seeds."""
    models: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = ("oc-clip",)
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
        return requested_rows(self.model, self.rows)[0]

    @property
    def names(self) -> tuple[str, ...]:
        return ("own",) if self.split else super().names

    @cached_property
    def grids(self) -> dict[str, SplitStudy]:
        return {split: self.grid(split)[0] for split in self.names}

    def grid(self, split: str) -> tuple[SplitStudy, str]:
        """Return the grid of a split, reduced to its hardest cell or to the user's recipe or file; and why the preset's
        tuned recipes aren't used, or "". They are used only if the models of all rows were tuned, so that rows don't
        differ in that too."""
        grid = replace(self.hardest(split), models=self.models_of_rows)
        grid = replace(grid, recipe=replace(grid.recipe, steps=self.steps or grid.recipe.steps))
        if self.seen_order and not grid.split and hasattr(grid, "seen_order"):
            grid = replace(grid, seen_order=True)
        tuned = self.models_of_rows if grid.tuned in ("", PAPER_RECIPES) else read_recipes(grid.tuned)
        if not (lacking := [model for model in self.models_of_rows if model not in tuned]):
            return grid, ""
        return replace(grid, tuned=""), f"the grid's own for all rows, because {', '.join(lacking)} wasn't tuned"

    def narrow(self, grid: Grid) -> Grid:
        if self.split:
            return replace(grid, split=self.split).fill_in()
        return replace(super().narrow(grid), hold_out=self.hold_out)

    @property
    def models_of_rows(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(model_in_line(self.spec, line) for line in self.lines.values()))

    def with_recipe(self, recipe: SplitRecipe) -> "AblationStudy":
        return replace(self, base=recipe, hold_out=recipe.hold_out)

    def fill_in(self) -> "AblationStudy":
        """Return the study with the models of its rows and their options. Raise for several files in `split`, and for
        `split` together with a recipe or hold-out rules."""
        if len(self.split) > 1 or (self.split and (self.base or self.hold_out)):
            raise UserError("--split takes one file here, and neither --recipe nor --hold-out beside it")
        return replace(
            self, models=self.models_of_rows, scorers=next((its.scorers for its in self.grids.values()), self.scorers)
        )

    @cached_property
    def arms(self) -> list[Arm]:
        """The runs: one for each row, each split on which the row can matter, and each seed."""
        return [
            self.arm(split, row, seed)
            for split, grid in self.grids.items()
            for row, line in self.lines.items()
            if can_matter(self.spec, line, grid.kind)
            for seed in self.seed_numbers
        ]

    @cached_property
    def first(self) -> dict[str, Arm]:
        """Map the id of each arm that only scores with other graphs to the arm that trains the same weights, if the
        study has one."""
        by_id = {arm.id: arm for arm in self.arms}
        scored = [arm for arm in self.arms if arm.cell.graphs.trained_with != arm.cell.graphs]
        return {arm.id: by_id[its] for arm in scored if (its := arm.cell.trained_as.id) in by_id}

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        return (arm for arm in self.arms if arm.id not in self.first or known.over(self.first[arm.id]))

    def arm(self, split: str, row: str, seed: int) -> Arm:
        return row_arm(self.grids[split], self.spec, self.lines[row], seed, {"split": split, "row": row})

    def label(self, test: str) -> str:
        return next(iter(self.grids.values())).label(test)

    def cell_on(self, split: str) -> Cell:
        return next(arm.cell for arm in self.arms if arm.labels["split"] == split)

    def notes(self) -> dict[str, str]:
        notes = {}
        for split, grid in self.grids.items():
            notes[f"{split} cell"] = f"{place_line(grid, self.cell_on(split).axes)}; {recipe_line(grid, self.model)}"
            notes[f"{split} recipes"] = self.grid(split)[1]
        left_out = requested_rows(self.model, self.rows)[1]
        notes |= {f"row {row}": f"left out: {why}" for row, why in left_out.items()}
        return {name: text for name, text in notes.items() if text}

    def page(self, records: Records) -> Iterator[Part]:
        from menagerie.studies.analysis.words import explain_model

        base = base_row(self.spec)
        yield Paragraph(f"{explain_model(self.spec.name)}. Each row is {base} with one change.")
        claims = [its for split in self.grids for its in row_claims(self.spec, split, records.where(split=split))]
        yield from claim_parts(claims, f"How far a row is above {base}.")
        for split in self.grids:
            yield from self.section(split, records.where(split=split))
        if says := explain_rows(self.spec, self.lines):
            yield Heading("What is changed")
            yield Facts(says)
        yield Curves("training", records, ("row",), panels="split", says=TRAINED)

    def section(self, split: str, its: Records) -> Iterator[Part]:
        from menagerie.generators.splits.recipe_file import KINDS

        data = self.cell_on(split).data
        yield Heading(f"The {split} split", f"The false caption of the task `swap`: {KINDS[data.kind].swap_words}.")
        shown, ratios = its.where(test=table_columns(data)), self.ratios(its) if data.kind == "spatial" else {}
        yield from row_parts(split, shown, base_row(self.spec), beside=ratios)
        if ratios:
            yield Paragraph(ablations_of(self.spec).ratio_says)
        yield from self.planes(split, shown)
        for test, name in file_names(its.tests).items():
            folded = f"All tasks of {self.label(test)}, {split} split"
            yield Table(f"tasks-{split}-{name}", its.where(subset=test), ("row",), ("task",), folded=folded)

    def planes(self, split: str, shown: Records) -> Iterator[Part]:
        """Yield a heat map of each pair of options that rows vary in all combinations."""
        plain = asdict(self.spec.make_config(self.cell_on(split).options))
        rows = [row for row in shown.labels("row") if "model=" not in self.lines[row]]
        lines = {row: parse_line(self.spec, self.lines[row]) for row in rows}
        for up, across in ablations_of(self.spec).planes:
            at = {row: {up: plain[up], across: plain[across]} | its for row, its in lines.items()}
            at = {row: place for row, place in at.items() if {*place} == {up, across}}
            sides = [{place[name] for place in at.values()} for name in (up, across)]
            if min(map(len, sides)) > 1 and len(at) == len(sides[0]) * len(sides[1]):
                arms = [arm for arm in shown.arms if arm.labels["row"] in at]
                arms = [arm._replace(labels=arm.labels | at[arm.labels["row"]]) for arm in arms]
                records, says = replace(shown, arms=tuple(arms)), f"Varied together: `{up}` and `{across}`."
                yield HeatMap(f"{split}-{up}-{across}", records, x=across, y=up, panels=BOTH, says=says)

    def ratios(self, its: Records) -> dict[str, dict[tuple[str, ...], str]]:
        """Return a table's column: each row's ratio of two weights after training, mean and deviation over seeds."""
        from menagerie.studies.analysis.tables import number_text

        names, found = tuple(ablations_of(self.spec).ratio), {}
        for arm, _ in its.results if names else ():
            if (value := weight_ratio(its.folder(arm), names)) is not None:
                found.setdefault((arm.labels["row"],), []).append(value)
        texts = {row: number_text(mean(v), *([stdev(v)] if len(v) > 1 else [])) for row, v in found.items()}
        return {" / ".join(names): texts} if names else {}


TRAINED = "Rows with the same seed see the same images in the same order. Rows with different losses can't be compared."


@cache  # what is finished doesn't change, and the tables are written anew after every run
def weight_ratio(folder: Path, names: tuple[str, str]) -> float | None:
    """Return the first of two scalar weights divided by the second; None if the model in this folder lacks them."""
    from menagerie.models.checkpoint import read_weights

    found = (read_result(folder) or {}).get("scalars") or read_weights(folder / CHECKPOINT)
    return float(found[names[0]] / found[names[1]]) if set(names) <= found.keys() else None


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
