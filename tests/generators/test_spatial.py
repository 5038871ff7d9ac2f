"""Spatial splits: one order of each training pair, all textures, relations apart."""

import json
import shutil
from dataclasses import replace

import h5py
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import build
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.cues import check_order
from menagerie.generators.audit.pairs import check_relations
from menagerie.generators.audit.run import audit
from menagerie.generators.audit.texts import check_texts
from menagerie.generators.captions.hard_negatives.swaps import hard_negative, swap_places
from menagerie.generators.captions.templates import caption
from menagerie.generators.parsers.world_grammar import parse
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.hdf5 import read_attribute
from menagerie.generators.storage.split_file import read_split, recorded, split_name
from tests.helpers.planting import with_subsets
from tests.helpers.splits import failed, in_memory, make_split, overwrite

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


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        ({"attributes": 0.9}, "mentions in train with their texture"),
        ({"seen_order": False}, "the subsets are those of"),
    ],
)
def test_the_audit_fails_on_another_recipe(tmp_path, change, claim):
    path = make_split(tmp_path, replace(RECIPE, views=2, attributes=0.5, seen_order=True))
    with h5py.File(path, "r+") as file:
        file.attrs["recipe"] = json.dumps(json.loads(file.attrs["recipe"]) | change)
    assert any(claim in failure for failure in failed(path))


def test_the_audit_finds_an_unseen_order_among_the_seen(tmp_path):
    path = make_split(tmp_path, replace(RECIPE, hard_negatives=0.0, seen_order=True))
    with h5py.File(path, "r+") as file:
        other = file["subsets/left_right_unseen_order/factors"][0]
        overwrite(file, "subsets/left_right_seen_order/factors", 0, other)
    assert "every order of left_right_seen_order is in train" in failed(path)


@pytest.mark.parametrize(("pairs", "hard_negatives"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)])
def test_the_audit_holds_on_corner_cells(tmp_path, pairs, hard_negatives):
    assert failed(make_split(tmp_path, replace(RECIPE, pairs=pairs, hard_negatives=hard_negatives))) == []


def leaked_order(file):
    overwrite(file, "subsets/train/factors", -1, file["subsets/above_under_unseen_order/factors"][0])


def leaked_in_the_other_relation(file):
    """An unseen pair of left/right, in train one above the other."""
    row = file["subsets/left_right_unseen_pairs/factors"][0]
    row["slot"] = file["subsets/above_under_unseen_pairs/factors"][0]["slot"]
    overwrite(file, "subsets/train/factors", -1, row)


def validation_is_tested_in_the_other_relation(file):
    row = file["subsets/above_under_unseen_pairs/factors"][0]
    others = file["subsets/validation/factors"][:]
    row["animal"] = next(other["animal"] for other in others if other["slot"][0] != row["slot"][0])
    overwrite(file, "subsets/above_under_unseen_pairs/factors", 0, row)


def leaked_pair(file):
    overwrite(file, "subsets/train/factors", -1, file["subsets/left_right_unseen_pairs/factors"][0])


def validation_is_tested(file):
    factors = file["subsets/validation/factors"][:]
    own = next(
        row for row in factors if file["subsets/left_right_unseen_pairs/factors"][0]["slot"][0] == row["slot"][0]
    )
    overwrite(file, "subsets/left_right_unseen_pairs/factors", 0, own)


def converse_caption(file):
    text = file["subsets/left_right_unseen_pairs/caption"].asstr()[0]
    other = text.replace("left", "?").replace("right", "left").replace("?", "right")
    overwrite(file, "subsets/left_right_unseen_pairs/caption", 0, other)


def turned_edge(file):
    overwrite(file, "subsets/validation/graph/predicates", 0, "beside")


def missing_textures(file):
    factors = file["subsets/train/factors"][:]
    last = factors[-1].copy()
    for i, row in enumerate(factors):
        if (row["animal"] == last["animal"]).all() and (row["slot"] == last["slot"]).all():
            factors[i] = last
    file["subsets/train/factors"][:] = factors


