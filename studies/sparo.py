"""What do SPARO's slots encode? Tables 4 to 6 and figures 3 and 4 of its paper, on our world.

    python studies/sparo.py --preset smoke               # tiny world, a minute or two on 2 cores
    python studies/sparo.py                              # laptop: eight animals, 32 px, 3 seeds
    python studies/sparo.py --parts selection pictures   # of unchanged SPARO

Parts: selection (table 4: slots are ranked one by one on validation, and the best half is compared with random and
worst halves), masks (table 5: trained on one task, tested on the others), ladder (table 6: from attentional pooling to
SPARO), sweeps (figure 3: number and width of slots), pictures (figure 4: patches and words that slots attend to), all
at one place of the binding grid. DINO with SPARO is left out, because nothing here trains on images without texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import FIRST, WHAT
from menagerie.envs.core.processes import call_in_child
from menagerie.envs.core.validation import RUNS, SHARE, Range, Several
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.models.spec import ScorerSpec
from menagerie.studies.analysis.papers import ablations_of
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import place_line, title_of
from menagerie.studies.frame.claims import Verdict, claim_parts, make_verdict
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import SMOKE
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.parts import Curves, Facts, Heading, Lines, Paragraph, Part
from menagerie.studies.frame.records import Records, read_cell_result
from menagerie.studies.frame.rows import (
    BOTH,
    ablation_spec,
    base_row,
    column_name,
    explain_rows,
    row_arm,
    row_claims,
    row_parts,
    table_columns,
)
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.runs.cell import Cell

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.frame.measure import Measure
    from menagerie.studies.measures.slots import MaskRow, Masks, Selection

MODEL = "sparo"
PartName = Literal["selection", "masks", "ladder", "sweeps", "pictures"]
SIZES, SOME = Range(1, 4096), Several(least=1)


@dataclass(frozen=True)
class SlotStudy(SplitStudy):
    """SPARO's slots"""

    swept: ClassVar = {"slots": "number of slots", "dim": "width of slots"}
    parts: Annotated[tuple[PartName, ...], WHAT, FIRST, GROWS, SOME] = get_args(PartName)
    """Parts of the study: all of these, or some."""
    models: tuple[str, ...] = (MODEL, "clip", "clip-gap")
    """SPARO and models to compare with, which get masks too."""
    slot_counts: Annotated[tuple[int, ...], WHAT, FIRST, SIZES, GROWS, SOME] = (4, 8, 16, 32, 64)
    """Numbers of slots. Swept at the width that --sparo.dim gives."""
    slot_widths: Annotated[tuple[int, ...], WHAT, FIRST, SIZES, GROWS, SOME] = (2, 4, 16, 64, 256)
    """Widths of slots. Swept at the number that --sparo.slots gives."""
    mask_tasks: Annotated[tuple[str, ...], WHAT, SOME] = ("swap", "replace texture")
    """Tasks that masks are trained on, each by itself, on validation."""
    random_halves: Annotated[int, WHAT, RUNS] = 20
    """Number of random halves of the slots, whose mean is the control."""
    scenes: Annotated[int, WHAT, Range(1, 1000)] = 4
    """Scenes in the pictures of slots."""
    pairs: Annotated[Axis[float], SHARE] = (0.4,)
    """Share of the trainable animal pairs; one."""
    hard_negatives: Annotated[Axis[float], SHARE] = (0.0,)
    """Share of these pairs that have hard negatives too; one."""
    seeds: int = 3
    """Number of seeds."""
    architecture: str = "mini"
    """Towers of two blocks or more, so that SPARO can replace the last."""

    @property
    def spec(self) -> ScorerSpec:
        return ablation_spec(MODEL)

    @property
    def unchanged(self) -> str:
        return base_row(self.spec)

    @property
    def ladder(self) -> Mapping[str, str]:
        """The options of each row of table 6 except unchanged SPARO; empty unless `parts` has the ladder."""
        return ablations_of(self.spec).lines if "ladder" in self.parts else {}

    @property
    def sweeps(self) -> dict[str, Sequence[int]]:
        """The values of each field that is swept, as in figure 3; empty unless `parts` has the sweeps."""
        values = zip(self.swept, (self.slot_counts, self.slot_widths), strict=True)
        return dict(values) if "sweeps" in self.parts else {}

    @property
    def lines(self) -> dict[str, str]:
        """The options that each row of SPARO changes, by the row's name; a row of a sweep has its line as name."""
        swept = [f"{name}={value}" for name, values in self.sweeps.items() for value in values]
        return {self.unchanged: "", **self.ladder} | {row: row for row in swept}

    @property
    def others(self) -> dict[str, str]:
        return {model: title_of(model) for model in self.models if model != MODEL}

    def arm(self, model: str, row: str, seed: int) -> Arm:
        """Return the run of SPARO with the options of a row, or of another model, for which `row` is only the label."""
        line = self.lines[row] if model == MODEL else ""
        field, _, value = line.partition("=") if line == row else ("", "", "")
        labels = {"row": row, "table": self.swept.get(field, "rows of table 6, models")}
        varied = {field: int(value)} if field in self.swept else {}
        return row_arm(self, spec_of(model), line, seed, labels | varied)

    @cached_property
    def arms(self) -> list[Arm]:
        """The runs of every row of SPARO and of the models beside it. Rows with equal options are the same cell."""
        rows = {model: self.lines if model == MODEL else (title_of(model),) for model in self.models}
        return [self.arm(model, row, seed) for model in rows for row in rows[model] for seed in self.seed_numbers]

    @cached_property
    def first(self) -> Cell:
        """The first run of unchanged SPARO, with the place, tests and number of slots of all."""
        return self.arm(MODEL, self.unchanged, 0).cell

    def plan(self, known: KnownResults) -> Sequence[Arm]:
        return self.arms

    def measures(self, arm: Arm, records: Records) -> dict[str, int]:
        return {"parameters": result["parameters"]} if (result := read_cell_result(records.folder(arm))) else {}

    @property
    def measured(self) -> "tuple[Selection, Masks]":
        from menagerie.studies.measures.slots import Masks, Selection

        slots, tests = self.spec.make_config(self.first.options).slots, self.first.tests
        return Selection(slots, self.random_halves, tests), Masks(slots, self.mask_tasks, tests)

    def measurements(self, arm: Arm) -> "Sequence[Measure]":
        plain, (selection, masks) = arm.labels["row"] == self.unchanged, self.measured
        wanted = {selection: plain and "selection" in self.parts}
        wanted |= {masks: "masks" in self.parts and (plain or arm.cell.model != MODEL)}
        return [measure for measure, takes in wanted.items() if takes]

    def check(self) -> None:
        super().check()
        if MODEL not in self.models:
            raise UserError(f"--models needs {MODEL}, whose slots are studied, and any others beside it")
        for task in self.mask_tasks:
            choose("task of --mask-tasks", task, PAIR_TASKS)
        if len(self.split or self.pairs) * (1 if self.split else len(self.hard_negatives)) != 1:
            raise UserError("give one place: one value of --pairs and of --hard-negatives, or one --split")
        if "masks" in self.parts:
            call_in_child(check_masks, [self.arm(model, self.unchanged, 0).cell for model in self.models])

    def notes(self) -> dict[str, str]:
        return {"trained on": place_line(self, self.first.axes)} | super().notes()

    def page(self, records: Records) -> Iterator[Part]:
        """Yield the claims of the paper, figures of number and width of slots, table 6, and the other parts."""
        from menagerie.studies.measures.slot_pictures import SlotPictures
        from menagerie.studies.measures.slots import mask_table, selection_table

        shown = self.shown(records)
        yield Paragraph(ABOUT)
        yield from claim_parts(list(self.verdicts(records)), CLAIMS)
        if self.sweeps:
            yield Heading("Number and width of slots (figure 3)")
            beside = shown.where(row=tuple(self.others.values())) if self.others else None
            for field, name in self.swept.items():
                swept = shown.where(lambda arm, field=field: field in arm.labels)
                says = f"Accuracy by {name} (`--sparo.{field}`). Dashed lines: the other models."
                yield Lines(f"sweep-{field}", swept, x=field, panels=BOTH, log=True, beside=beside, says=says)
        if self.ladder:
            yield Heading("From attentional pooling to SPARO (table 6)")
            yield Facts(explain_rows(self.spec, self.ladder))
            yield from row_parts("ladder", shown.where(row=(self.unchanged, *self.ladder)), self.unchanged)
        if len(points := self.selections(records)):
            yield Heading("Slots chosen after the fact (table 4)")
            yield selection_table(points)
        if masks := self.masks(records):
            yield Heading("Masks trained on one task (table 5)")
            yield mask_table(masks)
        base = records.where(row=self.unchanged)
        for arm, _ in base.results[:1] if "pictures" in self.parts else ():
            yield Heading("What slots attend to (figure 4)")
            yield SlotPictures("slots", arm.cell, base.folder(arm), arm.file, says=PICTURES, scenes=self.scenes)
        once = tuple({arm.id: arm for arm in reversed(records.arms)}.values())[::-1]
        says = "Rows with different losses can't be compared."
        yield Curves("training", replace(records, arms=once), ("row",), panels="table", says=says)

    def shown(self, records: Records) -> Records:
        return records.where(test=table_columns(self.first.data))

    def selections(self, records: Records) -> "pd.DataFrame":
        """Return the items of table 4; empty if none are measured."""
        from menagerie.studies.measures.slots import selection_points

        return selection_points(records.where(row=self.unchanged).rows_of(self.measured[0]))

    def masks(self, records: Records) -> "dict[MaskRow, pd.DataFrame]":
        """Return the masks of table 5, of all models that have finished."""
        from menagerie.studies.measures.slots import masks_in

        rows = {MODEL: self.unchanged} | self.others
        found = {model: records.where(row=row).rows_of(self.measured[1]) for model, row in rows.items()}
        of_models = (masks_in(model, measured, self.mask_tasks) for model, measured in found.items())
        return {place: items for masks in of_models for place, items in masks.items()}

    def verdicts(self, records: Records) -> Iterator[Verdict]:
        from menagerie.studies.measures.slots import mask_verdicts, selection_verdicts

        if "selection" in self.parts:
            yield from selection_verdicts(self.selections(records))
        if "masks" in self.parts:
            yield from mask_verdicts(self.masks(records), self.mask_tasks[0])
        if self.ladder:
            yield from row_claims(self.spec, self.kind, records)
        yield from self.sweep_verdicts(records)

    def sweep_verdicts(self, records: Records) -> Iterator[Verdict]:
        """Yield verdicts on the claims of figure 3: the last of some values of a field against the first."""
        counts, widths = (sorted(self.sweeps.get(name, ())) for name in self.swept)
        middle = len(widths) // 2 if len(widths) > 2 else len(widths)
        for claim, field, values, sign in (
            ("Accuracy rises with the number of slots", "slots", counts, 1),
            ("Accuracy rises with the width of slots", "dim", widths[: middle + 1], 1),
            ("... and falls again", "dim", widths[middle:], -1),
        ):
            if len(values) > 1:
                first, last = f"{field}={values[0]}", f"{field}={values[-1]}"
                found = self.shown(records).estimates(("row",), {"row": first}).get((last,))
                tests = ", ".join(column_name(*test) for test in table_columns(self.first.data))
                row = f"{self.swept[field]}: {values[-1]} − {values[0]}"
                yield make_verdict(f"{claim} (figure 3)", row, tests, found, sign)


