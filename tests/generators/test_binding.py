"""Attribute-binding splits: what is nested, what is held out, what stays the same."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import TESTS, BindingRecipe, textured_pairs
from menagerie.generators.splits.pair_roles import pair_roles
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.splits.spatial import roles_of as roles_in

RECIPE = BindingRecipe(world="pug", pairs=0.5, hard_negatives=0.5, views=1, test_views=1, test_scenes=50)
FRACTION = st.integers(0, 20).map(lambda n: n / 20)


def roles_of(recipe):
    return pair_roles(recipe, load_world(recipe.world))


def spatial_roles(recipe):
    """The pairs in both orders, each with its relation."""
    world = load_world(recipe.world)
    return {(r, pair) for r in recipe.relations for pair in roles_in(recipe, world, r)[0].swapped}


def textured(scenes):
    return {frozenset((t.animal, t.texture) for t in s.things) for s in scenes if len(s.things) == 2}


def animal_pairs(scenes):
    return {frozenset(t.animal for t in s.things) for s in scenes if len(s.things) == 2}


@settings(max_examples=25, deadline=None)
@given(FRACTION, FRACTION, st.integers(0, 99))
def test_nothing_held_out_is_in_train(pairs, hard_negatives, seed):
    recipe = replace(RECIPE, pairs=pairs, hard_negatives=hard_negatives, seed=seed)
    subsets, roles = recipe.subsets(), roles_of(recipe)
    train = set(subsets["train"])
    assert len(train) == len(subsets["train"])
    for name in (*TESTS, "validation"):
        assert not train & set(subsets[name])
    assert not animal_pairs(train) & animal_pairs(subsets["unseen_pairs"] + subsets["validation"])
    assert not textured(train) & textured(subsets["seen_pairs"] + subsets["different_bag"])
    assert textured(subsets["train_pairs"]) <= textured(train)
    assert abs(len(roles.train) - pairs * roles.trainable) <= 0.5
    assert abs(len(roles.swapped) - hard_negatives * len(roles.train)) <= 0.5


@given(FRACTION, FRACTION, st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_fractions_are_nested(one, other, seed):
    small, large = (roles_of(replace(RECIPE, pairs=f, seed=seed)) for f in sorted((one, other)))
    assert set(small.train) <= set(large.train)
    items = (
        textured_pairs(replace(RECIPE, pairs=f, hard_negatives=0.0, seed=seed), load_world("pug"))["train"]
        for f in sorted((one, other))
    )
    assert set(next(items)) <= set(next(items))
    few, many = (roles_of(replace(RECIPE, hard_negatives=f, seed=seed)) for f in sorted((one, other)))
    assert few.swapped <= many.swapped


@given(FRACTION, FRACTION, FRACTION, FRACTION, st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_pairs_with_hard_negatives_are_nested_in_both_fractions(one, other, few, many, seed):
    """Those at 20 % of the pairs are among those at 40 %, at the same fraction of hard negatives or at a higher one."""
    (one, other), (few, many) = sorted((one, other)), sorted((few, many))
    at = {(p, h): replace(RECIPE, pairs=p, hard_negatives=h, seed=seed) for p in (one, other) for h in (few, many)}
    swapped = {place: roles_of(recipe).swapped for place, recipe in at.items()}
    assert swapped[one, few] <= swapped[other, few] <= swapped[other, many]
    spatial = {place: spatial_roles(SpatialRecipe(pairs=place[0], hard_negatives=place[1], seed=seed)) for place in at}
    assert spatial[one, few] <= spatial[other, few] <= spatial[other, many]


def test_held_out_tests_are_the_same_in_all_cells():
    first, *others = [replace(RECIPE, pairs=p, hard_negatives=h).subsets() for p in (0.2, 1.0) for h in (0.0, 1.0)]
    for other in others:
        assert other["unseen_pairs"] == first["unseen_pairs"]
        assert other["validation"] == first["validation"]


def test_every_single_object_scene_is_in_train():
    world = load_world("pug")
    singles = {(s.background, *s.things[0][:2]) for s in RECIPE.subsets()["train"] if len(s.things) == 1}
    assert len(singles) == len(world.animals) * len(world.textures) * len(world.backgrounds)


def test_swapped_subset_is_empty_with_all_hard_negatives():
    subsets = replace(RECIPE, hard_negatives=1.0).subsets()
    assert subsets["seen_pairs"] == []
    assert subsets["train_pairs"]
    assert replace(RECIPE, hard_negatives=0.0).subsets()["train_pairs"] == []


def test_seeds_differ():
    assert roles_of(RECIPE).train != roles_of(replace(RECIPE, seed=1)).train


def test_test_views_are_not_in_train():
    subsets = replace(RECIPE, views=3, test_views=2).subsets()
    assert {s.view for s in subsets["train"]} == {0, 1, 2}
    assert {s.view for s in subsets["unseen_pairs"]} == {3, 4}


@pytest.mark.parametrize("field", ["pairs", "hard_negatives", "reserve", "validation"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_impossible_fractions_are_named(field, value):
    with pytest.raises(UserError, match=f"{field} must be (at|a number)"):
        replace(RECIPE, **{field: value})


def test_holding_everything_out_is_refused():
    with pytest.raises(UserError, match="leave none of the 190 pairs"):
        roles_of(replace(RECIPE, reserve=0.6, validation=0.5))
