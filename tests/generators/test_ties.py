"""Gaps and ties are found without making the split again: each check gets a split as a bug of the generator leaves it.

Every fault leaves a split well-formed: true texts, views and scenes of its kind, and in tests as many records as the
recipe says, drawn from those that the fault leaves.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.scene import Scene
from menagerie.generators.audit.balance import check_balance
from menagerie.generators.audit.draws import check_drawn, check_pair_draws
from menagerie.generators.audit.held_out import (
    check_dependence_crossed,
    check_numbers_crossed,
    check_pairs_crossed,
    check_single_objects,
)
from menagerie.generators.audit.run import CHECKS, CHECKS_OF
from menagerie.generators.audit.scene_draws import check_scene_draws
from menagerie.generators.audit.sequence import check_sequence
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.split_file import Split, describe
from tests.helpers.cutout_files import draw, world_of
from tests.helpers.planting import joined, only, taken, with_subsets
from tests.helpers.splits import in_memory

# Tests have all scenes, for a fault to draw from.
ALL = {"world": "eight", "test_scenes": 10_000, "test_views": 2}
BINDING = BindingRecipe(**ALL, pairs=0.8, hard_negatives=0.5, views=2, singles_views=1)
PHRASED = replace(BINDING, template="free-conjunction", views=1, test_views=1)
SIZED = BindingRecipe(world="tiny-sizes", test_scenes=10, pairs=1.0, views=8, singles_views=1)
PARTIAL = replace(BINDING, singles_views=2, test_scenes=10, attributes=0.6, mentioned=0.7, negated=0.4)
HELD = replace(BINDING, views=1, pairs=0.4, hold_out=("texture=red & animal=penguin",))
SPATIAL = SpatialRecipe(**ALL, pairs=0.6, views=1, relations=("above/under",))
FEW = {"world": "twelve", "test_scenes": 40, "pairs": 1.0, "views": 1, "test_views": 2}
MORE_PAIRS = BindingRecipe(**FEW)
MORE_ORDERS = SpatialRecipe(**FEW | {"test_scenes": 10_000, "test_views": 1}, relations=("left/right",))
DEPENDENCE = DependenceRecipe(**ALL | {"test_views": 4}, views=2)
COUNTING = CountingRecipe(**ALL, views=3)


def drawn(split: Split, keep: Callable[[Scene], bool] = lambda scene: True, most: int = 150) -> Split:
    """The split with tests that are drawn at random from those of their scenes that are to be kept, all of one size."""
    tests = {name: r for name, r in split.subsets.items() if name != "train"}
    kept = {name: [i for i, scene in enumerate(r.scenes) if keep(scene)] for name, r in tests.items()}
    most, random = min(most, *map(len, kept.values())), np.random.default_rng(0)
    its = {name: taken(r, sorted(random.choice(kept[name], most, replace=False))) for name, r in tests.items()}
    return with_subsets(replace(split, recipe={**split.recipe, "test_scenes": most}), **its)


def trained(split: Split, keep: Callable[[Scene], bool]) -> Split:
    """The split with a part of train."""
    return only(split, keep, ["train"])


def repainted(split: Split, paint: Callable[[Scene], Scene], name: str = "train") -> Split:
    """The split with other scenes in a subset, with their own texts."""
    from menagerie.generators.audit.regeneration import recipe_of

    scenes = [paint(scene) for scene in split.subsets[name].scenes]
    return with_subsets(split, **{name: describe("train", scenes, dict.fromkeys(scenes, 0), recipe_of(split))})


def shows(scene: Scene, *words: str) -> bool:
    """Whether one thing of a scene has all of some words."""
    return any(set(words) <= set(thing) for thing in scene.things)


def pair(scene: Scene) -> bool:
    return len(scene.things) > 1


def one_pair(split):
    return frozenset(thing.animal for thing in next(filter(pair, split.subsets["train"].scenes)).things)


# Train


def pair_tied_to_a_background(split):
    own = one_pair(split)
    return trained(split, lambda s: {t.animal for t in s.things} != own or s.background == "city")


def red_tied_to_a_background(split):
    return trained(split, lambda s: not (pair(s) and shows(s, "red")) or s.background == "city")


def red_on_the_left(split):
    return trained(split, lambda s: not pair(s) or s.things[1].texture != "red")


def hard_negatives_in_one_view(split):
    """The second assignment of a pair, on other backgrounds and views than its first one."""
    first = {}
    for scene in filter(pair, split.subsets["train"].scenes):
        first.setdefault(frozenset(t.animal for t in scene.things), {t[:2] for t in scene.things})

    def so(s):
        hard = pair(s) and first[frozenset(t.animal for t in s.things)] != {t[:2] for t in s.things}
        return not hard or s.view == 1

    return trained(split, so)


def order_without_a_texture(split):
    own = tuple(t.animal for t in next(filter(pair, split.subsets["train"].scenes)).things)
    return trained(split, lambda s: tuple(t.animal for t in s.things) != own or s.things[0].texture != "red")


def single_in_one_view(split):
    return trained(split, lambda s: pair(s) or not shows(s, "red", "crow") or s.view == 0)


def three_in_the_city_only(split):
    return trained(split, lambda s: len(s.things) != 3 or s.background == "city")


def pairs_in_the_desert_one_way(split):
    return trained(split, lambda s: not pair(s) or s.background != "desert" or s.things[0] < s.things[1])


def painted_by_background(split):
    """Each animal has its textures as often as it should, sorted by background."""
    return repainted(split, sorter(split, lambda scene, thing: scene.background))


def painted_by_place(split):
    return repainted(split, sorter(split, lambda scene, thing: thing.slot))


def sorter(split, by):
    things = [(t.animal, by(s, t), s, t) for s in split.subsets["train"].scenes for t in s.things]
    worn = {}
    for animal in split.vocabulary.animals:
        textures = sorted(t.texture for name, *_, t in things if name == animal)
        own = sorted((its for its in things if its[0] == animal), key=lambda its: its[1])
        worn |= {(s, t): texture for texture, (*_, s, t) in zip(textures, own, strict=True)}
    return lambda s: replace(s, things=tuple(t._replace(texture=worn[s, t]) for t in s.things))


def orders_of_the_alphabet(split):
    """In train the first animal in the alphabet is above."""

    def so(s):
        animals = sorted(t.animal for t in s.things)
        return replace(s, things=tuple(t._replace(animal=a) for t, a in zip(s.things, animals, strict=True)))

    return repainted(split, so)


def red_on_the_first_animal(split):
    """Of the two textures of a training pair the first in the alphabet is on the first animal."""

    def so(s):
        animals, textures = (sorted(getattr(t, field) for t in s.things) for field in ("animal", "texture"))
        worn = dict(zip(animals, textures, strict=True))
        return replace(s, things=tuple(t._replace(texture=worn[t.animal]) for t in s.things))

    return repainted(split, so)


# Tests


def no_camel(split):
    return drawn(split, lambda s: not shows(s, "camel"))


def one_background(split):
    return drawn(split, lambda s: s.background == "city")


def one_view(split):
    return drawn(split, lambda s: s.view == split.recipe["views"])


def no_red(split):
    return drawn(split, lambda s: not shows(s, "red"))


def elephant_first(split):
    return drawn(split, lambda s: s.things[1].animal != "elephant")


def red_animal_in_a_view(split):
    """In one view the first animal in the alphabet has the first texture in the alphabet: the answer."""

    def so(s):
        one, other = sorted(s.things)
        return s.view != 3 or one.texture < other.texture

    return drawn(split, so)


def records_of_one_pair(split):
    """All records of the test of unseen pairs: as many as were drawn."""
    its = split.subsets["unseen_pairs"]
    own = {t.animal for t in its.scenes[0].things}
    kept = taken(its, [i for i, s in enumerate(its.scenes) if {t.animal for t in s.things} == own])
    return with_subsets(drawn(split, most=len(kept)), unseen_pairs=kept)


def only_two_and_three(split):
    return drawn(split, lambda s: len(s.things) in (2, 3))


def small_in_the_held_out_test(split):
    return drawn(split, lambda s: not shows(s, "penguin", "white"))


def empty_test(split):
    return with_subsets(drawn(split), seen_pairs=taken(split.subsets["seen_pairs"], []))


def half_a_test(split):
    its = drawn(split)
    return with_subsets(its, different_bag=taken(its.subsets["different_bag"], range(0, its.recipe["test_scenes"], 2)))


def more_unseen_pairs(split):
    """Pairs of validation among the unseen ones; nothing of either is in train."""
    own, other = split.subsets["unseen_pairs"], split.subsets["validation"]
    return with_subsets(split, unseen_pairs=joined(own, taken(other, range(len(other) // 2))))


def textures_of_no_recipe(split):
    """Pairs of train in the textures of another pair."""
    r = split.subsets["seen_pairs"]
    worn = {"red": "white", "white": "grass", "grass": "red"}
    scenes = [replace(s, things=tuple(t._replace(texture=worn[t.texture]) for t in s.things)) for s in r.scenes]
    return with_subsets(split, seen_pairs=replace(r, scenes=scenes))


# What is drawn for each scene


def phrasing_tells_the_answer(split):
    """Some phrasings where the first animal in the alphabet has the first texture in the alphabet, else others."""

    def so(s, text):
        one, other = sorted(s.things)
        return (one.texture < other.texture) == text.startswith("a photo")

    return kept_texts(split, "different_bag", so)


def phrasing_tells_the_background(split):
    return kept_texts(split, "different_bag", lambda s, text: (s.background == "city") == text.startswith("an image"))


def crow_mentioned_last(split):
    return kept_texts(split, "different_bag", lambda s, text: not text.partition("crow")[2].startswith(" and"))


def kept_texts(split, name, keep):
    r = split.subsets[name]
    rows = zip(r.scenes, r.captions, strict=True)
    return with_subsets(split, **{name: taken(r, [i for i, row in enumerate(rows) if keep(*row)])})


def small_ones_are_red(split):
    return trained(split, lambda s: not pair(s) or all((t.texture == "red") <= (t.size == "small") for t in s.things))


def crow_faces_outward(split):
    return trained(split, lambda s: all(t.animal != "crow" or "outward" in t.slot for t in s.things if pair(s)))


def two_of_an_animal_stand_below(split):
    own = one_pair(split)

    def so(s):
        if len(s.things) != 2 or s.things[0].animal not in own:
            return s
        below = zip(s.things, ("lower left", "lower right"), strict=True)
        return replace(s, things=tuple(t._replace(slot=slot) for t, slot in below))

    return repainted(split, so)


def textures_left_out_in_the_city(split):
    return with_subsets(split, train=said(split, lambda s, text: s.background != "city" or not told(s, text)))


def told(scene, text):
    return any(thing.texture in text for thing in scene.things)


def negations_in_the_city(split):
    return with_subsets(split, train=said(split, lambda s, text: s.background != "city" or " no " in text))


def said(split, keep):
    return kept_texts(split, "train", keep).subsets["train"]


# The order of records


def sorted_by_answer(split):
    def answer(s):
        one, other = sorted(s.things)
        return one.texture < other.texture

    r = split.subsets["unseen_pairs"]
    return with_subsets(split, unseen_pairs=taken(r, sorted(range(len(r)), key=lambda i: answer(r.scenes[i]))))


def orders_sorted_by_answer(split):
    """Whole orders, on each background: only their sequence says the answer."""
    name = "left_right_unseen_order"
    r = split.subsets[name]

    def where(i):
        s = r.scenes[i]
        return s.view, split.vocabulary.backgrounds.index(s.background), s.things[0].animal < s.things[1].animal

    return with_subsets(split, **{name: taken(r, sorted(range(len(r)), key=where))})


def numbers_ascending(split):
    r = split.subsets["seen_counts"]
    return with_subsets(split, seen_counts=taken(r, sorted(range(len(r)), key=lambda i: len(r.scenes[i].things))))


def two_records_exchanged(split):
    r = split.subsets["seen_textures"]
    return with_subsets(split, seen_textures=taken(r, [1, 0, *range(2, len(r))]))


FAULTS = [
    (BINDING, pair_tied_to_a_background, check_pairs_crossed, "every pair of train"),
    (BINDING, red_tied_to_a_background, check_pairs_crossed, "every pair of train"),
    (BINDING, red_on_the_left, check_pairs_crossed, "every pair of train"),
    (BINDING, hard_negatives_in_one_view, check_pairs_crossed, "every pair of train"),
    (SPATIAL, order_without_a_texture, check_pairs_crossed, "every pair of train"),
    (SPATIAL, pair_tied_to_a_background, check_pairs_crossed, "every pair of train"),
    (PARTIAL, single_in_one_view, check_single_objects, "in all its views"),
    (COUNTING, three_in_the_city_only, check_numbers_crossed, "every counted animal"),
    (DEPENDENCE, pairs_in_the_desert_one_way, check_dependence_crossed, "both orders"),
    (DEPENDENCE, painted_by_background, check_pair_draws, "drawn whatever"),
    (DEPENDENCE, painted_by_place, check_pair_draws, "drawn whatever"),
    (MORE_ORDERS, orders_of_the_alphabet, check_pair_draws, "drawn whatever"),
    (MORE_PAIRS, red_on_the_first_animal, check_pair_draws, "drawn whatever"),
    (BINDING, no_camel, check_drawn, "evenly"),
    (SPATIAL, no_camel, check_drawn, "evenly"),
    (COUNTING, no_camel, check_drawn, "evenly"),
    (BINDING, one_background, check_drawn, "evenly"),
    (SPATIAL, one_background, check_drawn, "evenly"),
    (DEPENDENCE, one_background, check_drawn, "evenly"),
    (COUNTING, one_background, check_drawn, "evenly"),
    (BINDING, one_view, check_drawn, "evenly"),
    (DEPENDENCE, one_view, check_drawn, "evenly"),
    (HELD, one_view, check_drawn, "evenly"),
    (BINDING, no_red, check_drawn, "evenly"),
    (BINDING, elephant_first, check_drawn, "evenly"),
    (DEPENDENCE, elephant_first, check_drawn, "evenly"),
    (BINDING, records_of_one_pair, check_drawn, "evenly"),
    (COUNTING, only_two_and_three, check_drawn, "evenly"),
    (HELD, small_in_the_held_out_test, check_drawn, "evenly"),
    (BINDING, empty_test, check_drawn, "as many as it says"),
    (BINDING, half_a_test, check_drawn, "as many as it says"),
    (BINDING, more_unseen_pairs, check_drawn, "every scene of a test"),
    (BINDING, textures_of_no_recipe, check_drawn, "every scene of a test"),
    (BINDING, red_animal_in_a_view, check_balance, "answers depend"),
    (PHRASED, phrasing_tells_the_answer, check_scene_draws, "go with nothing"),
    (PHRASED, phrasing_tells_the_background, check_scene_draws, "go with nothing"),
    (BINDING, crow_mentioned_last, check_scene_draws, "go with nothing"),
    (SIZED, small_ones_are_red, check_scene_draws, "go with nothing"),
    (BINDING, crow_faces_outward, check_scene_draws, "go with nothing"),
    (COUNTING, two_of_an_animal_stand_below, check_scene_draws, "go with nothing"),
    (PARTIAL, textures_left_out_in_the_city, check_scene_draws, "go with nothing"),
    (PARTIAL, negations_in_the_city, check_scene_draws, "go with nothing"),
    (BINDING, sorted_by_answer, check_sequence, "records stand"),
    (COUNTING, numbers_ascending, check_sequence, "records stand"),
    (DEPENDENCE, two_records_exchanged, check_sequence, "records stand"),
    (MORE_ORDERS, orders_sorted_by_answer, check_pair_draws, "drawn whatever"),
]


@pytest.mark.parametrize(
    ("recipe", "fault", "check", "claim"), FAULTS, ids=[f"{recipe.kind} {its.__name__}" for recipe, its, *_ in FAULTS]
)
def test_a_tie_or_a_gap_is_found(recipe, fault, check, claim):
    sound = in_memory(recipe)
    assert [its for its in check(drawn(sound) if check is check_drawn else sound) if not its.holds] == []
    failed = [its for its in check(fault(sound)) if not its.holds]
    assert [its for its in failed if claim in its.claim], failed


TINY = {"world": "tiny", "pairs": 1.0, "views": 1, "test_scenes": 30}
NO_TESTS = {"world": "tiny", "pairs": 0.5, "test_views": 1, "test_scenes": 5}
SOUND = {
    "smoke": BindingRecipe(**NO_TESTS),
    "spatial smoke": SpatialRecipe(**NO_TESTS),
    "counting smoke": CountingRecipe(**NO_TESTS),
    "one record": BindingRecipe(**TINY | {"test_scenes": 1}),
    "one view, all scenes": BindingRecipe(**TINY | {"test_scenes": 1000, "test_views": 1}),
    "no pairs": BindingRecipe(**TINY | {"pairs": 0.0}),
    "salient": BindingRecipe(**TINY, salient=0.7),
    "salient by size": BindingRecipe(**TINY | {"world": "tiny-sizes"}, salient=0.7, mentioned=0.5, attributes=0.5),
    "no reserve, no validation": BindingRecipe(**TINY, reserve=0.0, validation=0.0),
    "one background is left": BindingRecipe(**TINY, hold_out=("background=city",)),
    "a group": BindingRecipe(**TINY, groups=("land={elephant, rabbit}",), hold_out=("animal=land & texture=red",)),
    "a place": SpatialRecipe(**TINY, hold_out=("slot=under & animal=rabbit", "texture[0]=texture[1]")),
    "sizes held out": BindingRecipe(**TINY | {"world": "tiny-sizes"}, hold_out=("size=small & animal=rabbit",)),
    "seen orders": SpatialRecipe(**TINY, hard_negatives=0.5, seen_order=True, unseen_under="own", singles_views=1),
    "dependence": DependenceRecipe(**TINY | {"views": 6}, information=0.34, seed=3),
    "most dependence": DependenceRecipe(**TINY | {"views": 6}, information=0.891),
    "counting in sizes": CountingRecipe(**TINY | {"world": "tiny-sizes"}),
}


@pytest.mark.parametrize("name", SOUND)
def test_small_sound_splits_pass(name):
    """Those of few records, and those whose recipes ask for a tie."""
    assert failed(in_memory(SOUND[name])) == []


def failed(split):
    checks = (*CHECKS, *CHECKS_OF[split.recipe["kind"]])
    return [finding for check in checks for finding in check(split) if not finding.holds]


def test_a_world_of_cutouts_passes(tmp_path):
    """They have one texture, and here one background."""
    entries = "".join(
        f'[animal.{name}]\ncutouts = ["{draw(tmp_path / f"{name}.png").name}"]\ntexture = "own"\n'
        for name in ("ox", "yak", "gnu")
    )
    world = world_of(tmp_path, entries, '["ox", "yak", "gnu"]', 'backgrounds = ["city"]')
    for recipe in (SpatialRecipe(**TINY | {"world": world}), CountingRecipe(**TINY | {"world": world})):
        assert failed(in_memory(recipe)) == []
