"""Incomplete training captions: as often as requested, true, and checked by the audit."""

import json
import shutil
from collections import Counter
from dataclasses import replace

import h5py
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.findings import within
from menagerie.generators.audit.run import audit
from menagerie.generators.audit.texts import states_in_part
from menagerie.generators.captions.templates import caption
from menagerie.generators.parsers.world_grammar import parse
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.hdf5 import read_attribute
from menagerie.generators.storage.split_file import NO_GRAPH, read_split
from tests.helpers.splits import RECIPE, failed, make_split

PUG = BindingRecipe(pairs=1.0, views=1, test_views=1, test_scenes=20)
LESS = replace(RECIPE, views=4, mentioned=0.6, attributes=0.7, salient=0.2)


def claims_of_shares(path):
    """What the audit says of the shares of mentions; facing has shares of its own."""
    claims = (finding.claim for finding in audit(path))
    return [claim for claim in claims if "the requested share" in claim and " face " not in claim]


def mention_counts(recipe):
    """How often captions of training pairs mention the left, the right and both, and textures of all mentions."""
    mentioned, textures = Counter(), Counter()
    for scene in recipe.subsets()["train"]:
        true, _ = recipe.texts("train", scene)
        nodes = true.graph.nodes[:-1]
        textures.update(node in load_world(recipe.world).animals for node in nodes)
        if len(scene.things) == 2:
            left = any(node.endswith(scene.things[0].animal) for node in nodes)
            mentioned["both" if len(nodes) == 2 else "left" if left else "right"] += 1
    return mentioned, textures


def shares(counts):
    return {name: count / counts.total() for name, count in counts.items()}


def test_by_default_captions_are_complete():
    for scene in RECIPE.subsets()["train"]:
        assert RECIPE.texts("train", scene)[0] == caption(scene, RECIPE.seed)


@pytest.mark.parametrize(
    ("fields", "both", "left"),
    [
        ({"mentioned": 0.5}, 0.25, 0.375),
        ({"mentioned": 0.0}, 0.0, 0.5),
        ({"salient": 1.0}, 0.0, 1.0),
        ({"mentioned": 0.5, "salient": 0.5}, 0.125, 0.6875),
    ],
)
def test_animals_are_mentioned_as_often_as_requested(fields, both, left):
    mentioned, textures = mention_counts(replace(PUG, **fields))
    assert mentioned.total() == 152 * 10
    assert shares(mentioned).get("both", 0) == pytest.approx(both, abs=0.05)
    assert shares(mentioned)["left"] == pytest.approx(left, abs=0.05)
    assert not textures[True]


@pytest.mark.parametrize("attributes", [0.0, 0.3, 1.0])
def test_textures_are_mentioned_as_often_as_requested(attributes):
    mentioned, textures = mention_counts(replace(PUG, attributes=attributes))
    assert textures[False] / textures.total() == pytest.approx(attributes, abs=0.05)
    assert set(mentioned) == {"both"}


@pytest.mark.parametrize("template", ["conjunction", "pug-conjunction", "free-conjunction", "statement-conjunction"])
def test_texts_state_their_graphs_and_only_what_can_be_swapped_has_a_negative(template):
    recipe = replace(LESS, template=template)
    world = load_world(recipe.world)
    for scene in recipe.subsets()["train"]:
        true, negative = recipe.texts("train", scene)
        assert parse(true.text, world) == true.graph
        assert states_in_part(true.graph, scene)
        whole = recipe.texts("validation", scene)
        assert bool(negative) == (len(scene.things) == 2 and true == whole[0])
        assert negative in (None, whole[1])


def test_mentions_are_nested():
    some, more = (replace(LESS, mentioned=m, attributes=m, salient=0.0) for m in (0.3, 0.8))
    for scene in some.subsets()["train"]:
        few, many = (recipe.texts("train", scene)[0].graph.nodes for recipe in (some, more))
        # If no thing was drawn, one is mentioned all the same: it need not be among those of `more`.
        assert len(few) <= len(many)
        assert len(many) == 2 or all(any(other.endswith(node) for other in many) for node in few)


def test_captions_of_tests_are_complete(tmp_path):
    less, whole = (read_split(make_split(tmp_path, recipe)) for recipe in (LESS, replace(RECIPE, views=4)))
    for name in (*RECIPE.tests, "validation"):
        assert less.subsets[name].captions == whole.subsets[name].captions
        assert all(less.subsets[name].negatives)
    train = less.subsets["train"]
    assert train.captions != whole.subsets["train"].captions
    lacking = [graph for graph, text in zip(train.negative_graphs, train.negatives, strict=True) if not text]
    assert set(lacking) == {NO_GRAPH}


@pytest.mark.parametrize(
    "fields",
    [
        {"mentioned": 0.5},
        {"attributes": 0.5},
        {"salient": 1.0},
        {"negated": 1.0},
        {"negated": 0.3, "mentioned": 0.5},
        {"mentioned": 0.0, "attributes": 0.0},
        {"mentioned": 0.6, "attributes": 0.7, "salient": 0.2, "template": "free-conjunction"},
    ],
)
def test_the_audit_holds(tmp_path, fields):
    path = make_split(tmp_path, replace(RECIPE, views=4, **fields))
    assert failed(path) == []
    assert len(claims_of_shares(path)) == 4


