"""What does each part of a model bring? OC-CLIP's tables 6 and 7, figures 3 and 4, on our world.

    python studies/ablations.py --preset smoke
    python studies/ablations.py                      # laptop: half the steps of the grids, 3 seeds
    python studies/ablations.py --rows coefficients  # alpha and beta; dimensions: figure 4
    python studies/ablations.py --rows "dim=32 layers=1" "model=clip" "graphs=rules"
    python studies/ablations.py --preset oracle      # other models, errors in scene graphs
    python studies/ablations.py --preset negatives   # false captions for all models; masks, phases
    python studies/ablations.py --preset partial     # captions that leave out objects and textures

Each row changes the model by one line of configuration: from the model's paper (studies/analysis/ablations.toml), from
this study's groups, or your own. It is trained on the hardest cells of the spatial and the binding grid, if it can
change something there. Rows whose parser can't run here are left out, with the reason. Ends with `report.html` and
`results.csv` in `--out`. Run again, it skips what is finished.
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
from menagerie.envs.core.validation import SEEDS, STEPS, Range
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.spec import ScorerSpec
from menagerie.studies import binding_grid, spatial_grid
from menagerie.studies.analysis.papers import ABLATIONS, ablations_of
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import PAPER_RECIPES, place_line, read_recipes, recipe_line
from menagerie.studies.frame.claims import claims_section, judge_difference, outcomes_sentence
from menagerie.studies.frame.command import main
from menagerie.studies.frame.options import GROWS
from menagerie.studies.frame.parts import Curves, Facts, Heading, HeatMap, Paragraph, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.row_groups import ablation_spec, requested_rows
from menagerie.studies.frame.rows import (
    BOTH,
    base_row,
    can_matter,
    column_name,
    explain_rows,
    model_in_line,
    parse_line,
    row_arm,
    row_claims,
    row_parts,
    table_columns,
)
from menagerie.studies.frame.study import SplitStudy, Study
from menagerie.studies.runs.cell import CHECKPOINT
from menagerie.studies.runs.command_line import ScorerOptions, scorer_options

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
        """The line of each row, by the row's name."""
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
        tuned = self.models_of_rows if grid.tuned in ("", PAPER_RECIPES) else read_recipes(grid.tuned)
        if not (lacking := [model for model in self.models_of_rows if model not in tuned]):
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
        return row_arm(self.grids[split], self.spec, self.lines[row], seed, {"split": split, "row": row})

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

    def page(self, records: Records) -> Iterator[Part]:
        """Yield what the paper's claims come to, each split's rows, and what rows change."""
        from menagerie.studies.analysis.words import explain_model, one_line

        base = base_row(self.spec)
        verdicts = [its for split in self.grids for its in row_claims(self.spec, split, records.where(split=split))]
        if verdicts:
            yield Sentence(outcomes_sentence(verdicts))
        yield Paragraph(f"{explain_model(self.spec.name)}. Each row is {base} with one change.")
        for split in self.grids:
            yield from self.section(split, records.where(split=split))
        yield from claims_section(verdicts, f"points above {base}", one_line(CLAIMS))
        if says := explain_rows(self.spec, self.lines):
            yield Heading("What is changed")
            yield Facts(says)
        yield Curves("training", records, ("row",), panels="split", says=one_line(TRAINED))

    def section(self, split: str, its: Records) -> Iterator[Part]:
        """Yield the rows of one split: a sentence, figure, tables, options that are varied together, and all tasks."""
        from menagerie.generators.splits.recipe_file import KINDS

        data = next(arm.cell.data for arm in self.arms if arm.labels["split"] == split)
        columns = table_columns(data)
        yield Heading(f"The {split} split", f"The false caption of the task `swap`: {KINDS[data.kind].swap_words}.")
        if not its.results:
            yield Paragraph("No run is finished yet.")
            return
        yield from self.finding(split, its.where(test=columns[:1]), column_name(*columns[0]))
        shown, ratios = its.where(test=columns), self.ratios(its) if data.kind == "spatial" else {}
        yield from row_parts(split, shown, base_row(self.spec), f"The {split} split.", beside=ratios)
        if ratios:
            yield Paragraph(ablations_of(self.spec).ratio_says)
        yield from self.planes(split, shown)
        for test, name in file_names(its.tests).items():
            folded = f"All tasks of {self.label(test)}, {split} split"
            yield Table(f"tasks-{split}-{name}", its.where(subset=test), ("row",), ("task",), folded=folded)

    def finding(self, split: str, first: Records, test: str) -> Iterator[Part]:
        """Yield a sentence: how many rows differ from the unchanged model on a test, and which is the lowest."""
        base = base_row(self.spec)
        found = {row: its for (row,), its in first.estimates(("row",), {"row": base}).items()}
        lower, higher = (sum(judge_difference(its, k) == "confirmed" for its in found.values()) for k in (-1, 1))
        if found:
            row = min(found, key=lambda name: found[name].value)
            counts = f"{lower} of {len(found)} rows are lower than {base} by more than chance and {higher} higher"
            yield Sentence(f"On the {split} split's {test} {counts}; the lowest is {row}, {found[row]} points.")

    def planes(self, split: str, shown: Records) -> Iterator[Part]:
        """Yield a heat map of each pair of options that rows vary in all combinations."""
        base = next(arm.cell for arm in self.arms if arm.labels["row"] == base_row(self.spec))
        plain, ablations = asdict(self.spec.make_config(base.options)), ablations_of(self.spec)
        lines = {row: self.lines[row] for row in shown.labels("row") if "model=" not in self.lines[row]}
        varied = {row: parse_line(self.spec, line) for row, line in lines.items()}
        for names in ablations.planes:
            there = {
                row: {name: values.get(name, plain[name]) for name in names}
                for row, values in varied.items()
                if {*values} <= {*names}
            }
            sides = [{place[name] for place in there.values()} for name in names]
            if min(map(len, sides)) > 1 and len(there) == len(sides[0]) * len(sides[1]):
                arms = (a._replace(labels=a.labels | there.get(a.labels["row"], {})) for a in shown.arms)
                records = replace(shown, arms=tuple(arm for arm in arms if arm.labels["row"] in there))
                says = f"Varied together. {'; '.join(f'`{name}`: {ablations.axes[name]}' for name in names)}."
                up, across = names
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


CLAIMS = """A claim on a row is judged by how far the row is above the unchanged model. Some claims pool tests of
recognition, replace texture, with swaps, as their column says."""
TRAINED = """A colour for each row, a column for each split. Rows with the same seed see the same images in the same
order, so that lines may coincide; there they alternate as dashes. The loss of a row that lacks a term is lower for that
alone: losses of different rows can't be compared."""


@cache  # what is finished doesn't change, and the tables are written anew after every run
def weight_ratio(folder: Path, names: tuple[str, str]) -> float | None:
    """Return the first of two scalar weights divided by the second; None if the model in this folder lacks them."""
    from menagerie.models.checkpoint import read_weights

    found = read_weights(folder / CHECKPOINT)
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
