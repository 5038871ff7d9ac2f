"""Training data of all kinds: one contract for all, and what each kind refuses."""

import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from menagerie import SplitDataset
from menagerie.envs.core.errors import UserError
from menagerie.generators.captioned import Captioned, pick
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.relations import compound_names
from menagerie.generators.export.write import export_split
from menagerie.generators.sources import registry
from menagerie.generators.sources.annotated import AnnotatedPhotographs
from menagerie.generators.sources.coco import CocoCaptions
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.mixture import Mixture
from menagerie.generators.sources.place import Place
from tests.helpers.benchmark_files import write_json
from tests.helpers.source_files import MAKERS, png_header

SHARED = Path(os.environ.get("MENAGERIE_SHARED", Path(__file__).parents[3] / "shared"))
SIDE = 16
# Names of sources with their ways of making captions.
SOURCES = [(name, recipe) for name in registry.names() for recipe in registry.load_source(name).recipes]
KINDS = ("split", "tests", "mixture", "own COCO", *(" ".join(source).strip() for source in SOURCES))
FILES = {"a.jpg": (40, 30), "b.png": (20, 50), "c.webp": (17, 16), "below/d.jpg": (16, 16), "e.png": (8, 12)}


def parse(text: str) -> SceneGraph:
    """Two nodes and an edge for "a cat on a mat"."""
    nodes = text.split(" on ")
    return SceneGraph(tuple(nodes), tuple(Edge("on", i, i + 1) for i in range(len(nodes) - 1)))


def coco_content() -> dict:
    """Five images with three captions each, the last of which has spare white space."""
    images = [{"id": 10 * i, "file_name": name} for i, name in enumerate(FILES)]
    texts = ["object {} on a mat", "photo of object {}", "  an \n object {}  on\ta chair "]
    annotations = [
        {"id": 100 * i + j, "image_id": 10 * i, "caption": text.format(i)}
        for j, text in enumerate(texts)
        for i in range(len(FILES))
    ]
    return {"info": {}, "images": images, "annotations": annotations}


@pytest.fixture(scope="module")
def coco_folder(tmp_path_factory) -> Path:
    """A small set like COCO's that nobody may change."""
    folder, random = tmp_path_factory.mktemp("coco"), np.random.default_rng(0)
    for name, (width, height) in FILES.items():
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (height, width, 3), np.uint8)).save(path)
    write_json(folder / "captions.json", coco_content())
    return folder


@pytest.fixture(scope="module")
def every(split, coco_folder, tmp_path_factory) -> dict[str, Captioned]:
    """One data set of each kind."""
    sources = {}
    for name, recipe in SOURCES:
        MAKERS[name](root := tmp_path_factory.mktemp("data"))
        sources[f"{name} {recipe}".strip()] = registry.load_source(name).open(Place(root, SIDE, caption=recipe))
    train, tests = (SplitDataset(split, subset) for subset in ("train", "seen_pairs"))
    coco = CocoCaptions(coco_folder / "captions.json", coco_folder / "images", SIDE, parse)
    return {"split": train, "tests": tests, "mixture": Mixture([train, coco], [0.75, 0.25]), "own COCO": coco} | sources


def items(data: Captioned, indices: list[int], draw: int = 0) -> tuple:
    """Images, captions and negatives."""
    draws = [draw + i for i in indices]
    return data.images(indices), data.captions(indices, draws), data.negatives(indices, draws)


def same(one: tuple, other: tuple) -> bool:
    return torch.equal(one[0], other[0]) and one[1:] == other[1:]


