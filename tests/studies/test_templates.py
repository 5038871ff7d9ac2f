"""Grids and models with other captions than the paper's."""

from dataclasses import replace

import pytest

from envs.common.errors import UserError
from generators.splits.spatial import SpatialRecipe
from generators.storage.dataset import SplitDataset
from models.evaluation.caption_choice import subset_choices
from studies import binding_grid, spatial_grid
from studies.grids.grid import splits
from studies.runs.cell import vocabulary
from tests.generators.conftest import RECIPE, make_split

SPATIAL = SpatialRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=10)


@pytest.mark.parametrize(
    ("grid", "own", "other"),
    [(binding_grid, "conjunction", "free-conjunction"), (spatial_grid, "relation", "pug-relation")],
)
def test_a_grid_gives_its_template_to_all_splits(grid, own, other):
    smoke = grid.PRESETS["smoke"]
    assert {recipe.template for recipe in splits(smoke)} == {own}
    assert {recipe.template for recipe in splits(replace(smoke, template=other))} == {other}
    with pytest.raises(UserError, match="did you mean 'pug-relation'"):
        splits(replace(smoke, template="pug-relatoin"))


@pytest.mark.parametrize(
    "recipe",
    [
        replace(RECIPE, template="pug-conjunction"),
        replace(RECIPE, template="free-conjunction"),
        replace(RECIPE, test_scenes=1, mentioned=0.0, attributes=0.0),
        replace(SPATIAL, template="free-relation"),
        replace(RECIPE, world="tiny-sizes", test_scenes=5),
    ],
    ids=lambda recipe: recipe.template,
)
def test_models_know_the_words_of_all_tests(recipe, tmp_path):
    path = make_split(tmp_path, recipe)
    for subset in (*recipe.tests, "validation"):
        data = SplitDataset(path, subset)
        known = set(vocabulary(data.split))
        asked = [choice for choices in subset_choices(data).values() for choice in choices if choice]
        texts = [text for choice in asked for text in choice]
        assert known >= {word for text in texts for word in (*text.text.split(), *" ".join(text.graph.nodes).split())}
