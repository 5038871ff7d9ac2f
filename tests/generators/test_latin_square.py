"""Compositions held out of binding splits: a Latin square, tests of unseen ones; nothing is rendered."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from menagerie.envs.slots import place_of
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.splits.binding import TESTS, BindingRecipe
from menagerie.generators.splits.latin_square import in_order, shown_compositions
from menagerie.generators.storage.split_file import split_name
from tests.helpers.splits import in_memory

PLAIN = BindingRecipe(pairs=0.4, views=1, test_views=1, test_scenes=60)
SMALL = replace(PLAIN, compositions=0.75)


def compositions(scene):
    return {obj[:2] for obj in scene.objects}


@pytest.mark.parametrize(("animals", "textures"), [(20, 4), (20, 12), (8, 3), (3, 5)])
def test_every_share_is_even_and_nested(animals, textures):
    names = [f"a{i}" for i in range(animals)], [f"t{i}" for i in range(textures)]
    order = in_order(*names)
    assert sorted(order) == sorted(product(*names))
    for number in range(1, len(order) + 1):
        for part, allowed in ((0, 1), (1, 2)):
            counts = Counter(composition[part] for composition in order[:number])
            assert max(counts[name] for name in names[part]) - min(counts[name] for name in names[part]) <= allowed


def test_tests_show_no_one_and_two_unseen_compositions():
    """In their scenes or in the swaps of these: otherwise texts alone would tell."""
    split, shown = in_memory(SMALL), shown_compositions(load_world("pug"), 0.75, 0)
    assert SMALL.tests == (*TESTS, "one_unseen_composition", "two_unseen_compositions")
    for name in (*SMALL.tests, "validation"):
        number = {"one_unseen_composition": 1, "two_unseen_compositions": 2}.get(name, 0)
        scenes = split.subsets[name].scenes
        unseen = [[len(compositions(one) - shown) for one in (scene, swap_textures(scene))] for scene in scenes]
        assert all(max(both) == number for both in unseen)
        assert scenes or name == "train_pairs"
    every = in_memory(replace(SMALL, test_scenes=100_000)).subsets
    for name in ("one_unseen_composition", "two_unseen_compositions"):
        tested = {
            replace(s, objects=tuple(t._replace(size="", slot=place_of(t.slot)) for t in s.objects))
            for s in every[name].scenes
        }
        assert tested == set(map(swap_textures, tested)), "with a scene its swap"
        assert any(compositions(scene) <= shown for scene in tested)


def test_the_default_changes_nothing():
    assert split_name(PLAIN) == "binding-p0.4-n0-s0-3e580391.h5"
    assert PLAIN.tests == TESTS
