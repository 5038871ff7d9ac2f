"""What a training had of tests: the counts that users reported, what each kind of test says, and that a split's own
training had none of it."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from menagerie.envs.core.identity import json_value
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.recipe import recorded_fields
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.columns import make_columns
from menagerie.generators.storage.records import Records
from menagerie.generators.storage.split_file import Split, recipe_version
from menagerie.generators.trained_on import RecipeScenes, Training, measure_overlap
from menagerie.generators.vocabulary import Vocabulary

SMALL = {"test_scenes": 60, "test_views": 1, "views": 2}
BINDING = BindingRecipe("eight", pairs=0.8)
COMPOSITIONS = BindingRecipe("eight", pairs=0.8, compositions=0.75, **SMALL)
RULED = BindingRecipe("eight", pairs=0.5, hold_out=("animal=camel & texture=red", "background=city"), **SMALL)
SPATIAL = SpatialRecipe("eight", pairs=0.5, seen_order=True, **SMALL)
DEPENDENCE = DependenceRecipe("eight-textures", views=4, test_views=1, test_scenes=60)
COUNTING = CountingRecipe("eight", **SMALL)
MULTI_OBJECT = MultiObjectRecipe(
    world="pug-textures", coverage=0.5, train_scenes=1600, objects=(1, 2, 3), test_scenes=40
)
RECIPES = {
    **{"pairs": BINDING, "compositions": COMPOSITIONS, "rules": RULED, "spatial": SPATIAL, "dependence": DEPENDENCE},
    **{"own": replace(SPATIAL, unseen_under="own"), "counting": COUNTING, "multi-object": MULTI_OBJECT},
}


@cache
def planned(recipe):
    """The tests of a split that isn't made."""
    vocabulary, written = Vocabulary.of(load_world(recipe.world)), json_value(recorded_fields(recipe))
    tested = {name: scenes for name, scenes in recipe.subsets().items() if name != "train"}
    tables = {name: make_columns(name, scenes, recipe, vocabulary) for name, scenes in tested.items()}
    subsets = {name: Records(written, vocabulary, *table) for name, table in tables.items()}
    return Split(Path(), written, "", 0, vocabulary, recipe_version(recipe), subsets, digest="")


def had(trained, tested, subset, **given):
    return measure_overlap(Training((RecipeScenes(trained, **given),)), planned(tested), subset)


# Pairs called unseen that the trainings of seeds 0, 1 and 2 had, as users counted them.
@pytest.mark.parametrize(
    ("world", "pairs", "counts"),
    [
        ("eight", 0.8, [(0, 3), (2, 3), (2, 3)]),
        ("pug", 0.8, [(0, 19), (11, 19), (12, 19)]),
        ("pug", 0.2, [(0, 19), (3, 19), (6, 19)]),
    ],
)
def test_a_run_of_three_seeds_had_unseen_pairs_of_the_first_seeds_split(world, pairs, counts):
    base = BindingRecipe(world, pairs=pairs, views=1, test_views=1)
    found = [had(replace(base, seed=seed), base, "unseen_pairs") for seed in range(3)]
    assert [each.counts["pairs"] for each in found] == counts
    assert [bool(each.lost) for each in found] == [False, True, True]
    for seed, each in enumerate(found):
        records = planned(base).subsets["unseen_pairs"].scenes
        trained = {frozenset(t.animal for t in s.objects) for s in replace(base, seed=seed).subsets()["train"]}
        assert each.left_out == {i for i, s in enumerate(records) if {t.animal for t in s.objects} in trained}


def test_images_of_seen_pairs_are_training_images_of_more_views_and_hard_negatives():
    four = replace(BINDING, views=4)
    found = had(replace(BINDING, hard_negatives=1.0), four, "seen_pairs")
    assert found.counts["images"] == (400, 400) == (found.lost, found.records)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_splits_own_training_had_nothing_that_its_tests_call_unseen(recipe):
    found = {name: had(recipe, recipe, name) for name in planned(recipe).subsets}
    assert not any(each.left_out for each in found.values())
    assert all(each.counts["images"][0] == 0 for each in found.values())
    assert sum(each.counts["compositions"][0] for each in found.values())
    if "unseen_pairs" in found:
        assert found["unseen_pairs"].counts["pairs"][0] == 0


