"""Crowd splits: what train shows, what tests ask, and planted faults that the audit must find; nothing is rendered."""

from collections import Counter
from dataclasses import replace
from itertools import product
from math import log

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.layouts import relations_of
from menagerie.envs.world import ANIMALS, TWELVE_TEXTURES
from menagerie.generators.audit.run import check_records
from menagerie.generators.captions.hard_negatives.swaps import exchanged, swap_exchanged
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.cells import cells_of
from menagerie.generators.inspection.matrices import attribute_counts
from menagerie.generators.splits.crowd import CrowdRecipe
from menagerie.generators.splits.dependence import normalised_mutual_information
from tests.helpers.splits import in_memory

SMALL = CrowdRecipe(world="eight-textures", train_scenes=240, test_scenes=24, views=2, test_views=2)
FULL = replace(
    SMALL, things=(1, 3), test_things=(2, 4), layout="overlap", relations_stated=1, searches=(3,), triplets=(1, 2)
)
PART = replace(SMALL, coverage=0.5, test_things=(2, 3), mentioned=0.8, attributes=0.9, salient=0.1, hard_negatives=0.05)
QUARTER = replace(SMALL, coverage=0.25, test_things=(3,))
RULED = replace(SMALL, test_things=(2, 3), hold_out=("texture=red & animal=rabbit", "pair={crow, camel}"))
SOUND = {"full": FULL, "part": PART, "rules": RULED}


@pytest.mark.parametrize("name", SOUND)
def test_sound_splits_pass(name):
    split = in_memory(SOUND[name])
    assert [finding for finding in check_records(split) if not finding.holds or finding.skipped] == []


@pytest.mark.parametrize("quarters", [1, 2, 3, 4])
def test_coverage_is_nested_and_has_its_information(quarters):
    recipe = CrowdRecipe(train_scenes=1200, coverage=quarters / 4, test_things=(2,), test_scenes=20)
    split = in_memory(recipe)
    cells = cells_of(vars(recipe), ANIMALS, TWELVE_TEXTURES)
    table = attribute_counts(split.subsets["train"].scenes, split.vocabulary, "texture")
    expected = -2 * log(quarters / 4) / (log(20) + log(12))
    assert normalised_mutual_information(table) == pytest.approx(expected, abs=0.01)
    assert set(zip(*table.nonzero(), strict=True)) == {
        (i, k) for (i, a), (k, t) in product(enumerate(ANIMALS), enumerate(TWELVE_TEXTURES)) if cells.seen(a, t)
    }
    more = cells_of(vars(recipe) | {"coverage": 1.0}, ANIMALS, TWELVE_TEXTURES)
    assert cells.at(*range(quarters)) == more.at(*range(quarters))
    if quarters < 4:
        fewest = in_memory(replace(recipe, coverage=0.25))
        assert split.subsets["unseen_2"].scenes == fewest.subsets["unseen_2"].scenes, "the same test at every coverage"


def test_numbers_places_and_cells_are_even():
    scenes = in_memory(replace(SMALL, train_scenes=2400)).subsets["train"].scenes
    numbers = Counter(len(scene.things) for scene in scenes)
    assert set(numbers.values()) == {800}
    for number in numbers:
        things = [thing for scene in scenes if len(scene.things) == number for thing in scene.things]
        for field in ("animal", "texture", "slot"):
            counts = Counter(getattr(thing, field) for thing in things).values()
            assert max(counts) - min(counts) <= 0.1 * max(counts)


def test_a_swap_is_its_own_inverse_and_exchanges_alike_cells():
    split = in_memory(PART)
    cells = cells_of(split.recipe, split.vocabulary.animals, split.vocabulary.textures)
    for name in PART.tests:
        for scene in split.subsets[name].scenes:
            swap = swap_exchanged(scene)
            assert swap_exchanged(swap) == scene != swap
            both = {thing for i in exchanged(scene) for thing in (scene.things[i], swap.things[i])}
            assert {cells.seen(*thing[:2]) for thing in both} == {name.startswith("seen")}
    with pytest.raises(ValueError, match="nothing to exchange"):
        swap_exchanged(next(s for s in split.subsets["train"].scenes if len(s.things) == 1))


def test_chains_state_true_relations():
    split = in_memory(replace(FULL, relations_stated=3, things=(2, 4), test_things=(4,), searches=(), triplets=()))
    for scene, graph in zip(split.subsets["seen_4"].scenes, split.subsets["seen_4"].graphs, strict=True):
        stated = {frozenset(both[1:]): both for both in relations_of(scene)}
        place = {phrase(thing): i for i, thing in enumerate(scene.things)}
        assert len(graph.edges) == 3
        assert " that is " in next(iter(split.subsets["seen_4"].captions))
        for edge in graph.edges:
            ends = [place[graph.nodes[end]] for end in edge[1:]]
            name, first, _ = stated[frozenset(ends)]
            words = {
                "left/right": ("left", "right"),
                "above/under": ("above", "under"),
                "front/behind": ("front", "behind"),
            }
            assert words[name][ends[0] != first] in edge.predicate


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coverage": 0.3}, "no multiple of 1/4; choose 0.25, 0.5, 0.75, 1"),
        ({"pairs": 0.5}, "pairs must be 1"),
        ({"hard_negatives": 0.6}, "at most 0.5"),
        ({"template": "statement-conjunction", "relations_stated": 1}, "can't state relations"),
        ({"world": "eight"}, "need 6 textures, but world 'eight' has 3"),
        ({"coverage": 0.2, "classes": 5}, "5 classes need 10 animals and textures each"),
        ({"train_scenes": 20}, "of the 64 combinations of animal and texture that coverage 1 means; raise it"),
        ({"train_scenes": 900_000, "views": 1}, "world 'eight-textures' gives about"),
        ({"coverage": 0.5, "hard_negatives": 0.4}, "lower it to 0.1"),
        ({"hold_out": ("animal=rabbit & count=7",), "test_things": (2,)}, "matches no scene that was dealt"),
    ],
)
def test_impossible_recipes_are_refused(change, words, monkeypatch):
    monkeypatch.setattr("menagerie.generators.splits.dealing.TRIES", 200)
    with pytest.raises(UserError, match=words):
        replace(SMALL, **change).subsets()
