"""Grids and models with other captions than the paper's."""

from dataclasses import replace

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.tokenizers import distinct_words, text_space, tokenizer_of
from menagerie.studies import binding_grid, spatial_grid
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.data import split_material, split_texts
from menagerie.studies.runs.train import fresh_scorer
from tests.grid_cells import cells, splits
from tests.helpers.splits import RECIPE, make_split

SPATIAL = SpatialRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=10)
PRESET = replace(binding_grid.PRESETS["smoke"], models=("clip",))


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
    everything = text_space(towers, split_material(path).texts)
    tokenizer = tokenizer_of(towers, everything.words)
    for subset in (*recipe.tests, "validation"):
        data = SplitDataset(path, subset)
        known = set(distinct_words(split_texts(data.split)))
        chosen = [choice for choices in SplitTests(data).choices.values() for choice in choices if choice]
        texts = [text for choice in chosen for text in choice]
        assert known >= {word for text in texts for word in (*text.text.split(), *" ".join(text.graph.nodes).split())}
        assert set(everything.words) >= known
        for text in texts:  # and none is too long for them
            tokenizer(
                [text.text, *text.graph.nodes, *(edge.predicate for edge in text.graph.edges)], everything.context
            )


LONG = replace(RECIPE, phrasings=("really " * 80 + "{objects} {place}",))


def test_a_caption_that_would_be_cut_is_refused_before_training(tmp_path):
    """A model that reads graphs alone, whose phrases are short, trains on it."""
    job = Job(cells(replace(PRESET, tokenizer="open_clip"), "store")[0], make_split(tmp_path, LONG), tmp_path)
    material = split_material(job.data_file)
    with pytest.raises(UserError, match=r"'really .* has 9\d tokens, and nano reads 77: it would be cut"):
        fresh_scorer(job, material)
    graphs = replace(job, cell=cells(replace(PRESET, models=("oc-clip",), tokenizer="open_clip"), "store")[0])
    assert fresh_scorer(graphs, material).texts.context == 77
    closed = replace(job, cell=cells(PRESET, "store")[0])  # a closed vocabulary reads captions of any length
    assert fresh_scorer(closed, material).texts.context > 90
