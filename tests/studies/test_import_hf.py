"""Folders of the Hugging Face hub made official files: the loaders and `transfer.py` read the same as from the official
ones, whatever form the folder has, and of a bad folder nothing is made."""

import csv
import hashlib
import io
import json
import pickle
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.caption_pairs import SUGARCREPE as COUNTS
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.hub.classes import CLASSES
from menagerie.generators.hub.forms import FORMS
from menagerie.generators.hub.put import ImportSummary, put_below
from menagerie.generators.hub.write import import_folder
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import load_source
from menagerie.models.checkpoint import save_checkpoint
from menagerie.studies.scoring.check import inspect_benchmark
from tests.command import ROOT, run_here
from tests.disks import with_largest_file
from tests.helpers.benchmark_files import make_sugarcrepe, make_winoground, write_json
from tests.helpers.scorers import scorer

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TRANSFER = [sys.executable, str(ROOT / "studies" / "transfer.py")]
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:39fc2a59461c\nsize 122000000\n"


def picture(number: int, form: str = "JPEG") -> bytes:
    """A small picture of noise."""
    out = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (24, 36, 3), np.uint8)
    Image.fromarray(pixels).save(out, form)
    return out.getvalue()


def held(content: bytes | None, path: str | None = None) -> dict[str, bytes | str | None]:
    """A picture as the hub's tables have it."""
    return {"bytes": content, "path": path}


