"""Spatial splits: one order of each training pair, all textures, relations apart."""

from dataclasses import replace

import h5py
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import build
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit
from menagerie.generators.captions.hard_negatives.swaps import hard_negative, swap_places
from menagerie.generators.captions.templates import caption
from menagerie.generators.parsers.world_grammar import parse
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.hdf5 import read_attribute
from menagerie.generators.storage.split_file import read_split, recorded, split_name
from tests.helpers.splits import failed, make_split

RECIPE = SpatialRecipe(world="tiny", pairs=0.5, hard_negatives=0.5, views=1, test_views=1, test_scenes=30)
FRACTION = st.integers(0, 20).map(lambda n: n / 20)


def orders(scenes, relation):
    return {tuple(t.animal for t in s.things) for s in scenes if s.relation == relation}


@settings(max_examples=40, deadline=None)
@given(FRACTION, FRACTION, st.integers(0, 99))
def test_orders_and_pairs_are_held_out(pairs, hard_negatives, seed):
    recipe = replace(RECIPE, pairs=pairs, hard_negatives=hard_negatives, seed=seed)
    subsets = recipe.subsets()
    assert set(subsets) == {"train", "validation", *recipe.tests}
    for relation in recipe.relations:
        prefix = relation.replace("/", "_")
        train = orders(subsets["train"], relation)
        unseen = orders(subsets[f"{prefix}_unseen_order"], relation)
        assert not train & unseen
        assert {order[::-1] for order in unseen} <= train
        for name in (f"{prefix}_unseen_pairs", "validation"):
            held = orders(subsets[name], relation)
            assert not train & (held | {order[::-1] for order in held})
    counts = recipe.counts()
    trained = sum(len({frozenset(o) for o in orders(subsets["train"], r)}) for r in recipe.relations)
    assert trained == counts.train


def test_relations_draw_their_own_pairs():
    subsets = replace(RECIPE, world="pug", pairs=0.2, test_scenes=10).subsets()
    assert orders(subsets["train"], "left/right") != orders(subsets["train"], "above/under")


@pytest.mark.parametrize(
    ("relations", "singles_slots", "slots"),
    [
        (("left/right", "above/under"), (), {"center", "above", "under"}),
        (("left/right",), (), {"center"}),
        (("above/under",), (), {"above", "under"}),
        (("left/right", "above/under"), ("center",), {"center"}),
    ],
)
def test_single_objects_are_in_the_slots_of_pairs(relations, singles_slots, slots):
    train = replace(RECIPE, relations=relations, singles_slots=singles_slots).subsets()["train"]
    singles = [scene.things[0] for scene in train if len(scene.things) == 1]
    assert {thing.slot for thing in singles} == slots
    assert len(set(singles)) == len(slots) * 12, "4 animals in 3 textures in each"


@pytest.mark.parametrize(
    ("slots", "message"), [(("centre",), "did you mean 'center'"), (("above", "above"), "above twice")]
)
def test_wrong_slots_are_named(slots, message):
    with pytest.raises(UserError, match=message):
        replace(RECIPE, singles_slots=slots)


def test_a_negative_states_the_other_order_with_the_same_words():
    for scene in RECIPE.subsets()["left_right_unseen_pairs"]:
        true, false = caption(scene, 0, "relation"), hard_negative(scene, 0, "relation", "spatial")
        assert sorted(true.text.replace("an ", "a ").split()) == sorted(false.text.replace("an ", "a ").split())
        assert false.graph.edges == true.graph.edges
        assert false.graph.nodes[:2] == true.graph.nodes[1::-1]
        assert swap_places(swap_places(scene)) == scene


@pytest.fixture(scope="module")
def spatial(tmp_path_factory):
    return make_split(tmp_path_factory.mktemp("spatial"), RECIPE)


def test_the_audit_holds(spatial):
    assert failed(spatial) == []
    assert len(audit(spatial)) > 30


@settings(max_examples=20, deadline=None)
@given(FRACTION, FRACTION, st.integers(0, 99))
def test_seen_orders_are_those_of_train_and_change_no_other_subset(pairs, hard_negatives, seed):
    recipe = replace(RECIPE, pairs=pairs, hard_negatives=hard_negatives, seed=seed)
    before, subsets = recipe.subsets(), replace(recipe, seen_order=True).subsets()
    assert {name: subsets[name] for name in before} == before
    assert subsets.keys() - before.keys() == {"left_right_seen_order", "above_under_seen_order"}
    for relation in recipe.relations:
        seen = subsets[f"{relation.replace('/', '_')}_seen_order"]
        assert orders(seen, relation) <= orders(subsets["train"], relation)  # all of them, where the test is that large
        assert not {scene.view for scene in seen} & {scene.view for scene in subsets["train"]}


