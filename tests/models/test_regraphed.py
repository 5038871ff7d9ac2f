"""A scorer that is given other graphs in training, in tests, or in both; what the loss compares stays as it is."""

from dataclasses import replace

import numpy as np
import torch

from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_source import GraphSource, ReadGraphs
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.evaluation.scoring import score_items
from menagerie.models.recipe import Recipe
from menagerie.models.texts import RegraphedReader, Texts
from menagerie.models.training.feed import Feed
from menagerie.models.training.loop import train_scorer
from tests.helpers.scorers import for_data

RECIPE = Recipe(steps=3, batch=8, warmup=1)


def noisy(data, **fields):
    return ReadGraphs(GraphSource(**fields), data.split.vocabulary, 0)


def test_regraphed_reader_changes_texts_but_not_targets(spatial):
    plain = for_data("oc-clip", spatial).reader
    graphs = noisy(spatial, dropped_nodes=0.5)
    other = RegraphedReader(plain, graphs)
    pairs = np.flatnonzero(~spatial.strata["single_object"])[:8]
    one, two = (Feed(spatial, reader, RECIPE, 0, ("captions",)).batch(pairs, 0) for reader in (plain, other))
    assert torch.equal(one.targets.same, two.targets.same)
    assert torch.equal(one.targets.masked, two.targets.masked)
    assert one.texts.node_present.sum() > two.texts.node_present.sum()
    captions = spatial.captions(pairs, pairs)
    texts = Texts(*zip(*captions, strict=True))
    expected = plain(replace(texts, graphs=[graphs(*caption) for caption in captions]))
    assert torch.equal(other(texts).phrase_of_node, expected.phrase_of_node)


def test_training_uses_the_training_reader_alone(spatial):
    """And tests the other one: with whatever is read in tests the weights are the same."""
    weights = []
    for training, testing in ((None, None), (None, 0.9), (0.9, None)):
        scorer = for_data("oc-clip", spatial)
        plain = scorer.reader
        scorer.training_reader, scorer.reader = (
            RegraphedReader(plain, noisy(spatial, dropped_nodes=share)) if share else plain
            for share in (training, testing)
        )
        train_scorer(scorer, spatial, RECIPE, 0)
        weights.append(torch.cat([p.detach().flatten() for p in scorer.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_evaluation_uses_the_reader_alone(spatial):
    from menagerie.generators.benchmarks.split_tests import SplitTests

    test, scorer = SplitTests(SplitDataset(spatial.split, "validation")), for_data("oc-clip", spatial).eval()
    before = score_items(scorer, test)
    plain = scorer.reader
    scorer.training_reader = RegraphedReader(plain, noisy(spatial, dropped_nodes=0.9))
    assert all(map(np.array_equal, before, score_items(scorer, test)))
    scorer.reader = scorer.training_reader
    assert not all(map(np.array_equal, before, score_items(scorer, test)))
    scorer.reader = RegraphedReader(plain, noisy(spatial, graphs="rules"))
    assert all(map(np.array_equal, before, score_items(scorer, test)))


def test_regraphed_reader_keeps_the_number_of_captions():
    class Several:
        captions = 3

        def __call__(self, texts, generator=None):
            return texts.graphs

    reader = RegraphedReader(Several(), lambda caption, graph: SceneGraph((caption,)))
    assert reader.captions == 3
    assert reader(Texts(["a cat"], [SceneGraph(())])) == [SceneGraph(("a cat",))]
