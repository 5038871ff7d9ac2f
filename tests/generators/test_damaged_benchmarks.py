"""Benchmarks and caption files that are damaged or hostile: each can be read, or is refused in one line."""

import os
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.registry import load_benchmark, names
from menagerie.generators.sources.coco import CocoCaptions
from menagerie.generators.sources.place import Place
from tests.generators.damage import OF_TEXTS, RUNS, mutated
from tests.helpers.benchmark_files import MAKERS, MATRICES, make_karpathy_test, tiny_tags, write_csv
from tests.helpers.source_files import png_header

MAKE = MAKERS | MATRICES
MUTATIONS = max(1600, int(os.environ.get("MENAGERIE_EXAMPLES", "0")))
WRITTEN = (".json", ".jsonl", ".csv", ".txt")


def read(name: str, root: Path) -> None:
    """All of a benchmark but its pixels and a model: with scores of 0 as far as its headlines."""
    bench = load_benchmark(name).build(Place(root, 16, allow_missing=True, tag=tiny_tags))
    if isinstance(bench, MatrixBenchmark):
        zeros = ((pool, np.zeros((len(pool.images), len(pool.texts)), np.float32)) for pool in bench.pools)
        results = [result for pool, scores in zeros for result in bench.results(pool, scores)]
        items, outcomes = [result.item for result in results], [result.outcome for result in results]
    else:
        items = bench.items
        outcomes = [bench.outcome(item, np.zeros((len(item.images), len(item.texts)))) for item in items]
    bench.headlines(items, outcomes)
    "".join([*bench.content(), *bench.tasks, *(text.text for text in bench.texts)]).encode()


def read_captions(root: Path) -> None:
    """COCO's captions as training data."""
    data = CocoCaptions(root / "coco/annotations/captions_val2017.json", root / "coco/val2017", 16)
    "".join(data.texts()).encode()


def refusal(root: Path, name: str) -> str:
    """Why files are refused; empty where they can be read."""
    try:
        read_captions(root) if name == "coco captions" else read(name, root)
    except UserError as error:
        return str(error)
    return ""


def make_all_forms(name: str, root: Path) -> None:
    """A benchmark in every form that it may have."""
    MAKE[name](root)
    if name == "retrieval-flickr30k":
        make_karpathy_test(root / "flickr30k/flickr30k_test.json", "flickr30k-images")
        (root / "flickr30k/dataset_flickr30k.json").unlink()