@pytest.mark.parametrize(
    ("trained", "tested", "subset", "some"),
    [
        (replace(BINDING, hard_negatives=1.0), BINDING, "seen_pairs", 1.0),
        (replace(BINDING, seed=1), BINDING, "different_bag", 0.01),
        (replace(COMPOSITIONS, compositions=1.0), COMPOSITIONS, "one_unseen_composition", 1.0),
        (replace(COMPOSITIONS, compositions=0.8), COMPOSITIONS, "two_unseen_compositions", 0.1),
        (replace(RULED, hold_out=()), RULED, "held_out", 1.0),
        (replace(RULED, hold_out=RULED.hold_out[:1]), RULED, "held_out 2", 1.0),
        (replace(SPATIAL, hard_negatives=1.0), SPATIAL, "left_right_unseen_order", 1.0),
        (replace(DEPENDENCE, seed=1), DEPENDENCE, "unseen_textures", 0.3),
        (replace(COUNTING, test_pairs=0.0, validation=0.0, pairs=1.0), COUNTING, "unseen_counts", 1.0),
        (replace(MULTI_OBJECT, coverage=1.0), MULTI_OBJECT, "unseen_2", 1.0),
    ],
)
def test_records_of_which_another_training_had_what_is_called_unseen_are_left_out(trained, tested, subset, some):
    assert some <= had(trained, tested, subset).lost / len(planned(tested).subsets[subset]) <= 1


def test_pairs_trained_in_another_relation_are_unseen_where_the_split_says_so():
    left = replace(SPATIAL, relations=("left/right",), test_pairs=0.0, validation=0.0, pairs=1.0)
    assert had(left, SPATIAL, "above_under_unseen_pairs").lost == 60
    assert had(left, replace(SPATIAL, unseen_under="own"), "above_under_unseen_pairs").lost == 0


def test_a_four_way_item_whose_counterfactual_was_trained_on_is_left_out_alone():
    found = had(replace(BINDING, views=BINDING.views + 4), BINDING, "seen_pairs")
    assert found.lost == 0
    assert found.left_out == set(range(400, 800)), "counterfactuals of seen_pairs are training arrangements"


def test_probe_sets_show_images_that_no_training_had():
    probe = ProbeRecipe(world="eight", animals=("camel", "elephant", "crow"))
    found = had(BINDING, probe, "left_first")
    assert found.lost == 0
    assert found.counts["compositions"] == (9, 9)
    assert found.counts["pairs"][1] == 3


def test_only_images_that_training_drew_count_as_seen():
    assert had(replace(BINDING, seed=1), BINDING, "unseen_pairs", images=4).counts["pairs"] == (0, 3)


def test_of_an_unknown_training_nothing_is_counted():
    found = measure_overlap(Training(unknown=("the weights openai",)), planned(BINDING), "unseen_pairs")
    assert (found.training, str(found), found.lost) == ("unknown", "unknown: the weights openai", 0)
    both = Training((RecipeScenes(replace(BINDING, seed=1)),)) | Training(unknown=("the weights openai",))
    found = measure_overlap(both, planned(BINDING), "unseen_pairs")
    assert (found.training, found.counts["pairs"]) == ("partly known", (2, 3))


def test_worlds_that_draw_alike_share_images():
    world, other = (
        BindingRecipe(name, pairs=1.0, hard_negatives=1.0, views=views, test_views=2)
        for name, views in (("eight", 8), ("tiny", 4))
    )
    scenes = {*world.subsets()["train"]}
    both = {scene for scene in planned(other).subsets["train_pairs"].scenes if scene in scenes}
    found = had(world, other, "train_pairs")
    assert found.counts["images"][0] == found.lost == len(both) > 0


def test_scenes_of_many_objects_show_the_orders_of_relations():
    many = replace(MULTI_OBJECT, world="eight-textures", coverage=1.0)
    found = had(many, replace(SPATIAL, world="eight-textures"), "left_right_unseen_order")
    assert found.counts["arrangements"][0] > 0
    assert found.lost > 0
