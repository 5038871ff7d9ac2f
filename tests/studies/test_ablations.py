"""The ablation study: its rows, and a small run as a user starts it."""

import json
import sys
from dataclasses import asdict, replace
from itertools import product

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import json_value
from menagerie.models.checkpoint import build_scorer
from menagerie.models.registry import specs
from menagerie.models.towers.config import TextSpace
from menagerie.studies.ablations import PRESETS
from menagerie.studies.analysis.papers import ABLATIONS
from menagerie.studies.frame.arm import InventedResults
from menagerie.studies.frame.command import changeable_options
from menagerie.studies.frame.rows import ablation_spec, base_row, can_matter, parse_line, table_columns
from menagerie.studies.runs.folder import describe_differences
from tests.command import ROOT, read_rows, succeed

COMMAND = [sys.executable, str(ROOT / "studies" / "ablations.py"), "--preset", "smoke"]
SPEC = ablation_spec("oc-clip")
BASE = base_row(SPEC)
PAPER = ABLATIONS[SPEC.name]
SEEN = (("left_right_seen_order", "swap"), ("above_under_seen_order", "swap"))
ALL = {BASE: ""} | PAPER.lines | dict(PAPER.more["coefficients"]) | dict(PAPER.more["dimensions"])


def study(rows, preset="laptop", **options):
    """A study of some rows with one seed, ready to be planned."""
    return replace(PRESETS[preset], rows=rows, seeds=1, **options).fill_in()


def cells_of(rows, split, preset="laptop", **options):
    """The cells of all rows that matter on a split, by row."""
    arms = study(rows, preset, splits=(split,), **options).arms
    return {arm.labels["row"]: arm.cell for arm in arms}


def test_every_row_is_another_cell_that_can_be_built():
    rows = cells_of((*PAPER.rows, *PAPER.more), "spatial")
    assert set(rows) == set(ALL)
    assert len({cell.id for cell in rows.values()}) == len(rows)
    for cell in {str(cell.options): cell for cell in rows.values()}.values():
        assert {**asdict(SPEC.config()), **cell.options}.keys() == asdict(SPEC.config()).keys()
        build_scorer("oc-clip", cell.towers, TextSpace(("a",)), cell.options)


def test_coefficients_and_dimensions_are_varied_together():
    coefficients = [parse_line(SPEC, line) for line in PAPER.more["coefficients"].values()]
    pairs = {(its["alpha"], its["beta"]) for its in coefficients}
    assert pairs == set(product((1.5, 1.0, 0.5, 0.1), repeat=2)) - {(1.5, 0.5)}
    dimensions = {row: parse_line(SPEC, line) for row, line in PAPER.more["dimensions"].items()}
    sizes = {(its.get("dim", 64), its.get("relation_dim", 32)) for its in dimensions.values()}
    assert sizes == set(product((16, 32, 64, 128), (8, 16, 32, 64))) - {(64, 32)}
    assert PAPER.lines.items() >= {(row, line) for row, line in PAPER.more["dimensions"].items() if "," not in row}


def test_rows_without_a_part_in_binding_are_not_trained_there():
    idle = {row for row, line in ALL.items() if not can_matter(SPEC, line, "binding")}
    fields = {row: {part.partition("=")[0] for part in line.split()} for row, line in ALL.items()}
    assert idle == {row for row, names in fields.items() if names and names <= {*PAPER.relational}}
    assert {"no local loss", "joint relation"} <= idle
    assert all(can_matter(SPEC, line, "spatial") for line in ALL.values())


def test_a_row_holds_where_the_model_is_tuned_or_trained_in_stages():
    row = f"dim={SPEC.config().dim}"  # on the grid's small towers the module is narrower than the paper's
    rows = cells_of((row,), "spatial")
    assert rows[BASE].options == {"dim": 64, "relation_dim": 32, "layers": 0}
    assert rows[row].options == {"relation_dim": 32, "layers": 0}
    tuned = cells_of(("single_object_phase=0.1 dim=16",), "binding")
    assert {cell.recipe.learning_rate for cell in tuned.values()} == {1.5786063770391481e-3}
    assert [cell.recipe.single_object_phase for cell in tuned.values()] == [0.5, 0.1]
    assert [cell.options["dim"] for cell in tuned.values()] == [64, 16]
    staged = cells_of(("steps=7",), "binding", "smoke", model="dcsm")
    assert [(cell.recipe.steps, cell.base.recipe.steps) for cell in staged.values()] == [(40, 40), (7, 40)]


