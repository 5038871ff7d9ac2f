"""Training sources opened from a folder of data: one contract for all that the registry finds."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.parsers.parser import CaptionParser, Parsed
from menagerie.generators.sources import registry
from menagerie.generators.sources.annotated import (
    UNKNOWN_OBJECT,
    AnnotatedPhotographs,
    Annotations,
    Relation,
    relation_or_objects,
    two_regions,
)
from menagerie.generators.sources.kept_out import COCO, FLICKR, VISUAL_GENOME, KeptOut, PhotographId
from menagerie.generators.sources.photographs import Photographs
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.sources.registry import state
from menagerie.generators.sources.visual_genome import UNKNOWN
from tests.helpers.source_files import GENOME, MAKERS, Numbers, make_scene_graphs

SHARED = Path(os.environ.get("MENAGERIE_SHARED", Path(__file__).parents[3] / "shared"))
MINI = SHARED / "data/coco-mini"
SIDE = 16
NAMES = registry.names()
RECIPES = [(name, recipe) for name in NAMES for recipe in registry.load_source(name).recipes]
PICTURES = (".jpg", ".tar")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, tuple[Path, Numbers]]:
    """The files of each source, which nobody may change, and a number of each of its images."""
    roots = {name: tmp_path_factory.mktemp(name.replace(" ", "_")) for name in NAMES}
    return {name: (root, MAKERS[name](root)) for name, root in roots.items()}


@pytest.fixture(scope="module")
def roots(made) -> dict[str, Path]:
    return {name: root for name, (root, _) in made.items()}


@pytest.fixture
def copy(roots, tmp_path) -> Callable[[str], Path]:
    """The files of a source, to be changed."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(roots[name], tmp_path / "data"))

    return copied


def opened(name: str, root: Path, **place: object) -> Photographs:
    return registry.load_source(name).open(Place(root, SIDE, **place))


def refusal(name: str, root: Path, **place: object) -> str:
    """The one line that a source is refused with."""
    with pytest.raises(UserError) as error:
        opened(name, root, **place)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def changed(path: Path, change: Callable[[object], object]) -> None:
    """Write a JSON file anew."""
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content) or content))


def all_captions(data: Photographs, draws: int = 40) -> list[set[str]]:
    """Of each image the texts that some draws give."""
    return [{data.captions([k], [draw])[0].text for draw in range(draws)} for k in range(len(data))]


def test_every_source_has_files_here():
    assert set(MAKERS) == set(NAMES)


@pytest.mark.parametrize(("recipe", "captions"), [(relation_or_objects, 3 + 2), (two_regions, 3 + 4)])
def test_an_image_without_relations_has_captions_of_its_phrases(recipe, captions):
    stated = tuple(Relation(0, predicate, 1) for predicate in ("on", "under"))
    known = {"a": Annotations(("cat", "mat", "dog"), ()), "b": Annotations(("cat", "mat", "cup", "hat"), stated)}
    counts = AnnotatedPhotographs("two", known.items(), recipe, {}, {}).counts()
    assert counts == {"images": 2, "captions": captions, "phrases": 7, "relations": 2}


@pytest.mark.parametrize("name", NAMES)
def test_identity_changes_with_photographs_and_recipe(made, copy, name):
    root, numbers = made[name]
    data, moved = opened(name, root), copy(name)
    assert opened(name, moved).identity == data.identity
    assert opened(name, root, kept_out=KeptOut({numbers[0]: "in a test"})).identity != data.identity
    recipes = {opened(name, root, caption=recipe).identity for recipe in registry.load_source(name).recipes}
    assert len(recipes) == len(registry.load_source(name).recipes)
    image = next(path for path in sorted(moved.rglob("*")) if path.suffix == ".jpg" or path.name == "00000.tar")
    image.write_bytes(image.read_bytes() + bytes(512))
    assert name == "tar shards" or opened(name, moved).identity != data.identity