def refusal(make, *arguments) -> str:
    """The one line that something is refused with."""
    with pytest.raises(UserError) as error:
        make(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_same_index_and_draw_give_the_same(every, kind):
    """Also after it was pickled, in another order, and in whatever company."""
    data, whole = every[kind], list(range(len(every[kind])))
    images, captions, negatives = items(data, whole)
    assert images.dtype == torch.uint8
    assert images.shape == (len(data), 3, SIDE, SIDE)
    assert len(captions) == len(negatives) == len(data) > 1
    several = data.several(whole, whole, 3)
    for one in (data, pickle.loads(pickle.dumps(data))):
        assert same(items(one, whole), (images, captions, negatives))
        assert one.several(whole, whole, 3) == several
    some = [len(data) - 1, 0, len(data) // 2]
    assert same(items(data, some), (images[some], [captions[i] for i in some], [negatives[i] for i in some]))
    assert torch.equal(data.images(np.array(some)), images[some])
    assert data.captions(np.array(some), np.array(some)) == [captions[i] for i in some]
    assert data.images([]).shape == (0, 3, SIDE, SIDE)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_cover_all_phrases_and_words_and_the_longest_caption(every, kind):
    data, known = every[kind], set(every[kind].texts())
    words, longest = ({word.strip(",") for text in known for word in text.split()}, max(len(t.split()) for t in known))
    assert "" not in known
    for draw in range(40 if isinstance(data, AnnotatedPhotographs) else 10):
        _, captions, negatives = items(data, list(range(len(data))), draw)
        for text, graph in [*captions, *filter(None, negatives)]:
            assert text == " ".join(text.split())
            assert len(text.split()) <= longest
            assert {word.strip(",") for word in text.split()} <= words
            assert text in known or isinstance(data, AnnotatedPhotographs)  # which makes captions of phrases
            assert graph.nodes
            assert {*graph.nodes, *(edge.predicate for edge in graph.edges)} <= known
            assert all(0 <= end < len(graph.nodes) for edge in graph.edges for end in edge[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_strata_and_shares_fit(every, kind):
    data = every[kind]
    for mask in data.strata.values():
        assert mask.dtype == bool
        assert mask.shape == (len(data),)
    assert data.shares.keys() <= data.strata.keys()
    assert not data.shares or sum(data.shares.values()) == pytest.approx(1)
    assert data.name


@pytest.mark.parametrize("kind", KINDS)
def test_counterfactuals_are_there_or_refused(every, kind):
    data = every[kind]
    if data.has_counterfactuals:
        assert data.counterfactual_images([1, 0]).shape == (2, 3, SIDE, SIDE)
    else:
        assert data.name in refusal(data.counterfactual_images, [0])


def test_a_source_can_be_sent_to_a_spawned_worker(every):
    chosen, several = [0, 2, 1], list(every.values())
    collate = partial(given, chosen)
    loader = DataLoader([several], num_workers=1, collate_fn=collate, multiprocessing_context="spawn")
    (batch,) = loader
    for one, data in zip(batch, several, strict=True):
        assert same(one, items(data, chosen))


def given(indices: list[int], batch: list) -> list[tuple]:
    return [items(data, indices) for data in batch[0]]


def test_split_gives_what_it_holds(every):
    train, tests = every["split"], every["tests"]
    assert train.complete_captions
    assert train.names == compound_names(train.split.vocabulary)
    assert not train.has_counterfactuals
    assert tests.has_counterfactuals
    assert [caption.text for caption in items(train, [0, 1])[1]] == train.records.captions[:2]
    assert [negative and negative.text for negative in items(tests, [0, 1])[2]] == tests.records.negatives[:2]
    singles = train.strata["single_object"]
    assert 0 < singles.sum() < len(train)
    assert all(text == "" for text, single in zip(train.records.negatives, singles, strict=True) if single)
    assert train.negatives([int(np.flatnonzero(singles)[0])], [0]) == [None]


def test_the_draw_chooses_among_captions(every):
    data = every["own COCO"]
    assert not data.complete_captions
    for index in range(len(data)):
        texts = {data.captions([index], [draw])[0].text for draw in range(30)}
        assert texts == {f"object {index} on a mat", f"photo of object {index}", f"an object {index} on a chair"}
    graph = SceneGraph(("object 0", "a mat"), (Edge("on", 0, 1),))
    assert graph in [data.captions([0], [draw])[0].graph for draw in range(30)]


def test_a_pick_is_of_its_item_alone():
    counts = np.bincount([pick(range(5), draw, "some image") for draw in range(2000)])
    assert counts.min() > 340
    assert [pick(range(5), draw, 1) for draw in range(20)] != [pick(range(5), draw, 2) for draw in range(20)]


def test_without_a_parser_a_caption_is_one_node(coco_folder):
    data = CocoCaptions(str(coco_folder / "captions.json"), str(coco_folder / "images"), SIDE)
    text, graph = data.captions([2], [0])[0]
    assert graph == SceneGraph((text,))


def test_an_export_comes_back_as_it_was(split, tmp_path):
    export_split(split, "coco", tmp_path)
    for subset in ("train", "validation"):
        data, back = SplitDataset(split, subset), CocoCaptions(tmp_path / f"{subset}.json", tmp_path / "images", SIDE)
        everything = range(len(data))
        assert torch.equal(back.images(everything), data.images(everything))
        assert [caption.text for caption in back.captions(everything, everything)] == data.records.captions


# Image files


def test_images_are_as_clip_reads_them(coco_folder):
    from torchvision.transforms import CenterCrop, Compose, InterpolationMode, Resize

    as_clip = Compose([Resize(SIDE, InterpolationMode.BICUBIC, antialias=True), CenterCrop(SIDE)])
    images = ImageFiles(coco_folder / "images", list(FILES), SIDE).read(range(len(FILES)))
    for name, image in zip(FILES, images, strict=True):
        with Image.open(coco_folder / "images" / name) as picture:
            assert np.array_equal(image.permute(1, 2, 0), np.asarray(as_clip(picture.convert("RGB"))))


def test_missing_images_are_counted(coco_folder, tmp_path):
    text = refusal(ImageFiles, coco_folder / "images", ["a.jpg", "below", "x.jpg", "y.jpg"], SIDE)
    assert "3 of 4 images are missing" in text
    assert str(coco_folder / "images") in text
    assert "5 of 5" in refusal(CocoCaptions, coco_folder / "captions.json", tmp_path / "nowhere", SIDE)


BAD_IMAGES = {
    "text": (lambda good: b"hello", "is no JPEG, PNG or WEBP"),
    "empty": (lambda good: b"", "is no JPEG, PNG or WEBP"),
    "truncated": (lambda good: good[: len(good) // 2], "truncated"),
    "too many pixels": (lambda good: png_header(9000, 9000), "more than 64 million"),
    "a bomb": (lambda good: png_header(60000, 60000), "can't be read"),
    "too long": (lambda good: png_header(2, 20000), "too long"),
    "too large a file": (lambda good: good + bytes(64 << 20), "more than 64 MB"),
}


@pytest.mark.parametrize("fault", BAD_IMAGES)
def test_bad_images_are_refused(coco_folder, tmp_path, fault):
    spoil, problem = BAD_IMAGES[fault]
    (tmp_path / "bad.jpg").write_bytes(spoil((coco_folder / "images/a.jpg").read_bytes()))
    text = refusal(ImageFiles(tmp_path, ["bad.jpg"], SIDE).read, [0])
    assert problem in text
    assert "'bad.jpg'" in text
    assert str(tmp_path) in text


@pytest.mark.parametrize(("form", "mode"), [("gif", "RGB"), ("tiff", "RGB"), ("png", "I;16")])
def test_foreign_images_are_refused(tmp_path, form, mode):
    Image.new(mode, (8, 8)).save(tmp_path / "bad.png", form)
    refusal(ImageFiles(tmp_path, ["bad.png"], SIDE).read, [0])


# Mixtures


def test_a_mixture_is_its_parts_one_after_the_other(every):
    split, coco, mixture = every["split"], every["own COCO"], every["mixture"]
    assert len(mixture) == len(split) + len(coco)
    assert same(items(mixture, [len(split) - 1]), items(split, [len(split) - 1]))
    last = len(mixture) - 1
    assert torch.equal(mixture.images([last]), coco.images([len(coco) - 1]))
    assert mixture.captions([last], [9]) == coco.captions([len(coco) - 1], [9])
    assert not mixture.complete_captions
    assert mixture.shares == {"part 0": 0.75, "part 1": 0.25}
    assert mixture.strata["part 1"].tolist() == [False] * len(split) + [True] * len(coco)
    assert (mixture.strata["part 0"] != mixture.strata["part 1"]).all()
    assert mixture.strata["single_object"].tolist() == split.strata["single_object"].tolist() + [False] * len(coco)
    for index in (-1, len(mixture)):
        with pytest.raises(IndexError):
            mixture.images([index])


def test_a_mixture_of_splits_keeps_what_both_have(every):
    both = Mixture([every["tests"], every["tests"]], [0.5, 0.5])
    assert both.complete_captions
    assert torch.equal(
        both.counterfactual_images([len(both) - 1]), every["tests"].counterfactual_images([len(both) // 2 - 1])
    )


@pytest.mark.parametrize("shares", [[0.5], [0.5, 0.4], [1.5, -0.5], [float("nan"), 1.0], []])
def test_shares_must_sum_to_one(every, shares):
    assert "shares" in refusal(Mixture, [every["split"], every["own COCO"]], shares)


def test_parts_must_fit_together(every, coco_folder):
    larger = CocoCaptions(coco_folder / "captions.json", coco_folder / "images", 24)
    assert "24 x 24" in refusal(Mixture, [every["own COCO"], larger], [0.5, 0.5])
    assert "at once" in refusal(Mixture, [every["mixture"], every["own COCO"]], [0.5, 0.5])


# Sources by name


def test_sources_are_found_by_name():
    assert registry.names() == ("coco", "gqa", "tar shards", "visual genome")
    assert all(registry.load_source(name).name == name for name in registry.names())
    assert "did you mean 'coco'" in refusal(registry.load_source, "cocoa")


def test_listing_sources_imports_none():
    program = (
        "import sys; from menagerie.generators.sources.registry import names; names(); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
