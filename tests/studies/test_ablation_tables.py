"""What ablation reports show beside accuracies: options varied together, and every task of every row."""

from dataclasses import asdict
from itertools import product
from pathlib import Path

import pytest

from menagerie.studies.ablation.cells import row_cells
from menagerie.studies.ablation.figures import plane_figure, planes
from menagerie.studies.ablation.papers import ABLATIONS
from menagerie.studies.ablation.report import every_task
from menagerie.studies.ablation.rows import SplitRow, ablated, base_row, changes, chosen_rows
from menagerie.studies.ablation.tables import Run
from menagerie.studies.ablations import PRESETS, grid_of
from menagerie.studies.analysis.tables import WAITING
from menagerie.studies.runs.cell import Job

SPEC = ablated("oc-clip")
BASE = base_row(SPEC)


def test_the_grid_of_dimensions_is_every_size_with_every_other():
    rows = {row: changes(SPEC, line) for row, line in ABLATIONS[SPEC.name].more["dimensions"].items()}
    sizes = {(its.get("dim", 64), its.get("relation_dim", 32)) for its in rows.values()}
    assert sizes | {(64, 32)} == set(product((16, 32, 64, 128), (8, 16, 32, 64)))
    assert len(rows) == 15
    assert {row: line for row, line in ABLATIONS[SPEC.name].rows.items() if row in rows} == {
        row: line for row, line in ABLATIONS[SPEC.name].more["dimensions"].items() if row in ABLATIONS[SPEC.name].rows
    }


@pytest.mark.parametrize(
    ("group", "sides"), [("dimensions", ("dim", "relation_dim")), ("coefficients", ("beta", "alpha"))]
)
def test_fields_that_are_varied_together_have_a_heat_map(group, sides):
    lines = chosen_rows(SPEC, (group, "regular attention"))
    grid = grid_of(PRESETS["laptop"], "spatial")
    jobs = {
        SplitRow("spatial", row): [Job(row_cells(grid, SPEC, line, "")[0], Path(), Path())]
        for row, line in lines.items()
    }
    (plane,) = planes(SPEC, jobs, "spatial", BASE)
    assert (plane.up, plane.across) == sides
    figure = plane_figure({place: [] for place in jobs}, plane, (("unseen_pairs", "swap"),), ABLATIONS[SPEC.name].axes)
    texts = (figure.get_supylabel(), figure.get_supxlabel())
    assert texts == tuple(f"{side}: {ABLATIONS[SPEC.name].axes[side]}" for side in sides)
    assert len(plane.rows) == 16
    assert SplitRow("spatial", "regular attention") not in plane.rows.values()
    own = asdict(SPEC.config()) | jobs[SplitRow("spatial", BASE)][0].cell.options
    assert plane.rows[own[sides[0]], own[sides[1]]] == SplitRow("spatial", BASE)
    del jobs[SplitRow("spatial", list(lines)[3])]
    assert not list(planes(SPEC, jobs, "spatial", BASE))  # not every value with every other


def test_every_task_is_shown_where_a_row_is_worst_at_it():
    def run(seed, swap, text):
        tasks = {"swap": {"accuracy": swap}, "quad text": {"accuracy": text}, "one animal": {"accuracy": None}}
        easy = {"swap": {"accuracy": 1.0}, "replace animal": {"accuracy": 0.9}}
        return Run(
            seed, {"unseen_pairs": tasks, "seen_pairs": easy, "validation": {"swap": {"accuracy": 0.0}}}, {}, None
        )

    done = {
        SplitRow("binding", "a"): [run(0, 0.8, 0.7), run(1, 0.9, 0.8)],
        SplitRow("binding", "b"): [],
        SplitRow("spatial", "c"): [],
    }
    assert every_task(done, "binding") == [
        ["row", "swap", "replace animal", "quad text", "lowest of all"],
        ["a", "85.0", "90.0", "75.0", "unseen pairs: quad text 75.0"],
        ["b", *[WAITING] * 4],
    ]
    level = {SplitRow("binding", "a"): [run(0, 0.8, 0.71)]}
    # 71 % of quads, where chance is 25 %, are more of the way to 100 % than 80 % of swaps.
    assert every_task(level, "binding")[1][-1] == "unseen pairs: swap 80.0"
