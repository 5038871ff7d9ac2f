"""The ablation study: its rows, and a small run as a user starts it."""

import csv
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import build_scorer
from menagerie.models.registry import specs
from menagerie.models.towers.config import TextSpace
from menagerie.studies.ablation.cells import in_turn, placed, row_cells, rows_of
from menagerie.studies.ablation.figures import accuracy_figure
from menagerie.studies.ablation.papers import ABLATIONS, Claim
from menagerie.studies.ablation.rows import (
    SplitRow,
    ablated,
    base_row,
    changed,
    changes,
    chosen_rows,
    matters,
    named_rows,
)
from menagerie.studies.ablation.tables import VERDICTS, Run, accuracy_table, claim_row, columns_of, judged
from menagerie.studies.ablations import PRESETS, alike, check, grid_of
from menagerie.studies.analysis.paired_bootstrap import Difference
from menagerie.studies.analysis.tables import DASH, WAITING
from menagerie.studies.frame.cells import parser_hash
from menagerie.studies.grids.grid import cells
from menagerie.studies.runs.cell import Job
from tests.command import ROOT, run_here
from tests.studies.browser import CHROMIUM, assert_readable, plain

COMMAND = [sys.executable, str(ROOT / "studies" / "ablations.py"), "--preset", "smoke"]
SPEC = ablated("oc-clip")
BASE = base_row(SPEC)
NAN = float("nan")
SEEN = (("left_right_seen_order", "swap"), ("above_under_seen_order", "swap"))
ALL = {BASE: ""} | named_rows(ABLATIONS[SPEC.name])


@pytest.mark.parametrize("row", [row for row in ALL if row != BASE])
def test_every_row_is_another_cell_that_can_be_built(row):
    cell = cells(grid_of(PRESETS["laptop"], "spatial"), "")[0]
    other = changed(SPEC, cell, ALL[row])
    assert other.id != cell.id
    assert {**asdict(SPEC.config()), **other.options}.keys() == asdict(SPEC.config()).keys()
    build_scorer("oc-clip", other.towers, TextSpace(("a",)), other.options)


def test_the_grid_of_coefficients_is_the_papers():
    lines = ABLATIONS[SPEC.name].more["coefficients"].values()
    coefficients = {(changes(SPEC, line)["alpha"], changes(SPEC, line)["beta"]) for line in lines}
    assert len(coefficients) == 15  # 4 x 4 but for OC-CLIP's own
    assert (1.5, 0.5) not in coefficients


def test_rows_without_a_part_in_binding_are_not_trained_there():
    idle = {row for row, line in ALL.items() if not matters(SPEC, line, relational=False)}
    fields = {row: {part.partition("=")[0] for part in line.split()} for row, line in ALL.items()}
    assert idle == {row for row, names in fields.items() if names and names <= ABLATIONS[SPEC.name].relational}
    assert {"no local loss", "joint relation"} <= idle
    assert all(matters(SPEC, line, relational=True) for line in ALL.values())


def test_a_row_of_ones_own():
    rows = chosen_rows(SPEC, ("dim=16 learning_rate=0.001 relation=joint",))
    assert next(iter(rows)) == BASE
    assert changes(SPEC, list(rows.values())[1]) == {"dim": 16, "learning_rate": 0.001, "relation": "joint"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("no lokal loss", "did you mean 'no local loss'"),
        ("dimm=16", "did you mean 'dim'"),
        ("dim=wide", "dim must be of type int"),
        ("competitive=0", "competitive must be of type bool"),
    ],
)
def test_a_wrong_row_is_named(row, message):
    with pytest.raises(UserError, match=message):
        chosen_rows(SPEC, (row,))


def test_a_row_may_give_a_field_its_default_back():
    """On the grid's small towers the module is narrower than the paper's."""
    cell = cells(grid_of(PRESETS["laptop"], "spatial"), "")[0]
    assert cell.options == {"dim": 64, "relation_dim": 32, "layers": 0}
    assert changed(SPEC, cell, f"dim={SPEC.config().dim}").options == {"relation_dim": 32, "layers": 0}


def test_a_row_that_cannot_be_built_is_named_before_anything_is_made():
    config = replace(PRESETS["smoke"], rows=("heads=3",))
    with pytest.raises(UserError, match="model oc-clip in row 'heads=3' can't be built as configured: "):
        check(config)


def test_a_model_without_ablations_is_refused():
    with pytest.raises(UserError, match=r"'clip' has no ablations; models that have: .*oc-clip"):
        ablated("clip")


def cells_of(group, split, preset="oracle"):
    """The cells of one seed of all rows of a group that matter on a split, by row."""
    config = replace(PRESETS[preset], seeds=1)
    grid, rows = grid_of(config, split), rows_of("oc-clip", (group,))
    return {place.row: row_cells(grid, SPEC, line, "")[0] for place, grid, line in placed({split: grid}, SPEC, rows)}