@pytest.mark.parametrize("name", NAMES)
def test_photographs_of_tests_are_left_out_and_counted(made, name):
    root, numbers = made[name]
    data = opened(name, root)
    assert not {"in a test", "in another"} & data.left_out.keys()
    assert data.refused_texts.keys() <= {"no text"}
    held = KeptOut({numbers[0]: "in a test", numbers[1]: "in another", PhotographId(COCO, 10**9): "in no source"})
    less = opened(name, root, kept_out=held)
    assert less.left_out == data.left_out | {"in a test": 1, "in another": 1}
    assert less.counts()["images"] == len(data) - 2
    assert list(less.names_of_images) == list(data.names_of_images)[2:]
    assert less.captions([0], [3]) == data.captions([2], [3])
    assert torch.equal(less.images([0]), data.images([2]))


@pytest.mark.parametrize("name", NAMES)
def test_a_source_without_a_photograph_left_is_refused(made, name):
    root, numbers = made[name]
    every = KeptOut(dict.fromkeys([*numbers, PhotographId(FLICKR, 0)], "in a test"))
    if name == "tar shards":  # of one image nobody knows where it is from
        assert list(opened(name, root, kept_out=every).names_of_images) == ["00001.tar/c"]
    else:
        assert f"{len(numbers)} in a test" in refusal(name, root, kept_out=every)


@pytest.mark.parametrize("name", NAMES)
def test_unknown_photographs_of_tests_are_an_error_unless_allowed(roots, name):
    unknown = dict.fromkeys((COCO, VISUAL_GENOME, FLICKR), "it isn't known what is in tests")
    assert refusal(name, roots[name], kept_out=KeptOut({}, unknown)) == "it isn't known what is in tests"
    assert len(opened(name, roots[name], kept_out=KeptOut({}, unknown, True))) > 1


@pytest.mark.parametrize("name", NAMES)
def test_a_source_without_its_files_is_one_error(name, tmp_path):
    for root in (tmp_path, tmp_path / "nowhere"):
        assert str(root) in refusal(name, root)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_recipe_is_refused(roots, name):
    assert "caption recipe" in refusal(name, roots[name], caption="rejoins")


# What is on disk


@pytest.mark.parametrize("name", NAMES)
def test_missing_images_make_a_source_incomplete(roots, tmp_path, name):
    spec = registry.load_source(name)
    found = state(spec, Place(roots[name], SIDE))
    assert found.problem == ("" if name != "coco" else f"{roots[name]}/coco/train2017 has 4 files, not 118287")
    assert found.complete == (not found.problem)
    assert found.get
    assert found.licence
    empty = state(spec, Place(tmp_path, SIDE))
    assert not empty.complete
    assert str(tmp_path) in empty.problem


# COCO


def test_coco_by_flickr_number(roots):
    kept = KeptOut({PhotographId(FLICKR, 2970773871): "in retrieval-flickr30k"})
    data = opened("coco", roots["coco"], kept_out=kept)
    assert data.left_out == {"in retrieval-flickr30k": 1}
    assert "COCO 16" not in data.names_of_images


def test_cocos_folders_may_lie_elsewhere(roots, tmp_path):
    whole = opened("coco", roots["coco"])
    folder = opened("coco", tmp_path, folders={"coco": (roots["coco"] / "coco",)})
    shutil.copytree(roots["coco"] / "coco/annotations", tmp_path / "coco/annotations")
    images = opened("coco", tmp_path, folders={"coco/train2017": (roots["coco"] / "coco/train2017",)})
    assert folder.identity == images.identity == whole.identity


def test_cocos_captions_with_html_are_refused_and_counted(copy):
    root = copy("coco")
    path = root / "coco/annotations/captions_train2017.json"
    marked = path.read_text().replace("A cat on 9 mats.", "A <b>cat</b> on <br/>").replace("16 mats", "16 <!-- -->")
    path.write_text(marked.replace("A cat on 16 <!-- -->.", "<script>alert(1)</script>"))
    data = opened("coco", root)
    assert data.refused_texts == {"HTML in the text": 3}
    assert data.left_out == {"HTML in the text of all captions": 1}
    assert "COCO 16" not in data.names_of_images
    assert not any("<" in text for text in data.texts())


def test_cocos_captions_are_parsed_at_once(roots):
    graph = SceneGraph(("a cat", "mats"), (Edge("on", 0, 1),))
    calls = []

    class Parser:
        def identity(self):
            return {}

        def parse(self, captions):
            calls.append(captions)
            return (Parsed(caption, graph) for caption in captions)

        def spent(self):
            return {}

    data = opened("coco", roots["coco"], parse=CaptionParser("all alike", Parser(), None))
    plain = opened("coco", roots["coco"])
    assert {caption.graph for caption in data.captions(range(4), range(4))} == {graph}
    assert [len(captions) for captions in calls] == [8]
    assert data.identity != plain.identity
    assert plain.captions([0], [0])[0].graph == one_node(plain.captions([0], [0])[0].text)


