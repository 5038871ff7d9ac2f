"""Training sources opened from a folder of data: one contract for all that the registry finds."""

import os
import pickle
import shutil
from collections import Counter
from pathlib import Path

import pytest
import torch

from envs.common.errors import UserError
from generators.captioned import Captioned
from generators.captions.graph import Edge, SceneGraph
from generators.sources import registry
from generators.sources.kept_out import COCO, FLICKR, KeptOut, PhotographId
from generators.sources.photographs import Photographs
from generators.sources.place import SourcePlace, one_node
from tests.generators.source_files import MAKERS

SHARED = Path(os.environ.get("MENAGERIE_SHARED", Path(__file__).parents[3] / "shared"))
MINI = SHARED / "data/coco-mini"
SIDE = 16
NAMES = [name for name in registry.names() if registry.load(name).open]
RECIPES = [(name, recipe) for name in NAMES for recipe in registry.load(name).recipes]


@pytest.fixture(scope="module")
def roots(tmp_path_factory) -> dict[str, Path]:
    """The files of each source, which nobody may change."""
    made = {name: tmp_path_factory.mktemp(name.replace(" ", "_")) for name in NAMES}
    for name, root in made.items():
        MAKERS[name](root)
    return made


def opened(name: str, root: Path, **place: object) -> Photographs:
    return registry.load(name).open(SourcePlace(root, SIDE, **place))


def refusal(name: str, root: Path, **place: object) -> str:
    """The one line that a source is refused with."""
    with pytest.raises(UserError) as error:
        opened(name, root, **place)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_every_source_has_files_here():
    assert set(MAKERS) == set(NAMES)


@pytest.mark.parametrize(("name", "recipe"), RECIPES)
def test_same_index_and_draw_give_the_same(roots, name, recipe):
    one, other = (opened(name, roots[name], caption=recipe) for _ in range(2))
    everything, draws = range(len(one)), range(5, 5 + len(one))
    assert isinstance(one, Captioned)
    assert len(one) == one.counts()["images"] == len(one.names_of_images) == len(set(one.names_of_images)) > 1
    assert one.counts()["captions"] > 0
    assert one.images(everything).shape == (len(one), 3, SIDE, SIDE)
    travelled = pickle.loads(pickle.dumps(other))
    for data in (other, travelled):
        assert data.identity == one.identity
        assert torch.equal(data.images(everything), one.images(everything))
        assert data.captions(everything, draws) == one.captions(everything, draws)
        assert data.several(everything, draws, 3) == one.several(everything, draws, 3)
    last = len(one) - 1
    assert one.captions([last], [draws[last]]) == one.captions(everything, draws)[-1:]
    assert one.negatives(everything, draws) == [None] * len(one)


@pytest.mark.parametrize(("name", "recipe"), RECIPES)
def test_texts_cover_all_that_is_given(roots, name, recipe):
    data = opened(name, roots[name], caption=recipe)
    known, words = set(data.texts()), set(" ".join(data.texts()).split())
    for draw in range(20):
        for text, graph in data.captions(range(len(data)), [draw] * len(data)):
            assert text == " ".join(text.split())
            assert {*graph.nodes, *(edge.predicate for edge in graph.edges)} <= known
            assert text in known or set(text.replace(",", "").split()) <= {word.strip(",") for word in words}
            assert all(0 <= end < len(graph.nodes) for edge in graph.edges for end in edge[1:])


@pytest.mark.parametrize("name", NAMES)
def test_identity_is_of_what_is_there(roots, name, tmp_path):
    shutil.copytree(roots[name], tmp_path / "moved")
    data, moved = opened(name, roots[name]), opened(name, tmp_path / "moved")
    assert data.identity == moved.identity
    kept = KeptOut({next(iter(numbers_of(name, data))): "in a test"})
    assert opened(name, roots[name], kept_out=kept).identity != data.identity