def write_table(path: Path, rows: Sequence[dict], metadata: dict[str, str] | None = None) -> Path:
    """A parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)).replace_schema_metadata(metadata), path)
    return path


def contents(root: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def crepe_row(number: int = 1, **other: object) -> dict:
    """A row of SugarCrepe."""
    image = held(picture(number), f"{number:012d}.jpg")
    return {"image": image, "caption": f"a cat {number}", "negative_caption": f"a dog {number}"} | other


def numbers_of(folder: Path, root: str) -> list[dict[str, str]]:
    """All numbers of a small scorer on SugarCrepe."""
    options = ["--benchmarks", "sugarcrepe", "--data-root", root, "--out", f"runs/{root}"]
    done = run_here(
        [*TRANSFER, "ours", *options, "--threads", "1", "--workers", "1", "--unknown-words", "skip"], folder
    )
    assert done.returncode == 0, done.stderr
    rows = csv.DictReader((folder / f"runs/{root}/results.csv").open())
    return [{key: value for key, value in row.items() if key != "piece"} for row in rows]  # named by paths too


def test_parquet_gives_the_numbers_of_the_official_files(tmp_path):
    """A folder for each part; pictures as bytes, as names of files and as both; one part in two files."""
    make_sugarcrepe(tmp_path / "official")
    hub = tmp_path / "hub"
    images = tmp_path / "official/coco/val2017"
    shutil.copytree(images, hub / "images")
    for k, part in enumerate(COUNTS):
        path = tmp_path / f"official/sugarcrepe/{part}.json"
        records, rows = json.loads(path.read_text()), []
        for n, record in enumerate(records.values()):  # with the cat true of some and false of others
            record["caption"], record["negative_caption"] = ["A cat", "A dog"][:: 1 if (k >> n) % 2 else -1]
        path.write_text(json.dumps(records))
        for record in records.values():
            name = record.pop("filename")
            shown = (held((images / name).read_bytes(), name), f"images/{name}", held(None, f"images/{name}"))[k % 3]
            rows.append({"image": shown, **record})
        for n, some in enumerate([rows[:1], rows[1:]] if k == 0 else [rows]):
            write_table(hub / part / f"test-{n:05}-of-{1 + (k == 0):05}.parquet", some)
    done = run_here([sys.executable, "-m", "menagerie", "import-hf", "hub", "--data-root", "made"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sugarcrepe swap_obj: 2 records" in done.stdout
    assert "read: add_att/test, add_obj/test" in done.stdout
    assert contents(tmp_path / "made/coco/val2017") == contents(images)
    save_checkpoint(tmp_path / "ours", "clip", scorer("clip"))
    expected = numbers_of(tmp_path, "official")
    assert {row["name"] for row in expected} >= {*COUNTS, "micro", "macro"}
    assert {row["official"] for row in expected} >= {"0.0", "0.5", "1.0"}
    assert numbers_of(tmp_path, "made") == expected


def test_a_folder_that_datasets_saved(tmp_path):
    """Two splits, pictures from PIL and from files, classes by number."""
    datasets = pytest.importorskip("datasets", reason="only the test extra brings `datasets`")
    (tmp_path / "000000000007.jpg").write_bytes(picture(7))
    texts = ["a dog on a cat", "a cat on a dog", "a cup"]
    pictures = [str(tmp_path / "000000000007.jpg"), Image.open(io.BytesIO(picture(8, "PNG")))]
    rows = {"image": pictures, "tested_labels": [texts[1::-1], texts[1:]], "true_label": [1, 2]}
    features = datasets.Features(
        image=datasets.Image(),
        tested_labels=datasets.Sequence(datasets.Value("string")),
        true_label=datasets.ClassLabel(names=texts),
    )
    table = datasets.Dataset.from_dict(rows, features=features)
    saved = tmp_path / "SugarCrepe_swap_obj"
    datasets.DatasetDict({"train": table.select([0]), "test": table}).save_to_disk(
        saved, num_shards={"test": 2, "train": 1}
    )
    (tmp_path / "000000000007.jpg").unlink()
    made = import_folder(saved, tmp_path / "data")
    assert made == ImportSummary(
        "sugarcrepe", "coco/val2017", {"swap_obj": 2}, 2, ["test"], ["train"], warning=made.warning
    )
    assert "real_data.py refuses to train" in made.warning  # a picture of PIL's has no name
    records = json.loads((tmp_path / "data/sugarcrepe/swap_obj.json").read_text())
    assert [its["caption"] for its in records.values()] == ["a cat on a dog", "a cup"]
    assert [its["negative_caption"] for its in records.values()] == ["a dog on a cat", "a cat on a dog"]
    assert records["0"]["filename"] == "000000000007.jpg"
    assert (tmp_path / "data/coco/val2017/000000000007.jpg").read_bytes() == picture(7)
    assert Image.open(tmp_path / "data/coco/val2017" / records["1"]["filename"]).format == "PNG"


SWAPS = {"caption": "a cat", "negative_caption": "a dog"}


def bivlc_row(number: int, path: str | None) -> dict:
    """A row of BiVLC."""
    images = {"image": held(picture(number), path), "negative_image": held(picture(9), None)}
    return images | SWAPS | {"type": "swap", "subtype": "obj"}


JPEG, PNG = picture(1), picture(2, "PNG")
BOX = {"x": 4.0, "y": 2.0, "w": 30.0, "h": 20.0}
SIDES = {f"bbox_{key}": side for key, side in BOX.items()}
TEXTS = {"true_caption": "the cat is on the dog", "false_caption": "the dog is on the cat"}
PAIR = {"caption_0": "a cat on a dog", "caption_1": "a dog on a cat", "collapsed_tag": "Object", "secondary_tag": ""}
COLOURS = {"caption_1": "a", "caption_2": "b"}
TEXT_PAIR = {"text_0": "a cat", "text_1": "two cats", "category": "counting"}
ROW = {"id": 3, "filename": "000000000001.jpg", "caption2": "one cat"} | SWAPS
IMAGE = {"image": held(JPEG, "2317.jpg"), "bbox": BOX} | TEXTS
BOXED = {"image_path": "2317.jpg"} | TEXTS | SIDES
CATS = ["a cat", "one cat"]
ORDERED = {"correct_caption": "a cat on a dog"} | {f"hard_text_{k}": f"cat a {k}" for k in range(1, 5)}
# Of a form: its rows, and where its annotations say what.
FORMED = {
    "yjkimstats/SUGARCREPE_fmt": (
        [
            {"images": held(JPEG), "filename": "000000000001.jpg", "Negative_type": part} | SWAPS
            for part in ("swap_obj", "add-att")
        ],
        {
            f"sugarcrepe/{part}.json": {"0": {"filename": "000000000001.jpg"} | SWAPS}
            for part in ("swap_obj", "add_att")
        },
    ),
    "Aman-J/SugarCrepe_pp": ([ROW], {"sugarcrepe_pp/swap_att.json": [ROW]}),
    "facebook/winoground": (
        [{"id": 5, "image_0": held(JPEG), "image_1": held(PNG)} | PAIR],
        {"winoground/examples.jsonl": {"id": 5, "image_0": "ex_5_img_0", "image_1": "ex_5_img_1"} | PAIR},
    ),
    "gowitheflow/ARO-Visual-Relation": (
        [IMAGE | {"relation_name": "on"}],
        {"aro/visual_genome_relation.json": [BOXED | {"relation_name": "on"}]},
    ),
    "gowitheflow/ARO-Visual-Attribution": (
        [IMAGE | {"attributes": ["red", "big"]}],
        {"aro/visual_genome_attribution.json": [BOXED | {"attributes": ["red", "big"]}]},
    ),
    "stanfordnlp/colorswap": (
        [{"id": 0, "image_1": held(JPEG), "image_2": held(picture(2))} | COLOURS],
        {"colorswap/test.json": [{f"image_{k}": f"images/img_0_{k}.png" for k in (1, 2)} | {"id": 0} | COLOURS]},
    ),
    "imirandam/BiVLC": (
        [bivlc_row(1, "000000000001.jpg") | {"negative_image": held(PNG, "x/1.png")}],
        {
            "bivlc/test.jsonl": {"image": "000000000001.jpg", "negative_image": "1.png", "type": "swap"}
            | SWAPS
            | {"subtype": "obj"}
        },
    ),
    "mair-lab/vismin-bench": (
        [{"image_0": held(JPEG, "0.jpg"), "image_1": held(PNG, "1.png"), "id": 7} | TEXT_PAIR],
        {"vismin/test.jsonl": {"image_0": "0.jpg", "image_1": "1.png"} | TEXT_PAIR},
    ),
    "nlphuji/flickr30k": (
        [
            {
                "image": held(JPEG),
                "caption": ["a cat", "one cat"],
                "split": split,
                "filename": f"{k}.jpg",
                "img_id": str(k),
            }
            for k, split in enumerate(("test", "train", "test"))
        ],
        {"flickr30k/flickr30k_test.json": [{"image": f"{k}.jpg", "caption": CATS} for k in (0, 2)]},
    ),
    "nlphuji/mscoco_2014_5k_test_image_text_retrieval": (
        [
            {"image": held(JPEG), "caption": ["a cat"], "cocoid": k, "filename": f"COCO_val2014_00000000000{k}.jpg"}
            for k in (1, 2)
        ],
        {
            "coco/coco_karpathy_test.json": [
                {"image": f"COCO_val2014_00000000000{k}.jpg", "caption": ["a cat"]} for k in (1, 2)
            ]
        },
    ),
    "yerevann/coco-karpathy": (
        [{"filename": "COCO_val2014_000000000001.jpg", "split": "test", "sentences": ["a cat"], "cocoid": 1}],
        {"coco/coco_karpathy_test.json": [{"image": "COCO_val2014_000000000001.jpg", "caption": ["a cat"]}]},
    ),
    "gowitheflow/ARO-COCO-order": (
        [{"images": held(JPEG, "COCO_val2014_000000000001.jpg")} | ORDERED] * 2,
        {"aro/coco_order.json": [{"image": "COCO_val2014_000000000001.jpg", "captions": list(ORDERED.values())}] * 2},
    ),
    "gowitheflow/ARO-Flickr-Order": (
        [{"images": held(JPEG, "1.jpg")} | ORDERED],
        {"aro/flickr_order.json": [{"image": "1.jpg", "captions": list(ORDERED.values())}]},
    ),
    "AsphyXIA/valse": (
        [
            {"images": [held(JPEG)], "original_file_name": "v7w_1.jpg", "linguistic_phenomena": "plurals"}
            | {"positive_caption": ["a cat"], "negative_caption": ["cats"]}
        ],
        {},
    ),
}


@pytest.mark.parametrize("source", FORMED)
def test_every_form_of_the_hub_gives_what_its_benchmark_reads(tmp_path, source):
    rows, expected = FORMED[source]
    folder = tmp_path / (source.rpartition("/")[2] if "Order" in source or "order" in source else "swap_attribute")
    write_table(folder / "data/test-00000-of-00001.parquet", rows)
    made = import_folder(folder, tmp_path / "data")
    assert made.benchmark == next(form.benchmark for form in FORMS if form.source == source)
    for name, content in expected.items():
        assert json.loads((tmp_path / "data" / name).read_text()) == content
    files = contents(tmp_path / "data")
    assert len(files) == len(expected) + made.images
    import_folder(folder, tmp_path / "data")  # again: nothing is another
    assert contents(tmp_path / "data") == files
    if made.images and len(load_benchmark(made.benchmark).files) <= 1:
        bench = load_benchmark(made.benchmark).build(Place(tmp_path / "data", resolution=16))
        assert bench.images(range(len(bench.numbers))).shape[2:] == (16, 16)
        assert len(bench.numbers) == made.images


def test_every_form_is_tried_and_in_the_docs():
    tried = {*FORMED, "one table for each part", "HuggingFaceM4/SugarCrepe_swap_obj and its like"}
    assert {form.source for form in FORMS} == tried
    page = (ROOT / "docs/transfer.md").read_text()
    assert [form.source for form in (*FORMS, CLASSES) if f"\n| {form.source}" not in page] == []


MADE = hashlib.sha256(picture(2)).hexdigest()[:16] + ".jpg"


@pytest.mark.parametrize(
    ("pictures", "paths", "files"),
    [
        ((1, 2, 1), ["img.jpg"] * 3, 2),  # as sets whose paths lost their folders have them
        ((1, 2, 2, 4), ["a.jpg", "A.JPG", None, MADE], 3),  # capitals alone; a name that is made of the content
    ],
)
def test_no_name_is_taken_for_that_of_another_picture(pictures, paths, files, tmp_path):
    write_table(tmp_path / "hub/test.parquet", list(map(bivlc_row, pictures, paths)))
    assert import_folder(tmp_path / "hub", tmp_path / "data").images == files + 1
    records = [json.loads(line) for line in (tmp_path / "data/bivlc/test.jsonl").open()]
    shown = [(tmp_path / "data/bivlc/images" / record["image"]).read_bytes() for record in records]
    assert shown == list(map(picture, pictures))
    assert len({record["image"].lower() for record in records}) == files
    assert len({record["negative_image"] for record in records}) == 1


def test_a_second_part_joins_the_first(tmp_path):
    """Its pictures go beside those that are there, which stay."""
    for number, part in enumerate(("swap_obj", "swap_att")):
        write_table(
            tmp_path / f"SugarCrepe_{part}/data/test-00000-of-00001.parquet", [crepe_row(1), crepe_row(2 + number)]
        )
        assert import_folder(tmp_path / f"SugarCrepe_{part}", tmp_path / "data").warning == ""
    assert sorted(contents(tmp_path / "data")) == [
        *(f"coco/val2017/00000000000{k}.jpg" for k in (1, 2, 3)),
        *(f"sugarcrepe/{part}.json" for part in ("swap_att", "swap_obj")),
    ]


def in_swap_obj(folder: Path, *rows: dict, name: str = "swap_obj.parquet", metadata: dict | None = None) -> None:
    write_table(folder / name, rows, metadata)


def torn(folder: Path) -> None:
    in_swap_obj(folder, crepe_row(1))
    path = folder / "swap_obj.parquet"
    path.write_bytes(path.read_bytes()[:-40])


def between_rows(folder: Path) -> None:
    """A stream of two batches without its end mark, which arrow takes for a whole one."""
    batch = pa.RecordBatch.from_pylist([crepe_row()])
    with pa.OSFile(str(folder / "swap_obj.arrow"), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
    path = folder / "swap_obj.arrow"
    path.write_bytes(path.read_bytes()[:-8])


def garbled(folder: Path) -> None:
    (folder / "swap_obj.arrow").write_bytes(b"ARROW1\0\0" + bytes(range(200)))


def rows(*made: dict, **options: object):
    """What writes a table of some rows into a folder."""
    return lambda folder: in_swap_obj(folder, *made, **options)


def files(*names: str):
    """What writes tables of these names, each with a row of its own, into a folder."""
    return lambda folder: [in_swap_obj(folder, crepe_row(k), name=name) for k, name in enumerate(names, start=1)]


INCOMPLETE = "files of its table are missing, or others lie among"
# What is wrong with a folder, and what the error says.
BAD = {
    "nothing": (lambda folder: None, "there are no parquet or arrow files"),
    "pickles": (lambda folder: (folder / "a.pkl").write_bytes(pickle.dumps(1)), "there are no parquet or arrow files"),
    "torn": (torn, "swap_obj.parquet is no whole parquet file"),
    "torn between rows": (between_rows, "swap_obj.arrow is no whole arrow file (it has no end mark"),
    "garbled": (garbled, "swap_obj.arrow is no whole arrow file"),
    "a pointer": (lambda folder: (folder / "swap_obj.parquet").write_text(POINTER), "is a git-lfs pointer"),
    "half of it": (files("swap_obj-00001-of-00002.parquet"), INCOMPLETE),
    "two revisions": (files(*(f"test-00000-of-00001-{c * 16}.parquet" for c in "ab")), INCOMPLETE),
    "another count": (files(*(f"test-0000{k}-of-0000{k + 1}.parquet" for k in range(2))), INCOMPLETE),
    "a gap between numbers": (files("swap_obj/test/0000.parquet", "swap_obj/test/0002.parquet"), INCOMPLETE),
    "no first number": (files("swap_obj/test/0001.parquet"), INCOMPLETE),
    "one split in two places": (files("test.parquet", "data/test.parquet"), INCOMPLETE),
    "a split to train on": (
        rows(*FORMED["stanfordnlp/colorswap"][0], name="data/train-00000-of-00001.parquet"),
        "has train; name one with --split",
    ),
    "no rows": (
        lambda f: pq.write_table(pa.Table.from_pylist([crepe_row()])[:0], f / "swap_obj.parquet"),
        "has no rows",
    ),
    "other columns": (rows({"a": 1}), "has the columns a (int64); for a form of your own"),
    "no part": (files("test.parquet"), "name it with --part"),
    "two splits": (files("train.parquet", "dev.parquet"), "name one with --split"),
    "a part of two tables": (files("x/swap_obj.parquet", "y/swap_obj.parquet"), "as another table"),
    "no text": (rows(crepe_row(caption=None)), "row 0 has a 'caption' that is no str"),
    "no picture": (rows(crepe_row(image=held(None))), "row 0 has no picture in 'image'"),
    "text for a picture": (rows(crepe_row(image=held(b"<html>404"))), "no JPEG, PNG or WEBP"),
    "a number for a picture": (rows(crepe_row(image=7)), "row 0 has no picture in 'image'"),
    "a missing picture": (rows(crepe_row(image="a.jpg")), "a picture in 'image' that isn't in"),
    "a climbing path": (rows(crepe_row(image="../out.jpg")), "leads out of"),
    "an absolute path": (lambda f: in_swap_obj(f, crepe_row(image=str(f.parent / "out.jpg"))), "leads out of"),
    "a second picture of a name": (
        rows(*(crepe_row(k, filename="000000000001.jpg") for k in (1, 2))),
        "row 1 calls its picture in 'image' as another one is called: '000000000001.jpg'",
    ),
    "a picture that is called like no file": (
        rows(crepe_row(filename="con:1.jpg")),
        "row 0 calls its picture in 'image' as no file can be called: 'con:1.jpg'",
    ),
    "a class without a name": (
        rows({"image": held(picture(1)), "tested_labels": ["a", "b"], "true_label": 1}),
        "has a 'true_label' that is none of its 'tested_labels'",
    ),
    "strange notes": (rows(crepe_row(), metadata={"huggingface": "[" * 999}), "is no JSON"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_folder_is_one_error_and_makes_nothing(tmp_path, fault):
    write, reason = BAD[fault]
    (tmp_path / "hub").mkdir()
    (tmp_path / "out.jpg").write_bytes(picture(1))
    write(tmp_path / "hub")
    with pytest.raises(UserError) as error:
        import_folder(tmp_path / "hub", tmp_path / "data")
    assert reason in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hub", "out.jpg"]


@pytest.mark.parametrize("features", [7, {"image": 7}, {"caption": {"names": "ab"}}, {"image": {"_type": "Image"}}])
def test_notes_on_columns_may_say_anything(tmp_path, features):
    in_swap_obj(tmp_path / "hub", crepe_row(), metadata={"huggingface": json.dumps({"info": {"features": features}})})
    assert import_folder(tmp_path / "hub", tmp_path / "data").records == {"swap_obj": 1}


def test_an_import_leaves_existing_files_as_they_are(tmp_path):
    """Another file of the same name is an error before anything is moved."""
    in_swap_obj(tmp_path / "hub", crepe_row(1), crepe_row(2))
    (tmp_path / "data/coco/val2017").mkdir(parents=True)
    (tmp_path / "data/coco/val2017/000000000002.jpg").write_bytes(picture(3))
    before = contents(tmp_path / "data")
    with pytest.raises(UserError, match=r"000000000002\.jpg is there already, and is another"):
        import_folder(tmp_path / "hub", tmp_path / "data")
    assert contents(tmp_path / "data") == before
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["coco"]


def test_a_full_disk_is_named_by_its_data_root(tmp_path):
    in_swap_obj(tmp_path / "hub", crepe_row())
    what, said = with_largest_file(100, lambda: import_folder(tmp_path / "hub", tmp_path / "data"), tmp_path)
    assert what == "error"
    assert said.startswith(f"{tmp_path}/data can't be written (File too large); raise the limit"), said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hub"]


def test_options_are_named_where_they_are_wrong(tmp_path):
    in_swap_obj(tmp_path / "hub", crepe_row())
    for options in ({"benchmark": "sugarcrep"}, {"part": "swap_obk"}, {"split": "test"}):
        with pytest.raises(UserError, match="unknown"):
            import_folder(tmp_path / "hub", tmp_path / "data", **options)
    made = import_folder(tmp_path / "hub", tmp_path / "data", "sugarcrepe", "add_att", "swap_obj")
    assert made.records == {"add_att": 1}
    write_table(tmp_path / "fmt/train.parquet", FORMED["yjkimstats/SUGARCREPE_fmt"][0])
    made = import_folder(tmp_path / "fmt", tmp_path / "fmt_data", split="train")
    assert (made.read, made.records) == (["train"], {"swap_obj": 1, "add_att": 1})
    with pytest.raises(UserError, match="leave --part out"):
        import_folder(tmp_path / "fmt", tmp_path / "data", part="add_att")


def test_a_folder_of_the_hubs_cache_is_called_as_its_set(tmp_path):
    """Its files are links to others beside it."""
    cache = tmp_path / "datasets--HuggingFaceM4--SugarCrepe_swap_obj"
    write_table(cache / "blobs/0a1b.parquet", [crepe_row()]).rename(cache / "blobs/0a1b")
    folder = cache / "snapshots/7c2e"
    (folder / "data").mkdir(parents=True)
    (folder / "data/test-00000-of-00001.parquet").symlink_to("../../../blobs/0a1b")
    assert import_folder(folder, tmp_path / "data").records == {"swap_obj": 1}
    (cache / "blobs/9f").write_bytes(picture(2))
    (folder / "a.jpg").symlink_to("../../blobs/9f")
    (cache / "blobs/0a1b").write_bytes(write_table(tmp_path / "paths.parquet", [crepe_row(image="a.jpg")]).read_bytes())
    assert import_folder(folder, tmp_path / "linked").images == 1
    write_table(tmp_path / "up.parquet", [crepe_row(image="../../blobs/9f")]).replace(cache / "blobs/0a1b")
    with pytest.raises(UserError, match="leads out of"):
        import_folder(folder, tmp_path / "paths")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    in_swap_obj(tmp_path / "hub", crepe_row())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r"needs pyarrow: pip install 'binding-menagerie\[parquet\]'"):
        import_folder(tmp_path / "hub", tmp_path / "data")


# Webdatasets of CLIP_benchmark


def write_webdataset(folder: Path, labels: Sequence[Sequence[str]]) -> Path:
    """A tar file for each list of labels."""
    (folder / "test").mkdir(parents=True)
    (folder / "classnames.txt").write_text("cat\ndog\n")
    (folder / "zeroshot_classification_templates.txt").write_text("a photo of a {c}.\na {c}\n")
    (folder / "test/nshards.txt").write_text(f"{len(labels)}\n")
    for k, own in enumerate(labels):
        with tarfile.open(folder / f"test/{k}.tar", "w") as tar:
            for n, label in enumerate(own):
                for name, content in ((f"s{n}.webp", picture(9 * k + n, "WEBP")), (f"s{n}.cls", label.encode())):
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    return folder


def test_a_webdataset_of_classes_is_read_by_zero_shot(tmp_path):
    folder = write_webdataset(tmp_path / "wds_pair", [["0", "1\n"], ["1"]])
    made = import_folder(folder, tmp_path / "data")
    assert made == ImportSummary("zero-shot", "zero_shot/pair", {"pair": 3}, 3, ["test"], [])
    bench = load_benchmark("zero-shot").build(Place(tmp_path / "data", resolution=16))
    (pool,) = bench.pools
    assert pool.pairs == ((0, 0), (1, 1), (2, 1))
    assert [text.text for text in pool.texts[0]] == ["a photo of a cat.", "a cat"]
    first = load_benchmark("zero-shot").build(Place(tmp_path / "data", resolution=16)).records[0]
    assert (tmp_path / "data/zero_shot" / first.images[0].file).read_bytes() == picture(0, "WEBP")
    with pytest.raises(UserError, match="is there already"):
        import_folder(folder, tmp_path / "data")
    for options in ({"benchmark": "winoground"}, {"part": "swap_obj"}):
        with pytest.raises(UserError, match=r"is a webdataset.* leave --"):
            import_folder(folder, tmp_path / "other", **options)


def test_a_cached_webdataset_of_numbers_keeps_its_name_and_its_classes(tmp_path):
    """Its classes are called by numbers that aren't their places; another split beside it is named."""
    commit = tmp_path / "datasets--clip-benchmark--wds_vtab-pair/snapshots/0123abcd"
    write_webdataset(commit, [["0", "1", "2"]])
    (commit / "classnames.txt").write_text("2\n0\n1\n")
    (commit / "dataset_type.txt").write_text("classification\n")
    (commit / "train").mkdir()
    shutil.copy(commit / "test/0.tar", commit / "train")
    made = import_folder(commit, tmp_path / "data", "zero-shot")
    assert (made.folder, made.read, made.left_out) == ("zero_shot/vtab-pair", ["test"], ["train"])
    (pool,) = load_benchmark("zero-shot").build(Place(tmp_path / "data", resolution=16)).pools
    assert pool.pairs == ((0, 0), (1, 1), (2, 2))
    assert [texts[1].text for texts in pool.texts] == ["a 2", "a 0", "a 1"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: (f / "test/nshards.txt").write_text("2"), "has 1 of 2 tar files"),
        (lambda f: (f / "dataset_type.txt").write_text("retrieval"), "name one with --benchmark: retrieval-"),
        (lambda f: (f / "classnames.txt").write_text("cat\n"), "'s1' has a class that is no number below 1: '1'"),
        (lambda f: (f / "dataset_type.txt").write_text("multilabel\n"), "is a webdataset for multilabel"),
        (lambda f: (f / "classnames.txt").write_text("cat\ndog\ncow\n"), "has no images of ['cow']"),
        (lambda f: (f / "classnames.txt").write_text("cat\n\ndog\n"), "has an empty line"),
        (lambda f: (f / "zeroshot_classification_templates.txt").write_text("a {}\n"), "has a template without {c}"),
        (lambda f: (f / "test/0.tar").write_text(POINTER), "is a git-lfs pointer"),
    ],
)
def test_a_bad_webdataset_is_one_error_and_makes_nothing(tmp_path, change, reason):
    change(write_webdataset(tmp_path / "wds_pair", [["0", "1"]]))
    with pytest.raises(UserError) as error:
        import_folder(tmp_path / "wds_pair", tmp_path / "data")
    assert reason.replace("'s1'", "s1") in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["wds_pair"]