@pytest.mark.skipif(not MINI.is_dir(), reason=f"no {MINI}: set MENAGERIE_SHARED to the folder of shared data")
def test_real_files_of_photographs_are_read(tmp_path):
    data = opened("coco", tmp_path, folders={"coco": (MINI,)})
    assert data.counts() == {"images": 26, "captions": 130}
    assert Counter(name.partition(" ")[0] for name in data.names_of_images) == {COCO: 26}


# Visual Genome


def test_captions_of_visual_genome_join_two_regions(roots):
    data = opened("visual genome", roots["visual genome"])
    assert list(data.names_of_images) == ["Visual Genome 1", "COCO 9", "Visual Genome 2317", "COCO 7000"]
    assert data.left_out == {"nothing in region_descriptions.json": 1}
    texts = all_captions(data)
    assert texts[0] == {"A photo of a a red cat 1"}
    phrases = ("a red cat 3", "the mat 3", "Sky.")
    assert texts[1] == {f"A photo of a {a} and a {b}" for a in phrases for b in phrases if a != b}
    for draw in range(9):
        ((text, graph),) = data.captions([1], [draw])
        assert text == f"A photo of a {graph.nodes[0]} and a {graph.nodes[1]}"
        assert not graph.edges


@pytest.mark.parametrize("file", ["relationships.json", "scene_graphs.json"])
def test_relations_are_read_from_both_files_of_visual_genome(copy, file):
    root = copy("visual genome")
    make_scene_graphs(root)
    if file == "scene_graphs.json":
        (root / "vg/relationships.json").unlink()
    data = opened("visual genome", root, caption="relations")
    assert data.left_out == {f"nothing in {file}": 1}
    assert data.refused_texts == {"no text": len(GENOME) - 1}
    assert all_captions(data)[1] == {"A photo of cat 3 on mat", "A photo of blue small cup next to cat 3"}
    graphs = {data.captions([1], [draw])[0].graph for draw in range(40)}
    assert SceneGraph(("blue small cup", "cat 3"), (Edge("next to", 0, 1),)) in graphs


def test_visual_genome_by_coco_number(roots):
    data = opened("visual genome", roots["visual genome"], kept_out=KeptOut({PhotographId(COCO, 9): "COCO val2017"}))
    assert data.left_out["COCO val2017"] == 1
    assert "COCO 9" not in data.names_of_images


def test_phrases_with_html_or_nothing_are_counted(copy):
    root = copy("visual genome")
    path = root / "vg/region_descriptions.json"
    path.write_text(path.read_text().replace("Sky.", "<i>Sky</i>").replace("the mat 3", " "))
    data = opened("visual genome", root)
    assert data.refused_texts == {"HTML in the text": 3, "no text": 2}
    assert all_captions(data)[1] == {"A photo of a a red cat 3"}


@pytest.mark.parametrize("file", ["region_descriptions.json", "relationships.json"])
def test_an_image_without_numbers_is_counted(copy, file):
    """Files of two releases differ in a few images."""
    root = copy("visual genome")
    changed(root / "vg" / file, lambda c: c[1].update(image_id=77))
    data = opened("visual genome", root, caption="relations" if file.startswith("relation") else "regions")
    assert list(data.names_of_images) == ["Visual Genome 1", "Visual Genome 2317", "COCO 7000"]
    assert data.left_out == {UNKNOWN: 1, f"nothing in {file}": 1}


def test_a_relation_of_visual_genome_to_an_unknown_object_is_counted(copy):
    root = copy("visual genome")
    make_scene_graphs(root)
    (root / "vg/relationships.json").unlink()
    changed(root / "vg/scene_graphs.json", lambda c: c[1]["relationships"][1].update(subject_id=99))
    data = opened("visual genome", root, caption="relations")
    assert data.refused_texts == {"no text": len(GENOME) - 1, UNKNOWN_OBJECT: 1}
    assert all_captions(data)[1] == {"A photo of cat 3 on mat"}