NAMES = (*sorted(MAKE.keys() - {"ncd", "imagenet-ao"}), "coco captions")  # the files of these have names alone


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_read_or_refused_in_one_line(name, tmp_path, monkeypatch):
    """Truncated, with bits flipped, in other encodings, with values of other types: seeded, `MUTATIONS` in all.

    Prints how many of each kind were refused, of how many.
    """
    monkeypatch.chdir(tmp_path)
    own = "retrieval-coco-val2017" if name == "coco captions" else name
    make_all_forms(own, tmp_path / "data")
    files = sorted(path for path in (tmp_path / "data").rglob("*") if path.suffix in WRITTEN)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    every, refused = Counter(), Counter()
    for turn in range(-(-MUTATIONS // len(NAMES))):
        file = files[turn % len(files)]
        content = file.read_bytes()
        kind, damaged = mutated(content, file.suffix, rng)
        file.write_bytes(damaged)
        reason = refusal(tmp_path / "data", name)
        every[kind] += 1
        refused[kind] += bool(reason)
        assert len(reason.splitlines()) <= 1
        assert len(reason) < 1500
        file.write_bytes(content)
    print(f"DAMAGED {name}: " + ", ".join(f"{kind} {refused[kind]} of {every[kind]}" for kind in sorted(every)))
    assert every.keys() == set(OF_TEXTS)
    assert refused.total() > 20
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_wrong_folder_and_half_a_copy_are_one_line(name, tmp_path):
    MAKE[name](tmp_path / "data")
    images = sorted(
        path for path in (tmp_path / "data").rglob("*") if path.suffix in (".jpg", ".jpeg", ".JPEG", ".png")
    )
    for image in images[len(images) // 2 :]:
        image.unlink()
    for root in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError) as error:
            read(name, root)
        assert str(root) in str(error.value)
    place = Place(tmp_path / "data", 16, tag=tiny_tags)
    if name == "ncd":  # no file says which images there should be
        assert load_benchmark(name).build(place).records
        return
    with pytest.raises(UserError, match=r"images are missing in|has no images") as error:
        load_benchmark(name).build(place)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "file", [b"a.png", b"red_apple.png", b"red_apple_green_pear_2.png", b"\xff_a_red_b.png", b"a\n.png"]
)
def test_files_with_odd_names_are_refused(file, tmp_path):
    """The composites' names are all that says what they show."""
    MAKE["ncd"](tmp_path)
    (tmp_path / "ncd/images" / os.fsdecode(file)).write_bytes(b"")
    reason = refusal(tmp_path, "ncd")
    assert reason
    assert len(reason.splitlines()) == 1


CLIMBING = (
    *("bivlc", "clevr-bind", "colorswap", "pug-spar", "pug-spare", "retrieval-coco", "retrieval-coco-val2017"),
    *("sugarcrepe", "sugarcrepe-pp", "valse", "vl-checklist"),
)


@pytest.mark.parametrize("name", CLIMBING)
def test_a_path_that_climbs_out_of_the_images_is_refused(name, tmp_path):
    """Others take the last part of a path alone, or make it of a number."""
    MAKE[name](tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.suffix in WRITTEN]
    image = next(path.name for path in sorted(tmp_path.rglob("*")) if path.suffix in (".jpg", ".png"))
    for file in files:
        file.write_text(file.read_text().replace(image, f"../../../../{image}"))
    (tmp_path / image).write_bytes(b"secret")
    with pytest.raises(UserError, match=r"leads out of the folder .* do not trust"):
        load_benchmark(name).build(Place(tmp_path, 16, allow_missing=True))


BAD_IMAGES = {
    "corrupt": (lambda good: good[:200] + bytes(50), "can't be read"),
    "of 100 million pixels": (lambda good: png_header(10_000, 10_000), "more than 64 million"),
    "a page": (lambda good: b"<!DOCTYPE html><html>404</html>", "is no JPEG, PNG or WEBP"),
}


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("fault", BAD_IMAGES)
@pytest.mark.parametrize("name", ["sugarcrepe", "vg-relation", "retrieval-coco", "zero-shot"])
def test_a_bad_image_is_named(name, fault, tmp_path):
    spoil, problem = BAD_IMAGES[fault]
    MAKE[name](tmp_path)
    bench = load_benchmark(name).build(Place(tmp_path, 16))
    file = bench.files.root / bench.files.names[0]
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(UserError, match=problem) as error:
        bench.images([0])
    assert repr(bench.files.names[0]) in str(error.value)
    assert len(str(error.value).splitlines()) == 1


CODE = (RUNS, f"[{RUNS}]", f"[{RUNS!r}, {RUNS}]", "[open('PWNED', 'w').write('x')]")
ODD = ("{[]: 1}", "(" * 500, "[" * 5000, "['\\ud800']", "[1]", "['']", "[]", "9" * 5000, "['a'", "'a'")


@pytest.mark.parametrize("code", [*CODE, *ODD])
def test_a_cell_that_is_no_list_of_texts_is_refused_and_not_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MAKE["negbench-retrieval"](tmp_path)
    for file in (tmp_path / "negbench").glob("*.csv"):
        write_csv(file, ("filepath", "captions"), [("0.jpg", code), ("1.jpg", code)])
    with pytest.raises(UserError, match="record 1 has a 'captions' that is no list of one or more texts"):
        read("negbench-retrieval", tmp_path)
    assert not (tmp_path / "PWNED").exists()


def test_a_benchmark_without_any_file_is_refused(tmp_path):
    for name in names():
        with pytest.raises(UserError) as error:
            read(name, tmp_path)
        assert "\n" not in str(error.value)
