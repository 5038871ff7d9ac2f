"""Models scored on splits without training, as a user does it."""

import json
import shutil
import sys

import pytest

from menagerie.envs.core.files import file_names
from menagerie.envs.core.records import read_record, write_record
from menagerie.models.library.sources import HuggingFace
from menagerie.models.towers.config import TowerConfig
from menagerie.studies import read
from menagerie.studies.evaluate import Evaluate
from menagerie.studies.frame.arm import Arm, as_column, label_text
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.models import Model, parse_models, short_labels
from menagerie.studies.scoring.splits import split_piece
from tests.command import GRID, QUICK, ROOT, read_rows, run_here
from tests.forked import kill_when
from tests.studies.browser import CHROMIUM, TELL, TORN, after_all

EVALUATE = [sys.executable, str(ROOT / "studies" / "evaluate.py")]
PACK = [sys.executable, "-m", "menagerie", "pack"]
MINE = """
from dataclasses import dataclass
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.scorers.clip import CLIPConfig

@dataclass(frozen=True)
class MineConfig(CLIPConfig):
    pass

class Mine(CLIPScorer):
    config_class = MineConfig
"""
RECIPE = """
world = "tiny"
pairs = 0.75
views = 1
test_views = 1
test_scenes = 8
"""
SOURCE = HuggingFace("any", "any")
IN_SIGHT = """<script>window.onload = () => {
  const cells = [...document.querySelectorAll("table:not(.text) tbody td:nth-child(2)")];
  const lost = cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth);
  document.body.setAttribute("data-verdict", (cells.length ? lost.length : "none") + " out of sight");
};</script>"""
# Three trained models and an untrained one; a packed file and a recipe, which only the untrained one can read.
MODELS = ["runs/a", "mine.py:Mine", "--code", "mine.py:Mine", "--architecture", "nano"]
SPLITS = ["--splits", "packed.h5", "spatial.toml", "--resolution", "32", "--threads", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of three models, a packed split and a recipe, and the evaluation of all in `runs/whole`."""
    folder = tmp_path_factory.mktemp("evaluate")
    (folder / "mine.py").write_text(MINE)
    rules = ["texture=red & animal=elephant", "texture=white & animal=penguin"]  # with tests called "held_out 1", ...
    (folder / "spatial.toml").write_text(f'kind = "spatial"\nhold_out = {rules}\n{RECIPE}')
    models = ["--models", "clip", "oc-clip", "mine.py:Mine"]
    done = run_here(
        [*GRID, *QUICK, "--steps", "3", *models, "--test-scenes", "8", "--out", "runs/a"], folder, page=False
    )
    assert done.returncode == 0, done.stderr
    (split,) = folder.glob("store/*/binding-*.h5")
    shutil.copy(split, folder / "packed.h5")
    assert run_here([*PACK, "packed.h5"], folder).returncode == 0
    shutil.copy(split, split.with_name("same.h5"))
    done = run_here([*EVALUATE, *MODELS, *SPLITS, "--out", "runs/whole"], folder)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: 3 of 8 pieces left out, first runs/a: clip"), done.stderr
    (folder / "output.txt").write_text(done.stdout)
    return folder


def results_of(out):
    return list(out.glob("cells/*/result.json"))


def cell_of(folder, model):
    """The folder of a model's cell in the run."""
    return next(file.parent for file in results_of(folder / "runs/a") if f'"model": "{model}"' in file.read_text())


def test_every_model_is_scored_on_every_split_that_it_can_read(folder):
    rows = read_rows(folder / "runs/whole/results.csv")
    scored = {(row["model"].partition(" (")[0], row["split"]) for row in rows}
    trained = [f"runs/a: {name}" for name in ("clip", "mine.py:Mine", "oc-clip")]
    assert {model for model, split in scored if split == "packed"} == {*trained, "mine.py:Mine"}
    assert {model for model, split in scored if split == "spatial"} == {"mine.py:Mine"}
    assert (folder / "output.txt").read_text().count("left out: runs/a: ") == 3
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows if int(row["n"]))


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [1200, 420])
def test_every_tables_first_score_is_in_sight(folder, tmp_path, width):
    report = folder / "runs" / "whole" / "report.html"
    found = after_all(report, tmp_path, {"sight": IN_SIGHT, "shown": TELL, "torn": TORN}, width)
    assert (found["sight"], found["torn"]) == ("0 out of sight", "")
    assert found["shown"].startswith("25 images; ")  # of tests; the figure is drawn by its script