@pytest.mark.parametrize("split", ["binding", "spatial"])
@pytest.mark.parametrize("group", ["oracle", "negatives", "partial"])
def test_every_row_of_a_group_is_another_cell(group, split):
    rows = cells_of(group, split)
    assert len({cell.id for cell in rows.values()}) == len(rows)
    assert {cell.data.kind for cell in rows.values()} == {split}
    assert {(cell.towers.resolution, cell.data.recipe.world) for cell in rows.values()} == {(32, "eight")}


def test_the_rows_of_the_oracle():
    rows = cells_of("oracle", "spatial")
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


def test_the_rows_of_negatives():
    binding, spatial = (cells_of("negatives", split) for split in ("binding", "spatial"))
    own = {name for name, spec in specs().items() if "captions" in spec.negatives}
    for rows in (binding, spatial):
        plain = {cell.model for cell in rows.values() if not cell.recipe.text_negatives}
        swapped = {cell.model for cell in rows.values() if cell.recipe.text_negatives == ("swap",)}
        assert plain == set(specs())
        assert swapped == set(specs()) - own
    assert not spatial["CLIP, no false-negative mask"].recipe.mask_false_negatives
    assert spatial["OC-CLIP, no single-object phase"].recipe.single_object_phase == 0
    assert spatial["CLIP, single objects in the centre"].data.recipe.singles_slots == ("center",)
    assert not [row for row in binding if "centre" in row]


def test_the_rows_of_coefficients_and_sizes():
    assert cells_of("1 default token", "spatial")["1 default token"].options["default_tokens"] == 1
    assert set(cells_of("coefficients", "binding")) == {BASE}
    assert sum("alpha" in row for row in cells_of("coefficients", "spatial")) == 15


def test_the_rows_of_partial_captions():
    binding, spatial = (cells_of("partial", split, "partial") for split in ("binding", "spatial"))
    assert len(binding) == 9
    assert set(binding) - set(spatial) == {row for row in binding if row.startswith("things")}
    both = binding["things and attributes left out, focused competition"]
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
    """The laptop's recipes are those of CLIP, NegCLIP, SPARO and OC-CLIP."""
    config = replace(PRESETS["laptop"], rows=rows)
    grid, why = alike(config, "binding")
    assert why.endswith(f"nothing was tuned for {lacking}" if lacking else "")
    assert grid.tuned == grid_of(config, "binding").tuned == ("" if lacking else "laptop")
    check(config)  # and trains what no search was made for
    lines = rows_of("oc-clip", rows).lines.values()
    rates = {row_cells(grid, SPEC, line, "")[0].recipe.learning_rate for line in lines}
    assert rates == {grid.recipe.learning_rate} if lacking else len(rates) == 2


def test_orders_of_train_are_tested_where_there_are_any():
    for preset in ("oracle", "negatives"):
        assert columns_of(cells_of("oracle", "spatial", preset)[BASE].data)[-2:] == SEEN
        assert not set(columns_of(cells_of("oracle", "binding", preset)[BASE].data)) & set(SEEN)
    assert not set(columns_of(cells(grid_of(PRESETS["laptop"], "spatial"), "")[0].data)) & set(SEEN)


def test_a_row_whose_parser_isnt_installed_is_left_out_with_the_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    rows_of.cache_clear()
    parser_hash.cache_clear()
    try:
        rows = rows_of("oc-clip", ("graphs of spacy-rules", "graphs of rules"))
    finally:
        rows_of.cache_clear()
        parser_hash.cache_clear()
    assert set(rows.lines) == {BASE, "graphs of rules"}
    assert "pip install 'binding-menagerie[spacy]'" in rows.left_out["graphs of spacy-rules"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("model=clop", "did you mean 'clip'"),
        ("model=clip dim=16", "field of a row 'dim'"),
        ("model=clip graphs=rules", "clip reads no scene graphs"),
        ("dropped_nodes=2", "--dropped-nodes must be at most 1"),
        ("graphs=rulse", "did you mean 'rules'"),
    ],
)
def test_a_wrong_model_or_graph_of_a_row_is_named(row, message):
    with pytest.raises(UserError, match=message):
        row_cells(grid_of(PRESETS["oracle"], "spatial"), SPEC, chosen_rows(SPEC, (row,))[row], "")


def test_rows_that_score_others_weights_come_after_them():
    rows = cells_of("oracle", "binding")
    train, test, both = (rows[f"20% nodes dropped in {where}"] for where in ("training", "tests", "both"))
    first, then = in_turn([Job(cell, Path(), Path()) for cell in (both, test, train)])
    assert [job.cell for job in first] == [test, train]  # OC-CLIP as it is isn't among them
    assert [job.cell for job in then] == [both]


def run_of(seed, right):
    """A finished run with an accuracy in one column."""
    return Run(seed, {"seen": {"swap": {"accuracy": right, "n": 9}}}, {}, None)


def test_a_mean_is_marked_where_there_are_several_seeds():
    done = {SplitRow("own", BASE): [run_of(0, 0.7), run_of(1, 0.8)], SplitRow("own", "lone"): [run_of(0, 0.9)]}
    (axis,) = accuracy_figure(done, "own", (("seen", "swap"),), BASE).axes
    marks = {line.get_marker(): line.get_xydata().tolist() for line in axis.lines if line.get_marker() == "|"}
    assert marks == {"|": [[75, 0]]}


