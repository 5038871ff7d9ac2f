"""Constructed embeddings of 20 animals and 4 textures, and the value that each measure must have for them."""

from functools import cache

import numpy as np
import pytest

from menagerie.studies.measures.factors import linear_factors
from menagerie.studies.measures.geometry import alignment, geometry, measure_edits
from menagerie.studies.measures.ideal import IdealEmbedding, least_margins
from menagerie.studies.measures.probe_set import label_rows
from menagerie.studies.measures.probes import LOSSES, bits, probe_binding
from menagerie.studies.measures.products import product_fits, view_means
from menagerie.studies.measures.readers import AttentionReader, HiddenReader, read_binding
from tests.studies.known_embeddings import axes, embedding, shown

DIGITS = 0.0055  # two digits
REFUSED = "D is under 4 standard errors"
MADE = cache(axes)


@pytest.mark.parametrize(
    ("kind", "of_bits", "by_place", "share", "compositions", "placed"),
    [
        ("concept", 0.00, 0.00, 0.00, None, None),
        ("object", 1.00, 0.00, 0.50, 1.00, 1.00),
        ("product", 0.55, 0.00, 0.26, 1.00, 1.00),
        ("place", 0.00, 1.00, 0.32, 0.00, 1.00),
        ("scene", 0.00, 0.00, 0.25, -0.07, -0.07),
    ],
)
def test_measures_of_constructed_embeddings_have_known_values(kind, of_bits, by_place, share, compositions, placed):
    """A linear probe may be at chance though an embedding binds: by place the fourth has the whole bit."""
    z = embedding(kind, MADE())
    probed, shaped = probe_binding(z, MADE()), geometry(z, MADE())
    said = (probed.bits, probed.place_bits, *shaped)
    for measured, known in zip(said, (of_bits, by_place, share, compositions, placed), strict=True):
        assert measured.value == (None if known is None else pytest.approx(known, abs=DIGITS))
        assert (REFUSED in measured.refused) == (known is None)
    assert [its.chance for its in said] == [0] * 5
    rows = {row["measure"]: (row["value"], row["refused"]) for row in label_rows("text", "embedding", "mean", shaped)}
    assert rows["compositions"] == (shaped.compositions.value, shaped.compositions.refused)


@pytest.mark.parametrize(
    ("kind", "animals", "textures", "compositions", "placed"),
    [("object", 8, 4, 1, 1), ("place", 8, 4, 0, 1), ("place", 8, 3, 0, 1), ("object", 6, 3, 1, 1)],
)
def test_noise_biases_no_fit_on_a_small_probe_set(kind, animals, textures, compositions, placed):
    """Noise twice as large as what compositions add to an embedding; without it the numbers are the true ones."""
    made = MADE(animals, textures)
    for noise, near in ((0, 0.02), (2, 0.06)):
        found = geometry(embedding(kind, made, noise), made)
        assert found.compositions.value == pytest.approx(compositions, abs=near)
        assert found.placed_compositions.value == pytest.approx(placed, abs=near)


@pytest.mark.parametrize(
    ("animals", "textures", "width", "noise", "read"),
    [(8, 3, 64, 4.8, 0.61), (20, 4, 64, 4.3, 0.78), (8, 3, 256, 9.2, 0.33)],
)
def test_probes_read_as_many_bits_in_noise_as_the_page_says(animals, textures, width, noise, read):
    made = MADE(animals, textures)
    z = embedding("object", made, 0, width)
    half = (z - z[:, :, made.swaps]) / 2
    drawn = noise * np.random.default_rng(2).normal(size=z.shape)
    assert bits(((half + drawn) * half).sum(-1)).value == pytest.approx(0.87, abs=0.01)  # by the likelihood ratio
    assert probe_binding(z + drawn, made).bits.value == pytest.approx(read, abs=0.05)


def test_product_fits_predict_held_out_compositions():
    means = view_means(embedding("product", MADE()), MADE())
    one, three = (product_fits(means, rank) for rank in (1, 3))
    assert one.sum_fit.value == pytest.approx(0.19, abs=DIGITS)
    assert three.product_fit.value == pytest.approx(1.00, abs=DIGITS)
    assert one.sum_fit.value < one.product_fit.value < 0.9
    assert one.product_gain.value == pytest.approx(one.product_fit.value - one.sum_fit.value)


