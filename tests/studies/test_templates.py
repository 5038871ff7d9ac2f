"""Grids and models with other captions than the paper's."""

from dataclasses import replace

import pytest

from envs.common.errors import UserError
from generators.benchmarks.split_tests import SplitTests
from generators.splits.spatial import SpatialRecipe
from generators.storage.dataset import SplitDataset
from models.towers.config import TowerConfig
from models.towers.tokenizers import text_space, tokenizer_of, words_of
from studies import binding_grid, spatial_grid
from studies.grids.grid import splits
from studies.runs.data import SplitData, split_texts
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
        replace(RECIPE, template="statement-conjunction", conjunction="as well as", attributes=0.5),
        replace(SPATIAL, template="statement-relation", article="a"),
        replace(RECIPE, world="tiny-sizes", test_scenes=5),
    ],
    ids=lambda recipe: recipe.template,
)
def test_models_know_the_words_of_all_tests(recipe, tmp_path):
    path, towers = make_split(tmp_path, recipe), TowerConfig("nano", resolution=16)
    everything = text_space(towers, SplitData(recipe, "store").open(path).texts)
    tokenizer = tokenizer_of(towers, everything.words)
    for subset in (*recipe.tests, "validation"):
        data = SplitDataset(path, subset)
        known = set(words_of(split_texts(data.split)))
        chosen = [choice for choices in SplitTests(data).choices.values() for choice in choices if choice]
        texts = [text for choice in chosen for text in choice]
        assert known >= {word for text in texts for word in (*text.text.split(), *" ".join(text.graph.nodes).split())}
        assert set(everything.words) >= known
        for text in texts:  # and none is too long for them
            tokenizer(
                [text.text, *text.graph.nodes, *(edge.predicate for edge in text.graph.edges)], everything.context
            )