def test_what_isnt_finished_is_not_what_cant_be_compared():
    done = {SplitRow("own", BASE): [run_of(0, 0.7)], SplitRow("own", "lone"): []}
    table = accuracy_table(done, "own", (("seen", "swap"),), BASE, None)
    assert table.to_numpy().tolist() == [[BASE, "70.0", DASH], ["lone", WAITING, WAITING]]
    claim = Claim("lone", "own", (("seen", "swap"),), 1, "it says so")
    assert claim_row(done, claim, BASE)[-3:] == ("not tested", "higher: +", WAITING)
    assert claim_row(done, replace(claim, row="other"), BASE)[-3:] == ("not tested", "higher: +", DASH)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(0.01, 0.02, "confirmed"), (-0.02, -0.01, "contradicted"), (-0.01, 0.02, "undecided"), (NAN, NAN, "undecided")],
)
def test_every_outcome_is_explained(low, high, outcome):
    assert judged(Difference((low + high) / 2, low, high, 9), 1) == outcome
    assert {outcome, judged(None, 1)} < VERDICTS.keys()


BEYOND = ("model=clip-phrases", "20% nodes dropped in tests", "graphs of rules", "CLIP, single objects in the centre")


@pytest.fixture(scope="module")
def beyond(tmp_path_factory):
    """A small run with other models, graphs and splits."""
    folder = tmp_path_factory.mktemp("beyond")
    result = run_here([*COMMAND, "--steps", "4", "--seen-order", "--rows", *BEYOND], folder)
    assert result.returncode == 0, result.stderr
    return folder / "runs/ablations-smoke"


def test_other_models_graphs_and_splits_are_rows(beyond):
    rows = list(csv.DictReader((beyond / "ablations.csv").open()))
    by_split = {split: {row["row"] for row in rows if row["split"] == split} for split in ("spatial", "binding")}
    assert by_split == {"spatial": {BASE, *BEYOND}, "binding": {BASE, *BEYOND[:-1]}}
    assert {row["subset"] for row in rows} > {"left_right_seen_order", "above_under_seen_order"}
    assert "9 of 9 runs are finished" in (beyond / "report.html").read_text()
    accuracies = {(row["split"], row["row"], row["subset"], row["task"]): row["accuracy"] for row in rows}
    whole = {key[2:]: value for key, value in accuracies.items() if key[:2] == ("spatial", BASE)}
    assert whole == {key[2:]: its for key, its in accuracies.items() if key[:2] == ("spatial", "graphs of rules")}
    assert whole != {key[2:]: its for key, its in accuracies.items() if key[:2] == ("spatial", BEYOND[1])}


ROWS = ("no local loss", "default_tokens=2", "seen_order=True")  # of the last the table has the tests of the others


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ablations")
    result = run_here([*COMMAND, "--steps", "6", "--rows", *ROWS], folder)
    assert result.returncode == 0, result.stderr
    (folder / "output.txt").write_text(result.stdout)
    return folder


def test_every_run_is_in_the_table(folder):
    out = folder / "runs/ablations-smoke"
    rows = list(csv.DictReader((out / "ablations.csv").open()))
    assert {(row["split"], row["row"]) for row in rows} == {
        *(("spatial", row) for row in (BASE, *ROWS)),
        *(("binding", row) for row in (BASE, "default_tokens=2")),
    }
    assert {row["seed"] for row in rows} == {"0"}
    report = plain(out / "report.html")
    assert "6 of 6 runs are finished" in report
    assert (
        "trained on the hardest cell of the spatial or the binding grid, with 50% of the animal pairs, none" in report
    )
    assert "not tested" in report  # regular attention wasn't requested
    assert "things don&#39;t compete for a patch; competitive=False" in report  # of a claim whose row wasn't requested
    assert "<td>unseen order</td><td>animal pairs of training in the order that it doesn&#39;t show</td>" in report
    assert "Some of these runs have the same losses" in report  # further tests change no step
    assert "<td>cell</td><td>one training run with its evaluation</td>" in report
    assert "how much the animals of a caption count beside its relations" in report
    assert "(table 7 of OC-CLIP: " in report
    assert "<td>spatial: left right unseen order, above under unseen order</td>" in report
    assert r"\bottomrule" in (out / "ablations.tex").read_text()


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_report_can_be_read_on_a_telephone(folder, tmp_path):
    assert_readable(folder / "runs/ablations-smoke/report.html", tmp_path)


def test_lines_of_progress_name_the_row(folder):
    assert "finished spatial, no local loss: oc-clip" in (folder / "output.txt").read_text()


def test_a_second_run_trains_nothing(folder):
    result = run_here([*COMMAND, "--steps", "6", "--rows", *ROWS], folder)
    assert "6 runs, 0 of them to train" in result.stdout
