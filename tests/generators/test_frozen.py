"""Frozen benchmarks: their files say all that decides them, and this machine makes what their digests say."""

import hashlib
import tomllib
from dataclasses import fields
from functools import cache

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.frozen.benchmark import Digests, load_frozen
from menagerie.generators.frozen.digests import check_digests, digest_of_rows, digests_of, scene_row
from menagerie.generators.splits.recipe_file import FROZEN, read_recipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.folder import SplitFolder
from tests.helpers.splits import of_planned

# Digests of the images of the first record of each test and of its counterfactual.
SAMPLES = {
    "binding-2": "58eb15e71aaa4ce0",
    "spatial-2": "c956549672754e7c",
    "multi-object-2": "607b06cdf7557d2c",
}


@cache
def scenes_of_tests(name):
    """The scenes of the tests of a benchmark."""
    return load_frozen(name).tested()


@cache
def unrendered(name):
    """The tests of a benchmark in memory, with nothing rendered."""
    bench = load_frozen(name)
    split = of_planned(bench.recipe, scenes_of_tests(name))
    return {name: SplitTests(SplitDataset(split, name, preload=False)) for name in bench.recipe.all_tests}


@pytest.mark.parametrize("name", FROZEN)
def test_a_file_writes_out_every_field_so_that_no_default_can_move_it(name):
    recipe = tomllib.loads(FROZEN[name].read_text())["recipe"]
    bench = load_frozen(name)
    assert recipe.pop("kind") == bench.recipe.kind
    assert recipe.keys() == {item.name for item in fields(bench.recipe)}
    assert read_recipe(name) == bench.recipe
    assert len(bench.digest) == 12
    assert name.endswith(f"-{bench.version}")


@pytest.mark.parametrize("name", FROZEN)
def test_scenes_and_texts_are_those_of_the_digests(name):
    bench, tests = load_frozen(name), unrendered(name)
    items = [(subset, item) for subset, test in tests.items() for item in test.items]
    assert digest_of_rows(scene_row(*both) for both in items) == bench.parts.scenes
    texts = ((subset, item.record, item.task, item.texts) for subset, item in items)
    assert digest_of_rows(texts) == bench.parts.texts


@pytest.mark.parametrize("name", FROZEN)
def test_a_sample_of_the_images_has_the_bytes_that_it_had(name, tmp_path):
    """The command compares all of them."""
    bench = load_frozen(name)
    chosen = [scene for scenes in scenes_of_tests(name).values() for scene in scenes[:1]]
    store = SplitFolder(tmp_path, load_world(bench.recipe.world), bench.resolution)
    images, _ = store.renderer(1).render([each for scene in chosen for each in (scene, bench.recipe.swap(scene))])
    assert hashlib.sha256(images.tobytes()).hexdigest()[:16] == SAMPLES[name]


def test_what_differs_is_named():
    bench = load_frozen("binding-2")
    check_digests(bench, bench.parts)
    for part in Digests._fields:
        with pytest.raises(UserError, match=rf"binding-2: its {part} here differ .*{part} 0000"):
            check_digests(bench, bench.parts._replace(**{part: "0000"}))
    with pytest.raises(UserError, match="its scenes and texts and pixels here differ"):
        check_digests(bench, Digests("0", "0", "0"))


def test_one_byte_of_a_counterfactuals_image_changes_the_digest_of_pixels():
    kept = {"seen_pairs": unrendered("binding-2")["seen_pairs"]}
    data = kept["seen_pairs"].data
    data.pictures = Pictures(np.arange(12 * len(data.records.columns["view"])).astype(np.uint8).reshape(-1, 2, 2, 3))
    before = digests_of(kept)
    data.pictures.pixels[data.records.counterfactual[7], 1, 1, 2] ^= 1
    after = digests_of(kept)
    assert (before.scenes, before.texts) == (after.scenes, after.texts)
    assert before.pixels != after.pixels


class Pictures:
    """Images of 2 x 2 pixels that were made here."""

    def __init__(self, pixels):
        self.pixels = pixels

    def images(self, subset, rows):
        return self.pixels[rows]
