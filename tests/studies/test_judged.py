"""Vision-language models scored on splits and benchmarks, as a user does it, against a local server."""

import csv
import sys
from collections import defaultdict
from dataclasses import replace

import pytest

from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import load
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.storage.dataset import SplitDataset
from tests.command import ROOT, run_here
from tests.helpers.benchmark_files import MAKERS, MATRICES
from tests.helpers.splits import RECIPE, make_split
from tests.helpers.vision_service import VisionService, truth
from tests.studies.browser import plain

EVALUATE, TRANSFER = ([sys.executable, str(ROOT / "studies" / name)] for name in ("evaluate.py", "transfer.py"))
BENCHMARKS = ("sugarcrepe", "winoground", "zero-shot")


def rows_of(out):
    """Accuracies by the form of a row, and by what they are of; rows without records are left out."""
    found = defaultdict(dict)
    for row in csv.DictReader((out / "results.csv").open()):
        if int(float(row["n"] or 0)):
            form = row["model"].rpartition(" (")[2].removesuffix(")")
            found[form][row.get("task") or (row["benchmark"], row["name"]), row.get("subset")] = row
    return found


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """A small split, and the benchmarks of its subsets."""
    file = make_split(tmp_path_factory.mktemp("split"), replace(RECIPE, test_scenes=4))
    names = [name for name in SplitDataset(file, "validation").split.subsets if name != "train"]
    return file, [SplitTests(SplitDataset(file, name)) for name in names]


def test_a_split_is_judged_in_every_form_with_and_without_images(split, tmp_path):
    file, tests = split
    with VisionService(truth(*tests)) as service:
        command = [*EVALUATE, f"chat:{service.url}#fake", "--splits", str(file), "--out", "runs/a", "--judge.blind"]
        command += ["--judge.forms", "yes", "choice", "likelihood"]
        done = run_here(command, tmp_path)
        assert done.returncode == 0, done.stderr
        found = rows_of(tmp_path / "runs/a")
        for form in ("yes", "choice", "likelihood"):
            assert {float(row["accuracy"]) for row in found[form].values()} == {1.0}
            blind = found[f"{form}, blind"]
            assert {float(row["accuracy"]) for (task, _), row in blind.items() if task == "swap"} == {0.5}
        assert {task for task, _ in found["yes"]} - {task for task, _ in found["choice"]} == {
            "quad image",
            "quad group",
        }
        asked = service.questions()
        assert len(asked) == len(set(asked)), "nothing is asked twice, whatever the subset"
        report = plain(tmp_path / "runs/a/report.html")
        assert "0 of " in report
        assert "items without a verdict (0.0%)" in report
        done = run_here([*command[:-5], "--judge.forms", "yes", "--out", "runs/b"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(service.questions()) == len(asked), "another command has the answers too"


def test_one_that_always_says_a_has_half(split, tmp_path):
    file, _ = split
    with VisionService(lambda image, text: 0.0, place=9.0, logprobs=False) as service:
        command = [
            *EVALUATE,
            f"chat:{service.url}#a",
            "--splits",
            str(file),
            "--judge.forms",
            "choice",
            "--out",
            "runs/a",
        ]
        done = run_here(command, tmp_path)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "runs/a")["choice"]
    assert {float(row["accuracy"]) for (task, _), row in rows.items() if not task.startswith("quad")} == {0.5}
    assert "(100.0%)" in plain(tmp_path / "runs/a/report.html"), "the share that the place decided"


def test_benchmarks_of_photographs_and_pools_are_judged_whole(tmp_path):
    for name in BENCHMARKS:
        (MAKERS | MATRICES)[name](tmp_path / "data")
    benches = [load(name).build(Place(tmp_path / "data")) for name in BENCHMARKS]
    with VisionService(truth(*benches)) as service:
        command = [*TRANSFER, f"chat:{service.url}#fake", "--data-root", "data", "--benchmarks", *BENCHMARKS]
        done = run_here([*command, "--judge.forms", "yes", "choice", "--out", "runs/a"], tmp_path)
    assert done.returncode == 0, done.stderr
    found = rows_of(tmp_path / "runs/a")
    assert {float(row["official"]) for row in found["yes"].values()} == {1.0}
    assert {name for (name, _), _ in found["yes"]} == set(BENCHMARKS)
    assert {name for (name, _), _ in found["choice"]} == {"sugarcrepe"}
    assert done.stdout.count("left out: ") == 2
    assert "ask --judge.forms yes" in done.stdout


def test_a_server_that_isnt_there_is_one_line(split, tmp_path):
    command = [*EVALUATE, "chat:http://127.0.0.1:9/v1#m", "--judge.attempts", "1", "--splits", str(split[0])]
    done = run_here(command, tmp_path)
    assert done.returncode == 2
    assert "no model can be scored on anything: http://127.0.0.1:9/v1 gives no answer" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