def test_a_webdataset_of_captions_is_read_by_retrieval(tmp_path):
    folder = tmp_path / "wds_flickr30k"
    (folder / "test").mkdir(parents=True)
    (folder / "dataset_type.txt").write_text("retrieval\n")
    (folder / "test/nshards.txt").write_text("1")
    with tarfile.open(folder / "test/0.tar", "w") as tar:
        for n in range(3):
            captions = f"a cat {n}\n\n two cats {n}\n".encode()
            for name, content in ((f"s{n}.jpg", picture(n)), (f"s{n}.txt", captions)):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    made = import_folder(folder, tmp_path / "data")
    assert (made.benchmark, made.records, made.images, made.read) == ("retrieval-flickr30k", {"": 3}, 3, ["test"])
    assert "refuses to train" in made.warning
    (pool,) = load_benchmark("retrieval-flickr30k").build(Place(tmp_path / "data", resolution=16)).pools
    assert [text.text for text, *_ in pool.texts] == [f"{cats} {n}" for n in range(3) for cats in ("a cat", "two cats")]
    assert import_folder(folder, tmp_path / "coco", "retrieval-coco").folder == "coco/val2014"


# Classes as parquet


def noted(names: Sequence[str]) -> dict[str, str]:
    """What `datasets` notes of a column of classes."""
    return {"huggingface": json.dumps({"info": {"features": {"label": {"names": list(names), "_type": "ClassLabel"}}}})}


