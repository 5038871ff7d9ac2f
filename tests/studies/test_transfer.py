"""Models scored on benchmarks of photographs, as a user does it."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.plugins import own_module
from menagerie.envs.core.records import read_record
from menagerie.generators.benchmarks.registry import load_benchmark, names
from menagerie.generators.benchmarks.words_alone import bag_scores
from menagerie.generators.sources.place import Place
from menagerie.models.checkpoint import build_scorer, save_checkpoint
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.studies.scoring.benchmarks import OC_CLIP, chances_in
from tests.command import ROOT, read_rows, run_here, succeed
from tests.forked import kill_when
from tests.helpers.benchmark_files import IMAGES, MAKERS, captions_of
from tests.helpers.scorers import OPTIONS
from tests.helpers.source_files import png_header
from tests.studies.browser import plain

TRANSFER = [sys.executable, str(ROOT / "studies" / "transfer.py"), "--data-root", "data"]
OPEN_CLIP = "ViT-S-32-alt"  # the smallest that open_clip knows; without weights they are random
HOSTILE = "<script>alert(1)</script> cat"
BENCHMARKS = ("sugarcrepe", "winoground", "retrieval-coco", "zero-shot")
SCORE = [*TRANSFER, "--benchmarks", *BENCHMARKS, "--threads", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A transformers CLIP of random weights, a checkpoint of ours, data with a hostile caption and a bad image; and the
    scores of both and of an open_clip model in `runs/all`, from a command that was killed and started again."""
    pytest.importorskip("transformers")
    from tests.helpers.hugging_face import make_folder
    from tests.helpers.scorers import scorer

    folder = tmp_path_factory.mktemp("transfer")
    for name in BENCHMARKS:
        MAKERS[name](folder / "data")
    path = folder / "data/sugarcrepe/add_att.json"
    records = {key: its | {"negative_caption": HOSTILE} for key, its in json.loads(path.read_text()).items()}
    path.write_text(json.dumps(records))
    (folder / "data/winoground/images/ex_1_img_0.png").write_bytes(png_header(10_000, 10_000))
    (folder / "clip").mkdir()
    make_folder("clip", folder / "clip")
    save_checkpoint(folder / "ours", "clip", scorer("clip"))
    command = [*SCORE, "clip", OPEN_CLIP, "ours", "--out", "runs/all"]
    kill_when(command, folder, lambda: len(results_in(folder / "runs/all")) >= 2)
    kept = {file: file.stat().st_mtime_ns for file in results_in(folder / "runs/all")}
    done = run_here(command, folder, figures=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: 6 of 12 pieces left out, first ")
    assert f"12 pieces, {len(kept)} of them finished before" in done.stdout
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())
    assert "Warning" not in done.stderr
    (folder / "output.txt").write_text(done.stdout)
    return folder


def results_in(out):
    return list(out.glob("pieces/*/result.json"))


def test_models_of_both_libraries_are_scored_by_one_command(folder):
    rows = read_rows(folder / "runs/all/results.csv")
    scored = {(row["model"], row["benchmark"]) for row in rows}
    whole = set(BENCHMARKS) - {"winoground"}
    assert scored == {(model, name) for model in ("clip", OPEN_CLIP) for name in whole}
    assert len(results_in(folder / "runs/all")) == len(scored)
    assert all(0 <= float(row[rule]) <= 1 for row in rows for rule in ("official", "neutral", "tie_rate"))
    assert not list((folder / "runs/all").rglob(".*.tmp*"))


def test_pieces_that_cannot_be_scored_are_left_out_with_the_reason(folder):
    """A checkpoint of ours doesn't know the words, and an image has 100 million pixels."""
    output = (folder / "output.txt").read_text()
    reasons = dict(re.findall(r"^left out: (.+ on [\w-]+): (.+)$", output, re.MULTILINE))
    pixels, words = (
        (f"{model} on winoground" for model in ("clip", OPEN_CLIP)),
        (f"ours: clip on {n}" for n in BENCHMARKS),
    )
    assert {piece for piece, why in reasons.items() if "10000 x 10000 pixels" in why} == {*pixels}
    assert {piece for piece, why in reasons.items() if "--unknown-words skip" in why} == {*words}
    assert len(reasons) == 6


def test_the_report_escapes_captions_and_counts_pieces(folder):
    report = (folder / "runs/all/report.html").read_text()
    assert "<script>alert" not in report
    assert "6 of 12 pieces are finished" in report
    drawn = read_rows(folder / "runs/all/figures/first-headlines.csv")
    assert len(drawn) == 2 * len({row["benchmark"] for row in read_rows(folder / "runs/all/results.csv")})
    assert all(0 < float(row["chance"]) < 100 for row in drawn)