def missing_single_slot(file):
    file.attrs["recipe"] = read_attribute(file, "recipe").replace(
        '"singles_slots": []', '"singles_slots": ["center", "left"]'
    )


def strange_single_slot(file):
    file.attrs["recipe"] = read_attribute(file, "recipe").replace('"singles_slots": []', '"singles_slots": ["center"]')


def wrong_fraction(file):
    file.attrs["recipe"] = read_attribute(file, "recipe").replace('"hard_negatives": 0.5', '"hard_negatives": 0.0')


def other_relation(file):
    overwrite(file, "subsets/above_under_unseen_pairs/factors", 0, file["subsets/left_right_unseen_pairs/factors"][0])


FAULTS = {
    leaked_order: "no order of above_under_unseen_order is in train",
    leaked_pair: "no animal pair of left_right_unseen_pairs is in train in any relation",
    leaked_in_the_other_relation: "no animal pair of left_right_unseen_pairs is in train in any relation",
    validation_is_tested: "left_right_unseen_pairs and validation share no animal pair in any relation",
    validation_is_tested_in_the_other_relation: "above_under_unseen_pairs and validation share no animal pair in any",
    converse_caption: "every caption of left_right_unseen_pairs is true",
    turned_edge: "every caption of validation is true",
    missing_textures: "in all textures and backgrounds",
    missing_single_slot: "every single-object scene is in train",
    strange_single_slot: "every single-object scene of train has a slot of the recipe",
    wrong_fraction: "pairs in both orders",
    other_relation: "every pair of above_under_unseen_pairs is in a requested relation",
}


def with_negatives(split, name, negative_of):
    """The split with other negatives in a subset, where there are some."""
    r = split.subsets[name]
    texts = {s: negative_of(s) for s, text in zip(r.scenes, r.negatives, strict=True) if text}
    captions = {s: text for s, text in texts.items() if text}
    negatives = [captions[s].text if s in captions else old for s, old in zip(r.scenes, r.negatives, strict=True)]
    graphs = [captions[s].graph if s in captions else old for s, old in zip(r.scenes, r.negative_graphs, strict=True)]
    return with_subsets(split, **{name: replace(r, negatives=negatives, negative_graphs=graphs)})


@pytest.mark.parametrize("name", ["train", "validation", "left_right_unseen_order"])
def test_the_audit_fails_if_negatives_exchange_textures_in_place_of_animals(name):
    """They are false, in the words of their captions, and of the right relation."""
    split = in_memory(RECIPE)
    other = with_negatives(split, name, lambda scene: hard_negative(scene, 0, "relation", "binding"))
    for check in (check_texts, check_order):
        assert all(finding.holds for finding in check(other))
    assert [finding for finding in check_relations(split) if not finding.holds] == []
    lost = [finding.claim for finding in check_relations(other) if not finding.holds]
    assert lost == [f"every negative of a pair of {name} states its relation, turned"]


def test_the_audit_fails_on_a_test_of_a_relation_that_the_recipe_lacks():
    split = in_memory(replace(RECIPE, relations=("left/right",)))
    more = with_subsets(split, above_under_unseen_pairs=split.subsets["left_right_unseen_pairs"])
    lost = [finding.claim for finding in check_relations(more) if not finding.holds]
    assert lost == ["every pair of above_under_unseen_pairs is in a requested relation"]


def test_the_audit_fails_on_a_relation_that_is_stated_twice():
    split = in_memory(RECIPE)
    r = split.subsets["validation"]
    twice = replace(r, graphs=[graph._replace(edges=graph.edges * 2) for graph in r.graphs])
    lost = [finding.claim for finding in check_relations(with_subsets(split, validation=twice)) if not finding.holds]
    assert lost == ["every caption of a pair of validation states its relation"]


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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_audit_fails_on_a_planted_fault(spatial, tmp_path, fault):
    path = shutil.copytree(spatial.parent, tmp_path / spatial.parent.name) / spatial.name
    with h5py.File(path, "r+") as file:
        fault(file)
    assert any(FAULTS[fault] in claim for claim in failed(path))


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