def test_imagenet_comes_in_with_clips_names(tmp_path):
    """Its test split has no labels; its hub's names are not CLIP's."""
    rows = [{"image": held(JPEG, "ILSVRC2012_val_1.JPEG"), "label": 999 - k} for k in range(1000)]
    folder = tmp_path / "imagenet-1k"
    write_table(folder / "data/validation-00000-of-00001.parquet", rows, noted(f"hub {k}" for k in range(1000)))
    write_table(folder / "data/test-00000-of-00001.parquet", [rows[0] | {"label": -1}])
    with pytest.raises(UserError, match="row 0 has no class, but -1: is its split without labels"):
        import_folder(folder, tmp_path / "data")
    made = import_folder(folder, tmp_path / "data", split="validation")
    assert (made.folder, made.records, made.left_out) == ("zero_shot/imagenet1k", {"imagenet1k": 1000}, ["test"])
    (pool,) = load_benchmark("zero-shot").build(Place(tmp_path / "data", resolution=16)).pools
    assert [len(texts) for texts in pool.texts] == [80] * 1000
    assert pool.texts[0][0].text == "a bad photo of a tench."
    assert pool.pairs == tuple((k, k) for k in range(1000))


def test_other_classes_keep_the_names_that_their_table_notes(tmp_path):
    rows = [{"image": held(picture(k), "a.png"), "label": k % 2} for k in range(4)]  # one name for four pictures
    write_table(tmp_path / "my-pets/test.parquet", rows, noted(["red_cat", "dog"]))
    made = import_folder(tmp_path / "my-pets", tmp_path / "data")
    (pool,) = load_benchmark("zero-shot").build(Place(tmp_path / "data", resolution=16)).pools
    assert ([text[0].text for text in pool.texts], made.images) == (["a photo of a red cat.", "a photo of a dog."], 4)
    write_table(tmp_path / "bare/test.parquet", rows)
    with pytest.raises(UserError, match="doesn't say what its classes are called"):
        import_folder(tmp_path / "bare", tmp_path / "data")


