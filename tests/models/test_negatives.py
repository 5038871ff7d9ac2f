"""Negatives in the loss: what a batch holds."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from menagerie.generators.captions.relations import claims
from menagerie.generators.storage.false_captions import TEXT_NEGATIVES
from menagerie.models.recipe import Negatives, Recipe, negatives_of
from menagerie.models.registry import spec_of
from menagerie.models.training.feed import Feed, with_counterfactuals
from menagerie.models.training.loaders import batches

RECIPE = Recipe(steps=6, batch=16, text_negatives=("replace",))


class Keeper:
    """A reader that keeps the texts."""

    def __call__(self, texts, generator=None):
        return tuple(texts.captions), tuple(texts.graphs), texts.matched


def pairs_of(data):
    return np.flatnonzero(~data.strata["single_object"])


# False captions


@pytest.mark.parametrize("kind", TEXT_NEGATIVES)
def test_false_captions_come_after_the_images_own_texts(data, kind):
    feed = Feed(data, Keeper(), replace(RECIPE, text_negatives=(kind,)), 0)
    batch = feed.batch(pairs_of(data)[:8], 1)
    captions, graphs, matched = batch.texts
    assert matched == batch.targets.matched == 8
    assert len(captions) > 8
    assert list(captions[:8]) == [data.records.captions[i] for i in pairs_of(data)[:8]]
    assert not batch.targets.same[:, 8:].any()
    wrong = ~batch.targets.masked[:, 8:]
    for row, i in enumerate(pairs_of(data)[:8]):
        true = claims(data.records.graphs[i])
        assert [not claims(graph) <= true for graph in graphs[8:]] == wrong[row].tolist()
    assert wrong.any(0).all()


def test_kinds_of_false_captions_come_one_after_the_other(data):
    both = Feed(data, Keeper(), replace(RECIPE, text_negatives=("replace", "swap")), 0).batch(pairs_of(data)[:8], 1)
    apart = [Feed(data, Keeper(), replace(RECIPE, text_negatives=(kind,)), 0) for kind in ("replace", "swap")]
    texts = [feed.batch(pairs_of(data)[:8], 1).texts[0][8:] for feed in apart]
    assert both.texts[0][8:] == texts[0] + texts[1]


def test_negatives_depend_on_seed_and_step_alone(data):
    recipe = replace(RECIPE, text_negatives=TEXT_NEGATIVES, image_negatives=True)
    feed = Feed(data, Keeper(), recipe, 3)
    alone = [batch.texts[0] for batch in batches(feed, 0, 4, torch.device("cpu"), 0)]
    helped = [batch.texts[0] for batch in batches(feed, 0, 4, torch.device("cpu"), 2)]
    assert alone == helped
    assert list(alone[2]) == list(Feed(data, Keeper(), recipe, 3)[2].texts[0])
    assert list(alone[2]) != list(Feed(data, Keeper(), recipe, 4)[2].texts[0])


def test_recipe_overrides_the_negatives_of_a_spec():
    assert negatives_of(Recipe(), ()) == Negatives((), False)
    assert negatives_of(Recipe(), spec_of("negclip").negatives) == Negatives(("swap",), True)
    assert negatives_of(RECIPE, spec_of("negclip").negatives) == Negatives(("replace",), True)
    assert negatives_of(replace(RECIPE, image_negatives=True), ()).words == (
        "captions with a part replaced",
        "counterfactual images",
    )


# Counterfactual images


@pytest.mark.parametrize("seed", range(30))
def test_batch_with_counterfactuals_keeps_its_size_and_its_other_items(seed):
    random = np.random.default_rng(seed)
    of_all = np.full(60, -1)
    paired = random.permutation(60)[:40].reshape(20, 2)
    of_all[paired[:, 0]], of_all[paired[:, 1]] = paired[:, 1], paired[:, 0]
    before = random.choice(60, int(random.integers(2, 30)), replace=False)
    after = with_counterfactuals(before, of_all[before])
    assert after.shape == before.shape
    assert len(set(after.tolist())) == len(after)
    lone = of_all[before] < 0
    assert (after[lone] == before[lone]).all()
    together = [item for item in after if of_all[item] in after]
    left = (~lone).sum() - len(together)
    assert left <= 1  # of an odd number one stays alone
    assert set(after.tolist()) <= set(before.tolist()) | set(of_all[before[~lone]].tolist())


def test_image_negatives_put_counterfactuals_into_the_batch(data):
    recipe = replace(RECIPE, text_negatives=(), image_negatives=True, augment=False)
    feed = Feed(data, Keeper(), recipe, 0)
    counterfactuals = data.counterfactual_items(range(len(data)))
    chosen = np.flatnonzero(counterfactuals >= 0)[:6]
    batch = feed.batch(chosen, 0)
    expected = with_counterfactuals(chosen, counterfactuals[chosen])
    assert batch.images.shape[0] == batch.targets.matched == 6
    assert torch.equal(batch.images, data.images(expected))
    assert list(batch.texts[0]) == [data.records.captions[i] for i in expected]
    assert not set(expected.tolist()) <= set(chosen.tolist())
