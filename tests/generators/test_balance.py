"""Balance, ties and text-only cues: sound splits of every kind pass, lopsided ones don't."""

from dataclasses import replace

import numpy as np
import pytest

from menagerie.generators.audit.balance import all_contrasts, check_balance
from menagerie.generators.audit.cues import check_cues, check_order
from menagerie.generators.audit.draws import check_drawn, check_pair_draws
from menagerie.generators.audit.run import CHECKS_OF
from menagerie.generators.audit.scene_draws import check_scene_draws
from menagerie.generators.audit.sequence import check_sequence
from menagerie.generators.audit.statistics import bound, signed
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from tests.helpers.planting import only, with_subsets
from tests.helpers.splits import in_memory

BINDING = BindingRecipe(world="eight", pairs=0.4, hard_negatives=0.5, views=2, singles_views=1, test_scenes=200)
SPATIAL = SpatialRecipe(world="eight", pairs=0.2, views=1, test_scenes=200)
DEPENDENCE = DependenceRecipe(world="eight", views=2, test_scenes=200)
COUNTING = CountingRecipe(world="eight", views=1, test_scenes=200)
SMALL = replace(BINDING, test_scenes=80)
SOUND = {
    "binding": BINDING,
    "spatial": SPATIAL,
    "dependence": DEPENDENCE,
    "counting": COUNTING,
    "all pairs": replace(SMALL, pairs=1.0, hard_negatives=1.0),
    "spatial, left first": replace(SPATIAL, mention_order="slots"),
    "left first": replace(SMALL, mention_order="slots"),
    "dependence, left first": replace(DEPENDENCE, test_scenes=80, mention_order="slots"),
    "phrasings": replace(SPATIAL, test_scenes=80, template="free-relation"),
    "statements": replace(SMALL, template="statement-conjunction"),
    "sizes": replace(SMALL, world="tiny-sizes"),
    "incomplete": replace(SMALL, mentioned=0.7, attributes=0.8, negated=0.3),
    "texture held out": replace(SMALL, hold_out=("texture=red & animal=penguin", "pair={camel, elephant}")),
    "order held out": replace(
        SPATIAL, test_scenes=80, hold_out=("relation=left & first=elephant", "background=city & animal=camel")
    ),
}


TIES = (check_drawn, check_scene_draws, check_pair_draws, check_sequence)


def failed(check, split):
    return [finding for finding in check(split) if not finding.holds]


@pytest.mark.parametrize("name", SOUND)
def test_sound_splits_pass(name):
    split = in_memory(SOUND[name])
    for check in (check_balance, check_cues, check_order, *TIES, *CHECKS_OF[split.recipe["kind"]]):
        assert failed(check, split) == []


def test_accuracies_without_a_picture_are_about_a_half():
    (finding,) = check_cues(in_memory(BINDING))
    shares = [float(text.split()[-2]) for text in finding.detail.split(": ", 1)[1].split(", ")]
    assert len(shares) == 10  # two classifiers in each of five tests
    assert all(20 < share < 80 for share in shares)


def one_order(split):
    return only(split, lambda scene: sorted(scene.things)[0] == scene.things[0])


def red_first(split):
    return only(split, lambda scene: scene.things[1].texture != "red")


def only_two(split):
    return only(split, lambda scene: len(scene.things) == 2)


def two_in_the_city(split):
    return only(split, lambda scene: len(scene.things) == 2 or scene.background != "city")


def no_upper_left(split):
    return only(split, lambda scene: all(thing.slot != "upper left" for thing in scene.things))


def goldfish_first_in_view_5(split):
    return only(split, lambda scene: scene.view != 5 or sorted(scene.things)[0] == scene.things[0])


LOPSIDED = [
    (SPATIAL, one_order, "is in the first place in "),
    (SPATIAL, red_first, "red is in the first place in "),
    (DEPENDENCE, one_order, "the first animal in the alphabet is in the first place in "),
    (DEPENDENCE, red_first, "is in the first place in "),
    (BINDING, goldfish_first_in_view_5, "in the first place in "),
    (COUNTING, only_two, "the number 2 in "),
    (COUNTING, two_in_the_city, "background city"),
    (COUNTING, no_upper_left, "something upper left in 0 of "),
]


@pytest.mark.parametrize(("recipe", "fault", "said"), LOPSIDED, ids=lambda its: getattr(its, "__name__", None))
def test_lopsided_tests_fail(recipe, fault, said):
    (finding,) = failed(check_balance, fault(in_memory(recipe)))
    assert said in finding.detail


def test_captions_of_train_that_mention_the_left_one_first_fail():
    split, slots = in_memory(SPATIAL), in_memory(replace(SPATIAL, mention_order="slots"))
    (finding,) = failed(check_balance, with_subsets(split, train=slots.subsets["train"]))
    assert "the first place is mentioned first" in finding.detail
    assert "records of train" in finding.detail


def test_a_test_in_which_texts_of_one_kind_are_always_true_fails():
    """Red is true of animals of the first half of the alphabet."""

    def so(scene):
        return all((thing.texture == "red") <= (thing.animal < "f") for thing in scene.things)

    (finding,) = failed(check_cues, only(in_memory(replace(BINDING, test_scenes=3000)), so))
    assert "words" in finding.detail


def test_true_texts_of_one_order_fail_where_captions_mention_the_left_one_first():
    (finding,) = failed(check_cues, one_order(in_memory(replace(SPATIAL, mention_order="slots"))))
    assert "order" in finding.detail


def test_chance_exceeds_the_bound_less_often_than_its_rate():
    random, rate, exceeded = np.random.default_rng(0), 0.05, 0
    sizes = random.integers(1, 9, 40)
    for _ in range(2000):
        signs = random.choice([-1, 1], 40)
        drawn = signed("", "", [(i, int(sign)) for i, sign in enumerate(signs) for _ in range(sizes[i])])
        exceeded += drawn.strength > bound(1, rate)
    assert 0 < exceeded < 2000 * rate


def test_both_sides_of_a_coin_count_for_nothing():
    assert signed("", "", [("a", 1), ("a", -1)]).strength == 0
    split = in_memory(replace(BINDING, test_scenes=100_000))
    placed = [its for its in all_contrasts(split) if its.what.endswith("in the first place")]
    assert placed
    assert all(its.strength == 0 for its in placed)
