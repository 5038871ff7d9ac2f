"""Files of training sources that are damaged or hostile: each can be read, or is refused in one line."""

import json
import os
import shutil
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.sources import registry
from menagerie.generators.sources.captions_file import distinct_captions_in
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import (
    LONGEST_TEXT,
    FileRow,
    read_csv,
    read_json_lines,
    read_json_list,
    stream_json,
)
from menagerie.generators.sources.shard import Member
from menagerie.generators.sources.shard import read_member_text as read_shard_text
from menagerie.generators.sources.texts import Texts
from menagerie.generators.sources.texts import refusal as refused_text
from tests.generators.damage import mutated
from tests.helpers.source_files import MAKERS, make_scene_graphs

MUTATIONS = int(os.environ.get("MENAGERIE_EXAMPLES", "400"))
# A source, a way of captions, and a file that it reads.
READ = (
    ("coco", "", "coco/annotations/captions_train2017.json"),
    ("visual genome", "regions", "vg/image_data.json"),
    ("visual genome", "regions", "vg/region_descriptions.json"),
    ("visual genome", "relations", "vg/relationships.json"),
    ("visual genome", "relations", "vg/scene_graphs.json"),
    ("gqa", "attributes", "gqa/train_sceneGraphs.json"),
    ("gqa", "names", "vg/image_data.json"),
)


def refusal(name: str, recipe: str, root: Path) -> str:
    """Why files are refused; empty where all of them but the pixels can be read."""
    try:
        data = registry.load_source(name).open(Place(root, 16, caption=recipe))
    except UserError as error:
        return str(error)
    "".join([*data.texts(), *data.names_of_images, *data.left_out, *data.refused_texts]).encode()
    for draw in range(3):
        for text, graph in data.captions(range(len(data)), [draw] * len(data)):
            "".join([text, *graph.nodes, *(edge.predicate for edge in graph.edges)]).encode()
    assert data.identity
    return ""