def test_short_labels_are_unique():
    def cell(run, words):
        return Model(f"{run}: {words}", source=SOURCE, run=run, cell=words)

    lone = Model("ViT-B-16/openai", source=SOURCE)
    first, second = cell("runs/a", "clip, seed 0"), cell("runs/a", "clip, seed 1")
    assert list(short_labels([first, second, lone]).values()) == ["clip, seed 0", "clip, seed 1", "ViT-B-16/openai"]
    other = cell("runs/b", "clip, seed 0")
    assert list(short_labels([first, other]).values()) == [first.label, other.label]
    assert [label_text("pairs", 0.2), label_text("factors", as_column(["a", "b"]))] == ["20%", "a+b"]


def test_cells_of_the_same_place_have_their_ids_in_their_labels(folder, tmp_path):
    cell = cell_of(folder, "oc-clip")
    for name in ("first", "second"):
        shutil.copytree(cell, tmp_path / "cells" / name)
        write_record(tmp_path / "cells" / name / "result.json", read_record(cell / "result.json") | {"id": name})
    labels = [model.label for model in parse_models([str(tmp_path)], [], TowerConfig())]
    assert labels == [f"{tmp_path}: oc-clip (cell first)", f"{tmp_path}: oc-clip (cell second)"]


def test_scores_on_a_runs_split_are_those_of_the_run(folder):
    """Also from a packed file: to 1e-5 in each score."""
    theirs = {cell["model"]: cell for cell in map(json.loads, (folder / "runs/a/cells.jsonl").open())}
    for result in (json.loads(line) for line in (folder / "runs/whole/cells.jsonl").open()):
        if result["split"] != "packed" or not result["model"].startswith("runs/a"):
            continue
        model = result["model"].removeprefix("runs/a: ").partition(" (")[0]
        ours = scores(folder / "runs" / "whole" / "cells" / result["id"])
        run_scores = scores(folder / "runs" / "a" / "cells" / theirs[model]["id"])
        assert ours.keys() == run_scores.keys()
        assert all(ours[key] == pytest.approx(run_scores[key], abs=1e-5) for key in ours)
        assert result["subsets"].keys() == theirs[model]["subsets"].keys()


def test_the_folder_is_read_back_as_records(folder):
    records = read(folder / "runs/whole")
    found = records.scores.set_index(["model", "split", "subset", "task"])["accuracy"]
    rows = [row for row in read_rows(folder / "runs/whole/results.csv") if row["accuracy"]]
    for row in rows:
        assert found[row["model"], row["split"], row["subset"], row["task"]] == float(row["accuracy"])
    swaps = records.where(task="swap", subset="unseen_pairs").estimates(("model", "split"))
    for (model, split), one in swaps.items():
        assert one.value == pytest.approx(found[model, split, "unseen_pairs", "swap"])
    pieces = {(row["model"], row["split"]) for row in rows if (row["task"], row["subset"]) == ("swap", "unseen_pairs")}
    assert swaps.keys() == pieces
    assert len(pieces) >= 4


@pytest.fixture(scope="module")
def leaking(folder, tmp_path_factory):
    """The run's CLIP, with a record of training on hard negatives, scored on the run's split in a study of its own."""
    run, out = tmp_path_factory.mktemp("leaking"), tmp_path_factory.mktemp("out")
    cell = cell_of(folder, "clip")
    shutil.copytree(cell, run / "cells" / "hard")
    result = read_record(cell / "result.json")
    result["settings"]["data"]["split"]["hard_negatives"] = 1.0
    write_record(run / "cells" / "hard" / "result.json", result | {"id": "hard"})
    (model,) = parse_models([str(run)], [], TowerConfig())
    piece = split_piece(model, "packed", folder / "packed.h5").job(out)
    piece.run(lambda done, text: None, lambda: None)
    return piece, Records((Arm(piece, {"split": "packed"}),), out)


def test_records_that_training_had_count_in_no_number(leaking):
    piece, _ = leaking
    tasks = read_record(piece.folder / "result.json")["subsets"]
    assert {each["n"] for each in tasks["seen_pairs"].values()} == {0}
    assert tasks["seen_pairs"]["swap"]["accuracy"] is None
    assert tasks["unseen_pairs"]["swap"]["n"] == piece.covered["unseen_pairs"].records > 0
    assert {key[0] for key in scores(piece.folder)} == {"validation", "unseen_pairs", "different_bag"}


