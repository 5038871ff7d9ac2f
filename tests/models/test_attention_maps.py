"""Maps and masks: what overlap means, and that maps come in the order of the objects."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.evaluation.attention_maps import (
    Maps,
    attention_maps,
    best_threshold,
    enlarge,
    nodes_of_objects,
    overlap,
)
from tests.models.test_training import fresh


def squares():
    """Masks of two squares in two scenes, and maps that show them exactly."""
    masks = np.zeros((2, 16, 16), np.uint8)
    masks[:, 2:6, 2:6], masks[:, 8:14, 8:14] = 1, 2
    objects = np.stack([masks == 1, masks == 2], 1) * 5.0
    return Maps(objects, np.zeros((2, 16, 16))), masks


def test_overlap_of_perfect_half_and_exchanged_maps():
    maps, masks = squares()
    perfect = overlap(maps, masks, 1.0)
    assert (perfect.mean, perfect.right) == (1.0, 1.0)
    assert (perfect.other == 0).all()
    half = maps.objects.copy()
    half[:, 0, 2:4] = 0
    assert overlap(Maps(half, maps.rest), masks, 1.0).obj[:, 0].tolist() == [0.5, 0.5]
    exchanged = overlap(Maps(maps.objects[:, ::-1], maps.rest), masks, 1.0)
    assert (exchanged.mean, exchanged.right) == (0.0, 0.0)


def test_the_best_threshold_is_found():
    maps, masks = squares()
    blurred = Maps(maps.objects + 2.0 * (np.arange(16) < 8), maps.rest)
    assert 2.0 <= best_threshold(blurred, masks) < 5.0


def test_enlarged_patches_keep_their_places():
    patches = torch.zeros(1, 1, 16)
    patches[0, 0, 4 * 1 + 2] = 1  # row 1, column 2
    rows, columns = np.unravel_index(int(enlarge(patches, 32)[0, 0].argmax()), (32, 32))
    assert 8 <= rows < 16
    assert 16 <= columns < 24


def test_attention_maps_come_in_the_order_of_the_objects_not_of_the_caption(data):
    """The map of an object is that of its own phrase."""
    model = fresh("oc-clip", data)
    pairs = [i for i, scene in enumerate(data.records.scenes) if len(scene.objects) == 2][:6]
    maps = attention_maps(model, data, pairs)
    assert maps.objects.shape == (len(pairs), 2, *data.images([0]).shape[-2:])
    for i, own in zip(pairs, maps.objects, strict=True):
        graph = data.records.graphs[i]
        for obj, expected in zip(data.records.scenes[i].objects, own, strict=True):
            node = graph.nodes.index(f"{obj.texture} {obj.animal}")
            direct = direct_map(model, data, i, node)
            assert np.allclose(direct, expected, atol=1e-4)


def test_attention_maps_raise_for_captions_without_a_node_for_each_object(data):
    scene = SimpleNamespace(objects=data.records.scenes[0].objects[:1] * 2)
    graph = SceneGraph(("two red cats", "city"))
    other = copy.copy(data)
    other.records = SimpleNamespace(scenes=[scene], graphs=[graph])
    with pytest.raises(UserError, match="its caption names two red cats, city; attention is measured on scenes of two"):
        nodes_of_objects(other, 0)


def direct_map(model, data, index, node):
    """One scene alone, straight from the scorer."""
    with torch.no_grad():
        images = model.encode_images(model.pixel_scale(data.images([index])))
        texts = model.encode_texts(model.read([data.records.captions[index]], [data.records.graphs[index]]))
        share = model.attention(images, texts)[:, node : node + 1]
    return enlarge(share / share.mean(), data.images([0]).shape[-1])[0, 0].numpy()


def test_dcsm_s_maps_are_the_mean_cosines_of_a_phrase_s_words(data):
    """By loops over the words of one scene's caption, each of which is a token."""
    model = fresh("dcsm", data)
    index = next(i for i, scene in enumerate(data.records.scenes) if len(scene.objects) == 2)
    maps, words = attention_maps(model, data, [index]), data.records.captions[index].split()
    with torch.no_grad():
        image = model.encode_images(model.pixel_scale(data.images([index])))[0]
        text = model.encode_texts(model.read([data.records.captions[index]], [data.records.graphs[index]])).vectors[0]
    for obj, found in zip(data.records.scenes[index].objects, maps.objects[0], strict=True):
        start = next(k for k in range(len(words)) if words[k : k + 2] == [obj.texture, obj.animal])
        values = [np.mean([float(patch @ text[k]) for k in (start, start + 1)]) for patch in image[1:]]
        above = torch.tensor(np.array(values) - min(values), dtype=torch.float32)[None, None]
        expected = enlarge(above / above.mean(), data.images([0]).shape[-1])[0, 0].numpy()
        assert np.allclose(found, expected, atol=1e-4)
    assert not maps.rest.any()
    with pytest.raises(UserError, match="lacks a phrase of green yak"):
        model.phrase_maps(image[None], [words[0]], [["green yak"]])