# GQA


def test_captions_of_gqa_state_its_relations(roots):
    data = opened("gqa", roots["gqa"])
    assert list(data.names_of_images) == ["Visual Genome 1", "COCO 9", "Visual Genome 2317", "COCO 7000"]
    assert sorted(data.left_out.values()) == [1, 1]
    texts = all_captions(data)
    assert texts[0] == {
        "A photo of small yellow banana to the left of man",
        "A photo of man to the right of small yellow banana",
        "A photo of man holding small yellow banana",
    }
    assert texts[1] == {"A photo of wet cat on mat"}
    assert texts[3] == {"A photo of big dog near bus"}
    for draw in range(20):
        ((text, graph),) = data.captions([2], [draw])
        assert text == f"A photo of {', '.join(graph.nodes)}"
        assert len(set(graph.nodes)) == 3
    plain = all_captions(opened("gqa", roots["gqa"], caption="names"))
    assert plain[1] == {"A photo of cat on mat"}
    assert all(text.count("cup") <= 1 for text in plain[2])


def test_a_relation_of_gqa_to_an_unknown_object_is_counted(copy):
    root = copy("gqa")
    path = root / "gqa/train_sceneGraphs.json"
    changed(path, lambda c: c["1"]["objects"]["11"]["relations"][0].update(object="99"))
    data = opened("gqa", root)
    assert data.refused_texts == {UNKNOWN_OBJECT: 1}
    assert all_captions(data)[0] == {
        "A photo of man to the right of small yellow banana",
        "A photo of man holding small yellow banana",
    }


# Files with a fault: what stands at a place is another value, or nothing.

LOST = object()
COCO_FILE = ("coco", "coco/annotations/captions_train2017.json")
REGIONS = ("visual genome", "vg/region_descriptions.json")
GRAPHS, OBJECT = ("gqa", "gqa/train_sceneGraphs.json"), ("1", "objects", "11")
FAULTS = [
    (COCO_FILE, (), [], "is not of its form"),
    (COCO_FILE, ("annotations",), LOST, "has no 'annotations'"),
    (COCO_FILE, ("images", 1, "file_name"), LOST, "images[1] has no 'file_name'"),
    (COCO_FILE, ("images", 1, "file_name"), 7, "images[1] has a 'file_name'"),
    (COCO_FILE, ("images", 0, "id"), True, "images[0] has a 'id'"),
    (COCO_FILE, ("images", 1, "id"), 9, "images[1] has the 'id'"),
    (COCO_FILE, ("images",), ["a.jpg"], "images[0] is no object"),
    (COCO_FILE, ("images",), [], "has no images"),
    (COCO_FILE, ("annotations", 2, "caption"), None, "annotations[2] has a 'caption'"),
    (COCO_FILE, ("annotations", 2, "caption"), " \n", "annotations[2] has a 'caption' of 0 characters"),
    (COCO_FILE, ("annotations", 3, "image_id"), 7, "annotations[3] has an 'image_id'"),
    (COCO_FILE, ("annotations",), [], "no captions for 4 of 4 images"),
    (REGIONS, (), {"1": {}}, "is not of its form"),
    (REGIONS, (1, "regions"), LOST, "[1] has no 'regions'"),
    (REGIONS, (1, "regions", 0), "sky", "[1].regions[0] is no object"),
    (REGIONS, (1, "regions", 2, "phrase"), None, "[1].regions[2] has a 'phrase' that is no"),
    (GRAPHS, (*OBJECT, "relations"), "near", "has a 'relations' that is no list"),
    (GRAPHS, (*OBJECT, "attributes"), [1], "'attributes' that are no list of texts"),
    (GRAPHS, (*OBJECT, "name"), LOST, "1.objects.11 has no 'name'"),
]


@pytest.mark.parametrize(("file", "place", "value", "problem"), FAULTS)
def test_a_file_with_a_fault_is_refused(copy, file, place, value, problem):
    root = copy(file[0])
    whole = {"it": json.loads((root / file[1]).read_text())}
    *above, last = ("it", *place)
    inner = reduce(getitem, above, whole)
    if value is LOST:
        del inner[last]
    else:
        inner[last] = value
    (root / file[1]).write_text(json.dumps(whole["it"]))
    assert problem in refusal(file[0], root)