def test_recall_is_that_of_scores_of_the_library(folder):
    from menagerie import load_scorer

    captions = [text for k in range(IMAGES) for text in captions_of(k)]
    owners = np.array([k for k in range(IMAGES) for _ in captions_of(k)])
    images = [folder / f"data/coco/val2014/COCO_val2014_{k:012d}.jpg" for k in range(IMAGES)]
    scores = load_scorer(folder / "clip").score(images, captions).numpy()
    texts = owners[np.argsort(-scores, axis=1, kind="stable")]
    pictures = np.argsort(-scores, axis=0, kind="stable")
    found = {
        row["name"]: float(row["official"])
        for row in read_rows(folder / "runs/all/results.csv")
        if (row["model"], row["benchmark"], row["kind"]) == ("clip", "retrieval-coco", "headline")
    }
    expected = {}
    for n in (1, 5):
        expected[f"I2T R@{n}"] = pytest.approx(np.mean([k in texts[k, :n] for k in range(IMAGES)]))
        expected[f"T2I R@{n}"] = pytest.approx(np.mean([own in pictures[:n, j] for j, own in enumerate(owners)]))
    assert found == expected


def test_skipped_words_and_texts_are_counted(folder):
    """Texts keep the words that our model knows; texts without any are counted and not scored."""
    options = ["--benchmarks", "sugarcrepe", "retrieval-coco", "--unknown-words", "skip", "--out", "runs/ours"]
    done = run_here([*TRANSFER, "ours", *options], folder, page=False)
    assert done.returncode == 0, done.stderr
    results = {its["benchmark"]: its for its in map(read_record, results_in(folder / "runs/ours"))}
    assert results.keys() == {"sugarcrepe", "retrieval-coco"}
    for its in results.values():
        assert its["skipped"]["words"] > 0
        assert its["skipped"]["texts"] > 0
    assert sum(int(row["n"]) for row in read_rows(folder / "runs/ours/results.csv")) > 0


OWN = """
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec

RECORDS = [Record(str(i), "all", (Photograph("a.png"),), (f"{i} cats", "a dog")) for i in range(2)]
MINE = BenchmarkSpec("NAME", "about", (), ("own/images",), "source", "licence", lambda place: ItemBenchmark(
    "NAME", "own/images", RECORDS, place), None)
OTHER = 5
"""


