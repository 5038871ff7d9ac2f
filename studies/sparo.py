"""What do SPARO's slots encode? Tables 4 to 6 and figures 3 and 4 of its paper, on our world.

    python studies/sparo.py --preset smoke               # tiny world, a minute or two on 2 cores
    python studies/sparo.py                              # laptop: eight animals, 32 px, 3 seeds
    python studies/sparo.py --parts selection pictures   # of unchanged SPARO

Parts: selection (table 4: slots are ranked one by one on validation, and the best half is compared with random and
worst halves), masks (table 5: trained on one task, tested on the others), ladder (table 6: from attentional pooling to
SPARO), sweeps (figure 3: number and width of slots), pictures (figure 4: patches and words that slots attend to), all
at one place of the binding grid. DINO with SPARO is left out, because nothing here trains on images without texts.

Ends with `report.html` and its tables as CSV and LaTeX in `--out`. Run again, it skips what is finished.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import FIRST, WHAT
from menagerie.envs.core.processes import call_in_child
from menagerie.envs.core.validation import RUNS, SHARE, Range, option
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS
from menagerie.models.recipe import Recipe
from menagerie.models.spec import ScorerSpec
from menagerie.studies.analysis.ablation_rows import ablation_spec, base_row, parse_line
from menagerie.studies.analysis.papers import ablations_of
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import place_line, title_of
from menagerie.studies.frame.checks import check_rows
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import SMOKE
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.records import read_cell_result
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.data import FRACTIONS

if TYPE_CHECKING:
    from menagerie.studies.frame.measure import Measure
    from menagerie.studies.frame.parts import Part
    from menagerie.studies.frame.records import Records

MODEL = "sparo"
PartName = Literal["selection", "masks", "ladder", "sweeps", "pictures"]
SIZES = Range(1, 4096)
PARTS: tuple[PartName, ...] = ("selection", "masks", "ladder", "sweeps", "pictures")


@dataclass(frozen=True)
class SlotStudy(SplitStudy):
    """SPARO's slots"""

    swept: ClassVar = {"slots": "number of slots", "dim": "width of slots"}
    """Figure 3: the field of each sweep, and what reports call it."""

    parts: Annotated[tuple[PartName, ...], WHAT, FIRST, GROWS] = PARTS
    """Parts of the study: all of these, or some."""
    models: tuple[str, ...] = (MODEL, "clip", "clip-gap")
    """SPARO and models to compare with, which are horizontal lines in the sweeps and get masks too."""
    slot_counts: Annotated[tuple[int, ...], WHAT, FIRST, SIZES, GROWS] = (4, 8, 16, 32, 64)
    """Numbers of slots. Swept at the width that --sparo.dim gives."""
    slot_widths: Annotated[tuple[int, ...], WHAT, FIRST, SIZES, GROWS] = (2, 4, 16, 64, 256)
    """Widths of slots. Swept at the number that --sparo.slots gives."""
    mask_tasks: Annotated[tuple[str, ...], WHAT] = ("swap", "replace texture")
    """Tasks that masks are trained on, each by itself, on validation."""
    random_halves: Annotated[int, WHAT, RUNS] = 20
    """Number of random halves of the slots, whose mean is the control."""
    scenes: Annotated[int, WHAT, Range(1, 1000)] = 4
    """Scenes in the pictures of slots."""
    pairs: Annotated[Axis[float], SHARE] = (0.4,)
    """Fraction of the trainable animal pairs; one."""
    hard_negatives: Annotated[Axis[float], SHARE] = (0.0,)
    """Fraction of these pairs that have hard negatives too; one."""
    seeds: int = 3
    """Number of seeds, from 0; each decides split and training."""
    architecture: str = "mini"
    """Towers of two blocks or more, so that SPARO can replace the last."""

    @property
    def spec(self) -> ScorerSpec:
        """SPARO, whose slots are studied."""
        return ablation_spec(MODEL)

    @property
    def unchanged(self) -> str:
        return base_row(self.spec)

    @property
    def ladder(self) -> Mapping[str, str]:
        """The options of each row of table 6 except unchanged SPARO; empty unless `parts` has the ladder."""
        return ablations_of(self.spec).rows if "ladder" in self.parts else {}

    @property
    def sweeps(self) -> dict[str, Sequence[int]]:
        """The values of each field that is swept; empty unless `parts` has the sweeps."""
        values = zip(self.swept, (self.slot_counts, self.slot_widths), strict=True)
        return dict(values) if "sweeps" in self.parts else {}

    @property
    def lines(self) -> dict[str, str]:
        """The options that each row of SPARO changes, by the row's name."""
        swept = {f"{name}={value}": f"{name}={value}" for name, values in self.sweeps.items() for value in values}
        return {self.unchanged: ""} | dict(self.ladder) | swept

    @cached_property
    def options(self) -> Any:
        return self.spec.make_config(self.arm(MODEL, self.unchanged, 0).cell.options)

    def arm(self, model: str, row: str, seed: int) -> Arm:
        """Return the run of SPARO with the options of a row, or of another model, for which `row` is only the label."""
        values = parse_line(self.spec, self.lines[row]) if model == MODEL else {}
        varied = {name: value for name, value in values.items() if row == f"{name}={value}"}
        if self.split:
            arm = self.of_file(model, seed, next(iter(self.files)), **values)
        else:
            arm = self.at(model, seed, **{name: getattr(self, name)[0] for name in FRACTIONS}, **values)
        table = next(map(self.swept.get, varied), "rows of table 6, models")
        return arm._replace(labels={"row": row, "table": table} | varied)

    @cached_property
    def arms(self) -> list[Arm]:
        """The runs of every row of SPARO and of the models beside it. Rows with equal options are the same cell."""
        rows = {model: self.lines if model == MODEL else (title_of(model),) for model in self.models}
        return [self.arm(model, row, seed) for model in rows for row in rows[model] for seed in range(self.seeds)]

    def plan(self, known: KnownResults) -> Sequence[Arm]:
        return self.arms

    def measures(self, arm: Arm, records: "Records") -> dict[str, int]:
        return {"parameters": result["parameters"]} if (result := read_cell_result(records.folder(arm))) else {}

    def measurements(self, arm: Arm) -> "Sequence[Measure]":
        """Return the measures of a run, as far as `parts` has them: selections of slots for unchanged SPARO, and masks
        of vectors for it and other models."""
        from menagerie.studies.measures.embeddings import Selection
        from menagerie.studies.measures.masks import Masks

        plain, slots, tests = arm.labels["row"] == self.unchanged, self.options.slots, arm.cell.tests
        selections = [Selection(slots, self.random_halves, tests)] if plain and "selection" in self.parts else []
        masked = "masks" in self.parts and (plain or arm.cell.model != MODEL)
        return selections + ([Masks(slots, self.mask_tasks, tests)] if masked else [])

    def check(self) -> None:
        """Raise unless SPARO, a part and one place are given, and for rows that can't be built or masked."""
        super().check()
        if MODEL not in self.models:
            raise UserError(f"--models needs {MODEL}, whose slots are studied, and any others beside it")
        if not self.parts:
            raise UserError(f"--parts needs one or more of {', '.join(PARTS)}")
        for name in ("slot_counts", "slot_widths", "mask_tasks"):
            if not getattr(self, name):
                raise UserError(
                    f"{option(name)} needs one or more values, got none; choose parts of the study by --parts"
                )
        for task in self.mask_tasks:
            choose("task of --mask-tasks", task, PAIR_TASKS)
        if len(self.split or self.pairs) * (1 if self.split else len(self.hard_negatives)) != 1:
            raise UserError("give one place: one value of --pairs and of --hard-negatives, or one --split")
        call_in_child(check_rows, {line: self.arm(MODEL, row, 0).cell for row, line in self.lines.items() if line})
        if "masks" in self.parts:
            call_in_child(check_masks, [self.arm(model, self.unchanged, 0).cell for model in self.models])

    def notes(self) -> dict[str, str]:
        return {"trained on": place_line(self, self.arm(MODEL, self.unchanged, 0).cell.axes)} | super().notes()

    def page(self, records: "Records") -> "Iterable[Part]":
        from menagerie.studies.pages.sparo import SlotPage

        return SlotPage(self, records).parts()

    def export(self, records: "Records") -> None:
        from menagerie.studies.pages.sparo import SlotPage

        SlotPage(self, records).export()


def check_masks(cells: Sequence[Cell]) -> None:
    """Raise for a model whose vectors can't be masked. Imports torch."""
    from menagerie.studies.measures.embeddings import check_vectors

    for cell in cells:
        check_vectors(cell.model, cell.towers, cell.options)


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
