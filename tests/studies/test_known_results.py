"""Scorers that are always right, always wrong, constant or random, in every study that evaluates."""

import json
import re
import sys

import pytest

from menagerie.generators.benchmarks.benchmark import FOUR_WAY_RULES
from menagerie.studies.spatial_grid import Config
from tests.command import QUICK, ROOT, read_rows, run_here, succeed
from tests.forked import run_forked
from tests.studies.browser import plain

ORACLES = ROOT / "tests" / "studies" / "oracles.py"
KINDS = ("Perfect", "Inverted", "Constant", "Random")
MODELS = [f"{ORACLES}:{kind}" for kind in KINDS]
# Tie-neutral accuracy, official accuracy and tie rate of every choice between two texts.
KNOWN = {"Perfect": (1, 1, 0), "Inverted": (0, 0, 0), "Constant": (0.5, 0, 1)}
SHORT = ["--steps", "2", "--batch", "8", "--views", "1", "--test-scenes", "40"]
OTHER = ('kind = "spatial"', 'world = "tiny"', "views = 1", "test_views = 1", "test_scenes = 12")
# A script that registers one of them for a study of registered scorers; workers run it too.
ABLATE = """
from menagerie.models.registry import specs
from menagerie.models.spec import ScorerSpec
from menagerie.studies.analysis.papers import ABLATIONS, Ablations
from tests.studies.oracles import OracleConfig

rows = {kind: (f"kind={kind}", kind) for kind in ("inverted", "constant", "random")}
specs()["oracle"] = ScorerSpec(
    name="oracle", title="Oracle", source="tests", implementation="tests.studies.oracles:Perfect", config=OracleConfig
)
ABLATIONS["oracle"] = Ablations(rows=rows)
from menagerie.studies.ablations import PRESETS, main

if __name__ == "__main__":
    main(PRESETS)
"""


