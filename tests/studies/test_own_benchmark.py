"""A benchmark and a form of the hub in files of a user's own: those that `menagerie new` writes, and the docs show."""

import csv
import io
import json
import re
import sys

import numpy as np
import pytest
from PIL import Image

from menagerie.models.checkpoint import save_checkpoint
from tests.command import ROOT, succeed
from tests.helpers.benchmark_files import write_images, write_json
from tests.helpers.scorers import scorer

MENAGERIE = [sys.executable, "-m", "menagerie"]


def test_the_benchmark_of_the_docs_is_checked_and_scored(tmp_path):
    """It is what `menagerie new` writes; its answers stand everywhere in the file's order."""
    succeed([*MENAGERIE, "new", "mine.py", "--kind", "benchmark"], tmp_path, figures=False)
    text = (ROOT / "docs/extending.md").read_text().partition("## A benchmark of your own")[2]
    assert re.search(r"```python\n(.*?)```", text, re.DOTALL)[1] == (tmp_path / "mine.py").read_text()
    names = [f"{k}.jpg" for k in range(4)]
    captions = ["a cat", "a dog", "a cup"]
    rows = [
        {"image": name, "captions": captions, "answer": k % 3, "kind": "ab"[k // 2]} for k, name in enumerate(names)
    ]
    write_json(tmp_path / "DATA/mine/records.json", rows)
    write_images(tmp_path / "DATA/mine/images", names)
    save_checkpoint(tmp_path / "ours", "clip", scorer("clip"))
    named = ["--benchmarks", "mine.py:BENCHMARK", "--data-root", "DATA"]
    checked = succeed([*MENAGERIE, "transfer", "--check", *named], tmp_path, figures=False)
    assert "mine: complete, 4 records" in checked.stdout
    options = ["--out", "out", "--threads", "1", "--workers", "1", "--unknown-words", "skip"]
    succeed([*MENAGERIE, "transfer", "ours", *named, *options], tmp_path, figures=False)
    results = {row["name"]: row for row in csv.DictReader((tmp_path / "out/results.csv").open())}
    assert {name: row["n"] for name, row in results.items()} == {
        "a": "2",
        "b": "2",
        "macro over kinds": "4",
        "micro": "4",
    }


def test_the_form_of_menagerie_new_is_imported(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    succeed([*MENAGERIE, "new", "mine.py", "--kind", "form"], tmp_path, figures=False)
    out = io.BytesIO()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(out, "PNG")
    photo = {"bytes": out.getvalue(), "path": "000000000001.png"}
    rows = [{"photo": photo, "yes": f"a cat {k}", "no": "a dog" * (k != 1)} for k in range(3)]
    (tmp_path / "hub").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "hub/swap_obj.parquet")
    done = succeed(
        [*MENAGERIE, "import-hf", "hub", "--form", "mine.py:FORM", "--data-root", "DATA"], tmp_path, figures=False
    )
    assert "sugarcrepe swap_obj: 2 records" in done.stdout
    made = json.loads((tmp_path / "DATA/sugarcrepe/swap_obj.json").read_text())
    assert [entry["caption"] for entry in made.values()] == ["a cat 0", "a cat 2"]
