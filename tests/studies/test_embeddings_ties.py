"""Ties count one half wherever chance is one half."""

import numpy as np
import pytest

from menagerie.studies.embeddings.alignment import alignment
from menagerie.studies.embeddings.conditions import by_embeddings
from menagerie.studies.embeddings.measured import share_right
from menagerie.studies.embeddings.probes import bound, shared
from menagerie.studies.measures.related import which_is_left
from tests.studies.known_embeddings import axes, embedding

MADE = axes(6)
SHAPE = (*MADE.backgrounds.shape, 8)


def of_two(found):
    """The shares whose chance is one half."""
    return {name: its.value for name, its in found._asdict().items() if its.chance == 0.5}


def test_a_margin_of_0_counts_one_half():
    found = share_right(np.array([[-1.0, 0.0], [0.0, 2.0]]))
    assert (found.value, found.chance) == (0.5, 0.5)
    assert share_right(np.array([1.0, 2.0, 0.0, 1e-30])).value == 0.875


def test_probes_of_one_embedding_for_all_scenes_are_at_chance():
    found = of_two(bound(np.ones(SHAPE), MADE))
    assert found == dict.fromkeys(("right_of_two", "scene", "place_scene", "animal_left", "texture_left"), 0.5)
    few = axes(4)  # each fold of compositions has all textures equally often
    found = of_two(shared(np.ones((*few.backgrounds.shape, 2, 8)), few))
    assert found == dict.fromkeys(("right_of_two", "right_of_two_compositions"), 0.5)
    rows = {row["measure"]: row for row in which_is_left("text", "embedding", "mean", np.ones(SHAPE), MADE)}
    assert (rows["scene"]["value"], rows["scene"]["chance"], rows["bits"]["value"]) == (0.5, 0.5, 0)


def test_probes_of_codes_that_a_swap_leaves_as_they_are_cannot_tell_it():
    found = bound(embedding("concept", MADE, noise=0), MADE)
    assert found.scene.value == 0.5
    assert found.right_of_two.value == 0.5


def test_texts_that_a_swap_leaves_as_they_are_tell_images_at_chance():
    images, random = embedding("object", MADE), np.random.default_rng(0)
    texts = np.broadcast_to(random.normal(size=(2, len(MADE.animals), 1, 64)), images.shape)
    assert of_two(alignment(images, texts, MADE)) == {"before": 0.5, "after": 0.5}


def test_some_texts_that_a_swap_leaves_as_they_are_count_one_half_beside_others():
    """Images and texts are alike. The texts of the first pair of textures are those of its swap."""
    images = embedding("object", MADE, noise=0)
    texts = images.copy()
    pair = MADE.half[0]
    texts[:, :, MADE.swaps[pair]] = texts[:, :, pair]
    found = alignment(images, texts, MADE)
    assert found.before.value == pytest.approx(1 - 0.5 * 2 / len(MADE.textures))


def test_one_embedding_for_all_images_meets_conditions_between_images_at_chance():
    rows = list(by_embeddings(np.ones(SHAPE), {}, MADE))
    assert [(its.measured.value, its.measured.chance) for its in rows if its.measure == "holds"] == [(0.5, 0.5)] * 4