def numbers_of(name: str, data: Photographs) -> list[PhotographId]:
    """Numbers of the images in the order of their indices."""
    return [PhotographId(*split) for text in data.names_of_images for split in [split_name(text)]]


def split_name(text: str) -> tuple[str, int]:
    collection, _, number = text.rpartition(" ")
    return collection, int(number)


@pytest.mark.parametrize("name", NAMES)
def test_what_tests_have_is_left_out_and_counted(roots, name):
    data = opened(name, roots[name])
    assert data.left_out == {}
    first, second = numbers_of(name, data)[:2]
    less = opened(name, roots[name], kept_out=KeptOut({first: "in a test", second: "in another", (COCO, 10**9): "no"}))
    assert less.left_out == {"in a test": 1, "in another": 1}
    assert less.counts()["images"] == len(data) - 2
    assert list(less.names_of_images) == list(data.names_of_images)[2:]
    assert less.captions([0], [3]) == data.captions([2], [3])
    everything = KeptOut(dict.fromkeys(numbers_of(name, data), "in a test"))
    assert f"{len(data)} in a test" in refusal(name, roots[name], kept_out=everything)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_folder_is_one_line(name, tmp_path):
    for root in (tmp_path, tmp_path / "nowhere"):
        assert str(root) in refusal(name, root)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_recipe_is_refused(roots, name):
    assert "caption recipe" in refusal(name, roots[name], caption="rejoins")


# COCO


def test_coco_by_flickr_number(roots):
    kept = KeptOut({PhotographId(FLICKR, 2970773871): "in retrieval-flickr30k"})
    data = opened("coco", roots["coco"], kept_out=kept)
    assert data.left_out == {"in retrieval-flickr30k": 1}
    assert "COCO 16" not in data.names_of_images


def test_cocos_folders_may_lie_elsewhere(roots, tmp_path):
    whole = opened("coco", roots["coco"])
    own = opened("coco", roots["coco"] / "coco")
    folder = opened("coco", tmp_path, folders={"coco": roots["coco"] / "coco"})
    shutil.copytree(roots["coco"] / "coco/annotations", tmp_path / "coco/annotations")
    images = opened("coco", tmp_path, folders={"coco/train2017": roots["coco"] / "coco/train2017"})
    assert own.identity == folder.identity == images.identity == whole.identity


def test_cocos_captions_with_html_are_refused_and_counted(roots, tmp_path):
    shutil.copytree(roots["coco"], tmp_path / "data")
    path = tmp_path / "data/coco/annotations/captions_train2017.json"
    marked = path.read_text().replace("A cat on 9 mats.", "A <b>cat</b> on <br/>").replace("16 mats", "16 <!-- -->")
    path.write_text(marked.replace("A cat on 16 mats.", "<script>alert(1)</script>"))
    data = opened("coco", tmp_path / "data")
    assert data.refused_texts == {"HTML in the text": 3}
    assert data.left_out == {"HTML in the text of all captions": 1}
    assert "COCO 16" not in data.names_of_images
    assert not any("<" in text for text in data.texts())


def test_cocos_captions_are_parsed(roots):
    graph = SceneGraph(("a cat", "mats"), (Edge("on", 0, 1),))
    data, plain = opened("coco", roots["coco"], parse=lambda text: graph), opened("coco", roots["coco"])
    assert {caption.graph for caption in data.captions(range(4), range(4))} == {graph}
    assert data.identity != plain.identity
    assert plain.captions([0], [0])[0].graph == one_node(plain.captions([0], [0])[0].text)


@pytest.mark.skipif(not MINI.is_dir(), reason=f"no {MINI}: set MENAGERIE_SHARED to the folder of shared data")
def test_real_photographs(tmp_path):
    data = opened("coco", MINI)
    assert data.counts() == {"images": 26, "captions": 130}
    assert Counter(name.partition(" ")[0] for name in data.names_of_images) == {COCO: 26}
    assert opened("coco", tmp_path, folders={"coco": MINI}).identity == data.identity