# Rows, splits and folders as they come


def test_rows_that_cant_be_read_are_counted_on_request(tmp_path):
    gif = held(picture(3, "GIF"))
    bad = [crepe_row(2, image=gif), crepe_row(3, image=held(None)), crepe_row(4, image="../out.jpg"), crepe_row(5)]
    in_swap_obj(tmp_path / "hub", crepe_row(1), *bad[:2], bad[3])
    with pytest.raises(UserError, match="row 1 has a picture in 'image' that can't be used: it is no JPEG"):
        import_folder(tmp_path / "hub", tmp_path / "data")
    made = import_folder(tmp_path / "hub", tmp_path / "data", allow_missing=True)
    assert (made.records, made.images) == ({"swap_obj": 2}, 2)
    (told,) = made.left_out
    assert told.startswith("2 rows that can't be read, the first: ")
    in_swap_obj(tmp_path / "all", *bad[:2])
    with pytest.raises(UserError, match="row 0 has a picture in 'image' that can't be used"):
        import_folder(tmp_path / "all", tmp_path / "none", allow_missing=True)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("value", ["caption", "captions"])
def test_a_text_that_isnt_utf_8_is_one_row(value, tmp_path):
    """Arrow doesn't look at the bytes of a text."""
    texts = pa.array([b"a cat", b"caf\xe9"]).view(pa.string())
    column = texts if value == "caption" else pa.ListArray.from_arrays([0, 1, 2], texts)
    table = pa.table(
        {"image": [held(picture(k), f"{k}.jpg") for k in (1, 2)], "caption": column, "negative_caption": ["b"] * 2}
    )
    (tmp_path / "hub").mkdir()
    pq.write_table(table, tmp_path / "hub/swap_obj.parquet")
    with pytest.raises(UserError, match=r"has a 'caption' that is no str, but (NotUTF8|list)"):
        import_folder(tmp_path / "hub", tmp_path / "data")
    if value == "caption":
        assert import_folder(tmp_path / "hub", tmp_path / "data", allow_missing=True).records == {"swap_obj": 1}