@pytest.mark.parametrize(("name", "recipe", "file"), READ)
def test_damaged_files_are_read_or_refused_in_one_line(name, recipe, file, tmp_path, monkeypatch):
    """Truncated, with bits flipped, in other encodings, with values of other types: seeded, `MUTATIONS` in all."""
    monkeypatch.chdir(tmp_path)
    MAKERS[name](tmp_path / "data")
    if "scene_graphs" in file:
        make_scene_graphs(tmp_path / "data")
        (tmp_path / "data/vg/relationships.json").unlink()
    path, every, refused = tmp_path / "data" / file, Counter(), Counter()
    content, rng = path.read_bytes(), np.random.default_rng(zlib.crc32(f"{recipe} {file}".encode()))
    turns = -(-MUTATIONS // len(READ))
    for _ in range(turns):
        kind, damaged = mutated(content, ".json", rng)
        path.write_bytes(damaged)
        reason = refusal(name, recipe, tmp_path / "data")
        every[kind] += 1
        refused[kind] += bool(reason)
        assert len(reason.splitlines()) <= 1
        assert len(reason) < 1500
    print(f"DAMAGED {file}: " + ", ".join(f"{kind} {refused[kind]} of {every[kind]}" for kind in sorted(every)))
    assert refused.total() > turns / 5
    assert not (tmp_path / "PWNED").exists()


# Large files, entry by entry


def test_a_stream_gives_what_json_does(tmp_path):
    content = {f"k{k}": {"n": 10**k, "é": ['a\n"]}', None, -1.5e-3, {"[": "}"}]} for k in range(9)}
    for indent in (None, 1):
        (tmp_path / "a.json").write_text(json.dumps(content, indent=indent) + "\n ", encoding="utf-8-sig")
        (tmp_path / "b.json").write_text(json.dumps(list(content.values()), indent=indent, ensure_ascii=False))
        found = list(stream_json(tmp_path / "a.json", dict))
        assert found == [FileRow(tmp_path / "a.json", key, value) for key, value in content.items()]
        listed = list(stream_json(tmp_path / "b.json", list))
        assert [row.content for row in listed] == list(content.values())
        assert [row.place for row in listed] == [f"[{k}]" for k in range(9)]


@pytest.mark.parametrize("text", ["[]", " [ ] ", "{}"])
def test_an_empty_stream_gives_nothing(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    assert list(stream_json(tmp_path / "a.json", dict if "{" in text else list)) == []


def test_texts_may_begin_with_a_mark(tmp_path):
    content, table = tmp_path / "a.json", tmp_path / "a.csv"
    content.write_bytes('[{"a": "café"}]'.encode("utf-8-sig"))
    table.write_bytes("a\ncafé\n".encode("utf-8-sig"))
    assert [entry.content for entry in stream_json(content, list)] == [{"a": "café"}]
    assert [entry.content for entry in read_json_list(content)] == [{"a": "café"}]
    assert [row.text("a") for row in read_csv(table, ["a"])] == ["café"]
    with table.open("rb") as file:
        assert read_shard_text(file, Member(0, table.stat().st_size)) == "a\ncafé\n"


@pytest.mark.parametrize(("codec", "why"), [("utf-16-le", "zero bytes"), ("utf-16", "can't decode")])
def test_utf_16_is_refused(codec, why, tmp_path):
    """Without a mark it is text in UTF-8 too, with zeros between its letters."""
    (tmp_path / "captions.txt").write_text("a cat", encoding=codec)
    with pytest.raises(UserError, match=rf"captions\.txt is no text.*{why}.*save it as UTF-8"):
        distinct_captions_in(tmp_path / "captions.txt")


def in_csv(text: str, folder: Path) -> str:
    (folder / "a.csv").write_text(f"a\n{text}\n")
    (row,) = read_csv(folder / "a.csv", ["a"])
    return row.text("a")


# Ways in which a text comes from a file.
TEXTS = {
    "json": lambda text, folder: FileRow(folder, "it", {"a": text}).text("a"),
    "json, a list": lambda text, folder: FileRow(folder, "it", {"a": [text]}).texts("a")[0],
    "json, a row": lambda text, folder: FileRow(folder, "it", [text]).text(0),
    "csv": in_csv,
}


@pytest.mark.parametrize("kind", TEXTS)
def test_no_caption_is_longer_than_people_write(kind, tmp_path):
    assert TEXTS[kind]("a" * LONGEST_TEXT, tmp_path) == "a" * LONGEST_TEXT
    with pytest.raises(UserError, match=str(LONGEST_TEXT)) as error:
        TEXTS[kind]("a" * (LONGEST_TEXT + 1), tmp_path)
    assert len(str(error.value)) < 1000
    assert not refused_text("a" * LONGEST_TEXT)
    assert refused_text("a" * (LONGEST_TEXT + 1)) == "a text that is too long"  # counted, as in visual genome


BAD = {
    "": "is no JSON",
    "{}": "is not of its form",
    '["a"]': "[0] is no object",
    "[{}": "is no JSON",
    "[{},]": "is no JSON",
    "[{} {}]": "is no JSON",
    "[{}]]": "is no JSON",
    '[{"a": "b': "is no JSON",
    '[{"a": tru}]': "is no JSON",
    '[{"a": NaN}]': "is no JSON",
    '[{"a": "\\ud800"}]': "is no JSON",
    f"[{'[' * 99999}": "is no JSON",
    f'[{{"a": {"[" * 99}{"]" * 99}}}]': "nests deeper than",
    f'[{{"a": {"9" * 9999}}}]': "is not of its form",
}


@pytest.mark.parametrize("read", [lambda path: list(stream_json(path, list)), read_json_list])
@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:12])
def test_what_is_no_list_of_objects_is_refused(tmp_path, text, read):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError) as error:
        read(tmp_path / "a.json")
    assert BAD[text] in str(error.value) or "holds no JSON list" in str(error.value)
    assert str(tmp_path / "a.json") in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("text", ["{1: {}}", '{"\\ud800": {}}', '{"a" {}}', '{"a": 1}', "[]"])
def test_what_is_no_object_of_objects_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match=r"a\.json"):
        list(stream_json(tmp_path / "a.json", dict))


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85"])
def test_lines_of_json_end_at_line_feeds_alone(tmp_path, sign):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"a": "x{sign}y"}}\r\n\n{{"a": "z"}}\n', encoding="utf-8", newline="")
    assert [(entry.place, entry.content["a"]) for entry in read_json_lines(path)] == [
        ("line 1", f"x{sign}y"),
        ("line 3", "z"),
    ]


def test_texts_are_a_list():
    some = ["a", "é cat", "", "☃" * 3]
    texts = Texts(some)
    assert list(texts) == some
    assert [texts[k] for k in (-1, 0)] == ["☃☃☃", "a"]
    assert len(texts) == 4
    with pytest.raises(IndexError):
        texts[4]


def test_a_path_that_climbs_out_of_the_images_is_refused(tmp_path):
    """Visual Genome and GQA make names of numbers, which are looked up in their folders alone."""
    MAKERS["coco"](tmp_path)
    image = next((tmp_path / "coco/train2017").iterdir()).name
    shutil.copy(tmp_path / "coco/train2017" / image, tmp_path / "x.jpg")
    path = tmp_path / "coco/annotations/captions_train2017.json"
    path.write_text(path.read_text().replace(image, "../../x.jpg"))
    assert "leads out of the folder" in refusal("coco", "", tmp_path)
