"""Traps of measures of embeddings, each with an embedding that a naive measure gets wrong; and ties, which count one
half wherever chance is one half."""

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.studies.measures.conditions import by_embeddings
from menagerie.studies.measures.geometry import alignment, geometry
from menagerie.studies.measures.probe_set import ProbeAxes, axes_of, share_right
from menagerie.studies.measures.probes import bits, held_out_logits, probe_binding, probe_left, standardise
from tests.studies.known_embeddings import WIDTH, axes, embedding, of_share, shown

MADE, SIX = axes(10), axes(6)


def test_vectors_of_single_scenes_count_for_no_probe():
    z = embedding("scene", MADE, noise=0)
    found = probe_binding(z, MADE)
    assert found.bits.value < 0.01
    assert found.place_bits.value < 0.01


def test_random_folds_of_scenes_leak_and_folds_of_pairs_do_not():
    z = standardise(embedding("scene", MADE, width=128)).reshape(-1, 128)
    shape = MADE.backgrounds.shape
    left, texture, fold = (
        np.broadcast_to(x, shape).reshape(-1)
        for x in (MADE.animals[:, :1], MADE.textures[:, 0], MADE.folds(3)[:, None])
    )
    by_scene = np.random.default_rng(0).integers(3, size=len(left))
    first, right = left == 0, []
    for folds in (by_scene, fold):
        told = held_out_logits(z[first], texture[first], folds[first], 4).argmax(1)
        right.append((told == texture[first]).mean())
    assert right[0] > 0.8
    assert right[1] < 0.6


def test_folds_hold_out_a_scene_its_swap_its_mirror_and_their_views_together():
    folds = MADE.folds(3)
    assert folds.shape == (90,), "of pairs of animals, so that swaps and views share it"
    assert (folds == folds[MADE.mirrors]).all()
    assert np.bincount(folds).tolist() == [30, 30, 30]


def test_noise_that_all_pairs_of_a_view_share_is_no_signal():
    """Tested in the view of the fit, R2 would be 2 here."""
    random = np.random.default_rng(0)
    whole, of_view = random.normal(size=(10, 4, 64)), random.normal(size=(2, 10, 4, 64))
    z = np.stack([shown(MADE, *[whole + 0.7 * noise] * 2) for noise in of_view])
    found = geometry(z, MADE)
    assert found.compositions.value == pytest.approx(1, abs=0.01)
    assert found.placed_compositions.value == pytest.approx(1, abs=0.01)
    assert found.share.value == pytest.approx(0.5, abs=0.05)


def test_backgrounds_add_nothing_to_the_variance_that_views_share():
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
def test_the_binding_share_is_unbiased_with_few_quartets_a_background(animals, textures, backgrounds, orders):
    found = []
    for seed in range(30):
        random, made = np.random.default_rng(seed), axes(animals, textures, backgrounds=backgrounds, seed=seed)
        made = ProbeAxes(made.animals, made.textures, np.concatenate([made.backgrounds] * orders))
        place = 1.5 * random.normal(size=(backgrounds, WIDTH)) / WIDTH**0.5
        found.append(geometry(of_share(made, 0.3, random) + place[made.backgrounds], made).share.value)
    assert np.mean(found) == pytest.approx(0.3, abs=0.006)


def test_rounding_is_no_effect_of_swaps():
    z = embedding("concept", MADE, noise=0)[:1].repeat(2, 0)
    scaled = z * 1e3 + 1e-4 * np.random.default_rng(0).normal(size=z.shape[1:])
    for embeddings in (z, scaled):
        found = geometry(embeddings, MADE)
        assert "under 4 standard errors" in found.compositions.refused
        assert found.share.value == pytest.approx(0, abs=1e-6)
    nothing = geometry(np.ones((2, 90, 12, 3)), MADE)
    assert all(its.refused for its in nothing)


def test_axes_are_found_for_scenes_in_any_order():
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
        with pytest.raises(UserError, match="has each scene once"):
            axes_of(*(part[:broken] for part in listed))


SHAPE = (*SIX.backgrounds.shape, 8)


def test_a_margin_of_0_counts_one_half():
    found = share_right(np.array([[-1.0, 0.0], [0.0, 2.0]]))
    assert (found.value, found.chance) == (0.5, 0.5)
    assert share_right(np.array([1.0, 2.0, 0.0, 1e-30])).value == 0.875


def test_probes_of_equal_embeddings_have_no_bit():
    assert [its.value for its in probe_binding(np.ones(SHAPE), SIX)] == [0, 0, 0]
    assert bits(probe_left(np.ones(SHAPE), SIX)).value == 0


def test_embeddings_that_a_swap_does_not_change_are_at_chance():
    assert probe_binding(embedding("concept", SIX, noise=0), SIX).bits.value == 0
    images, random = embedding("object", SIX), np.random.default_rng(0)
    texts = np.broadcast_to(random.normal(size=(2, len(SIX.animals), 1, 64)), images.shape)
    found = alignment(images, texts, SIX)
    assert [(its.value, its.chance) for its in (found.before, found.after)] == [(0.5, 0.5)] * 2


def test_texts_equal_to_those_of_their_swap_count_one_half():
    """Images and texts are equal, and the texts of the first pair of textures are those of its swap."""
    images = embedding("object", SIX, noise=0)
    texts = images.copy()
    pair = SIX.half[0]
    texts[:, :, SIX.swaps[pair]] = texts[:, :, pair]
    found = alignment(images, texts, SIX)
    assert found.before.value == pytest.approx(1 - 0.5 * 2 / len(SIX.textures))


def test_equal_embeddings_meet_conditions_between_images_at_chance():
    rows = list(by_embeddings(np.ones(SHAPE), {}, SIX))
    assert [(its["value"], its["chance"]) for its in rows if its["measure"] == "holds"] == [(0.5, 0.5)] * 4