def test_a_set_that_is_public_as_train_alone_is_found(tmp_path):
    in_swap_obj(tmp_path / "SugarCrepe_swap_obj", crepe_row(), name="data/train-00000-of-00001.parquet")
    made = import_folder(tmp_path / "SugarCrepe_swap_obj", tmp_path / "data")
    assert (made.records, made.read) == ({"swap_obj": 1}, ["train"])


def test_the_beginning_of_a_split_is_said(tmp_path):
    write_table(tmp_path / "hub/default/partial-test/0000.parquet", [bivlc_row(1, "a.jpg")])
    with pytest.raises(UserError, match=r"partial-test \(the hub cuts large sets.*name one with --split"):
        import_folder(tmp_path / "hub", tmp_path / "data")
    made = import_folder(tmp_path / "hub", tmp_path / "data", split="partial-test")
    assert (made.records, made.warning) == ({"": 1}, "the hub cut this set: these are its first rows alone")


def test_a_clone_with_official_files_says_where_they_belong(tmp_path):
    (tmp_path / "winoground/data").mkdir(parents=True)
    for file in ("data/examples.jsonl", "data/images.zip"):
        (tmp_path / "winoground" / file).write_bytes(b"{}")
    with pytest.raises(UserError) as error:
        import_folder(tmp_path / "winoground", tmp_path / "data")
    assert (
        f"copy data/examples.jsonl to {tmp_path}/data/winoground/examples.jsonl, and its images to "
        f"{tmp_path}/data/winoground/images; unpack data/images.zip first"
    ) in str(error.value)