@pytest.mark.parametrize(
    ("kind", "noise", "low", "high"),
    [("concept", 0, -0.01, 0.01), ("concept", 2, -0.1, 0.01), ("object", 2, -1, 0), ("product", 2, 0.5, 0.8)],
)
def test_products_explain_more_than_sums_only_where_there_are_products(kind, noise, low, high):
    made = MADE(8, 4)
    found = product_fits(view_means(embedding(kind, made, noise), made))
    assert low < found.product_gain.value < high


def test_one_view_or_two_textures_are_too_few_for_product_fits():
    for made in (MADE(8, 4, 1), MADE(8, 2)):
        found = product_fits(view_means(embedding("concept", made), made))
        assert found.product_gain.value is None
        assert "2 views" in found.product_gain.refused


@pytest.mark.parametrize(("kind", "fit"), [("concept", 1.0), ("product", 0.45), ("object", 0.26), ("scene", 0.71)])
def test_linear_factors_explain_what_is_a_sum_whatever_the_noise(kind, fit):
    made = MADE(8, 4)
    for noise in (0, 2):
        found = linear_factors(embedding(kind, made, noise), made)
        assert found.factor_fit.value == pytest.approx(fit, abs=0.02)
    assert found.factor_cosine.chance == pytest.approx(0.1, abs=0.001), "of random directions of 64 dimensions"


def test_factors_have_the_angle_and_the_components_that_they_were_given():
    made, random = MADE(8, 4), np.random.default_rng(0)
    animal, texture = np.zeros((8, 1, 16)), np.zeros((4, 16))
    animal[..., :2], texture[:, 2] = random.normal(size=(8, 1, 2)), random.normal(size=4)
    found = linear_factors(np.stack([shown(made, *[animal + texture] * 2)] * 2), made)
    assert found.factor_cosine.value == pytest.approx(0, abs=1e-3)
    assert found.factor_components.value == 3
    texture[:, 0] = texture[:, 2]
    leaning = linear_factors(np.stack([shown(made, *[animal + texture] * 2)] * 2), made)
    assert leaning.factor_cosine.value > 0.2


@pytest.mark.parametrize(
    ("snr", "known", "capacity"), [(0.1, 0.0686, 0.0687), (1, 0.4850, 0.4859), (10, 0.9964, 0.9968)]
)
def test_bits_of_gaussian_margins_are_near_capacity_at_any_scale(snr, known, capacity):
    found = []
    for seed in range(3):
        margins = snr**0.5 + np.random.default_rng(seed).normal(size=100_000)
        found.append(bits(margins).value)
        assert bits(1e-5 * margins).value == pytest.approx(found[-1], abs=1e-5)
    assert np.mean(found) == pytest.approx(known, abs=DIGITS)
    assert np.mean(found) == pytest.approx(capacity, abs=0.002)


def test_bits_are_between_0_and_1():
    assert bits(np.ones(9)).value == 1
    assert bits(np.zeros(9)).value == 0
    assert bits(-np.ones(9)).value == 0, "b is at least 0"
    assert bits(np.append(np.ones(99), 0)).value == pytest.approx(0.99, abs=1e-3), "a tie has no bit"


@cache
def spaces(animals):
    """Images and texts of concepts and compositions, and texts in which those of compositions are rotated."""
    made, random = axes(animals), np.random.default_rng(3)
    animal, texture = random.normal(size=(animals, 64)), random.normal(size=(4, 64))
    whole = random.normal(size=(animals, 4, 64))
    whole = whole - whole.mean(0, keepdims=True) - whole.mean(1, keepdims=True) + whole.mean((0, 1))
    turn = np.linalg.qr(random.normal(size=(64, 64)))[0]

    def embedded(compositions):
        parts = np.broadcast_arrays(animal[:, None], texture, compositions)
        z = shown(made, *[np.concatenate(parts, -1)] * 2)
        z = z + 0.05 * random.normal(size=(2, *z.shape))
        return z / np.linalg.norm(z, axis=-1, keepdims=True)

    return made, embedded(whole), embedded(whole), embedded(whole @ turn)


