"""Rules of items: official, tie-neutral and how often scores tie, computed by hand."""

import numpy as np
import pytest
import torch

from menagerie.generators.benchmarks.benchmark import (
    Benchmark,
    Item,
    first_of_best,
    group_chosen,
    images_chosen,
    summarise,
    texts_chosen,
)
from menagerie.generators.benchmarks.split_tests import FOUR_WAY, SplitTests
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.evaluation.scoring import score_items
from tests.helpers.scorers import scorer


def scores(*rows):
    return np.array(rows, float)


@pytest.mark.parametrize(
    ("rule", "matrix", "expected"),
    [
        (texts_chosen, scores([0.9, 0.1, 0.2]), (1, 1, False)),
        (texts_chosen, scores([0.1, 0.9, 0.2]), (0, 0, False)),
        (texts_chosen, scores([0.5, 0.5, 0.2]), (0, 1 / 2, True)),
        (texts_chosen, scores([0.5, 0.5, 0.5, 0.5]), (0, 1 / 4, True)),
        (texts_chosen, scores([0.5, 0.7, 0.7]), (0, 0, False)),
        (first_of_best, scores([0.5, 0.5, 0.5, 0.5]), (1, 1 / 4, True)),
        (first_of_best, scores([0.5, 0.6]), (0, 0, False)),
        (texts_chosen, scores([0.9, 0.1], [0.2, 0.8]), (1, 1, False)),
        (texts_chosen, scores([0.9, 0.1], [0.9, 0.8]), (0, 0, False)),
        (images_chosen, scores([0.9, 0.1], [0.95, 0.8]), (0, 0, False)),
        (images_chosen, scores([0.9, 0.85], [0.2, 0.9]), (1, 1, False)),
        (group_chosen, scores([0.9, 0.85], [0.2, 0.9]), (1, 1, False)),
        (group_chosen, scores([0.9, 0.95], [0.2, 0.99]), (0, 0, False)),
        (group_chosen, scores([0.5, 0.5], [0.5, 0.5]), (0, 1 / 6, True)),
        (group_chosen, scores([0.5, 0.5], [0.4, 0.5]), (0, 1 / 3, True)),
        (group_chosen, scores([0.5, 0.5], [0.4, 0.9]), (0, 1 / 2, True)),
        (group_chosen, scores([0.5, 0.5], [0.6, 0.6]), (0, 0, True)),
    ],
)
def test_rules_of_items_agree_with_cases_done_by_hand(rule, matrix, expected):
    assert tuple(rule(matrix)) == pytest.approx(expected)


def test_a_summary_of_nothing_is_nothing():
    assert summarise([]) == (None, None, None, 0)
    outcomes = [texts_chosen(scores([1, 0])), texts_chosen(scores([0, 0]))]
    assert summarise(outcomes) == (0.5, 0.75, 0.5, 2)


class Shapes(Benchmark):
    """Items of other shapes than our own: one image with three texts, two with two, one with one."""

    name = "shapes"
    captions = tuple(Caption(f"a {word} cat", SceneGraph((f"{word} cat",))) for word in ("red", "white", "grass"))
    items = (
        Item("one", "choice", (0,), captions),
        Item("two", "four-way", (1, 2), captions[:2]),
        Item("three", "none", (0,), captions[2:]),
    )

    def images(self, numbers):
        generator = torch.Generator().manual_seed(0)
        return torch.randint(0, 256, (3, 3, 32, 32), generator=generator, dtype=torch.uint8)[list(numbers)]


@pytest.mark.parametrize("name", ["clip", "oc-clip"])
def test_items_of_any_shape_are_scored_as_all_pairs(name):
    model, bench = scorer(name), Shapes()
    texts, graphs = zip(*bench.captions, strict=True)
    with torch.no_grad():
        codes = model.encode_images(model.pixel_scale(bench.images([0, 1, 2])))
        whole = model.similarity(codes, model.encode_texts(model.read(texts, graphs))).numpy()
    one, two, three = score_items(model, bench)
    assert np.allclose(one, whole[:1], atol=1e-5)
    assert np.allclose(two, whole[1:, :2], atol=1e-5)
    assert np.allclose(three, whole[:1, 2:], atol=1e-5)
    assert [part.shape for part in (one, two, three)] == [(1, 3), (2, 2), (1, 1)]


def test_a_split_is_a_benchmark(split):
    data = SplitDataset(split, "unseen_pairs")
    tests = SplitTests(data)
    four_way_items = [item for item in tests.items if item.task == FOUR_WAY]
    assert [item.images for item in four_way_items] == [(i, len(data) + i) for i in range(len(data))]
    assert [item.record for item in four_way_items] == [scene.key for scene in data.records.scenes]
    assert torch.equal(tests.images([0, 1]), data.images([0, 1]))
    assert torch.equal(tests.images([len(data)]), data.counterfactual_images([0]))
    numbers = list(range(2 * len(data)))
    blocks = list(tests.blocks(numbers, 7))
    assert sorted(n for block in blocks for n in block) == numbers
    assert not any(min(block) < len(data) <= max(block) for block in blocks)
