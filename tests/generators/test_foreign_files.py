"""Files of benchmarks and training sources that are damaged or hostile: each is read, or refused in one line."""

import json
import os
import shutil
import zlib
from collections import Counter

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.sources.captions_file import captions_in_file
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import load_source
from menagerie.generators.sources.rows import LONGEST_TEXT, FileRow, read_csv, read_entries, read_json_lines
from menagerie.generators.sources.shard import Member, read_member_text
from menagerie.generators.sources.texts import Texts, refusal
from tests.generators.damage import spoil, spoil_shard
from tests.helpers.benchmark_files import MAKERS, build, make_karpathy_test, outcomes_of, write_csv
from tests.helpers.source_files import MAKERS as SOURCES
from tests.helpers.source_files import make_scene_graphs

TURNS = 30  # damaged files of each case; 200 of shards
EXAMPLES = int(os.environ.get("MENAGERIE_EXAMPLES", "0"))
WRITTEN = (".json", ".jsonl", ".csv", ".txt")


def read_benchmark(name, root):
    """All of a benchmark but its pixels and a model: with scores of 0 as far as its headlines."""
    bench = build(name, root, allow_missing=True)
    bench.headlines(*outcomes_of(bench, np.zeros_like))
    "".join([*bench.content(), *bench.tasks, *(text.text for text in bench.texts)]).encode()


def read_source(name, recipe, root):
    """All of a training source; of shards, which hold their images, the pixels too."""
    data = load_source(name).open(Place(root, 16, caption=recipe))
    "".join([*data.texts(), *data.names_of_images, *data.left_out, *data.refused_texts]).encode()
    for draw in range(3):
        for text, graph in data.captions(range(len(data)), [draw] * len(data)):
            "".join([text, *graph.nodes, *(edge.predicate for edge in graph.edges)]).encode()
    assert data.identity
    if name == "tar shards":
        data.images(range(len(data)))


def make_benchmark(name, root):
    """The files of a benchmark; Flickr30k's in BLIP's form, as COCO's are in Karpathy's."""
    MAKERS[name](root)
    if name == "retrieval-flickr30k":
        make_karpathy_test(root / "flickr30k/flickr30k_test.json", "flickr30k-images")
        (root / "flickr30k/dataset_flickr30k.json").unlink()


def make_source(name, file, root):
    SOURCES[name](root)
    if "scene_graphs" in file:
        make_scene_graphs(root)
        (root / "vg/relationships.json").unlink()


