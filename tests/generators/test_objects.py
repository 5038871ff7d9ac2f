"""Objects held out of binding splits: a Latin square, tests of unseen ones, and planted faults; nothing is rendered."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from menagerie.envs.worlds import load_world
from menagerie.generators.audit import candidates, held_out, objects
from menagerie.generators.audit.draws import check_drawn
from menagerie.generators.audit.findings import bare
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.splits.binding import TESTS, BindingRecipe
from menagerie.generators.splits.objects import in_order, shown_objects
from menagerie.generators.storage.split_file import recorded, split_name
from tests.helpers.planting import joined, only, with_subsets
from tests.helpers.splits import in_memory

PLAIN = BindingRecipe(pairs=0.4, views=1, test_views=1, test_scenes=60)
SMALL = replace(PLAIN, objects=0.75)


def cells(scene):
    return {thing[:2] for thing in scene.things}


@pytest.mark.parametrize(("animals", "textures"), [(20, 4), (20, 12), (8, 3), (3, 5)])
def test_every_share_is_even_and_nested(animals, textures):
    names = [f"a{i}" for i in range(animals)], [f"t{i}" for i in range(textures)]
    order = in_order(*names)
    assert sorted(order) == sorted(product(*names))
    for number in range(1, len(order) + 1):
        for part, allowed in ((0, 1), (1, 2)):
            counts = Counter(cell[part] for cell in order[:number])
            assert max(counts[name] for name in names[part]) - min(counts[name] for name in names[part]) <= allowed


def test_tests_show_no_one_and_two_unseen_objects():
    """In their scenes or in the swaps of these: otherwise texts alone would tell."""
    split, shown = in_memory(SMALL), shown_objects(load_world("pug"), 0.75, 0)
    assert SMALL.tests == (*TESTS, "one_unseen_object", "two_unseen_objects")
    for name in (*SMALL.tests, "validation"):
        number = {"one_unseen_object": 1, "two_unseen_objects": 2}.get(name, 0)
        scenes = split.subsets[name].scenes
        unseen = [[len(cells(one) - shown) for one in (scene, swap_textures(scene))] for scene in scenes]
        assert all(max(both) == number for both in unseen)
        assert scenes or name == "train_pairs"
    every = in_memory(replace(SMALL, test_scenes=100_000)).subsets
    for name in ("one_unseen_object", "two_unseen_objects"):
        tested = set(map(bare, every[name].scenes))
        assert tested == set(map(swap_textures, tested)), "with a scene its swap"
        assert any(cells(scene) <= shown for scene in tested)


def test_the_default_changes_nothing():
    assert "objects" not in recorded(PLAIN)
    assert split_name(PLAIN) == "binding-p0.4-n0-s0-3e580391.h5"
    assert PLAIN.tests == TESTS


def claimed(split):
    return replace(split, recipe={**split.recipe, "objects": 0.9})


def unseen_in_train(split):
    """Train shows what a test of unseen objects shows."""
    more = split.subsets["two_unseen_objects"]
    return with_subsets(split, train=joined(split.subsets["train"], more))


def without_animal_in_a_texture(split):
    """Train lacks one more object: another animal has fewer."""
    lost = ("cat", next(t for t in ("red", "white") if ("cat", t) in objects.shown_objects(split)))
    return only(split, lambda scene: lost not in cells(scene), ["train"])


def without_one_texture(split):
    return only(split, lambda scene: not any(t.texture == "red" for t in scene.things), ["train"])


def exchanged_tests(split):
    one, two = (split.subsets[name] for name in ("one_unseen_object", "two_unseen_objects"))
    return with_subsets(split, one_unseen_object=two, two_unseen_objects=one)


def unseen_elsewhere(split):
    return with_subsets(split, different_bag=split.subsets["one_unseen_object"])


def validation_tested(split):
    return with_subsets(split, validation=split.subsets["two_unseen_objects"])


def a_single_lost(split):
    return only(split, lambda scene: len(scene.things) > 1 or scene.background != "city", ["train"])


def one_animal_lost(split):
    return only(split, lambda scene: "cat" not in {t.animal for t in scene.things}, ["one_unseen_object"])


FAULTS = {
    "another share": (objects.check_objects, claimed),
    "unseen objects in train": (objects.check_objects, unseen_in_train),
    "an object is missing": (objects.check_objects, without_animal_in_a_texture),
    "a texture is missing": (objects.check_objects, without_one_texture),
    "tests are exchanged": (objects.check_objects, exchanged_tests),
    "unseen objects in another test": (objects.check_objects, unseen_elsewhere),
    "pairs of validation are tested": (objects.check_objects, validation_tested),
    "a single scene is missing": (held_out.check_single_objects, a_single_lost),
    "an animal is missing in a test": (check_drawn, one_animal_lost),
    "a test of another kind": (check_drawn, exchanged_tests),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    check, plant = FAULTS[fault]
    split = in_memory(SMALL)
    assert all(finding.holds for finding in check(split))
    assert not all(finding.holds for finding in check(plant(split)))


def test_candidates_count_all_scenes_of_a_test():
    whole = {test.name: test for test in candidates.candidates(in_memory(replace(SMALL, test_scenes=100_000)))}
    for name in ("one_unseen_object", "two_unseen_objects", "unseen_pairs"):
        assert len(whole[name].scenes) == sum(map(len, whole[name].strata.values()))
