"""The command `menagerie familiarity`, and the tables of reports on what decides without binding."""

import json
import sys

import pytest

from menagerie.envs.core.files import write_csv
from menagerie.envs.core.records import read_record
from menagerie.models.cell_results import RESULT
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.shortcuts import shortcut_parts
from menagerie.studies.runs.evaluation import FILE
from menagerie.studies.runs.results import write_result
from tests.command import read_rows, run_here
from tests.helpers.benchmark_files import MAKERS
from tests.studies.stored import stored_grid, stored_run

FAMILIARITY = [sys.executable, "-m", "menagerie", "familiarity"]
# True and false captions, and the strata after training on `TRAINED`.
TRAINED = ["a red camel and a white elephant", "A RED CAMEL to the left of a lion.", "a white camel"]
RECORDS = [
    ("a red camel and a grass lion", "a grass camel and a red lion", "only true"),
    ("a grass camel and a red lion", "a red camel and a grass lion", "only false"),
    ("a red camel and a white lion", "a white camel and a red lion", "both"),
    ("a grass bear and a red lion", "a red bear and a grass lion", "neither"),
    ("a camel to the left of a lion", "a lion to the left of a camel", "only true"),
    ("a lion to the right of a camel", "a lion to the left of a camel", "only true"),
    ("a camel", "a lion", "unread"),
    ("nothing that it reads", "a red camel", "unread"),
]
RIGHT = (1, 0, 1, 0, 1, 1, 1, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """SugarCrepe without images, captions of a training, and the scores of a model as `transfer` keeps them."""
    folder = tmp_path_factory.mktemp("familiarity")
    MAKERS["sugarcrepe"](folder / "data")
    entries = {
        str(k): {"filename": "none.jpg", "caption": true, "negative_caption": false}
        for k, (true, false, _) in enumerate(RECORDS)
    }
    (folder / "data/sugarcrepe/swap_att.json").write_text(json.dumps(entries))
    (folder / "trained.txt").write_text("\n".join(TRAINED))
    piece = folder / "runs/transfer/pieces/0"
    piece.mkdir(parents=True)
    rows = [(f"swap_att {k}", "swap_att", points) for k, points in enumerate(RIGHT)]
    write_csv(piece / "scores.csv", ("record", "task", "official"), rows)
    write_result(piece, {"id": "0", "model": "clip", "benchmark": "sugarcrepe", "tasks": {}})
    return folder


def familiarity(folder, *options, captions="trained.txt"):
    command = [*FAMILIARITY, captions, "--benchmark", "sugarcrepe", "--parser", "rules", *options]
    return run_here(command, folder, page=False)


def test_each_record_has_its_counts_and_its_stratum(folder):
    done = familiarity(folder, "--out", "found.csv")
    assert done.returncode == 0, done.stderr
    rows = [row for row in read_rows(folder / "found.csv") if row["task"] == "swap_att"]
    assert [row["stratum"] for row in rows] == [stratum for *_, stratum in RECORDS]
    assert [row["unseen"] for row in rows] == ["2", "2", "1", "2", "1", "1", "", ""]
    first, both = rows[0], rows[2]
    assert (first["true_bindings"], first["true_seen"], first["false_seen"]) == ("grass lion; red camel", "2", "0")
    assert (both["true_seen"], both["false_seen"]) == ("2", "1")
    assert rows[5]["true_bindings"] == "camel to the left of lion"


def test_accuracies_by_stratum_are_those_of_the_kept_scores(folder):
    """Of 8 records 6 are read; of neither and both one is right and one wrong."""
    done = familiarity(folder, "--scores", "runs/transfer")
    lines = [line.replace("│", " ").split() for line in done.stdout.splitlines() if "swap_att" in line]
    assert ["swap_att", "8", "2", "1", "1", "3", "1", "2"] in lines
    assert ["swap_att", "62.5", "50.0", "0.0", "100.0", "100.0", "0.0", "50.0"] in lines
    assert ["swap_att", "0", "3", "3"] in lines
    assert ["swap_att", "–", "100.0", "33.3"] in lines
    wrong = familiarity(folder, "--scores", "data")
    assert (wrong.returncode, "has no scores on sugarcrepe" in wrong.stderr) == (2, True)


def test_what_has_no_false_captions_is_refused(folder):
    MAKERS["retrieval-coco"](folder / "data")
    done = familiarity(folder, "--benchmark", "retrieval-coco")
    assert (done.returncode, "has no false captions" in done.stderr) == (2, True)
    assert "cocoo" in familiarity(folder, captions="cocoo").stderr


def test_pages_have_swaps_by_what_training_showed(tmp_path):
    """A third of the swaps each: only the false one was seen, both, no difference. Earlier versions have no columns."""
    arm = stored_run(tmp_path, "clip", 0, {"pairs": 0.2}, 0.7)
    cell = tmp_path / "cells" / arm.id
    rows, seen = read_rows(cell / FILE), [("0", "4"), ("2", "2"), ("", "")]
    for number, row in enumerate(rows):
        row["true_composition_seen"], row["false_composition_seen"] = seen[number % 3]
    write_csv(cell / FILE, rows[0], (row.values() for row in rows))
    write_result(cell, read_record(cell / RESULT), (FILE,))
    parts = {getattr(part, "name", ""): part for part in shortcut_parts(Records((arm,), tmp_path))}
    points = parts["seen-composition"].records.points.set_index("scene")
    swaps = {
        row["scene"]: seen[k % 3] for k, row in enumerate(rows) if row["task"] == "swap" and "pairs" in row["subset"]
    }
    wanted = {scene: {seen[0]: "only false", seen[1]: "both"}[its] for scene, its in swaps.items() if its != seen[2]}
    assert points["subset"].to_dict() == wanted
    assert [*parts] == ["", "seen-composition", "words-alone"]
    old = shortcut_parts(stored_grid(tmp_path / "old", seeds=1))
    assert [getattr(part, "name", "") for part in old] == ["", "words-alone"]
