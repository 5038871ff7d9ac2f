"""Crowd splits: what train shows, what tests ask, and planted faults that the audit must find; nothing is rendered."""

from dataclasses import replace
from functools import partial
from itertools import product
from math import log

import numpy as np
import pytest

from menagerie.envs.scene import Scene
from menagerie.envs.world import ANIMALS, TWELVE_TEXTURES
from menagerie.envs.worlds import load_world
from menagerie.generators.audit import balance, crowd_draws, crowd_texts, crowds
from menagerie.generators.audit.regeneration import recipe_of
from menagerie.generators.captions.crowds import caption_of, target
from menagerie.generators.captions.hard_negatives.swaps import exchanged, swap_exchanged
from menagerie.generators.cells import cells_of
from menagerie.generators.inspection.matrices import attribute_counts
from menagerie.generators.splits.crowd import CrowdRecipe
from menagerie.generators.splits.crowd_tests import deal_from, of_pairs
from menagerie.generators.splits.dealing import collect
from menagerie.generators.splits.dependence import normalised_mutual_information
from tests.helpers.planting import only, taken, with_subsets
from tests.helpers.splits import in_memory

SMALL = CrowdRecipe(world="eight-textures", train_scenes=240, test_scenes=24, views=2, test_views=2)
FULL = replace(
    SMALL, things=(1, 3), test_things=(2, 4), layout="overlap", relations_stated=1, searches=(3,), triplets=(1, 2)
)
PART = replace(SMALL, coverage=0.5, test_things=(2, 3), mentioned=0.8, attributes=0.9, salient=0.1, hard_negatives=0.05)
QUARTER = replace(SMALL, coverage=0.25, test_things=(3,))
RULED = replace(SMALL, test_things=(2, 3), hold_out=("texture=red & animal=rabbit", "pair={crow, camel}"))
SOUND = {"full": FULL, "part": PART, "rules": RULED}


def failed(check, split):
    return [finding.claim for finding in check(split) if not finding.holds]


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


def changed(split, name, change):
    """A split in which each scene of a subset is what `change` makes of it; texts stay."""
    records = split.subsets[name]
    return with_subsets(split, **{name: replace(records, scenes=list(map(change, records.scenes)))})


def first_thing(**fields):
    return lambda scene: replace(scene, things=(scene.things[0]._replace(**fields), *scene.things[1:]))


def retold(split, name, **texts_of):
    return with_subsets(split, **{name: replace(split.subsets[name], **texts_of)})


def of_two(scene: Scene) -> bool:
    return len(scene.things) == 2


def negatives_as_captions(split):
    r = split.subsets["seen_2"]
    return retold(split, "seen_2", captions=r.negatives, graphs=r.negative_graphs)


def captions_as_negatives(split):
    r = split.subsets["seen_2"]
    return retold(split, "seen_2", negatives=r.captions, negative_graphs=r.graphs)


def turned_relation(split):
    graphs = [
        g._replace(edges=tuple(e._replace(subject=e.object, object=e.subject) for e in g.edges))
        for g in split.subsets["seen_4"].graphs
    ]
    return retold(split, "seen_4", graphs=graphs)


def no_relations(split):
    return retold(split, "seen_4", graphs=[g._replace(edges=()) for g in split.subsets["seen_4"].graphs])


def longer_captions(split):
    return replace(split, recipe={**split.recipe, "things": (1, 2)})


def seen_as_unseen(split):
    return with_subsets(split, unseen_2=split.subsets["seen_2"])


def unseen_as_seen(split):
    return with_subsets(split, seen_2=split.subsets["unseen_2"])


def unseen_in_train(split):
    train, unseen = split.subsets["train"], split.subsets["unseen_2"]
    return with_subsets(split, train=replace(train, scenes=[*train.scenes[:-24], *unseen.scenes]))


def claimed(**fields):
    return lambda split: replace(split, recipe={**split.recipe, **fields})


def without(name, lost):
    return lambda split: only(split, lambda scene: not lost(scene), [name])


def hidden_everywhere(split):
    return replace(split, recipe={**split.recipe, "left_out": {"seen_2": list(range(100))}})