def test_a_test_of_seen_orders_names_another_split():
    assert split_name(replace(RECIPE, seen_order=True)) != split_name(RECIPE)
    assert replace(RECIPE, seen_order=True).judged == RECIPE.judged
    assert {"attributes", "seen_order"}.isdisjoint(recorded(RECIPE))


@pytest.mark.parametrize("attributes", [0.0, 0.4])
@pytest.mark.parametrize("template", ["relation", "statement-relation"])
def test_training_captions_may_leave_out_textures(attributes, template):
    recipe = replace(RECIPE, attributes=attributes, template=template, views=4)
    world = load_world(recipe.world)
    bare = total = 0
    for scene in recipe.subsets()["train"]:
        true, false = recipe.texts("train", scene)
        assert parse(true.text, world) == true.graph
        bare += sum(node in world.animals for node in true.graph.nodes)
        total += len(scene.things)
        assert (false is None) == (len(scene.things) == 1)
        if false:
            assert false.graph.nodes[:2] == true.graph.nodes[1::-1]
            assert false.graph.edges == true.graph.edges
            assert parse(false.text, world) == false.graph
    assert 1 - bare / total == pytest.approx(attributes, abs=0.06)


def test_whole_captions_are_the_templates_own():
    for scene in RECIPE.subsets()["train"][::7]:
        assert replace(RECIPE, attributes=1.0).texts("train", scene)[0] == caption(scene, 0, "relation")
        assert replace(RECIPE, attributes=0.2).texts("validation", scene)[0] == caption(scene, 0, "relation")


@pytest.mark.parametrize("fields", [{"seen_order": True}, {"attributes": 0.5}, {"attributes": 0.0}])
def test_the_audit_holds_with(tmp_path, fields):
    assert failed(make_split(tmp_path, replace(RECIPE, views=2, **fields))) == []


def trained_elsewhere(recipe):
    """For each relation the unseen pairs that train shows in another one, and all of them."""
    subsets = recipe.subsets()
    trained = {r: set(map(frozenset, orders(subsets["train"], r))) for r in recipe.relations}
    for relation in recipe.relations:
        unseen = set(map(frozenset, orders(subsets[f"{relation.replace('/', '_')}_unseen_pairs"], relation)))
        yield len(unseen & set().union(*(trained[r] for r in recipe.relations if r != relation))), len(unseen)


@pytest.mark.parametrize("seed", range(2))
def test_unseen_pairs_are_unseen_in_every_relation(seed):
    """Drawn for each relation by itself, about as many of them are trained in the other as of any pairs."""
    recipe = SpatialRecipe(pairs=0.4, views=1, test_views=1, test_scenes=1000, seed=seed)
    assert list(trained_elsewhere(recipe)) == [(0, 19), (0, 19)]
    subsets = recipe.subsets()
    held = [{frozenset(t.animal for t in s.things) for s in subsets[name]} for name in ("validation", recipe.tests[1])]
    assert not held[0] & held[1]
    assert all(0 < met < 19 for met, _ in trained_elsewhere(replace(recipe, unseen_under="own")))


def test_the_audit_tells_which_relations_unseen_pairs_are_unseen_in(tmp_path):
    """With own all holds; the same file doesn't keep what all promises."""
    path = make_split(tmp_path, replace(RECIPE, pairs=1.0, seed=1, unseen_under="own"))
    assert failed(path) == []
    with h5py.File(path, "r+") as file:
        assert '"unseen_under": "own"' in read_attribute(file, "recipe")
        file.attrs["recipe"] = read_attribute(file, "recipe").replace('"unseen_under": "own"', '"unseen_under": "all"')
    assert any("is in train in any relation" in claim for claim in failed(path))


def test_other_words_for_it_are_refused():
    with pytest.raises(UserError, match="unseen_under 'both'"):
        build(SpatialRecipe, {"unseen_under": "both"})


def test_a_split_says_its_kind(spatial):
    recipe = read_split(spatial).recipe
    assert (recipe["kind"], recipe["template"], recipe["relations"]) == (
        "spatial",
        "relation",
        ["left/right", "above/under"],
    )


@pytest.mark.parametrize("relations", [(), ("left/right", "left/right"), ("left/rigt",)])
def test_impossible_relations_are_named(relations):
    with pytest.raises(UserError, match="relation"):
        SpatialRecipe(relations=relations)
