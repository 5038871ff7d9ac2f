"""Multi-object splits: which compositions train shows; nothing is rendered."""

from dataclasses import replace
from itertools import product
from math import log

import pytest

from menagerie.envs.world import ANIMALS, TWELVE_TEXTURES
from menagerie.generators.coverage import coverage_of
from menagerie.generators.inspection import attribute_counts
from menagerie.generators.splits.dependence import normalised_mutual_information
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from tests.helpers.splits import in_memory


@pytest.mark.parametrize("quarters", [1, 2, 3, 4])
def test_coverage_is_nested_and_has_its_information(quarters):
    recipe = MultiObjectRecipe(train_scenes=1200, coverage=quarters / 4, test_objects=(2,), test_scenes=20)
    split = in_memory(recipe)
    coverage = coverage_of(vars(recipe), ANIMALS, TWELVE_TEXTURES)
    table = attribute_counts(split.subsets["train"].scenes, split.vocabulary, "texture")
    expected = -2 * log(quarters / 4) / (log(20) + log(12))
    assert normalised_mutual_information(table) == pytest.approx(expected, abs=0.01)
    assert set(zip(*table.nonzero(), strict=True)) == {
        (i, k) for (i, a), (k, t) in product(enumerate(ANIMALS), enumerate(TWELVE_TEXTURES)) if coverage.seen(a, t)
    }
    more = coverage_of(vars(recipe) | {"coverage": 1.0}, ANIMALS, TWELVE_TEXTURES)
    assert coverage.at(*range(quarters)) == more.at(*range(quarters))
    if quarters < 4:
        fewest = in_memory(replace(recipe, coverage=0.25))
        assert split.subsets["unseen_2"].scenes == fewest.subsets["unseen_2"].scenes, "the same test at every coverage"
