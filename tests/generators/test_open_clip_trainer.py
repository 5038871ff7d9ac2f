"""open_clip's own trainer trains on an exported WebDataset."""

import json
import math
import re
import subprocess
import sys

import pytest

from menagerie import SplitDataset
from menagerie.generators.export import formats
from menagerie.generators.export.write import export_split

MODEL = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 16, "layers": 1, "width": 16, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 32, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
PROGRAM = """
import sys, open_clip
open_clip.add_model_config(sys.argv[1])
from open_clip_train.main import main
main(sys.argv[2:])
"""
BATCH = 4


def test_open_clips_trainer_trains_ten_steps_on_an_export(split, tmp_path, monkeypatch):
    for module in ("open_clip_train", "webdataset", "pandas"):
        pytest.importorskip(module, reason="open_clip's trainer is not installed")
    monkeypatch.setattr(formats, "SHARD_SAMPLES", 9)
    export_split(split, "webdataset", tmp_path / "out", ["train"])
    (tmp_path / "tiny.json").write_text(json.dumps(MODEL))
    shards = sorted(path.name for path in (tmp_path / "out").glob("*.tar"))
    data = f"{tmp_path}/out/train-{{000000..{len(shards) - 1:06d}}}.tar"
    options = {"model": "tiny", "train-data": data, "dataset-type": "webdataset", "batch-size": BATCH, "epochs": 1}
    options |= {"workers": 1, "device": "cpu", "precision": "fp32", "logs": tmp_path, "name": "run", "warmup": 1}
    arguments = [
        str(word) for name, value in (options | {"log-every-n-steps": 1}).items() for word in (f"--{name}", value)
    ]
    call = [sys.executable, "-c", PROGRAM, str(tmp_path / "tiny.json"), *arguments]
    result = subprocess.run(call, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "Handling webdataset error" not in result.stderr + result.stdout  # it drops what it can't read
    losses = re.findall(r"Contrastive_loss: \S+ \((\S+)\)", (tmp_path / "run/out.log").read_text())
    assert len(losses) == math.ceil(len(SplitDataset(split, "train")) / BATCH) >= 10
    assert all(math.isfinite(float(loss)) for loss in losses)
