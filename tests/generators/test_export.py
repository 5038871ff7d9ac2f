"""Exports: the split's pixels and captions in every format, the same bytes each time, whole or not at all."""

import io
import json
import subprocess
import sys
import tarfile

import h5py
import numpy as np
import pytest
from PIL import Image

from menagerie import SplitDataset
from menagerie.envs.core.errors import UserError
from menagerie.generators.export import formats
from menagerie.generators.export.formats import FORMATS, File
from menagerie.generators.export.write import export_split
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.hdf5 import read_attribute, write_attribute
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.split_file import SETTINGS, digest_content, read_split
from tests.command import run_here
from tests.disks import with_largest_file
from tests.helpers.splits import make_split

TESTS = ("different_bag", "seen_pairs", "train_pairs", "unseen_pairs", "validation")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(formats, "SHARD_SAMPLES", 9)


def content(folder):
    """All files by their path."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def pixels(source):
    return np.asarray(Image.open(source)).transpose(2, 0, 1)


def assert_same_records(data, images, captions, negatives):
    assert captions == data.records.captions
    assert negatives == data.records.negatives
    assert len(images) == len(data)
    for i, image in enumerate(images):
        assert np.array_equal(image, data[i].image)


def assert_same_facts(data, facts):
    for i, fact in enumerate(facts):
        example, scene = data[i], data.records.scenes[i]
        assert fact["graph"]["nodes"] == list(example.graph.nodes)
        assert fact["graph"]["edges"] == [list(edge) for edge in example.graph.edges]
        assert fact["negative_graph"]["nodes"] == list(example.negative_graph.nodes)
        assert fact["key"] == scene.key
        assert (fact["scene"]["background"], fact["scene"]["view"]) == (scene.background, scene.view)
        assert fact["scene"]["objects"] == [
            dict(zip(("animal", "texture", "slot"), t, strict=False)) for t in scene.objects
        ]


def test_webdataset_round_trip(split, tmp_path):
    export_split(split, "webdataset", tmp_path / "out")
    sizes = json.loads((tmp_path / "out/sizes.json").read_text())
    for name in ("train", *TESTS):
        files, members = {}, []
        for path in sorted((tmp_path / "out").glob(f"{name}-*.tar")):
            with tarfile.open(path) as tar:
                members += tar.getmembers()
                shard = {member.name: tar.extractfile(member).read() for member in tar}
            assert sizes[path.name] == len(shard) / 3 <= 9
            files |= shard
        data = SplitDataset(split, name)
        numbers = [f"{i:09d}" for i in range(len(data))]
        assert [m.name for m in members] == [f"{n}.{suffix}" for n in numbers for suffix in ("png", "txt", "json")]
        assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}
        facts = [json.loads(files[f"{n}.json"]) for n in numbers]
        images = [pixels(io.BytesIO(files[f"{n}.png"])) for n in numbers]
        assert_same_records(data, images, [files[f"{n}.txt"].decode() for n in numbers], [f["negative"] for f in facts])
        assert_same_facts(data, facts)


def test_coco_round_trip(split, tmp_path):
    export_split(split, "coco", tmp_path / "out")
    for name in ("train", *TESTS):
        content_of, data = json.loads((tmp_path / f"out/{name}.json").read_text()), SplitDataset(split, name)
        annotations = content_of["annotations"]
        assert [image["id"] for image in content_of["images"]] == [a["image_id"] for a in annotations]
        assert {(image["width"], image["height"]) for image in content_of["images"]} == {(16, 16)}
        images = [pixels(tmp_path / "out/images" / image["file_name"]) for image in content_of["images"]]
        assert_same_records(data, images, [a["caption"] for a in annotations], [a["negative"] for a in annotations])
        assert_same_facts(data, annotations)


def test_sugarcrepe_round_trip(split, tmp_path):
    counts = export_split(split, "sugarcrepe", tmp_path / "out")
    assert not (tmp_path / "out/train.json").exists()
    assert counts["train"] == (0, len(SplitDataset(split, "train")))
    for name in TESTS:
        content_of, data = json.loads((tmp_path / f"out/{name}.json").read_text()), SplitDataset(split, name)
        assert list(content_of) == [str(i) for i in range(len(data))]
        records = content_of.values()
        images = [pixels(tmp_path / "out/images" / record["filename"]) for record in records]
        negatives = [record["negative_caption"] for record in records]
        assert_same_records(data, images, [record["caption"] for record in records], negatives)
        assert counts[name] == (len(data), len(data))


@pytest.mark.parametrize("form", FORMATS)
def test_same_bytes_twice_and_from_a_packed_split(split, copied, tmp_path, form):
    (tmp_path / "other").mkdir()
    pack(copied)
    export_split(split, form, tmp_path / "out")
    export_split(copied, form, tmp_path / "other/out")
    assert content(tmp_path / "out") == content(tmp_path / "other/out")
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"], cwd=tmp_path / "out", check=True)


def test_tests_of_several_rules_are_exported_too(tmp_path):
    rules = ("animal=rabbit & texture=red", "animal=penguin & texture=white")
    recipe = BindingRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=10, hold_out=rules)
    export_split(make_split(tmp_path, recipe, 16), "coco", tmp_path / "out")
    assert (tmp_path / "out/held_out-1.json").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_a_stopped_export_leaves_nothing(split, tmp_path, form):
    def stop(stage, done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_split(split, form, tmp_path / "out", TESTS, stop)
    assert list(tmp_path.iterdir()) == []
    reports = []
    export_split(split, form, tmp_path / "out", TESTS, lambda *report: reports.append(report))
    assert reports[-1][1] == reports[-1][2] > 0
    whole = {path: (tmp_path / "out" / path).stat().st_mtime_ns for path in content(tmp_path / "out")}
    export_split(split, form, tmp_path / "out", TESTS)
    assert {path: (tmp_path / "out" / path).stat().st_mtime_ns for path in content(tmp_path / "out")} == whole


def test_a_full_disk_is_named_and_an_empty_folder_is_filled(split, tmp_path):
    (tmp_path / "out").mkdir()
    what, said = with_largest_file(100, lambda: export_split(split, "coco", tmp_path / "out", ["train"]), tmp_path)
    assert what == "error"
    assert said.startswith(f"{tmp_path}/out can't be written (File too large); raise the limit"), said
    (tmp_path / "link").symlink_to("out")
    export_split(split, "coco", tmp_path / "link", ["seen_pairs"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "out/images").stat().st_mode
    assert (tmp_path / "out/SHA256SUMS").exists()


def test_data_sheet_is_complete(split, tmp_path):
    export_split(split, "sugarcrepe", tmp_path / "out", ["validation", "train"])
    sheet, data = (tmp_path / "out/README.md").read_text(), read_split(split)
    for text in (
        "`SUBSET.json` has the captions and hard negatives",
        f"| `validation` | {len(data.subsets['validation'])} | {len(data.subsets['validation'])} |",
        f"| `train` | 0 | {len(data.subsets['train'])} |",
        '"hard_negatives": 0.5',
        data.identity,
        "binding-menagerie ",
        "Apache License 2.0",
        f"menagerie export {split.name} --format sugarcrepe --out out --subsets validation train\n",
    ):
        assert text in sheet
    assert str(tmp_path) not in sheet


def test_a_new_format_is_one_entry(split, tmp_path, monkeypatch):
    def captions(parts):
        """One text file for each subset."""
        for part in parts:
            text = "\n".join(part.records.captions)
            yield File(f"{part.name}.txt", part.name, len(part.records), lambda path, text=text: path.write_text(text))

    monkeypatch.setitem(FORMATS, "captions", captions)
    export_split(split, "captions", tmp_path / "out", ["seen_pairs"])
    assert (tmp_path / "out/seen_pairs.txt").read_text().splitlines() == SplitDataset(
        split, "seen_pairs"
    ).records.captions
    assert "One text file for each subset." in (tmp_path / "out/README.md").read_text()


def test_misspelt_names_and_nothing_to_export(split, tmp_path):
    with pytest.raises(UserError, match="unknown format 'webdatset'; did you mean 'webdataset'"):
        export_split(split, "webdatset", tmp_path / "out")
    with pytest.raises(UserError, match=r"unknown subset .* did you mean 'seen_pairs'"):
        export_split(split, "coco", tmp_path / "out", ["seen_pair"])
    with pytest.raises(UserError, match=r"nothing in train of .* can be exported as sugarcrepe"):
        export_split(split, "sugarcrepe", tmp_path / "out", ["train"])
    assert list(tmp_path.iterdir()) == []


def test_folders_of_others_are_refused(split, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError, match="there is no folder"):
        export_split(split, "coco", tmp_path / "none/out", ["seen_pairs"])
    out.write_text("a file")
    with pytest.raises(UserError, match="is a file; choose another --out"):
        export_split(split, "coco", out, ["seen_pairs"])
    out.unlink()
    out.mkdir()
    (out / "seen_pairs.json").write_text("mine")
    with pytest.raises(UserError, match="has files but is not this export"):
        export_split(split, "coco", out, ["seen_pairs"])
    assert content(out) == {"seen_pairs.json": b"mine"}
    (out / "seen_pairs.json").rename(tmp_path / "other.json")
    (out / "empty").mkdir()
    with pytest.raises(UserError, match="has files but is not this export"):
        export_split(split, "coco", out, ["seen_pairs"])


def test_another_export_and_foreign_files_are_refused(split, tmp_path):
    out = tmp_path / "out"
    export_split(split, "coco", out, ["seen_pairs"])
    before = content(out)
    for form, subsets in (("coco", ["unseen_pairs"]), ("sugarcrepe", ["seen_pairs"])):
        with pytest.raises(UserError, match="is not this export of this split"):
            export_split(split, form, out, subsets)
    assert content(out) == before
    (out / "images/notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"isn't as it was written, first at images/notes\.txt"):
        export_split(split, "coco", out, ["seen_pairs"])


def test_of_two_at_once_the_second_is_refused(split, tmp_path):
    def again(stage, done, total):
        export_split(split, "webdataset", tmp_path / "out", ["train"])

    with pytest.raises(UserError, match=r"out can't be written \(Directory not empty\)"):
        export_split(split, "webdataset", tmp_path / "out", ["seen_pairs"], again)
    assert (tmp_path / "out/train-000000.tar").exists()


@pytest.mark.parametrize("name", ["..", "a b", "-x"])
def test_an_untrusted_subset_names_no_path(copied, tmp_path, name):
    with h5py.File(copied, "r+") as file:
        file.move("seen_pairs", name)
    subsets = {name: (records.columns, len(records)) for name, records in read_split(copied, False).subsets.items()}
    with h5py.File(copied, "r+") as file:
        settings = {name: read_attribute(file, name) for name in SETTINGS}
        write_attribute(file, "digest", digest_content(settings, subsets))
    with pytest.raises(UserError, match="can't name a file; do not trust"):
        export_split(copied, "coco", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_export_command_writes_its_files(split, tmp_path):
    call = [sys.executable, "-m", "menagerie", "export", str(split), "--format", "sugarcrepe"]
    call += ["--out", str(tmp_path / "out"), "--subsets"]
    first, wrong = (run_here([*call, *names], tmp_path) for names in (("train", "seen_pairs"), ("trian",)))
    assert first.returncode == 0, first.stderr
    records = len(SplitDataset(split, "train"))
    assert f"train: 0 of {records} records; {records} left out, sugarcrepe has no place" in first.stdout
    assert wrong.returncode == 2
    assert "did you mean 'train'" in wrong.stderr
    assert wrong.stderr.count("\n") == 1