FORM = """
from menagerie.generators.hub.forms import HubForm


def record(row, keep):
    name = f"{row.field('number', int):012}.jpg"
    return {"filename": keep("photo", name), "caption": row.text("yes"), "negative_caption": row.text("no")}


MINE = HubForm("sugarcrepe", "somebody/set", ("photo", "number", "yes", "no"), record, keyed=True)
"""


def test_a_form_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text(FORM)
    row = {"photo": held(JPEG), "number": 7, "yes": "a cat", "no": "a dog"}
    write_table(tmp_path / "hub/train.parquet", [row])
    with pytest.raises(UserError, match=r"yes \(string\).*`menagerie new mine.py --kind form`"):
        import_folder(tmp_path / "hub", tmp_path / "data")
    for name in ("mine.py", "mine.py:THEIRS", "absent.py:MINE"):
        with pytest.raises(UserError, match=r"is no file.py:NAME of a HubForm"):
            import_folder(tmp_path / "hub", tmp_path / "data", form=str(tmp_path / name))
    made = import_folder(tmp_path / "hub", tmp_path / "data", part="swap_obj", form=f"{tmp_path}/mine.py:MINE")
    assert (made.records, made.warning) == ({"swap_obj": 1}, "")
    assert json.loads((tmp_path / "data/sugarcrepe/swap_obj.json").read_text())["0"]["filename"] == "000000000007.jpg"