def study(name, *arguments):
    """The command of a study."""
    return [sys.executable, str(ROOT / "studies" / f"{name}.py"), *map(str, arguments)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder whose store all studies share, with a finished binding grid."""
    folder = tmp_path_factory.mktemp("known")
    command = study("binding_grid", *QUICK, *SHORT, "--models", *MODELS, "--out", "runs/binding")
    succeed(command, folder, figures=False)
    (split,) = folder.glob("store/*/binding-*.h5")
    (folder / "own.h5").symlink_to(split)
    return folder


def results(out):
    """The subsets of the cells of each kind."""
    lines = [json.loads(line) for line in (out / "cells.jsonl").read_text().splitlines()]
    by_kind = {kind: [line for line in lines if kind in line["model"]] for kind in KINDS}
    return {kind: [line["subsets"] for line in its] for kind, its in by_kind.items() if its}


def check(out):
    """Each kind has its known accuracy on all tasks of all subsets."""
    found = results(out)
    assert found.keys() == set(KINDS)
    drawn = []
    for kind, cells in found.items():
        for subset, tasks in ((name, its) for subsets in cells for name, its in subsets.items()):
            for task, its in tasks.items():
                if not its["n"]:
                    continue
                if task.removesuffix(" score") in FOUR_WAY_RULES:
                    assert its["accuracy"] == pytest.approx({"Perfect": 1, "Random": its["accuracy"]}.get(kind, 0))
                elif kind == "Random":
                    assert its["tie_rate"] == 0
                    assert its["official"] == its["accuracy"]
                    drawn.append((its["accuracy"], its["n"]))
                else:
                    there = its["accuracy"], its["official"], its["tie_rate"]
                    assert there == KNOWN[kind], (kind, subset, task)
    records = sum(n for _, n in drawn)
    assert sum(accuracy * n for accuracy, n in drawn) / records == pytest.approx(0.5, abs=2.5 / records**0.5)


def test_binding_grid_and_its_errors_have_known_accuracies(folder):
    out = folder / "runs" / "binding"
    check(out)
    rows = read_rows(out / "results.csv")
    swaps = [row for row in rows if row["task"] == "swap" and row["n"] != "0"]
    shown = {(row["model"].rpartition(":")[2], row["accuracy"]) for row in swaps}
    assert {("Perfect", "1.0"), ("Inverted", "0.0"), ("Constant", "0.5")} <= shown
    errors = read_rows(out / "errors.csv")
    for kind, accuracy in (("Perfect", 1.0), ("Inverted", 0.0), ("Constant", 0.5)):
        assert {float(row["accuracy"]) for row in errors if kind in row["model"]} == {accuracy}
    html = plain(out / "report.html")
    assert "Inverted − oracles.py:Perfect" in html
    assert re.search(r"-100\.0 \[(no spread|only \d pairs|one animal pair): no interval\]", html)


@pytest.mark.parametrize("name", ["spatial_grid", "split_study"])
def test_other_grids_have_known_accuracies(name, folder):
    command = study(name, "--preset", "smoke", *SHORT, "--models", *MODELS, "--out", f"runs/{name}")
    command += ["--hard-negatives", "0"] * (name == "spatial_grid")
    succeed(command, folder, page=False)
    check(folder / "runs" / name)
    if name == "spatial_grid":
        rows = read_rows(folder / "runs/spatial_grid/results.csv")
        assert {row["subset"] for row in rows} == {"validation", *Config().tests}
        assert {row["task"] for row in rows} >= {"swap", "replace relation", "replace animal", "group score"}
        assert all(int(row["n"]) > 0 for row in rows)


def test_evaluate_has_known_accuracies_on_other_splits(folder):
    (folder / "other.toml").write_text("\n".join(OTHER))
    own = (folder / "own.h5").resolve()
    command = study("evaluate", "runs/binding", "--code", *MODELS, "--splits", own, "other.toml", "--resolution", 32)
    succeed([*command, "--out", "runs/evaluate", "--threads", "1"], folder, page=False)
    check(folder / "runs" / "evaluate")
    rows = read_rows(folder / "runs/evaluate/results.csv")
    assert {row["split"] for row in rows} == {own.stem, "other"}


def test_attention_overlaps_as_known(folder):
    done = run_here(study("attention", "runs/binding", "--code", *MODELS, "--scenes", 1), folder, page=False)
    assert done.returncode == 0, done.stderr
    rows = read_rows(folder / "runs/binding/attention.csv")
    of_kind = {kind: [row for row in rows if kind in row["model"]] for kind in KINDS}
    assert {(row["overlap"], row["own_above_other"]) for row in of_kind["Perfect"]} == {("1.0", "1.0")}
    assert {(row["overlap"], row["own_above_other"]) for row in of_kind["Inverted"]} == {("0.0", "0.0")}
    for row in of_kind["Constant"]:
        assert 0 < float(row["overlap"]) < 0.5
        assert row["own_above_other"] == "0.0"


def test_sample_efficiency_finds_the_fewest_images_only_of_a_perfect_model(folder):
    arguments = ["--seeds", 1, "--trials", 2, "--steps", 2, "--batch", 8, "--test-scenes", 8, "--workers", 1]
    command = study("sample_efficiency", "--preset", "smoke", *arguments, "--models", *MODELS[:2], "--out", "runs/s")
    succeed(command, folder, figures=False)
    rows = read_rows(folder / "runs/s/trials.csv")
    images = {kind: [int(row["images"]) for row in rows if kind in row["model"]] for kind in KINDS[:2]}
    assert {float(row["validation"]) for row in rows if "Perfect" in row["model"]} == {1.0}
    assert {float(row["validation"]) for row in rows if "Inverted" in row["model"] and row["validation"]} == {0.0}
    targets = {row["model"]: row["images to target"] for row in read_rows(folder / "runs/s/targets.csv")}
    perfect, inverted = (next(value for model, value in targets.items() if kind in model) for kind in KINDS[:2])
    assert perfect == str(min(images["Perfect"]))
    assert inverted == f"> {max(images['Inverted'])}"


def test_tuning_is_decided_by_validation_whatever_the_recipe(folder):
    arguments = ["--preset", "smoke", "--steps", 2, "--batch", 8, "--views", 1, "--test-scenes", 8, "--workers", 1]
    succeed(study("tune", *arguments, "--models", *MODELS[:2], "--out", "runs/t"), folder, page=False)
    best = json.loads((folder / "runs" / "t" / "best.json").read_text())
    assert [entry["validation"] for name, entry in best.items() if name != "digest"] == [1.0, 0.0]


def test_ablations_have_known_accuracies(folder):
    (folder / "ablate.py").write_text(ABLATE)
    arguments = ["--preset", "smoke", "--model", "oracle", "--rows", "inverted", "constant", "random", "--steps", 2]
    arguments += ["--split", (folder / "own.h5").resolve(), "--out", "runs/ablations"]
    command = [sys.executable, "ablate.py", *map(str, arguments)]
    done = run_forked(command, folder)
    assert done.returncode == 0, done.stderr
    rows = read_rows(folder / "runs/ablations/results.csv")
    binary = [row for row in rows if row["n"] != "0" and not row["task"].endswith(" score")]
    for name, accuracy in (("Oracle", 1.0), ("inverted", 0.0), ("constant", 0.5)):
        assert {float(row["accuracy"]) for row in binary if row["row"] == name} == {accuracy}