def test_a_matrix_repairs_rotated_texts_and_changes_no_others():
    made, images, _, rotated = spaces(12)
    found = alignment(images, rotated, made)
    assert found.before.value == pytest.approx(0.46, abs=0.01)
    assert found.after.value == pytest.approx(0.89, abs=0.01)
    assert abs(found.cosine.value) < 0.2
    made, images, texts, _ = spaces(8)
    found = alignment(images, texts, made)
    assert (found.before.value, found.after.value) == (1, 1)
    assert found.cosine.value > 0.8
    assert found.gap.value < 0.01 < found.gap.chance


def test_only_edits_by_compositions_change_the_preferred_caption():
    made, images, texts, _ = spaces(12)

    def margins(embeddings):
        return (embeddings * (texts - texts[:, :, made.swaps])).sum(-1)

    found = measure_edits(images, made, margins)
    assert [measured.value for measured in found] == [1, 0, 0]
    assert found.compositions.chance == 0
    assert measure_edits(images, made, lambda embeddings: -1 - 0 * margins(embeddings)).compositions.refused


@pytest.mark.parametrize(
    ("weight", "known"),
    [
        (0.0, (0.50, 0.00, 0.00, 0.33)),
        (0.1, (0.50, 0.004, 0.005, 0.33)),
        (0.3, (0.48, 0.03, 0.04, 0.33)),
        (0.5, (0.44, 0.08, 0.10, 0.33)),
        (1.0, (0.33, 0.24, 0.25, 0.33)),
        (2.0, (0.17, 0.41, 0.40, 0.33)),
    ],
)
def test_the_ideal_embedding_meets_all_conditions_once_conjunctions_have_weight(weight, known):
    margins = least_margins(IdealEmbedding(weight))
    assert tuple(margins.values()) == pytest.approx(known, abs=DIGITS)
    assert margins["attribute binding"] == pytest.approx(known[1], abs=0.0005 if weight == 0.1 else DIGITS)
    assert (min(margins.values()) > 1e-9) == (weight > 0)


def scenes_of_tokens(made, bound):
    """Six tokens of a scene: two of them, anywhere, are its animals; the textures are on these, or on other tokens."""
    random, (animals, textures) = np.random.default_rng(0), made.kinds
    x = 0.3 * random.normal(size=(*made.backgrounds.shape, 6, animals + textures))
    for i in np.ndindex(made.backgrounds.shape):
        places = random.permutation(6)[:4]
        for side in (0, 1):
            x[i][places[side], made.animals[i[1], side]] += 3
            x[i][places[side if bound else side + 2], animals + made.textures[i[2], side]] += 3
    return x


def test_attention_reads_what_tokens_hold_and_nothing_of_a_bag_of_tokens():
    made = MADE(6, 3)
    bound, bag = (read_binding(scenes_of_tokens(made, kind), made, AttentionReader) for kind in (True, False))
    assert bound.bits.value > 0.95
    assert 0.2 < bound.bernoulli_bits.value < bound.bits.value, "each object's texture is told less surely than both"
    assert bag.bits.value < 0.05
    assert bag.bernoulli_bits.value == 0


@pytest.mark.parametrize(("kind", "least", "most"), [("object", 0.9, 1), ("concept", 0, 0.05)])
def test_a_hidden_layer_reads_only_vectors_that_bind(kind, least, most):
    made = MADE(6, 3)
    found = read_binding(embedding(kind, made)[..., None, :], made, HiddenReader)
    assert least <= found.bits.value <= most


def test_a_sum_of_bernoulli_losses_leaves_a_reader_with_errors_less():
    e, certain = 0.02, np.log(0.98 / 0.02)
    margins = np.where(np.arange(1000) < 1000 * e, -certain, certain)
    entropy = -(e * np.log2(e) + (1 - e) * np.log2(1 - e))
    assert bits(margins).value == pytest.approx(1 - entropy, abs=1e-4)
    assert bits(margins, LOSSES).value == pytest.approx(1 - 4 * entropy, abs=1e-3)