def test_table_page_and_output_count_what_training_had(leaking, capsys):
    piece, records = leaking
    study = Evaluate()
    study.tables(records)
    (row,) = (
        row for row in read_rows(records.out / "results.csv") if (row["subset"], row["task"]) == ("seen_pairs", "swap")
    )
    n = str(piece.covered["seen_pairs"].records)
    assert (row["left_out"], row["accuracy"], row["training"]) == (n, "", "known")
    assert row["arrangements_had"] == row["arrangements"] != "0"
    assert row["images_had"] == "0"
    (table,) = (part for part in study.page(records) if getattr(part, "name", "") == "trained-on-packed")
    assert [cells[-2] for cells in table.rows if cells[1] == "seen_pairs"] == [f"{n} of {n}"]
    study.conclude(records)
    assert f"{n} of {n} records left out" in capsys.readouterr().out


def test_no_record_is_left_out_for_a_split_own_run_or_for_unknown_training(folder):
    rows = [row for row in read_rows(folder / "runs/whole/results.csv") if row["split"] == "packed" and row["n"] != "0"]
    assert {(row["model"].startswith("runs/a"), row["training"], row["left_out"]) for row in rows} == {
        (True, "known", "0"),
        (False, "unknown", "0"),
    }
    assert {row["pairs_had"] for row in rows if (row["training"], row["subset"]) == ("known", "unseen_pairs")} == {"0"}
    assert {row["pairs_had"] for row in rows if row["training"] == "unknown"} == {""}


def scores(cell):
    lines = read_rows(cell / "predictions.csv")
    key, numbers = ("subset", "task", "scene"), ("score_caption", "score_negative")
    return {(*(row[name] for name in key), name): float(row[name]) for row in lines for name in numbers}


def test_an_evaluation_that_is_killed_and_resumed_elsewhere_has_the_same_tables(folder):
    """A command is killed halfway, a piece runs in a subprocess as on a cluster, and the rest here."""
    out = folder / "runs" / "killed"
    command = [*EVALUATE, *MODELS, *SPLITS, "--out", "runs/killed"]
    kill_when([*command, "--workers", "1"], folder, lambda: len(results_of(out)) >= 2)
    assert len(results_of(out)) < 4  # the models of the run come first
    kept = {file: file.stat().st_mtime_ns for file in results_of(out)}
    own = [*EVALUATE, *MODELS[1:], "--splits", *SPLITS[2:], "--out", "runs/killed", "--cluster", "local"]
    done = run_here(own, folder, page=False)
    assert done.returncode == 0, done.stderr
    assert "1 pieces, 0 of them finished before" in done.stdout
    done = run_here(command, folder, figures=False)
    assert done.returncode == 1, done.stderr
    assert f"8 pieces, {len(kept) + 1} of them finished before" in done.stdout
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())
    for name in ("results.csv", "results.tex"):
        assert (out / name).read_bytes() == (folder / "runs" / "whole" / name).read_bytes()
    assert not list(out.rglob(".*.tmp*"))


def test_finished_pieces_are_used_by_other_commands(folder):
    """A file with the content of a split that was scored, by another name, and one model of the run alone."""
    (cell,) = (json.loads(line) for line in (folder / "runs/a/cells.jsonl").open() if '"model": "clip"' in line)
    (split,) = folder.glob("store/*/same.h5")
    command = [*EVALUATE, f"runs/a/cells/{cell['id']}", "--splits", str(split), "--out", "runs/whole"]
    done = run_here(command, folder, page=False)
    assert done.returncode == 0, done.stderr
    assert "1 pieces, 1 of them finished before" in done.stdout
    assert {row["split"] for row in read_rows(folder / "runs/whole/results.csv")} == {"same"}


def test_a_dry_run_counts_pieces_and_makes_nothing(folder):
    done = run_here([*EVALUATE, *MODELS, *SPLITS, "--out", "runs/dry", "--dry-run"], folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 pieces of 4 models: " in done.stdout
    assert "and spatial.toml of tiny, which is rendered first" in done.stdout
    assert not (folder / "runs/dry").exists()


@pytest.mark.parametrize(
    "labels", [["a b", "a-b", "a-b-1"], ["a-b-1", "a b", "a-b"], ["CLIP", "clip"], ["!"], ["!", "?"]]
)
def test_no_two_labels_share_a_file(labels):
    """Nor on disks that don't tell capitals from small letters."""
    names = file_names(labels)
    assert list(names) == labels
    assert len({name.lower() for name in names.values()}) == len(labels)
    assert all(names.values())
    assert file_names(["x y", "z"]) == {"x y": "x-y", "z": "z"}
