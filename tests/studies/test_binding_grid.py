"""The binding grid as a user runs it."""

import json
import os
import re
import shutil
import signal
import sys
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
import trimesh

from menagerie.envs.core.errors import UserError
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.frame.command import changeable_options
from menagerie.studies.frame.records import read
from menagerie.studies.runs.command_line import only_models
from menagerie.studies.runs.folder import run_folder
from menagerie.studies.runs.results import COLUMNS
from tests.command import GRID, QUICK, ended, read_rows, run_here, started, succeed, until
from tests.forked import Forked, kill_when
from tests.grid_cells import cell_output
from tests.helpers.splits import lend_atlas


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with one undisturbed run in `runs/a`."""
    folder = tmp_path_factory.mktemp("grid")
    lend_atlas(folder)
    succeed([*GRID, *QUICK, "--out", "runs/a", "--workers", "2"], folder, figures=False)
    return folder


def outcome(out):
    """The results of a run and of its cells, in order."""
    ids = [json.loads(line)["id"] for line in (out / "cells.jsonl").read_text().splitlines()]
    return ids, [cell_output(out / "cells" / name) for name in ids], (out / "results.csv").read_bytes()


def test_results_have_each_model_on_each_test(finished):
    out = finished / "runs" / "a"
    rows = read_rows(out / "results.csv")
    assert tuple(rows[0]) == COLUMNS
    assert {(row["model"], row["subset"]) for row in rows} == {
        (model, subset)
        for model in ("clip", "oc-clip")
        for subset in ("validation", "seen_pairs", "unseen_pairs", "different_bag", "train_pairs")
    }
    assert all(row["accuracy"] == "" for row in rows if row["n"] == "0")
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows if row["n"] != "0")
    assert {row["images_seen"] for row in rows} == {str(130 * 8)}
    config = json.loads((out / "config.json").read_text())
    assert config["config"]["world"] == "tiny"
    assert {"command", "commit", "processor", "versions"} <= config.keys()


def test_scores_follow_from_the_predictions(finished):
    out = finished / "runs" / "a"
    runs = read(out)
    columns = ("score_caption", "score_negative", "counterfactual_caption", "counterfactual_negative")
    for cell in map(json.loads, (out / "cells.jsonl").read_text().splitlines()):
        records = read_rows(out / "cells" / cell["id"] / "predictions.csv")
        for subset, tasks in cell["subsets"].items():
            for task, scores in tasks.items():
                mine = [r for r in records if (r["subset"], r["task"]) == (subset, task)]
                if mine:
                    wins = sum(float(r["score_caption"]) > float(r["score_negative"]) for r in mine)
                    ties = sum(float(r["score_caption"]) == float(r["score_negative"]) for r in mine)
                    assert scores["accuracy"] == pytest.approx((wins + ties / 2) / len(mine))
                    assert scores["official"] == pytest.approx(wins / len(mine))
                    assert scores["tie_rate"] == pytest.approx(ties / len(mine))
                assert task.endswith(" score") or len(mine) == scores["n"]
            rows = [r for r in records if (r["subset"], r["task"]) == (subset, "swap")]
            scores = [[float(r[name]) for name in columns] for r in rows]
            text = [a > b and d > c for a, b, c, d in scores]
            image = [a > c and d > b for a, b, c, d in scores]
            group = [one and other for one, other in zip(text, image, strict=True)]
            for name, right in (("text", text), ("image", image), ("group", group)):
                assert tasks[f"{name} score"]["n"] == len(right)
                points = runs.where(lambda arm, id=cell["id"]: arm.id == id, subset=subset).four_way_items(name).points
                assert points["value"].tolist() == right
                if right:
                    assert tasks[f"{name} score"]["accuracy"] == pytest.approx(sum(right) / len(right))


def test_errors_and_page_agree_with_the_results(finished):
    """The row of all records has the accuracy of `results.csv`, for every test and task with records."""
    out = finished / "runs" / "a"
    results = [row for row in read_rows(out / "results.csv") if not row["task"].endswith(" score")]
    errors = read_rows(out / "errors.csv")
    every = {(r["model"], r["subset"], r["task"]): r for r in errors if r["factor"] == "all"}
    filled = [row for row in results if row["n"] != "0"]
    assert len(every) == len(filled)
    for row in filled:
        mine = every[row["model"], row["subset"], row["task"]]
        assert (float(mine["accuracy"]), mine["n"]) == (pytest.approx(float(row["accuracy"])), row["n"])
    assert {r["factor"] for r in errors} == {"all", "animal", "texture", "background", "relation", "mentioned first"}
    html = (out / "report.html").read_text()
    assert "2 of 2 runs are finished" in html
    sources = re.findall(r'<[^>]*(?:src|href)="([^"]*)"', html.partition('<script type="module">')[0])
    assert len(sources) >= 3
    assert all(source.startswith("data:image/") for source in sources), "a page needs no other file"
    assert {p.stem for p in (out / "figures").glob("*.svg")} >= {"accuracy"}


def test_two_runs_are_compared_record_by_record(finished, tmp_path):
    succeed([*GRID, "--compare", str(finished / "runs/a"), str(finished / "runs/a")], tmp_path)
    rows = read_rows(finished / "runs/a/comparison.csv")
    assert {row["model"] for row in rows} == {"clip", "oc-clip"}
    assert {row["task"] for row in rows} >= {"swap", "one animal", "replace texture", "replace animal"}
    levels, changes = ([row for row in rows if (row["run"] == "B - A") is both] for both in (False, True))
    assert len(levels) == 2 * len(changes)
    assert {(row["value"], row["signed"]) for row in changes} == {("0.0", "True")}
    assert "oc-clip" in (finished / "runs/a/results.tex").read_text()


def test_a_rerun_skips_what_is_finished(finished):
    out = finished / "runs" / "a"
    before = outcome(out)
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/result.json")}
    again = succeed([*GRID, *QUICK, "--out", "runs/a"], finished, page=False)
    assert "2 runs, 2 of them finished before" in again.stdout
    assert outcome(out) == before
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_a_folder_goes_on_with_more_seeds_models_and_places(finished):
    """And keeps what a command with fewer leaves out."""
    shutil.copytree(finished / "runs/a", finished / "runs/more")
    command = [*GRID, *QUICK, "--out", "runs/more"]
    other = run_here([*command, "--models", "clip-gap", "oc-clip", "--steps", "2"], finished)
    assert "another configuration: recipe.steps (130 there, 2 now); choose" in other.stderr, "no model is in the way"
    other = run_here([*command, "--models", "clip-gap", "oc-clip", "--oc-clip.dim", "8"], finished)
    assert "another configuration: scorers.oc_clip.dim (32 there, 8 now); choose" in other.stderr
    more = run_here([*command, "--models", "clip", "--hard-negatives", "0", "1", "--seeds", "2"], finished, page=False)
    assert "4 runs, 1 of them finished before" in more.stdout, more.stderr
    rows = read_rows(finished / "runs/more/results.csv")
    assert {(row["seed"], row["hard_negatives"]) for row in rows} == {(s, n) for s in "01" for n in ("0.0", "1.0")}
    fewer = run_here(command, finished, page=False)
    assert "2 runs, 2 of them finished before" in fewer.stdout
    assert outcome(finished / "runs/more") == outcome(finished / "runs/a")
    assert len(list(finished.glob("runs/more/cells/*/result.json"))) == 5


def test_a_folder_goes_on_with_a_further_model_whose_options_hold_from_then_on(tmp_path):
    def begin(*models, **options):
        study = replace(PRESETS["smoke"], models=models)
        study = replace(study, scorers=only_models(study.scorers.replace_options("oc-clip", options), models))
        with run_folder(tmp_path / "run", study, changeable_options(study)):
            (tmp_path / "run" / "cells").mkdir(exist_ok=True)  # a folder in which nothing was made takes any options

    begin("clip")
    begin("clip", "oc-clip")
    with pytest.raises(UserError, match=re.escape("scorers.oc_clip.dim (32 there, 16 now)")):
        begin("oc-clip", dim=16)
    begin("clip")
    begin("oc-clip")


def test_a_run_that_was_killed_twice_ends_as_an_undisturbed_one(finished, tmp_path):
    """kill -9 twice; the third run, of one worker, ends as the undisturbed one of two."""
    command = [*GRID, *QUICK, "--out", "runs/k", "--workers", "1"]
    kill_when(command, tmp_path, lambda: any(f.stat().st_size > 1000 for f in tmp_path.glob("store/atlas/*.bin")))
    assert not list(tmp_path.glob("store/**/binding-*.h5"))
    kill_when(command, tmp_path, lambda: any(tmp_path.glob("runs/k/cells/*/state.pt")))
    succeed(command, tmp_path, page=False)
    assert outcome(tmp_path / "runs" / "k") == outcome(finished / "runs" / "a")


def test_sigterm_and_ctrl_c_end_in_one_line_and_leave_everything_usable(finished, tmp_path):
    """SIGTERM while processes prepare batches, whose semaphores nobody else would free."""
    command, out = [*GRID, *QUICK, "--out", "runs/c", "--workers", "2"], tmp_path / "runs/c"
    shutil.copytree(finished / "store", tmp_path / "store", symlinks=True)  # rendering is interrupted elsewhere
    process = started([*command, "--loaders", "1"], tmp_path)
    until(lambda: any(out.glob("cells/*/training.csv")), process)
    process.terminate()
    result = ended(process)
    assert result.returncode == 143
    assert result.stderr == "stopped: what was finished is kept; the same command goes on from there\n"
    assert not any(out.glob("cells/*/result.json"))  # else the next signal comes too early
    assert "0 of 2 runs are finished" in (out / "report.html").read_text()
    assert not (out / "figures/accuracy.png").exists(), "of nothing there is no figure"
    process = Forked([*command[:-1], "1"], tmp_path)
    until(lambda: any(out.glob("cells/*/result.json")), process)
    os.kill(process.pid, signal.SIGINT)
    result = process.ended()
    assert result.returncode == 130
    assert result.stderr.startswith("interrupted: ")
    assert "Traceback" not in result.stderr
    assert (out / "report.html").exists()
    assert run_here(command, tmp_path, page=False).returncode == 0
    assert outcome(out) == outcome(finished / "runs/a")


def test_a_world_of_ones_own_goes_from_toml_to_results(tmp_path):
    """An own mesh and an own texture, no Python written; a second run finds everything done."""
    body = trimesh.creation.icosphere(3, 0.5)
    trimesh.Trimesh(body.vertices * (1.3, 0.8, 1), body.faces).export(tmp_path / "blob.stl")
    tiles = np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8)
    matplotlib.image.imsave(tmp_path / "tiles.png", tiles)
    (tmp_path / "mine.toml").write_text(
        'extends = "tiny"\nanimals = ["gridblob", "penguin", "rabbit", "elephant"]\ntextures = ["red", "gridtiles"]\n'
        'backgrounds = ["desert"]\n'
        '[animal.gridblob]\nmesh = "blob.stl"\nsize = 1.2\n[texture.gridtiles]\nimage = "tiles.png"\n'
    )
    command = [*GRID, *QUICK, "--world", "mine.toml", "--steps", "10", "--out", "runs/o"]
    succeed(command, tmp_path, page=False)
    rows = read_rows(tmp_path / "runs/o/results.csv")
    assert {row["model"] for row in rows if row["n"] != "0"} == {"clip", "oc-clip"}
    (split,) = tmp_path.glob("store/mine-32px-*/binding-*.h5")
    succeed([sys.executable, "-m", "menagerie", "audit", str(split)], tmp_path)
    assert "2 of them finished before" in run_here(command, tmp_path, page=False).stdout