def skewed(split):
    """Train has single things alone, and each animal in one texture most of the time."""
    train, v = split.subsets["train"], split.vocabulary
    singles = [i for i, scene in enumerate(train.scenes) if len(scene.things) == 1]
    named = [(train.scenes[i].things[0].animal, train.scenes[i].things[0].texture) for i in singles]
    often = [i for i, pair in zip(singles, named, strict=True) if pair in set(zip(v.animals, v.textures, strict=True))]
    return with_subsets(split, train=taken(train, [*singles, *often * 60]))


def no_negatives(split):
    r = split.subsets["train"]
    return retold(split, "train", negatives=["" for _ in r.negatives])


def with_swaps(split):
    """The second half of a test is the swap of its first half."""
    r = split.subsets["seen_2"]
    half = r.scenes[: len(r) // 2]
    return with_subsets(split, seen_2=replace(r, scenes=[*half, *map(swap_exchanged, half)]))


def unseen_of(distances, others):
    """A test of unseen cells whose exchanged things, and whose others, have cells of these distances."""

    def plant(split):
        recipe, v = recipe_of(split), split.vocabulary
        cells, name = cells_of(split.recipe, v.animals, v.textures), "unseen_3"
        table = recipe.table(load_world(recipe.world), 3, cells.at(*others), name)
        choose = of_pairs(cells, cells.at(*distances), np.random.default_rng(0))
        scenes = collect(24, partial(deal_from, table, choose, 3), lambda scene: True, swap_exchanged)
        return with_subsets(split, **{name: replace(split.subsets[name], scenes=scenes)})

    return plant


def naming(named):
    """The split in which captions of a search name what `named` says of the target and the thing it exchanges with."""

    def plant(split):
        name = "search_conjunction_3"
        r, telling = split.subsets[name], recipe_of(split).telling
        graphs = [caption_of(s, (named(s, *target(s)),), telling).graph for s in r.scenes]
        return retold(split, name, graphs=graphs)

    return plant


def of_its_animal(scene, one, other):
    """A distractor of the target's animal, if there is one."""
    return next((thing for thing in scene.things if thing.animal == one.animal and thing != one), one)


targets_exchanged = naming(lambda scene, one, other: other)
distractors_named = naming(of_its_animal)


FAULTS = {
    "another place": (FULL, crowds.check_crowd_places, lambda s: changed(s, "seen_2", first_thing(slot="high left"))),
    "pairs' places": (FULL, crowds.check_crowd_places, lambda s: changed(s, "train", first_thing(slot="left"))),
    "another layout": (FULL, crowds.check_crowd_places, claimed(layout="rows")),
    "an animal twice": (PART, crowds.check_crowd_things, lambda s: changed(s, "seen_2", first_thing(animal="crow"))),
    "all textures alike": (
        PART,
        crowds.check_crowd_things,
        lambda s: changed(
            s,
            "train",
            lambda scene: replace(scene, things=tuple(thing._replace(texture="red") for thing in scene.things)),
        ),
    ),
    "triplets as a search": (
        FULL,
        crowds.check_crowd_things,
        lambda s: with_subsets(s, search_conjunction_3=s.subsets["triplets_2"]),
    ),
    "other triplets": (
        FULL,
        crowds.check_crowd_things,
        lambda s: with_subsets(s, triplets_1=s.subsets["triplets_2"]),
    ),
    "a feature as a conjunction": (
        FULL,
        crowds.check_crowd_things,
        lambda s: with_subsets(s, search_conjunction_3=s.subsets["search_feature_3"]),
    ),
    "fewer of two": (PART, crowds.check_crowd_numbers, without("train", of_two)),
    "more asked": (PART, crowds.check_crowd_numbers, claimed(train_scenes=300)),
    "a test of three in one of two": (
        PART,
        crowds.check_crowd_numbers,
        lambda s: with_subsets(s, seen_2=s.subsets["seen_3"]),
    ),
    "an empty test": (
        PART,
        crowds.check_crowd_numbers,
        lambda s: with_subsets(s, seen_2=taken(s.subsets["seen_2"], [])),
    ),
    "another coverage": (PART, crowds.check_crowd_cells, claimed(coverage=0.25)),
    "a cell is missing": (
        PART,
        crowds.check_crowd_cells,
        without("train", lambda s: any(t.animal == "crow" for t in s.things)),
    ),
    "unseen cells in train": (PART, crowds.check_crowd_cells, unseen_in_train),
    "seen cells as unseen": (PART, crowds.check_crowd_cells, seen_as_unseen),
    "unseen cells as seen": (PART, crowds.check_crowd_cells, unseen_as_seen),
    "some cells too often": (FULL, crowds.check_crowd_information, skewed),
    "more left out": (FULL, crowds.check_left_out, hidden_everywhere),
    "more swaps asked": (PART, crowds.check_crowd_swaps, claimed(hard_negatives=0.3)),
    "one background": (
        replace(SMALL, train_scenes=1200, test_things=(2,)),
        crowd_draws.check_crowd_draws,
        without("train", lambda s: s.background == "city" and s.things[0].slot == "front left"),
    ),
    "half a test": (PART, crowds.check_crowd_numbers, lambda s: only(s, lambda scene: scene.view == 2, ["seen_2"])),
    "a scene and its swap": (PART, crowds.check_crowd_apart, with_swaps),
    "validation is tested": (PART, crowds.check_crowd_apart, lambda s: with_subsets(s, validation=s.subsets["seen_2"])),
    "swaps of validation are tested": (
        PART,
        crowds.check_crowd_apart,
        lambda s: changed(with_subsets(s, validation=s.subsets["seen_2"]), "validation", swap_exchanged),
    ),
    "unseen cells of several classes": (QUARTER, crowds.check_unseen_cells, unseen_of((2, 3), (0,))),
    "others of several classes": (PART, crowds.check_unseen_cells, unseen_of((3,), (0, 1))),
    "another target": (FULL, crowd_texts.check_crowd_mentions, targets_exchanged),
    "a distractor as target": (FULL, crowd_texts.check_crowd_mentions, distractors_named),
    "captions are false": (FULL, crowd_texts.check_crowd_texts, negatives_as_captions),
    "negatives are true": (FULL, crowd_texts.check_crowd_texts, captions_as_negatives),
    "a relation is turned": (FULL, crowd_texts.check_crowd_texts, turned_relation),
    "negatives of another scene": (
        FULL,
        crowd_texts.check_crowd_texts,
        lambda s: changed(s, "seen_4", swap_exchanged),
    ),
    "no relation": (FULL, crowd_texts.check_crowd_mentions, no_relations),
    "captions too long": (FULL, crowd_texts.check_crowd_mentions, longer_captions),
    "negatives are missing": (FULL, crowd_texts.check_crowd_negatives, no_negatives),
    "more mentioned": (PART, crowd_texts.check_crowd_shares, claimed(mentioned=0.3)),
    "more textures": (PART, crowd_texts.check_crowd_shares, claimed(attributes=0.5)),
    "salient ones": (PART, crowd_texts.check_crowd_shares, claimed(salient=0.6)),
    "one answer": (
        replace(SMALL, test_scenes=200, test_things=(3,)),
        balance.check_balance,
        lambda s: only(s, lambda scene: len({*scene.things}) == 1 or one_first(scene), ["seen_3"]),
    ),
}


def one_first(scene):
    one, other = sorted((scene.things[i] for i in exchanged(scene)), key=lambda thing: thing.animal)
    return one.texture < other.texture


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    recipe, check, plant = FAULTS[fault]
    split = in_memory(recipe)
    assert failed(check, split) == []
    assert failed(check, plant(split))


@pytest.mark.parametrize(("share", "kept"), [(0.0, range(60, 240)), (0.3, range(0, 240, 2))])
def test_scenes_left_out_take_swaps_along_or_not(share, kept):
    split = in_memory(replace(SMALL, hard_negatives=share))
    left = sorted(set(range(240)) - set(kept))
    fewer = with_subsets(split, train=taken(split.subsets["train"], kept))
    assert failed(crowds.check_crowd_swaps, claimed(left_out={"train": left})(fewer)) == []


FEW = replace(SMALL, world="eight-textures", views=1, things=(2,), train_scenes=1500, layout="overlap")


@pytest.mark.parametrize("recipe", [FEW, replace(FEW, coverage=0.5), replace(FEW, hard_negatives=0.3)])
def test_few_possible_scenes_have_their_swaps_by_chance(recipe):
    split = in_memory(recipe)
    assert failed(crowds.check_crowd_swaps, split) == []
    share = recipe.hard_negatives
    for other in (share + 0.1, max(share - 0.1, 0.0)):
        assert other == share or failed(crowds.check_crowd_swaps, claimed(hard_negatives=other)(split))
