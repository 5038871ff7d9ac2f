"""A training on photographs that is killed twice ends byte for byte as an undisturbed one, which is a copied study."""

import json
import shutil
import sys

from tests.command import ROOT, read_rows, run_here
from tests.forked import kill_when
from tests.helpers.benchmark_files import MAKERS
from tests.studies.test_real_data import make_photographs

COMMAND = [sys.executable, str(ROOT / "studies/real_data.py"), "--data-root", "data", "--models", "clip"]
COMMAND += ["--architecture", "nano", "--resolution", "32", "--epochs", "0", "--steps", "150", "--batch", "8"]
COMMAND += ["--benchmarks", "sugarcrepe", "retrieval-coco-val2017", "--unknown-words", "skip", "--workers", "1"]
TIMED = ("seconds", "provenance", "digest")  # the digest covers the others


def outcome(out):
    """Everything but timing."""
    cells = [json.loads(line) for line in (out / "cells.jsonl").read_text().splitlines()]
    scores = {file.parent.name: file.read_bytes() for file in out.glob("benchmarks/pieces/*/scores.csv")}
    logs = [read_rows(out / "cells" / cell["id"] / "training.csv") for cell in cells]
    return {
        "cells": [{name: value for name, value in cell.items() if name not in TIMED} for cell in cells],
        "weights": [(out / "cells" / cell["id"] / "checkpoint/model.safetensors").read_bytes() for cell in cells],
        "losses": [[(row["step"], row["loss"]) for row in log] for log in logs],
        "scores": scores,
        "table": (out / "results.csv").read_bytes(),
    }


def test_a_run_killed_while_training_and_while_scoring_ends_the_same(tmp_path):
    make_photographs(tmp_path / "data")
    MAKERS["retrieval-coco-val2017"](tmp_path / "data")
    copy = shutil.copy(COMMAND[1], tmp_path / "mine.py")
    whole = run_here([COMMAND[0], str(copy), *COMMAND[2:], "--out", "runs/whole"], tmp_path, page=False)
    assert whole.returncode == 0, whole.stderr
    killed, command = tmp_path / "runs/killed", [*COMMAND, "--out", "runs/killed"]
    kill_when(command, tmp_path, lambda: any(killed.glob("cells/*/state.pt")))
    assert not any(killed.glob("cells/*/result.json"))
    kill_when(command, tmp_path, lambda: any(killed.glob("benchmarks/pieces/*/result.json")))
    assert len(list(killed.glob("cells/*/result.json"))) == 1
    scored = len(list(killed.glob("benchmarks/pieces/*/result.json")))
    last = run_here(command, tmp_path, page=False)
    assert last.returncode == 0, last.stderr
    assert f"3 runs, {1 + scored} of them finished before" in last.stdout
    assert outcome(killed) == outcome(tmp_path / "runs/whole")
    assert not list(killed.rglob("*.tmp*"))
