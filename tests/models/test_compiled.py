"""A compiled step is one graph, with the loss and the gradient of a plain one, whatever the number of texts."""

import json
import sys
from pathlib import Path

import pytest

from tests.command import WITH_TESTS, run

SCRIPT = Path(__file__).with_name("compiled_steps.py")


@pytest.fixture(scope="module")
def steps(spatial, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    done = run([sys.executable, str(SCRIPT), str(spatial.split.path), "clip", "oc-clip"], folder, WITH_TESTS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["clip", "oc-clip"])
def test_compiled_step_is_one_graph_for_batches_of_any_size(steps, name):
    assert steps[name]["loss"] < 1e-5
    assert steps[name]["cosine"] > 0.99999
    assert steps[name]["graphs"] <= 3, "sizes that differ become variables: not a graph for each of six batches"
