"""Coverage: which compositions train shows, by the two rules; nothing is rendered."""

from collections import Counter
from dataclasses import replace
from itertools import product
from math import log

import pytest
from sklearn.metrics import normalized_mutual_info_score

from menagerie.envs.slots import place_of
from menagerie.envs.world import ANIMALS, TWELVE_TEXTURES
from menagerie.envs.worlds import load_world
from menagerie.generators.coverage import by_diagonals, coverage_of
from menagerie.generators.splits.binding import COMPOSITION_TESTS, BindingRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.storage.split_file import split_name
from tests.generators.recipe_contract import compositions
from tests.helpers.splits import in_memory

BINDING = BindingRecipe(pairs=0.4, views=1, test_views=1, test_scenes=60)


@pytest.mark.parametrize(("animals", "textures"), [(20, 4), (20, 12), (8, 3), (3, 5)])
def test_a_latin_square_gives_names_even_numbers_of_compositions_at_every_share(animals, textures):
    names = [f"a{i}" for i in range(animals)], [f"t{i}" for i in range(textures)]
    order = by_diagonals(*names)
    assert sorted(order) == sorted(product(*names))
    for number in range(1, len(order) + 1):
        for part, allowed in ((0, 1), (1, 2)):
            counts = Counter(composition[part] for composition in order[:number])
            assert max(counts[name] for name in names[part]) - min(counts[name] for name in names[part]) <= allowed


@pytest.mark.parametrize("rule", [{"compositions": 0.5}, {"coverage": 0.5, "classes": 4}])
def test_what_train_shows_at_one_coverage_it_shows_at_every_higher_one(rule):
    (name, *_), shown = rule, []
    for share in (0.25, 0.5, 0.75, 1.0):
        coverage = coverage_of({"seed": 0, **rule, name: share}, ANIMALS, TWELVE_TEXTURES)
        shown.append(set(coverage.trained))
        assert len(shown[-1]) == share * len(ANIMALS) * len(TWELVE_TEXTURES)
        assert all(coverage.seen(*composition) for composition in shown[-1])
    assert shown[0] < shown[1] < shown[2] < shown[3]


def test_a_test_of_unseen_compositions_shows_with_a_scene_its_swap():
    every = in_memory(replace(BINDING, compositions=0.75, test_scenes=100_000)).subsets
    shown = set(coverage_of(vars(BINDING) | {"compositions": 0.75}, ANIMALS, load_world("pug").textures).trained)
    for name in COMPOSITION_TESTS:
        tested = {
            replace(s, objects=tuple(t._replace(size="", slot=place_of(t.slot)) for t in s.objects))
            for s in every[name].scenes
        }
        assert tested == set(map(BindingRecipe.swap, tested))
        assert any(compositions(scene) <= shown for scene in tested)


def test_an_option_at_its_default_changes_no_name():
    assert split_name(BINDING) == "binding-p0.4-n0-s0-3e580391.h5"


@pytest.mark.parametrize("quarters", [1, 2, 3, 4])
def test_coverage_by_classes_decides_the_information_of_textures_about_animals(quarters):
    recipe = MultiObjectRecipe(train_scenes=1200, coverage=quarters / 4, test_objects=(2,), test_scenes=20)
    split = in_memory(recipe)
    coverage = coverage_of(vars(recipe), ANIMALS, TWELVE_TEXTURES)
    objects = [obj for scene in split.subsets["train"].scenes for obj in scene.objects]
    found = normalized_mutual_info_score([obj.animal for obj in objects], [obj.texture for obj in objects])
    expected = -2 * log(quarters / 4) / (log(20) + log(12))
    assert found == pytest.approx(expected, abs=0.01)
    assert {obj[:2] for obj in objects} == set(coverage.trained)
    if quarters < 4:
        fewest = in_memory(replace(recipe, coverage=0.25))
        assert split.subsets["unseen_2"].scenes == fewest.subsets["unseen_2"].scenes, "the same test at every coverage"
