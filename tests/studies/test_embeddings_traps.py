"""Traps of measures of embeddings: each has an embedding that falls into it without the remedy."""

import re

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.studies.embeddings.axes import ProbeAxes, axes_of, in_both_orders
from menagerie.studies.embeddings.geometry import geometry
from menagerie.studies.embeddings.linear import held_out, readable
from menagerie.studies.embeddings.objects import mask_means, same_composition, shares
from menagerie.studies.embeddings.probes import bound, control, shared
from tests.studies.known_embeddings import WIDTH, axes, embedding, of_share, shown

MADE = axes(10)


def test_what_does_not_carry_over_to_other_pairs_is_not_counted():
    """An embedding without noise has the bit of each scene that it was made of, and so has every text's."""
    z = embedding("scene", MADE, noise=0)
    assert control(z, MADE).true.value > 0.95, "on the pairs of its training"
    found = bound(z, MADE)
    assert found.bits.value < 0.01
    assert found.place_bits.value < 0.01


def test_random_splits_of_scenes_leak():
    z = readable(embedding("scene", MADE, width=128)).reshape(-1, 128)
    shape = MADE.backgrounds.shape
    left, texture, fold = (
        np.broadcast_to(x, shape).reshape(-1)
        for x in (MADE.animals[:, :1], MADE.textures[:, 0], MADE.folds(3)[:, None])
    )
    by_scene = np.random.default_rng(0).integers(3, size=len(left))
    first, right = left == 0, []
    for folds in (by_scene, fold):
        told = held_out(z[first], texture[first], folds[first], 4).argmax(1)
        right.append((told == texture[first]).mean())
    assert right[0] > 0.8
    assert right[1] < 0.6


def test_a_scene_its_swap_its_mirror_and_their_views_are_held_out_together():
    folds = MADE.folds(3)
    assert folds.shape == (90,), "of pairs of animals, so that swaps and views share it"
    assert (folds == folds[MADE.mirrors]).all()
    assert np.bincount(folds).tolist() == [30, 30, 30]


def test_what_one_view_does_to_all_pairs_is_no_signal():
    """What views agree on is a sum over compositions. Judged in the view of the fit, R2 is 2 here."""
    random = np.random.default_rng(0)
    whole, of_view = random.normal(size=(10, 4, 64)), random.normal(size=(2, 10, 4, 64))
    z = np.stack([shown(MADE, *[whole + 0.7 * noise] * 2) for noise in of_view])
    found = geometry(z, MADE)
    assert found.compositions.value == pytest.approx(1, abs=0.01)
    assert found.placed_compositions.value == pytest.approx(1, abs=0.01)
    assert found.share.value == pytest.approx(0.5, abs=0.05)


def test_backgrounds_are_no_part_of_what_views_agree_on():
    """Two backgrounds that exchange in the other view: with them the variance that views share is negative."""
    drawn = axes(10, views=1, backgrounds=2).backgrounds
    made = ProbeAxes(MADE.animals, MADE.textures, np.concatenate([drawn, 1 - drawn]))
    place = 3 * np.random.default_rng(2).normal(size=(2, 64))
    z = embedding("object", made) + place[made.backgrounds]
    mean = z.mean((1, 2), keepdims=True)
    assert np.prod(z - mean, 0).sum(-1).mean() < 0
    assert geometry(z, made).share.value == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("animals", "textures", "backgrounds"), [(4, 3, 5), (4, 3, 2), (4, 4, 5), (6, 2, 3), (8, 3, 3)]
)
@pytest.mark.parametrize("orders", [1, 2])
@pytest.mark.parametrize("moved", [0.0, 1.5])
def test_backgrounds_take_no_variance_of_few_quartets_away(animals, textures, backgrounds, orders, moved):
    """The mean of a background holds part of what its few quartets show. Views of both orders of mention have the same
    backgrounds."""
    found = []
    for seed in range(30):
        random, made = np.random.default_rng(seed), axes(animals, textures, backgrounds=backgrounds, seed=seed)
        made = ProbeAxes(made.animals, made.textures, np.concatenate([made.backgrounds] * orders))
        place = moved * random.normal(size=(backgrounds, WIDTH)) / WIDTH**0.5
        found.append(geometry(of_share(made, 0.3, random) + place[made.backgrounds], made).share.value)
    assert np.mean(found) == pytest.approx(0.3, abs=0.006)


def test_embeddings_without_noise_differ_by_rounding_alone():
    z = embedding("concept", MADE, noise=0)[:1].repeat(2, 0)
    scaled = z * 1e3 + 1e-4 * np.random.default_rng(0).normal(size=z.shape[1:])
    for embeddings in (z, scaled):
        found = geometry(embeddings, MADE)
        assert "under 4 standard errors" in found.compositions.refused
        assert "under 4 standard errors" in found.components.refused
        assert found.share.value == pytest.approx(0, abs=1e-6)
    nothing = geometry(np.ones((2, 90, 12, 3)), MADE)
    assert all(nothing._asdict()[name].refused for name in ("share", "compositions", "concepts", "components", "leak"))