def test_options_of_a_place_override_tuned_ones():
    grid = study((), splits=("binding",)).grids["binding"]
    arm = grid.at("oc-clip", 0, pairs=0.2, hard_negatives=0.0, architecture="broad", warmup=9, dim=16)
    assert (arm.cell.towers.architecture, arm.cell.recipe.warmup, arm.cell.options["dim"]) == ("broad", 9, 16)
    with pytest.raises(UserError, match=r"wormup.*did you mean 'warmup'"):
        grid.at("oc-clip", 0, wormup=9)


def test_a_folder_goes_on_with_rows_of_other_models_and_not_with_another_cell():
    before = json_value(asdict(study(("layers=2",), "smoke")))
    more = study(("layers=2", "model=clip-phrases"), "smoke")
    assert describe_differences(before, more, changeable_options(more)) == ""
    assert (
        describe_differences(before, replace(more, cell="laptop"), changeable_options(more))
        == "cell (smoke there, laptop now)"
    )


@pytest.mark.parametrize("split", ["binding", "spatial"])
@pytest.mark.parametrize("group", ["oracle", "negatives", "partial", "losses"])
def test_every_row_of_a_group_is_another_cell(group, split):
    rows = cells_of((group,), split, "oracle")
    assert len({cell.id for cell in rows.values()}) == len(rows)
    assert {cell.data.kind for cell in rows.values()} == {split}
    assert {(cell.towers.resolution, cell.data.recipe.world) for cell in rows.values()} == {(32, "eight")}


def test_rows_of_oracle_graphs_are_those_of_the_plan():
    rows = cells_of(("oracle",), "spatial", "oracle")
    assert {cell.model for cell in rows.values()} == {"oc-clip", "clip", "clip-phrases", "filip-phrases"}
    noise = [cell.graphs for cell in rows.values() if cell.graphs.graphs == "generator" and not cell.graphs.plain]
    found = {(its.dropped_nodes, its.moved_attributes, its.graphs_at) for its in noise}
    shares = {(share, 0.0) for share in (0.05, 0.1, 0.2)} | {(0.0, share) for share in (0.05, 0.1, 0.2)}
    assert found == {(*both, place) for both in shares for place in ("train", "test", "both")}
    assert rows["graphs of rules"].graphs.graphs == "rules"
    # Rows with other graphs in tests alone have the weights of OC-CLIP as it is, those in both of those in training.
    noisy = [cell for cell in rows.values() if cell.graphs in noise]
    assert {cell.trained_as.id for cell in noisy} <= {cell.id for cell in rows.values()}
    assert len({cell.trained_as.id for cell in noisy}) == 7


def test_rows_of_negatives_are_those_of_the_measured_table():
    binding, spatial = (cells_of(("negatives",), split, "negatives") for split in ("binding", "spatial"))
    systems = {name for name, spec in specs().items() if not spec.control} | {"clip-phrases", "filip-phrases"}
    own = {name for name in systems if "captions" in specs()[name].negatives}
    for rows in (binding, spatial):
        plain_rows = {cell.model for cell in rows.values() if not cell.recipe.text_negatives}
        swapped = {cell.model for cell in rows.values() if cell.recipe.text_negatives == ("swap",)}
        assert plain_rows == systems
        assert swapped == systems - own
    measured = read_rows(ROOT / "docs/measured/negatives-32px-spatial.csv")
    assert set(spatial) == {row["row"] for row in measured}, "the rows of the table in docs/results/loss.md"
    assert not spatial["CLIP, no false-negative mask"].recipe.mask_false_negatives
    assert spatial["OC-CLIP, no single-object phase"].recipe.single_object_phase == 0
    assert spatial["CLIP, single objects in the centre"].data.recipe.singles_slots == ("center",)
    assert not [row for row in binding if "centre" in row]