def test_the_audit_of_complete_captions_has_no_shares(split):
    assert claims_of_shares(split) == []


def set_text(file, name, index, value):
    data = file[f"subsets/train/{name}"][:]
    data[index] = value
    file[f"subsets/train/{name}"][:] = data


def more_mentions(file):
    file.attrs["recipe"] = read_attribute(file, "recipe").replace('"mentioned": 0.6', '"mentioned": 1.0')


def fewer_textures(file):
    file.attrs["recipe"] = read_attribute(file, "recipe").replace('"attributes": 0.7', '"attributes": 0.2')


def complete_captions(file):
    recipe = json.loads(read_attribute(file, "recipe"))
    file.attrs["recipe"] = json.dumps(recipe | {"mentioned": 1.0, "attributes": 1.0, "salient": 0.0})


def incomplete_in_a_test(file):
    text = file["subsets/validation/caption"].asstr()[0]
    data = file["subsets/validation/caption"][:]
    data[0] = text.partition(" and ")[0] + " " + " ".join(text.split()[-3:])
    file["subsets/validation/caption"][:] = data


def text_with_more_than_graph(file):
    """A texture that the graph leaves out."""
    for i, text in enumerate(file["subsets/train/caption"].asstr()):
        if text.startswith("an elephant"):
            return set_text(file, "caption", i, text.replace("an elephant", "a red elephant"))


def false_node(file):
    nodes = file["subsets/train/graph/nodes"].asstr()[:]
    file["subsets/train/graph/nodes"][:] = ["penguin" if node == "elephant" else node for node in nodes]


def added_negative(file):
    texts = file["subsets/train/negative"].asstr()[:].tolist()
    set_text(file, "negative", texts.index(""), next(filter(None, texts)))


FAULTS = {
    more_mentions: "mentions both: the requested share",
    fewer_textures: "with their texture: the requested share",
    complete_captions: "every caption of train is true",
    incomplete_in_a_test: "every caption of validation is true",
    text_with_more_than_graph: "every caption of train is true",
    false_node: "every caption of train is true",
    added_negative: "train has a negative where, and only where",
}


@pytest.fixture(scope="module")
def less(tmp_path_factory):
    """A split that nobody may change."""
    return make_split(tmp_path_factory.mktemp("less"), LESS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_audit_fails_on_a_planted_fault(less, tmp_path, fault):
    shutil.copytree(less.parent, tmp_path / less.parent.name)
    path = tmp_path / less.parent.name / less.name
    with h5py.File(path, "r+") as file:
        fault(file)
    assert any(FAULTS[fault] in claim for claim in failed(path))


def test_shares_are_held_to_chance():
    assert within("", 0, 0, 0.5).holds
    assert within("", 60, 100, 0.5).holds
    assert not within("", 80, 100, 0.5).holds
    assert within("", 100, 100, 1.0).holds
    assert not within("", 99, 100, 1.0).holds
    assert within("", 9, 10, 0.999).holds


@pytest.mark.parametrize("field", ["mentioned", "attributes", "salient"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_impossible_chances_are_named(field, value):
    with pytest.raises(UserError, match=f"{field} must be (at|a number)"):
        replace(RECIPE, **{field: value})


def test_denials_are_true_and_as_often_as_requested():
    recipe = replace(PUG, negated=0.4)
    denying = 0
    scenes = recipe.subsets()["train"]
    for scene in scenes:
        true, false = recipe.texts("train", scene)
        denied = [node.removeprefix("no ") for node in true.graph.nodes if node.startswith("no ")]
        assert not set(denied) & {f"{thing.texture} {thing.animal}" for thing in scene.things}
        assert parse(true.text, load_world("pug")) == true.graph
        assert false is None or {n for n in false.graph.nodes if n.startswith("no ")} == {f"no {d}" for d in denied}
        denying += bool(denied)
    assert denying / len(scenes) == pytest.approx(0.4, abs=0.04)


def test_the_audit_finds_a_false_denial(tmp_path):
    path = make_split(tmp_path, replace(RECIPE, views=4, negated=1.0))
    with h5py.File(path, "r+") as file:
        group = file["subsets/train"]
        texts, nodes = group["caption"].asstr()[:], group["graph/nodes"].asstr()[:]
        shown, denied = nodes[0], nodes[1]
        texts[0], nodes[1] = texts[0].replace(denied, f"no {shown}"), f"no {shown}"
        group["caption"][:], group["graph/nodes"][:] = texts, nodes
    assert "every caption of train is true and states its graph" in failed(path)


def test_without_denials_the_captions_are_what_they_were():
    for scene in PUG.subsets()["train"]:
        assert replace(PUG, negated=0.0).texts("train", scene)[0] == caption(scene, PUG.seed)
