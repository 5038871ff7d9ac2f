"""A compiled step is one graph, with the loss and the gradient of a plain one, whatever the number of texts."""

import json
import sys
from pathlib import Path

import pytest

from menagerie.generators.splits.spatial import SpatialRecipe
from tests.command import WITH_TESTS, run
from tests.helpers.splits import make_split

SCRIPT = Path(__file__).with_name("compiled_steps.py")


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    recipe = SpatialRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=5)
    file = make_split(folder, recipe, resolution=32)
    done = run([sys.executable, str(SCRIPT), str(file), "clip", "oc-clip"], folder, WITH_TESTS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["clip", "oc-clip"])
def test_it_is_one_graph_for_batches_of_any_size(steps, name):
    assert steps[name]["loss"] < 1e-5
    assert steps[name]["cosine"] > 0.99999
    assert steps[name]["graphs"] <= 3, "sizes that differ become variables: not a graph for each of six batches"
