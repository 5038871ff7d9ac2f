"""Texts that a model cuts are counted in results and named in reports."""

import json
import sys

import torch

from menagerie.models.checkpoint import build_scorer, save_checkpoint
from menagerie.models.towers.config import TextSpace, TowerConfig
from tests.command import ROOT, succeed
from tests.helpers.benchmark_files import MAKERS
from tests.helpers.scorers import OPTIONS

BYTES = TowerConfig("nano", resolution=32, tokenizer="open_clip")
FAR = " ".join(["a red cat"] * 26)  # 78 words


def test_texts_that_differ_after_the_context_tie_and_are_counted_and_named(tmp_path):
    MAKERS["sugarcrepe"](tmp_path / "data")
    (path, *others) = sorted((tmp_path / "data/sugarcrepe").glob("*.json"))
    records = json.loads(path.read_text())
    long = {"caption": f"{FAR} on a mat", "negative_caption": f"{FAR} on a bed"}
    path.write_text(json.dumps({key: its | long for key, its in records.items()}))
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "mine", "clip", build_scorer("clip", BYTES, TextSpace((), 77), OPTIONS["clip"]))
    options = ["mine", "--data-root", "data", "--benchmarks", "sugarcrepe", "--threads", "1", "--out", "out"]
    succeed([sys.executable, str(ROOT / "studies/transfer.py"), *options], tmp_path)
    (result,) = map(json.loads, (tmp_path / "out/results.jsonl").open())
    assert (result["tasks"][path.stem]["official"], result["tasks"][path.stem]["tie_rate"]) == (0, 1)
    texts = {its[key] for file in (path, *others) for its in json.loads(file.read_text()).values() for key in long}
    assert result["cut"] == {"texts": 2, "of": len(texts), "context": 77, "first": long["caption"]}
    assert f"2 of {len(texts)} texts are longer than its 77 tokens" in (tmp_path / "out/report.html").read_text()