def patches(anywhere):
    """Masks of 6 x 6 patches of 2 x 2 pixels, each object in 6 of them, and the embedding of its composition in
    each."""
    made, random = axes(4, 3), np.random.default_rng(0)
    scenes = (2, 12, 6)
    columns = np.arange(36) % 6
    fixed = np.where(columns == 0, 0, np.where(columns == 5, 6, 12))
    order = np.argsort(random.random((*scenes, 36)), -1) if anywhere else np.broadcast_to(fixed, (*scenes, 36))
    obj = np.where(order < 6, 1, np.where(order < 12, 2, 0))
    masks = obj.reshape(*scenes, 6, 6).repeat(2, -1).repeat(2, -2)
    compositions = np.linalg.qr(random.normal(size=(16, 12)))[0].T.reshape(4, 3, 16) * 4
    (a, b), (t, u) = made.animals.T, made.textures.T
    of_object = np.stack(np.broadcast_arrays(np.zeros(16), compositions[a[:, None], t], compositions[b[:, None], u]))
    tokens = of_object[obj, np.arange(12)[None, :, None, None], np.arange(6)[None, None, :, None]]
    return made, masks, tokens + 0.1 * random.normal(size=tokens.shape)


def test_left_and_right_objects_are_told_apart_by_places_alone():
    made, masks, tokens = patches(anywhere=False)
    found = same_composition(tokens, masks, made)
    assert "places of patches alone tell 100 %" in found.tokens.refused
    assert found.less_places.value is None
    assert found.tokens.chance == 1


def test_the_same_object_where_objects_stand_anywhere():
    made, masks, tokens = patches(anywhere=True)
    found = same_composition(tokens, masks, made)
    assert found.tokens.value > 0.9  # not 1: a reader of rank 16 hasn't seen these animals as a pair
    assert found.less_places.value > 0.9
    assert found.tokens.chance == pytest.approx(0.5, abs=0.05)
    noise = np.random.default_rng(1).normal(size=tokens.shape)
    assert same_composition(noise, masks, made).tokens.value == pytest.approx(0.5, abs=0.05)


def test_probes_of_texts_read_the_order_of_mention():
    """Words of the first object in some coordinates, of the second in others: in both orders left is not the first."""
    z = embedding("place", MADE)
    assert bound(z, MADE).place_bits.value > 0.99
    both, made = in_both_orders(z, MADE)
    assert both.shape == (4, 90, 12, 64)
    found = bound(both, made)
    assert found.place_bits.value == pytest.approx(0, abs=0.01)
    assert found.animal_left.value < 0.55
    whole = bound(in_both_orders(embedding("object", MADE), MADE)[0], made)
    assert whole.bits.value == pytest.approx(1, abs=0.01), "what belongs to what is told in both"


def test_shared_probes_of_codes_for_each_object():
    """Textures that all animals share carry over to other compositions; a vector of its own for each composition
    doesn't."""
    made, random = axes(8), np.random.default_rng(0)
    alone = random.normal(size=(8, 1, 32)) + random.normal(size=(4, 32))
    for compositions, right in ((alone, True), (random.normal(size=(8, 4, 32)), False)):
        (a, b), (t, u) = made.animals.T, made.textures.T
        z = np.stack(np.broadcast_arrays(compositions[a[:, None], t], compositions[b[:, None], u]), 2)[None].repeat(
            2, 0
        )
        found = shared(z + 0.1 * random.normal(size=z.shape), made)
        assert found.right.value == pytest.approx(1, abs=0.05)
        assert (found.right_compositions.value > 0.95) == right
        assert right or found.right_of_two_compositions.value < 0.6
        assert (found.right.chance, found.right_of_two.chance) == (0.25, 0.5)


def test_a_list_of_scenes_in_any_order():
    made = axes(4, 3)
    names = np.array(["cat", "dog", "fox", "owl"])
    index = np.indices(made.backgrounds.shape).reshape(3, -1)
    order = np.random.default_rng(0).permutation(index.shape[1])
    v, p, q = index[:, order]
    listed = (names[made.animals[p]], made.textures[q], v + 16, made.backgrounds[v, p, q])
    found, numbers = axes_of(*listed)
    assert (found.animals == made.animals).all()
    assert (order[numbers] == np.arange(len(order)).reshape(numbers.shape)).all()
    assert (found.backgrounds == made.backgrounds).all()
    for broken in (1, len(order) - 1):
        with pytest.raises(UserError, match=r"holds each scene once|in both orders|another background"):
            axes_of(*(part[:broken] for part in listed))


def test_mask_means_weigh_patches_by_their_share():
    _, masks, tokens = patches(anywhere=True)
    masks[0, 0, 0, 0, 0] = 1
    weights = shares(masks, 36)[0, 0, 0, :, 0]
    assert mask_means(tokens, masks)[0, 0, 0, 0] == pytest.approx(weights @ tokens[0, 0, 0] / weights.sum())
    with pytest.raises(UserError, match=re.escape("60 patches don't divide masks of 12 x 12")):
        shares(masks, 60)
    with pytest.raises(UserError, match="no pixel in its mask"):
        mask_means(tokens, 0 * masks)
