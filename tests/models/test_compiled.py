"""A compiled step is one graph, with the loss and the gradient of a plain one, whatever the number of texts."""

import json
import sys
from pathlib import Path

from tests.command import WITH_TESTS, run


def test_compiled_step_is_one_graph_for_batches_of_any_size(spatial, tmp_path):
    script = str(Path(__file__).with_name("compiled_steps.py"))
    done = run([sys.executable, script, str(spatial.split.path)], tmp_path, WITH_TESTS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["loss"] < 1e-5
    assert found["cosine"] > 0.99999
    assert found["graphs"] <= 3, "sizes that differ become variables: not a graph for each of six batches"