# What loaders say of such folders


def problem(name: str, root: Path) -> str:
    """What `--check` says of a benchmark, and what opening it says."""
    said = inspect_benchmark(load_benchmark(name), Place(root))[0]
    with pytest.raises(UserError) as error:
        load_benchmark(name).build(Place(root))
    assert len(f"{said}{error.value}".splitlines()) == 1
    return said


def test_pointers_of_git_lfs_are_named(tmp_path):
    """In place of annotations, images, shards and large files that are read entry by entry."""
    make_winoground(tmp_path / "data")
    image = tmp_path / "data/winoground/images/ex_1_img_0.png"
    image.write_text(POINTER)
    bench = load_benchmark("winoground").build(Place(tmp_path / "data", resolution=16))
    with pytest.raises(UserError, match=r"ex_1_img_0\.png is a git-lfs pointer and not the file"):
        bench.images(range(len(bench.numbers)))
    (tmp_path / "data/winoground/examples.jsonl").write_text(POINTER)
    assert "examples.jsonl is a git-lfs pointer" in problem("winoground", tmp_path / "data")
    write_json(tmp_path / "vg/region_descriptions.json", [])
    for name, file in (("visual genome", "vg/image_data.json"), ("tar shards", "shards/0.tar")):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(POINTER)
        with pytest.raises(UserError, match=f"{path} is a git-lfs pointer"):
            load_source(name).open(Place(tmp_path, 16))


@pytest.mark.parametrize("last", [1, 2, 3])
def test_an_interrupted_import_is_completed_by_the_next(last, tmp_path, monkeypatch):
    """Of files that go into folders that are there; until the last one is in its place, no annotations are."""
    root, scratch = tmp_path / "data", tmp_path / "scratch"
    for place in ("data/set/images/0.jpg", "scratch/set/images/0.jpg", "scratch/set/images/1.jpg"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(place[-5:])
    for place in ("annotations/all.json", "list.json"):
        (scratch / "set" / place).parent.mkdir(exist_ok=True)
        (scratch / "set" / place).write_text("1.jpg")
    whole, rename, calls = contents(scratch), Path.rename, []

    def interrupted(path, target):
        calls.append(target.name)
        if len(calls) == last:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put_below(root, scratch, "set/images")
    assert calls[:last] == ["1.jpg", "annotations", "list.json"][:last]
    put_below(root, scratch, "set/images")
    assert contents(root) == whole
