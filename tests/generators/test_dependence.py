"""Dependence splits: the requested information, and everything else the same."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe, apportioned, marked_textures

RECIPE = DependenceRecipe(views=3, test_views=1, test_scenes=60)
# Small, but with enough views for quotas in whole numbers.
TINY = DependenceRecipe(world="tiny", information=0.5, views=12, test_views=1, test_scenes=20)


def things(scenes):
    return [thing for scene in scenes for thing in scene.things]


def painted(scenes):
    return {(thing.animal, thing.texture) for thing in things(scenes)}


@settings(max_examples=6, deadline=None)
@given(st.floats(0.14, 0.62), st.integers(0, 99), st.sampled_from([0.5, 0.8, 1.0]))
def test_the_information_is_as_requested_and_the_rest_is_the_same(information, seed, pairs):
    recipe = replace(RECIPE, information=information, seed=seed, pairs=pairs)
    subsets, other = recipe.subsets(), replace(recipe, information=0.35).subsets()
    animals, textures = zip(*((t.animal, t.texture) for t in things(subsets["train"])), strict=True)
    assert normalized_mutual_info_score(animals, textures) == pytest.approx(information, abs=0.01)
    assert not painted(subsets["train"]) & painted(subsets["unseen_textures"])
    assert painted(subsets["seen_textures"]) <= painted(subsets["train"])
    assert len(set(subsets["train"])) == len(subsets["train"]) == len(other["train"])
    assert Counter(t.animal for t in things(other["train"])) == Counter(animals)
    for name in ("validation", *RECIPE.tests):
        assert subsets[name] == other[name]
        assert subsets[name]


def test_textures_are_marked_evenly():
    mains, unseen = marked_textures(load_world("pug"), 3)
    assert set(Counter(mains.values()).values()) == set(Counter(unseen.values()).values()) == {5}
    assert all(mains[animal] != unseen[animal] for animal in mains)
    assert len({(mains[animal], unseen[animal]) for animal in mains}) == 12, "all pairs of textures occur"


def test_quotas_are_whole_and_nearest():
    assert apportioned(np.array([0.5, 0.25, 0.25]), 7).tolist() == [3, 2, 2]
    assert apportioned(np.array([1.0, 0.0]), 3).tolist() == [3, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"information": 0.7}, r"can't be had in world 'pug': from 0.13\d \(textures spread evenly\) to 0.63\d"),
        ({"information": 0.1}, "information 0.1 can't be had"),
        ({"information": float("nan")}, "information must be a number from 0 to 1, got nan"),
        (
            {"world": "tiny", "views": 1, "information": 0.5},
            "would come to 0.*: some animal is in train only",
        ),
        ({"hard_negatives": 0.5}, "no hard_negatives, no hold_out"),
        ({"hold_out": ("animal=cat",)}, "no hard_negatives, no hold_out"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_numbers(change, message):
    with pytest.raises(UserError, match=message):
        replace(RECIPE, **change).subsets()


@pytest.mark.parametrize("recipe", [DependenceRecipe(world="pug-plain"), BindingRecipe(world="pug-plain")])
def test_worlds_of_one_texture_are_refused_by_name(recipe):
    with pytest.raises(UserError, match=r"world 'pug-plain' has (1|a single) texture"):
        recipe.scenes_to_render()