def test_a_users_benchmark_is_checked_for_its_images(tmp_path):
    (tmp_path / "mine.py").write_text(OWN.replace("NAME", "mine"))
    check = [*TRANSFER, "--check", "--benchmarks", "mine.py:MINE", "--images", "own/images=elsewhere"]
    (tmp_path / "elsewhere").mkdir()
    assert "a.png" in run_here(check, tmp_path).stdout, "the image is missing"
    Image.new("RGB", (8, 8)).save(tmp_path / "elsewhere/a.png")
    done = run_here(check, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 records; 0.0% have a false text of the same words, a bag of words gets at most 100.0%" in done.stdout


def test_without_names_all_complete_benchmarks_are_read(tmp_path, capsys):
    """Without a tagger, word orders are left out with the reason."""
    from menagerie.studies.scoring.check import read_benchmarks

    def no_tagger(text):
        raise UserError("there is no tagger")

    made = {name: MAKERS[name](tmp_path) for name in ("coco-order", "sugarcrepe", "winoground", "zero-shot")}
    (tmp_path / "sugarcrepe/swap_obj.json").unlink()
    specs = [replace(load_benchmark(name), counts={}, sets={}) for name in made]
    found = [spec.name for spec, _ in read_benchmarks(specs, False, Place(tmp_path, tag=no_tagger))]
    assert found == ["winoground", "zero-shot"]
    assert capsys.readouterr().out.splitlines() == [
        "left out: coco-order: there is no tagger",
        f"complete in {tmp_path}: winoground, zero-shot",
    ]


def test_docs_name_every_benchmark():
    page = (ROOT / "docs/transfer.md").read_text().partition("## Training sources")[0]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == list(names())


def scores_in(out):
    """The scores of all records, by model and benchmark."""
    results = map(read_record, results_in(out))
    return {
        (its["model"], its["benchmark"]): (out / "pieces" / its["id"] / "scores.csv").read_bytes() for its in results
    }


def test_an_undisturbed_run_has_the_same_scores(folder):
    done = run_here([*SCORE, "clip", "--out", "runs/whole"], folder, page=False)
    assert done.returncode == 1, done.stderr
    whole, all_ = folder / "runs/whole", folder / "runs/all"
    ours = {name: scores for name, scores in scores_in(all_).items() if name[0] == "clip"}
    assert scores_in(whole) == ours
    assert len(ours) == 3
    assert read_rows(whole / "results.csv") == [
        row for row in read_rows(all_ / "results.csv") if row["model"] == "clip"
    ]


def test_tables_of_the_paper_have_our_rows_and_its_own(folder):
    """Of its benchmarks only SugarCrepe was scored, so there is only table 1."""
    layout = OC_CLIP["tables"][0]
    rows = [row for row in read_rows(folder / "runs/all/results.csv") if row["benchmark"] == "sugarcrepe"]
    values = {(row["model"], row["name"]): row for row in rows}
    names = [name for _, _, name in layout["columns"]]
    table = {row["model"]: [*row.values()][1:] for row in read_rows(folder / "runs/all/paper-table-1.csv")}
    for model, title in ((OPEN_CLIP, f"{OPEN_CLIP}, untrained"), ("clip", "clip")):
        assert table[title] == [f"{100 * float(values[model, name]['official']):.1f}" for name in names]
    report = plain(folder / "runs/all/report.html")
    assert f"<td>{OPEN_CLIP}</td>" not in report, "random weights are always marked"
    assert table["chance"] == ["50.0"] * 9
    assert table["OC-CLIP B-14 (theirs)"] == [*layout["rows"][-1][1:], "–", "–"]
    assert not (folder / "runs/all/paper-table-3.csv").exists(), "no model could read an image of Winoground"


def test_chance_is_the_accuracy_of_guessing(folder):
    """By each benchmark's rules: chance in group score isn't the product of those in text and image score."""
    place = Place(folder / "data")
    found = {name: chances_in(load_benchmark(name).build(place)) for name in ("winoground", "sugarcrepe")}
    groups = {name: value for (kind, name), value in found["winoground"].items() if kind == "task"}
    assert groups == pytest.approx({"text": 0.25, "image": 0.25, "group": 1 / 6})
    assert set(found["sugarcrepe"].values()) == {0.5}
    retrieval = chances_in(load_benchmark("retrieval-coco").build(place))  # one image of seven belongs with a text
    assert retrieval["headline", "T2I R@1"] == pytest.approx(1 / IMAGES)
    assert retrieval["headline", "T2I R@5"] == pytest.approx(5 / IMAGES)
    assert retrieval["headline", "I2T R@1"] == pytest.approx(1 / IMAGES), "each text is equally likely to be first"
    bags = {name: chances_in(load_benchmark(name).build(place), bag_scores) for name in BENCHMARKS[:3]}
    assert bags["winoground"] == pytest.approx(found["winoground"]), "its captions have the same words"
    assert (set(bags["sugarcrepe"].values()), bags["retrieval-coco"]) == ({1.0}, {})
    (row,) = [row for row in read_rows(folder / "runs/all/headlines.csv") if row["accuracy, %"] == "sugarcrepe, micro"]
    assert (row["chance"], row["words"]) == ("50.0", "100.0")


def test_a_users_benchmark_is_scored_in_another_process(folder):
    """Its rules are in a file that only this command knows; the user's other files aren't run there."""
    other = folder / "other.py"
    other.write_text("")
    own_module(other)
    other.write_text("raise RuntimeError")
    own = f"{OWN.replace('NAME', 'mine')}\n\ndef rule(scores):\n    return texts_chosen(scores)\n"
    own = "from menagerie.generators.benchmarks.benchmark import texts_chosen\n" + own.replace("place)", "place, rule)")
    (folder / "own.py").write_text(own)
    (folder / "elsewhere").mkdir()
    Image.new("RGB", (8, 8)).save(folder / "elsewhere/a.png")
    options = ["--benchmarks", "own.py:MINE", "--images", "own/images=elsewhere", "--out", "runs/own"]
    done = run_here([*TRANSFER, "clip", *options, "--threads", "1"], folder, page=False)
    assert done.returncode == 0, done.stderr
    assert {row["n"] for row in read_rows(folder / "runs/own/results.csv")} == {"2"}


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
    succeed([sys.executable, str(ROOT / "studies/transfer.py"), *options], tmp_path, figures=False)
    (result,) = map(read_record, results_in(tmp_path / "out"))
    assert (result["tasks"][path.stem]["official"], result["tasks"][path.stem]["tie_rate"]) == (0, 1)
    texts = {its[key] for file in (path, *others) for its in json.loads(file.read_text()).values() for key in long}
    assert result["cut"] == {"texts": 2, "of": len(texts), "context": 77, "first": long["caption"]}
    assert f"2 of {len(texts)} texts are longer than its 77 tokens" in (tmp_path / "out/report.html").read_text()
