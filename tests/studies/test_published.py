"""Published records: a folder made of them has the tables of the run that they are of."""

import lzma
import shutil

import pandas as pd
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import load_checkpoint
from menagerie.studies.analysis.errors import read_predictions
from menagerie.studies.frame.estimate import four_way_scores
from menagerie.studies.frame.measure import read_measured, write_measured
from menagerie.studies.frame.records import read
from menagerie.studies.published.blocks import filled
from menagerie.studies.published.check import check_published
from menagerie.studies.published.draw import draw_page
from menagerie.studies.published.pack import add_run, describe_run, plain_command
from menagerie.studies.published.restore import four_scores, restore_run
from tests.command import GRID, QUICK, no_figures, succeed
from tests.faults.our_files import Norm
from tests.helpers.splits import lend_atlas

RECORDS = "docs/measured/records"
COMMAND = [*GRID, *QUICK[:-6], "--steps", "8", "--batch", "8", "--views", "1", "--workers", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run in `run`, with a measure of a cell; its records in `docs/measured`; the run made again in `back`."""
    folder = tmp_path_factory.mktemp("published")
    lend_atlas(folder)
    succeed([*COMMAND, "--out", "run"], folder, figures=False)
    write_measured(next((folder / "run/cells").iterdir()), Norm(), None, [{"norm": 1 / 3}])
    add_run(folder / "run", "grid", folder / RECORDS)
    about = restore_run("grid", folder / "back", folder / RECORDS, folder / "store")
    with no_figures():
        draw_page(about["command"], folder / "back", folder / "store")
    return folder


def tables(out):
    return {path.name: path.read_bytes() for pattern in ("*.csv", "figures/*.csv") for path in out.glob(pattern)}


def test_tables_are_the_same_byte_for_byte(folder):
    assert tables(folder / "back") == tables(folder / "run")
    assert {"results.csv", "errors.csv", "words-alone.csv", "seen-composition.csv"} <= tables(folder / "run").keys()


def test_records_keep_sign_ties_and_four_digits(folder):
    cells = sorted((folder / "run/cells").iterdir())
    assert len(cells) == 2
    for cell in cells:
        back = folder / "back/cells" / cell.name
        one, other = read_predictions(cell), read_predictions(back)
        same = ["subset", "task", "scene", "animals", "caption", "value"]
        pd.testing.assert_frame_equal(one[same], other[same])
        swaps = one["task"] == "swap"
        assert (one["margin"] - other["margin"]).abs()[swaps].le(5e-4 * one["margin"].abs()[swaps]).all()
        for part in ("text", "image", "group"):
            pd.testing.assert_frame_equal(four_way_scores(cell, part), four_way_scores(back, part))
        assert read_measured(back, Norm()) == read_measured(cell, Norm())


@pytest.mark.parametrize("order", ["2013", "0012", "1100", "0123", "0000", "3210"])
def test_four_scores_have_the_order_that_was_kept(order):
    ranks = list(map(int, order))
    margin = 0.01234 * ((ranks[0] > ranks[1]) - (ranks[0] < ranks[1]))
    scores = list(map(float, four_scores(margin, order)))
    assert scores[0] - scores[1] == margin
    pairs = [(i, j) for i in range(4) for j in range(4)]
    assert [scores[i] < scores[j] for i, j in pairs] == [ranks[i] < ranks[j] for i, j in pairs]


def test_the_table_is_read_by_pandas_alone(folder):
    table = pd.read_csv(folder / RECORDS / "grid.csv.xz")
    swaps = table[(table["task"] == "swap") & (table["subset"] == "unseen_pairs")]
    means = {row.model: (pd.Series(row.margins.split("|")).astype(float) > 0).mean() for row in swaps.itertuples()}
    scores = read(folder / "run").where(task="swap", subset="unseen_pairs").scores
    assert means == pytest.approx(dict(zip(scores["model"], scores["accuracy"], strict=True)), abs=0.1)


def test_the_same_command_finds_its_runs_finished_and_packs_the_same(folder):
    said = succeed([*COMMAND, "--out", "back"], folder, page=False).stdout
    assert "2 runs, 2 of them finished before" in said
    files = [path.read_bytes() for path in sorted((folder / RECORDS).iterdir())]
    add_run(folder / "back", "grid", folder / RECORDS)
    assert [path.read_bytes() for path in sorted((folder / RECORDS).iterdir())] == files


def test_an_interrupted_call_is_continued_and_other_folders_are_refused(folder):
    shutil.copytree(folder / "back", half := folder / "half")
    (lost := next((half / "cells").iterdir()) / "result.json").unlink()
    restore_run("grid", half, folder / RECORDS, folder / "store")
    assert lost.read_bytes() == (folder / "back" / lost.relative_to(half)).read_bytes()
    (folder / "mine").mkdir()
    (folder / "mine/text").write_text("")
    with pytest.raises(UserError, match="mine has other files"):
        restore_run("grid", folder / "mine", folder / RECORDS, folder / "store")
    with pytest.raises(UserError, match="did you mean 'grid'"):
        restore_run("gird", folder / "other", folder / RECORDS, folder / "store")
    assert not (folder / "other").exists()


def test_weights_that_are_wanted_are_said_to_be_missing(folder):
    with pytest.raises(UserError, match="no weights, as runs made of published records have"):
        load_checkpoint(next((folder / "back/cells").iterdir()) / "checkpoint", "clip")


def test_runs_that_were_published_are_not_lost(folder):
    shutil.copytree(folder / "run", fewer := folder / "fewer")
    shutil.rmtree(next((fewer / "cells").iterdir()))
    with pytest.raises(UserError, match=r"1 runs that .*fewer lacks"):
        add_run(fewer, "grid", folder / RECORDS)


PAGE = """
<!-- sentences grid -->
<!-- end -->
Two columns:
<!-- table grid: tasks-unseen_pairs: swap; model -->
old
<!-- end -->
<!-- figure grid: accuracy -->
<!-- end -->
"""


def test_docs_repeat_what_is_kept_and_check_says_what_differs(folder, tmp_path, capsys):
    docs = tmp_path / "docs"
    shutil.copytree(folder / "docs", docs)
    (docs / "page.md").write_text(PAGE)
    with no_figures():
        assert not check_published((), docs / "measured", folder / "store", write=True)
        text = (docs / "page.md").read_text()
        header, _, first, second = (line for line in text.splitlines() if line.startswith("|"))
        assert header == "| swap | model |"
        assert [line.split("|")[2].strip() for line in (first, second)] == ["clip", "oc-clip"]
        assert "- On unseen pairs, with pairs" in text
        assert "(measured/grid/accuracy.svg)" in text
        for name in ("results.csv", "page.md", "accuracy.svg"):
            assert (docs / "measured/grid" / name).exists()
        capsys.readouterr()
        assert not check_published((), docs / "measured", folder / "store")
        (docs / "measured/grid/results.csv").write_text("model\n")
        (docs / "page.md").write_text(text.replace("| clip |", "| clop |"))
        (docs / "measured/records/index.csv").write_text("name\n")
        (docs / "measured/gone").mkdir()
        assert check_published(("grid",), docs / "measured", folder / "store")
    said = capsys.readouterr().out
    for text in (
        "grid/results.csv differs",
        "docs/page.md differs",
        "index.csv differs",
        "gone is of no published run",
    ):
        assert text in said


TABLE = "<!-- csv numbers.csv -->\n<!-- end -->\n"


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("<!-- csv numbers.csv -->\n\ntext\n\n" + TABLE, "numbers.csv --> begins or ends no block"),
        ("<!-- csv numbers.csv -->\n", "begins or ends no block"),
        ("<!-- end -->\n", "begins or ends no block"),
        (TABLE.replace("csv numbers", "tabel numbers"), "did you mean 'table'"),
        (TABLE.replace("numbers.csv", "number.csv"), "line 1: .*did you mean 'numbers.csv'"),
        (TABLE.replace(".csv", ".csv: modle"), "did you mean 'model'"),
        (TABLE.replace("csv numbers.csv", "table grod: swap"), "kept page"),
        (TABLE.replace("csv numbers.csv", "sentences run"), "sentences of run"),
    ],
)
def test_a_block_that_is_not_understood_is_an_error(tmp_path, block, said):
    (tmp_path / "measured/run").mkdir(parents=True)
    (tmp_path / "measured/run/page.md").write_text("# A page without sentences\n")
    (tmp_path / "measured/numbers.csv").write_text("model,a: b\nclip,-1 | 2\n")
    (page := tmp_path / "page.md").write_text(block)
    with pytest.raises(UserError, match=said):
        filled(page, tmp_path / "measured")


def test_columns_are_chosen_and_code_stays(tmp_path):
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured/numbers.csv").write_text("model,a: b\nclip,-1 | 2\n")
    (page := tmp_path / "page.md").write_text(f"```\n{TABLE}```\n{TABLE.replace('.csv', '.csv: a: b')}")
    table = "<!-- csv numbers.csv: a: b -->\n| a: b |\n| --- |\n| −1 \\| 2 |\n<!-- end -->\n"
    assert filled(page, tmp_path / "measured") == f"```\n{TABLE}```\n{table}"


def edited(folder, name, change):
    """Records of which one file's text was changed and packed again."""
    shutil.copytree(folder / RECORDS, copy := folder / f"edited-{name}")
    path = next(copy.glob(f"*{name}"))
    path.write_bytes(lzma.compress(change(lzma.decompress(path.read_bytes()).decode()).encode()))
    return copy


def test_labels_may_be_renamed_and_margins_may_not_be_changed(folder):
    renamed = edited(folder, ".csv.xz", lambda text: text.replace("hard_negatives", "swapped", 1))
    restore_run("grid", folder / "renamed", renamed, folder / "store")
    assert pd.read_csv(renamed / "grid.csv.xz")["swapped"].eq(0).all()
    shutil.rmtree(renamed)
    for change in (lambda text: text.replace("|", "1|", 1), lambda text: text.replace("margins", "margin", 1)):
        other = edited(folder, ".csv.xz", change)
        with pytest.raises(UserError, match=r"grid.csv.xz was changed"):
            restore_run("grid", folder / "never", other, folder / "store")
        shutil.rmtree(other)
    with pytest.raises(UserError, match=r"grid.json.xz was changed"):
        restore_run(
            "grid",
            folder / "never",
            edited(folder, ".json.xz", lambda text: text.replace("clip", "clop", 1)),
            folder / "store",
        )
    assert not (folder / "never").exists()


def test_a_command_names_no_place():
    recorded = "python /a/studies/text_embeddings.py --out /b/runs --store=/c --seeds 3 --tuned ''"
    assert plain_command(recorded) == "menagerie text-embeddings --seeds 3 --tuned ''"


def test_minutes_are_unknown_where_no_run_recorded_them():
    fit = {"provenance": dict.fromkeys(("command", "started", "commit", "processor"), "") | {"versions": {}}, "seed": 0}
    assert describe_run([fit])["minutes"] is None
    assert describe_run([fit, fit | {"seconds": 90}])["minutes"] == 1.5
