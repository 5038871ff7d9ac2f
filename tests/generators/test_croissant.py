"""Croissant metadata of exports: complete, and read by mlcroissant as the split's own captions and images."""

import json

import numpy as np
import pytest

from menagerie import SplitDataset
from menagerie.envs.core.records import sha256
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.export import formats
from menagerie.generators.export.formats import FORMATS
from menagerie.generators.export.write import export_split
from menagerie.generators.frozen.digests import digests_of, frozen_in
from menagerie.generators.splits.recipe import recorded_fields
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.generators.storage.split_file import read_split
from tests.helpers.splits import RECIPE

SUBSET = "unseen_pairs"


def metadata(folder):
    return json.loads((folder / "croissant.json").read_text())


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads the records of a record set of the export in `tmp_path / "out"`, texts as `str`, without the set's name."""
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    from etils.epath import Path
    from mlcroissant._src.operation_graph.operations import extract

    monkeypatch.setattr(
        extract, "EXTRACT_PATH", Path(tmp_path / "cache")
    )  # it knows unpacked files by their names alone

    def records(name):
        dataset = mlcroissant.Dataset(jsonld=tmp_path / "out/croissant.json")
        assert not dataset.metadata.ctx.issues.errors
        assert dataset.metadata.data_collection
        rows = [{field.split("/")[1]: value for field, value in row.items()} for row in dataset.records(name)]
        return [{k: v.decode() if isinstance(v, bytes) else v for k, v in row.items()} for row in rows]

    return records


@pytest.mark.parametrize(("form", "name"), [("coco", "file_name"), ("sugarcrepe", "file_name"), ("webdataset", "key")])
def test_mlcroissant_reads_the_captions_and_images_of_the_split(split, tmp_path, read, monkeypatch, form, name):
    monkeypatch.setattr(formats, "SHARD_SAMPLES", 9)
    export_split(split, form, tmp_path / "out", [SUBSET, "train"])
    data = SplitDataset(split, SUBSET)
    rows = sorted(read(SUBSET), key=lambda row: row[name])
    assert [row["caption"] for row in rows] == data.records.captions
    if form != "webdataset":
        assert [row["negative"] for row in rows] == data.records.negatives
    pictured = sorted(read(f"{SUBSET}-images"), key=lambda row: row[name])
    assert [row["caption"] for row in pictured] == data.records.captions
    for i, row in enumerate(pictured):
        assert np.array_equal(np.asarray(row["image"]).transpose(2, 0, 1), data[i].image)


def test_mlcroissant_reads_facts_of_tar_files_and_objects_of_coco_instances(split, tmp_path, read):
    export_split(split, "webdataset", tmp_path / "out", [SUBSET])
    data = SplitDataset(split, SUBSET)
    facts = sorted(read(f"{SUBSET}-facts"), key=lambda row: row["key"])
    assert [json.loads(row["facts"])["negative"] for row in facts] == data.records.negatives
    assert [row["caption"] for row in facts] == data.records.captions
    (tmp_path / "out").rename(tmp_path / "webdataset")
    export_split(split, "coco_instances", tmp_path / "out", [SUBSET])
    annotations = json.loads((tmp_path / f"out/{SUBSET}.json").read_text())["annotations"]
    rows = read(f"{SUBSET}-objects")
    assert rows == [{name: annotation[name] for name in rows[0]} for annotation in annotations]
    assert [row["image_id"] for row in read(f"{SUBSET}-images")] == list(range(1, len(data) + 1))


@pytest.mark.parametrize("form", FORMATS)
def test_all_files_are_named_with_their_digests_and_nothing_dates_them(split, tmp_path, form):
    export_split(split, form, tmp_path / "out")
    made = metadata(tmp_path / "out")
    found = {node["contentUrl"]: node["sha256"] for node in made["distribution"] if node["@type"] == "cr:FileObject"}
    there = {path.name for suffix in ("tar", "json") for path in (tmp_path / "out").glob(f"[!.]*.{suffix}")}
    assert found == {name: sha256(tmp_path / "out" / name).hex() for name in there - {"croissant.json"}}
    described = {record_set["name"].split("-")[0] for record_set in made["recordSet"]}
    assert described == {"different_bag", "seen_pairs", "train", "unseen_pairs", "validation", "train_pairs"} - (
        {"train"} if form == "sugarcrepe" else set()
    )
    assert not [name for name in made if "date" in name]
    rai = {"dataCollection", "dataLimitations", "dataBiases", "personalSensitiveInformation", "dataUseCases"}
    assert rai == {name.removeprefix("rai:") for name in made if name.startswith("rai:")}


def test_a_frozen_benchmark_is_named_if_all_its_tests_have_its_digests(split, tmp_path, monkeypatch):
    opened = read_split(split)
    tests = {name: SplitTests(SplitDataset(split, name)) for name in RECIPE.all_tests}
    digests = digests_of(tests)
    for name, parts in (("right-7", digests), ("wrong-7", digests._replace(texts="0"))):
        fields = "".join(f"{key} = {json.dumps(value)}\n" for key, value in recorded_fields(RECIPE).items())
        named = "".join(f'{key} = "{value}"\n' for key, value in parts._asdict().items())
        (tmp_path / f"{name}.toml").write_text(f"version = 7\nresolution = 16\n[recipe]\n{fields}[digests]\n{named}")
        monkeypatch.setattr("menagerie.generators.frozen.digests.FROZEN", (name,))
        monkeypatch.setitem(FROZEN, name, tmp_path / f"{name}.toml")
        found = frozen_in(opened)
        assert (found and found.name) == (name if name == "right-7" else None)
    monkeypatch.setattr("menagerie.generators.frozen.digests.FROZEN", ("right-7",))
    export_split(split, "sugarcrepe", tmp_path / "whole")
    made = metadata(tmp_path / "whole")
    assert (made["name"], made["version"]) == ("right-7", "7.0.0")
    assert made["identifier"] in made["description"]
    export_split(split, "sugarcrepe", tmp_path / "part", ["seen_pairs"])
    assert metadata(tmp_path / "part")["name"] == split.stem


def test_of_a_world_of_ones_own_nobody_knows_whether_it_shows_persons(split, tmp_path, monkeypatch):
    for name, worlds in (("ours", {"tiny": None}), ("own", {})):
        monkeypatch.setattr("menagerie.generators.export.croissant.WORLDS", worlds)
        export_split(split, "sugarcrepe", tmp_path / name, [SUBSET])
    said = [metadata(tmp_path / name)["rai:personalSensitiveInformation"].split()[0] for name in ("ours", "own")]
    assert said == ["None:", "Unknown:"]