# A source, a way of making captions, and a file that it reads.
READ = (
    ("coco", "", "coco/annotations/captions_train2017.json"),
    ("visual genome", "regions", "vg/image_data.json"),
    ("visual genome", "regions", "vg/region_descriptions.json"),
    ("visual genome", "relations", "vg/relationships.json"),
    ("visual genome", "relations", "vg/scene_graphs.json"),
    ("gqa", "attributes", "gqa/train_sceneGraphs.json"),
    ("gqa", "names", "vg/image_data.json"),
    ("tar shards", "", "shards/*.tar"),
)
# What makes the files, what reads them, and which of them are damaged. Names alone are the data of those left out.
CASES = {
    **{
        name: (
            lambda root, name=name: make_benchmark(name, root),
            lambda root, name=name: read_benchmark(name, root),
            "",
        )
        for name in sorted(MAKERS.keys() - {"ncd", "imagenet-ao", "probe"})
    },
    **{
        f"{name} {recipe} {file}": (
            lambda root, name=name, file=file: make_source(name, file, root),
            lambda root, name=name, recipe=recipe: read_source(name, recipe, root),
            file,
        )
        for name, recipe, file in READ
    },
}


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_are_read_or_refused_in_one_line(name, tmp_path, monkeypatch):
    """Truncated, with bits flipped, with other values, headers of shards and pictures: seeded.

    Prints how many of each kind were refused, of how many.
    """
    monkeypatch.chdir(tmp_path)
    make, read, pattern = CASES[name]
    make(tmp_path / "data")
    files = [path for path in sorted((tmp_path / "data").glob(pattern or "**/*")) if pattern or path.suffix in WRITTEN]
    shards, rng = name.endswith(".tar"), np.random.default_rng(zlib.crc32(name.encode()))
    turns = max(200 if shards else TURNS, EXAMPLES // len(CASES))
    every, refused = Counter(), Counter()
    for turn in range(turns):
        file = files[turn % len(files)]
        content = file.read_bytes()
        kind = (spoil_shard if shards else spoil)(file, rng)
        every[kind] += 1
        reason = ""
        try:
            read(tmp_path / "data")
        except UserError as error:
            reason = str(error)
        refused[kind] += bool(reason)
        assert len(reason.splitlines()) <= 1
        assert len(reason) < 1500
        file.write_bytes(content)
    print(f"DAMAGED {name}: " + ", ".join(f"{kind} {refused[kind]} of {every[kind]}" for kind in sorted(every)))
    assert refused.total() > turns / (20 if shards else 5)
    assert [path.name for path in tmp_path.iterdir()] == ["data"], "nothing was unpacked or run"


RUNS = "__import__('os').system('touch PWNED')"
CODE = (RUNS, f"[{RUNS}]", f"[{RUNS!r}, {RUNS}]", "[open('PWNED', 'w').write('x')]")
ODD = ("{[]: 1}", "(" * 500, "[" * 5000, "['\\ud800']", "[1]", "['']", "[]", "9" * 5000, "['a'", "'a'")


@pytest.mark.parametrize("code", [*CODE, *ODD])
def test_a_cell_that_is_no_list_of_texts_is_refused_and_not_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MAKERS["negbench-retrieval"](tmp_path)
    for file in (tmp_path / "negbench").glob("*.csv"):
        write_csv(file, ("filepath", "captions"), [("0.jpg", code), ("1.jpg", code)])
    with pytest.raises(UserError, match="record 1 has a 'captions' that is no list of one or more texts"):
        build("negbench-retrieval", tmp_path)
    assert not (tmp_path / "PWNED").exists()


def test_a_path_that_climbs_out_of_the_images_of_a_source_is_refused(tmp_path):
    """Visual Genome and GQA make names of numbers, which are looked up in their folders alone."""
    SOURCES["coco"](tmp_path)
    image = next((tmp_path / "coco/train2017").iterdir()).name
    shutil.copy(tmp_path / "coco/train2017" / image, tmp_path / "x.jpg")
    path = tmp_path / "coco/annotations/captions_train2017.json"
    path.write_text(path.read_text().replace(image, "../../x.jpg"))
    with pytest.raises(UserError, match="leads out of the folder"):
        read_source("coco", "", tmp_path)


# Entries, lines and texts


def test_entries_are_read_as_json_is(tmp_path):
    content = {f"k{k}": {"n": 10**k, "é": ['a\n"]}', None, -1.5e-3, {"[": "}"}]} for k in range(9)}
    for indent in (None, 1):
        (tmp_path / "a.json").write_text(json.dumps(content, indent=indent) + "\n ", encoding="utf-8-sig")
        (tmp_path / "b.json").write_text(json.dumps(list(content.values()), indent=indent, ensure_ascii=False))
        found = list(read_entries(tmp_path / "a.json", dict))
        assert found == [FileRow(tmp_path / "a.json", key, value) for key, value in content.items()]
        listed = list(read_entries(tmp_path / "b.json", list))
        assert [(row.place, row.content) for row in listed] == [(f"[{k}]", content[f"k{k}"]) for k in range(9)]
    for text, kind in (("[]", list), (" [ ] ", list), ("{}", dict)):
        (tmp_path / "a.json").write_text(text)
        assert list(read_entries(tmp_path / "a.json", kind)) == []


LISTS = {
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
OBJECTS = {
    "{1: {}}": "is no JSON",
    '{"\\ud800": {}}': "is no JSON",
    '{"a" {}}': "is no JSON",
    '{"a": 1}': "a is no object",
    "[]": "is not of its form",
}


@pytest.mark.parametrize(
    ("text", "kind", "problem"),
    [*((text, list, problem) for text, problem in LISTS.items()), *((t, dict, p) for t, p in OBJECTS.items())],
    ids=lambda value: str(value)[:12],
)
def test_what_is_no_list_or_object_of_objects_is_refused(tmp_path, text, kind, problem):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError) as error:
        list(read_entries(tmp_path / "a.json", kind))
    assert problem in str(error.value)
    assert str(tmp_path / "a.json") in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85"])
def test_lines_of_json_end_at_line_feeds_alone(tmp_path, sign):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"a": "x{sign}y"}}\r\n\n{{"a": "z"}}\n', encoding="utf-8", newline="")
    assert [(entry.place, entry.content["a"]) for entry in read_json_lines(path)] == [
        ("line 1", f"x{sign}y"),
        ("line 3", "z"),
    ]


def test_texts_may_begin_with_a_mark(tmp_path):
    content, table = tmp_path / "a.json", tmp_path / "a.csv"
    content.write_bytes('[{"a": "café"}]'.encode("utf-8-sig"))
    table.write_bytes("a\ncafé\n".encode("utf-8-sig"))
    assert [entry.content for entry in read_entries(content, list)] == [{"a": "café"}]
    assert [row.text("a") for row in read_csv(table, ["a"])] == ["café"]
    with table.open("rb") as file:
        assert read_member_text(file, Member(0, table.stat().st_size)) == "a\ncafé\n"


@pytest.mark.parametrize(("codec", "why"), [("utf-16-le", "zero bytes"), ("utf-16", "can't decode")])
def test_utf_16_is_refused(codec, why, tmp_path):
    """Without a mark it is text in UTF-8 too, with zeros between its letters."""
    (tmp_path / "captions.txt").write_text("a cat", encoding=codec)
    with pytest.raises(UserError, match=rf"captions\.txt is no text.*{why}.*save it as UTF-8"):
        captions_in_file(tmp_path / "captions.txt")


def in_csv(text, folder):
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
def test_a_text_is_refused_if_it_is_longer_than_any_caption(kind, tmp_path):
    assert TEXTS[kind]("a" * LONGEST_TEXT, tmp_path) == "a" * LONGEST_TEXT
    with pytest.raises(UserError, match=str(LONGEST_TEXT)) as error:
        TEXTS[kind]("a" * (LONGEST_TEXT + 1), tmp_path)
    assert len(str(error.value)) < 1000
    assert not refusal("a" * LONGEST_TEXT)
    assert refusal("a" * (LONGEST_TEXT + 1)) == "a text that is too long"  # counted, as in visual genome


def test_texts_behave_as_a_list():
    some = ["a", "é cat", "", "☃" * 3]
    texts = Texts(some)
    assert list(texts) == some
    assert [texts[k] for k in (-1, 0)] == ["☃☃☃", "a"]
    assert len(texts) == 4
    with pytest.raises(IndexError):
        texts[4]
