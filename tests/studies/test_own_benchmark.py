"""A benchmark and a form of the hub in files of a user's own: those that `menagerie new` writes, and the docs show."""

import io
import json
import re
import sys

import numpy as np
import pytest
from PIL import Image

from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.place import Place
from menagerie.models.evaluation.scoring import score_items
from menagerie.studies.scoring.benchmarks import subject_of
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
    captions = ["a red cat", "a red dog", "a dog"]
    rows = [
        {"image": name, "captions": captions, "answer": k % 3, "kind": "ab"[k // 2]} for k, name in enumerate(names)
    ]
    write_json(tmp_path / "DATA/mine/records.json", rows)
    write_images(tmp_path / "DATA/mine/images", names)
    named = ["--benchmarks", "mine.py:BENCHMARK", "--data-root", "DATA"]
    checked = succeed([*MENAGERIE, "transfer", "--check", *named], tmp_path, figures=False)
    assert "mine: complete, 4 records" in checked.stdout
    spec = load_benchmark(f"{tmp_path}/mine.py:BENCHMARK")
    bench = subject_of(spec, spec.build(Place(tmp_path / "DATA", 32))).bench  # as the process that scores it has it
    assert len(score_items(scorer("clip"), bench, items=bench.items)) == 4
    constant = [bench.outcome(item, np.zeros((1, 3))) for item in bench.items]
    assert [outcome.official for outcome in constant] == [1, 0, 0, 1]
    found = {name: its.official for name, its in bench.headlines(bench.items, constant).items()}
    assert found == {"macro over kinds": 0.5, "micro": 0.5}


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