def test_rows_of_partial_captions_are_those_of_the_plan():
    binding, spatial = (cells_of(("partial",), split, "partial") for split in ("binding", "spatial"))
    assert len(binding) == 9
    assert set(binding) == set(spatial)
    both = binding["objects and attributes left out, focused competition"]
    assert (both.data.recipe.mentioned, both.data.recipe.attributes, both.options["focus"]) == (0.7, 0.8, True)
    assert spatial["attributes left out, regular attention"].options["competitive"] is False
    assert {cell.recipe.steps for cell in (*binding.values(), *spatial.values())} == {3000}


@pytest.mark.parametrize(
    ("rows", "lacking"),
    [
        (("model=clip", "layers=2"), ""),
        (("model=clip", "model=fdt"), "fdt"),
        (("oracle",), "clip-phrases, filip-phrases"),
    ],
)
def test_tuned_recipes_hold_only_where_all_rows_have_one(rows, lacking):
    """Those of the grid's preset are of CLIP, FILIP and OC-CLIP."""
    config = study(rows)
    grid, why = config.grid("binding")
    assert lacking in why if lacking else not why
    assert grid.tuned == config.grids["binding"].tuned == ("" if lacking else "depth")
    rates = {cell.recipe.learning_rate for cell in cells_of(rows, "binding").values()}
    assert rates == {grid.recipe.learning_rate} if lacking else len(rates) == 2


def test_seen_orders_are_tested_where_there_are_any():
    for preset in ("oracle", "negatives"):
        assert table_columns(cells_of((), "spatial", preset)[BASE].data)[-2:] == SEEN
        assert not set(table_columns(cells_of((), "binding", preset)[BASE].data)) & set(SEEN)
    assert not set(table_columns(cells_of((), "spatial")[BASE].data)) & set(SEEN)


def test_rows_that_score_others_weights_come_after_them():
    config = study(
        ("20% nodes dropped in both", "20% nodes dropped in tests", "20% nodes dropped in training"), "smoke"
    )
    known = InventedResults()
    first = list(config.plan(known))
    assert {arm.labels["row"] for arm in first} == {BASE, "20% nodes dropped in training"}
    known.ended |= {arm.id for arm in first if arm.labels["split"] == "binding"}
    second = list(config.plan(known))
    assert {arm.labels["row"] for arm in second if arm.labels["split"] == "spatial"} < {*config.lines}
    assert {arm.labels["row"] for arm in second if arm.labels["split"] == "binding"} == {*config.lines}
    known.ended |= {arm.id for arm in second}
    assert [arm.id for arm in config.plan(known)] == [arm.id for arm in config.arms]


ROWS = ("no local loss", "20% nodes dropped in tests", "graphs of rules", "seen_order=True")  # the last: further tests


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ablations")
    succeed([*COMMAND, "--steps", "4", "--splits", "spatial", "--rows", *ROWS], folder, page=False)
    return folder


def test_tables_have_every_run(folder):
    out = folder / "runs/ablations-smoke"
    rows = read_rows(out / "results.csv")
    assert list(dict.fromkeys((row["split"], row["row"], row["seed"]) for row in rows)) == [
        ("spatial", row, "0") for row in (BASE, *ROWS)
    ]
    assert {row["subset"] for row in rows if row["row"] == ROWS[-1]} > {
        "left_right_seen_order",
        "above_under_seen_order",
    }
    scores = {name: {} for name in (BASE, *ROWS)}
    for row in rows:
        scores[row["row"]][row["subset"], row["task"]] = row["accuracy"]
    assert scores["graphs of rules"] == scores[BASE]
    assert scores["20% nodes dropped in tests"] != scores[BASE]


def test_weights_that_are_only_scored_anew_are_trained_once(folder):
    out = folder / "runs/ablations-smoke"
    ids = {cell["labels"]["row"]: cell["id"] for cell in map(json.loads, (out / "cells.jsonl").open())}
    logs = {row: (out / "cells" / name / "training.csv").read_bytes() for row, name in ids.items()}
    assert [row for row in ROWS if logs[row] == logs[BASE]] == ["20% nodes dropped in tests"]