def check_masks(cells: Sequence[Cell]) -> None:
    """Raise for a model whose vectors can't be masked. Imports torch."""
    from menagerie.studies.measures.slots import check_vectors

    for cell in cells:
        check_vectors(cell.model, cell.towers, cell.options)


ABOUT = """SPARO (Vani et al. 2024) reads images and texts into slots: each part of a vector attends to patches
or words by itself; a score is the mean of the slots' cosines. Tables and figures are numbered as in its paper. Every
choice is made on validation."""
CLAIMS = """What a claim is about minus what it is compared with; for numbers and widths of slots the later minus the
earlier. The paper's numbers are of other data and other tasks."""
PICTURES = """The slots that attend most sharply to words, among those whose image and text agree, chosen on validation:
attention to each patch, below it that to each word of the caption (%)."""

PRESETS: dict[str, SlotStudy] = {
    "smoke": SlotStudy(
        **SMOKE | {"pairs": (0.5,), "recipe": Recipe(steps=40, batch=32, warmup=5), "architecture": "mini"},
        **{"models": (MODEL, "clip-gap"), "views": 4, "seeds": 1, "scenes": 2},
        **{"slot_counts": (4, 8), "slot_widths": (4, 8, 16), "random_halves": 4},
    ),
    # One recipe for all rows and models.
    "laptop": SlotStudy(
        **{"world": "eight", "resolution": 32, "views": 8, "test_views": 2, "test_scenes": 200},
        recipe=Recipe(steps=1500, single_object_phase=0.25, singles_share=0.5),
    ),
}

if __name__ == "__main__":
    main(PRESETS)
