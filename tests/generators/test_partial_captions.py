"""Incomplete training captions: as often as requested, true, and checked by the audit."""

from collections import Counter
from dataclasses import replace

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import states_in_part
from menagerie.generators.captions.templates import caption
from menagerie.generators.parsers.world_grammar import parse
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.split_file import NO_GRAPH, read_split
from tests.helpers.splits import RECIPE, failed, make_split

PUG = BindingRecipe(pairs=1.0, views=1, test_views=1, test_scenes=20)
LESS = replace(RECIPE, views=4, mentioned=0.6, attributes=0.7, salient=0.2)


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


def test_without_denials_the_captions_are_what_they_were():
    for scene in PUG.subsets()["train"]:
        assert replace(PUG, negated=0.0).texts("train", scene)[0] == caption(scene, PUG.seed)
