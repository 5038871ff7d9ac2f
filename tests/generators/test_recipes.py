"""One contract, kind of split by option: each option does what its docstring says, and what holds of every split holds.

To add an option, add a row; a field without a row fails. A new kind needs none: its splits are made and audited with
few scenes of world "eight". Its options get rows once it has an entry in `WITHOUT`.
"""

import os
from collections import Counter
from dataclasses import fields, replace
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit, audit_records
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.relations import claims
from menagerie.generators.rules.hold_out import matches_any, parse_rules
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.probe import OF_TRAINING, ProbeRecipe
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.split_file import read_split
from tests.generators.recipe_contract import (
    Made,
    alone,
    check_all,
    check_subsets,
    compositions,
    made,
    many,
    pairs,
    plain,
)
from tests.helpers.splits import in_memory, make_split

EXAMPLES = int(os.environ.get("MENAGERIE_EXAMPLES", "8"))  # random recipes; 500 before a release
FEW = {"world": "tiny", "views": 1, "test_views": 1, "test_scenes": 20}
PLAIN = {
    "binding": BindingRecipe(**FEW, pairs=0.75, hard_negatives=0.5),
    "spatial": SpatialRecipe(**FEW, pairs=0.75, hard_negatives=0.5),
    "dependence": DependenceRecipe(**FEW | {"views": 12}, information=0.5),
    "counting": CountingRecipe(**FEW, pairs=1.0),
    "multi-object": MultiObjectRecipe(
        world="eight-textures", train_scenes=240, test_scenes=24, views=2, test_views=2, test_objects=(2, 3)
    ),
    "probe": ProbeRecipe(world="eight", animals=("goldfish", "camel", "rabbit")),
}
PLAIN |= {kind: recipe(**FEW | {"world": "eight", "views": 2}) for kind, recipe in KINDS.items() if kind not in PLAIN}
# Fields that a kind refuses to change, or that change nothing: conjunctions in captions of a single noun, say.
WITHOUT = {
    "binding": (),
    "spatial": ("conjunction",),
    "dependence": ("hard_negatives", "hold_out", "sets"),
    "counting": ("hard_negatives", "hold_out", "sets", "conjunction", "mention_order"),
    "multi-object": ("pairs", "test_pairs", "validation", "least_visible"),
    "probe": (*OF_TRAINING, "hold_out", "sets", "mention_order", "least_visible"),
}


def other_scenes(its: Made, before: Made) -> bool:
    return its.subsets != before.subsets


def all_views(its: Made, before: Made) -> bool:
    views, more = its.recipe.views, its.recipe.views + its.recipe.test_views
    tested = {scene.view for scenes in its.tests.values() for scene in scenes}
    return ({scene.view for scene in its.train}, tested) == ({*range(views)}, {*range(views, more)})


def fewer_in_tests(its: Made, before: Made) -> bool:
    return its.train == before.train and max(map(len, its.tests.values())) == its.recipe.test_scenes


def in_sizes(its: Made, before: Made) -> bool:
    """As often small as big, and otherwise as without sizes; single animals share their textures."""
    sizes = Counter(t.size for scenes in its.subsets.values() for s in scenes for t in s.objects)
    rest = ("texture",) if its.recipe.kind == "dependence" else ()
    comparable = its.world.animals == before.world.animals
    for name, scenes in its.subsets.items() if comparable else ():
        assert [plain(s, *rest) for s in many(scenes)] == [plain(s, *rest) for s in many(before.subsets[name])]
    return set(sizes) == set(its.world.sizes) and max(sizes.values()) < 2 * min(sizes.values())


def reworded(its: Made, before: Made) -> bool:
    """The same scenes, some of them in other words."""
    both = [(a, b) for name in its.texts for a, b in zip(its.captions(name), before.captions(name), strict=True)]
    return its.subsets == before.subsets and 5 * sum(a != b for a, b in both) > len(both)


def all_say(*said: str):
    def so(its: Made, before: Made) -> bool:
        texts = [f" {text} " for name in its.tests for text in its.captions(name)]
        return reworded(its, before) and all(any(word in text for word in said) for text in texts)

    return so


def no_a(its: Made, before: Made) -> bool:
    return reworded(its, before) and not {"a", "an"} & {
        w for name in its.texts for t in its.captions(name) for w in t.split()
    }


def is_ordered(its: Made) -> list[bool]:
    """Whether captions of tests mention objects in the order of their slots."""
    rows = [(s, t) for name, scenes in its.tests.items() for s, (t, _) in zip(scenes, its.texts[name], strict=True)]
    places = ([list(map(phrase, s.objects)).index(n) for n in t.graph.nodes[:-1]] for s, t in rows)
    return [place == sorted(place) for place in places]


def slots_in_order(its: Made, before: Made) -> bool:
    return its.subsets == before.subsets and all(is_ordered(its)) and not all(is_ordered(before))


def rules_hold(its: Made, before: Made) -> bool:
    """Each rule has its test; what all rules leave in train is as without them, if sizes are left to draw."""
    tests = its.recipe.held_out_tests
    rules = {name: parse_rules(texts, its.world) for name, texts in tests.items()}
    assert all(matches_any(of_test, s) for name, of_test in rules.items() for s in its.subsets[name])
    assert len(tests) == (len(its.recipe.hold_out) + 1 if len(its.recipe.hold_out) > 1 else 1)
    return its.recipe.judged == ("held_out",) and all(its.subsets[name] for name in tests)


def written_out(its: Made, before: Made) -> bool:
    rules = tuple(rule.replace("land", "{elephant, rabbit}") for rule in its.recipe.hold_out)
    return its.subsets == Made(replace(its.recipe, sets=(), hold_out=rules)).subsets


def fewer_to_train(its: Made, before: Made) -> bool:
    return its.recipe.counts().trainable < before.recipe.counts().trainable


def nested(its: Made, before: Made) -> bool:
    """A smaller fraction leaves scenes out and changes none; what is held out is the same."""
    same = [name for name in its.subsets if name.endswith(("validation", "unseen_pairs", "unseen_counts"))]
    of, more = its.train, before.train
    if its.recipe.kind == "dependence":  # pairs are nested, their textures are drawn anew
        of, more = (list(map(frozenset, pairs(scenes))) for scenes in (of, more))
    return set(of) < set(more) and all(its.subsets[name] == before.subsets[name] for name in same)


def tells_less(its: Made, before: Made) -> bool:
    """Captions of train leave something out and add nothing but negations; those of tests stay."""
    assert its.subsets == before.subsets
    assert all(its.texts[name] == before.texts[name] for name in (*its.tests, "validation"))
    said, all_said = ([claims(t.graph) for t, _ in one.texts["train"]] for one in (its, before))
    news = {claim for some, every in zip(said, all_said, strict=True) for claim in some - every}
    return said != all_said and all(claim.startswith("no ") for claim in news)


def others_alone(its: Made, before: Made) -> bool:
    return alone(its.train) != alone(before.train) and many(its.train) == many(before.train)


def fewer_alone(its: Made, before: Made) -> bool:
    return others_alone(its, made(replace(its.recipe, singles_views=0)))


def unseen_compositions(its: Made, before: Made) -> bool:
    shown = {cell for scene in its.train for cell in compositions(scene)}
    return (
        len(shown) == 60
        and its.recipe.tests[-2:] == ("one_unseen_composition", "two_unseen_compositions")
        and all(its.tests.values())
    )


def covers_less(its: Made, before: Made) -> bool:
    """Cells are nested; unseen in tests are the same ones at every coverage."""
    half = made(replace(its.recipe, coverage=0.5))
    some, more = sorted(({c for s in one.train for c in compositions(s)} for one in (its, half)), key=len)
    return some <= more and its.subsets["unseen_3"] == half.subsets["unseen_3"]


def states_chains(its: Made, before: Made) -> bool:
    assert {len(true.graph.edges) for true, _ in its.texts["seen_3"]} == {2}
    return all(" that is " in text for text in its.captions("seen_3"))


def trained_elsewhere(its: Made, before: Made) -> bool:
    """Some pairs that are unseen in one relation are trained in the other."""
    return bool(
        pairs(its.train) & pairs(its.subsets["left_right_unseen_pairs"] + its.subsets["above_under_unseen_pairs"])
    )


def seen_too(its: Made, before: Made) -> bool:
    more = its.subsets.keys() - before.subsets.keys()
    same = {
        name: its.subsets[name] for name in before.subsets
    } == before.subsets and its.recipe.judged == before.recipe.judged
    wanted = {"spatial": {"left_right_seen_order", "above_under_seen_order"}, "binding": {"seen_arrangements"}}
    return same and more == wanted[its.recipe.kind] and all(its.subsets[name] for name in more)


def informed(its: Made, before: Made) -> bool:
    """Textures tell as much of animals as the recipe says; animals and tests are the same."""
    shown, others = ([obj for scene in one.train for obj in scene.objects] for one in (its, before))
    found = normalized_mutual_info_score([t.animal for t in shown], [t.texture for t in shown])
    assert Counter(t.animal for t in shown) == Counter(t.animal for t in others)
    assert its.tests == before.tests
    return found == pytest.approx(its.recipe.information, abs=0.01)


def more_or_fewer(its: Made, before: Made) -> bool:
    """The scenes of a smaller probe set are among those of a larger one."""
    some, more = sorted((set(one.subsets["left_first"]) for one in (its, before)), key=len)
    return some < more


PAIRED = "binding spatial dependence"
TWO = "binding spatial"
NAMED = "binding dependence multi-object probe"
EVERY = f"{NAMED} spatial counting"
TRAINED = f"{PAIRED} counting multi-object"
ALL = {"hard_negatives": 0.0, "pairs": 1.0}
SIZES = ALL | {"world": "tiny-sizes"}
ROWS = [
    (EVERY, {"seed": 1}, other_scenes),
    ("binding spatial counting multi-object", {"views": 3}, all_views),
    ("dependence", {"views": 13}, all_views),
    (TRAINED, {"test_views": 3}, all_views),
    (TRAINED, {"test_scenes": 7}, fewer_in_tests),
    (f"{PAIRED} counting", {"world": "tiny-sizes"}, in_sizes),
    ("multi-object probe", {"world": "pug-sizes"}, in_sizes),
    (f"{NAMED} counting", {"template": "pug-conjunction"}, all_say(" a photo of ")),
    (f"{NAMED} counting", {"template": "free-conjunction"}, reworded),
    (f"{NAMED} counting", {"template": "statement-conjunction"}, all_say(" is ", " are ")),
    ("spatial", {"template": "pug-relation"}, all_say(" a photo of ")),
    ("spatial", {"template": "free-relation"}, reworded),
    ("spatial", {"template": "statement-relation"}, all_say(" is ")),
    (EVERY, {"phrasings": ("{place} i see that {objects}",)}, all_say(" i see that ")),
    (NAMED, {"conjunction": "while"}, all_say(" while ")),
    (EVERY, {"article": "the"}, no_a),
    (f"{PAIRED} multi-object", {"mention_order": "slots"}, slots_in_order),
    (TWO, ALL | {"hold_out": ("texture=red & animal=elephant", "animal=penguin & background=city")}, rules_hold),
    (TWO, ALL | {"hold_out": ("pair={penguin, rabbit}",)}, rules_hold),
    (TWO, ALL | {"hold_out": ("background=city",)}, rules_hold),
    (TWO, SIZES | {"hold_out": ("size=small & animal=rabbit",)}, rules_hold),
    (TWO, SIZES | {"hold_out": ("size[0]=size[1]",)}, rules_hold),
    ("multi-object", {"hold_out": ("texture=red & animal=rabbit", "pair={crow, camel}")}, rules_hold),
    (
        f"{TWO} multi-object",
        {"sets": ("land={elephant, rabbit}",), "hold_out": ("animal=land & texture=red",)},
        written_out,
    ),
    (f"{PAIRED} counting", {"test_pairs": 0.4}, fewer_to_train),
    (f"{PAIRED} counting", {"validation": 0.4}, fewer_to_train),
    (f"{TWO} counting", {"pairs": 0.5}, nested),
    ("dependence", {"pairs": 1.0}, lambda its, before: nested(before, its)),
    (TWO, {"pairs": 0.0}, nested),
    (TWO, {"hard_negatives": 0.0}, nested),
    (TWO, {"hard_negatives": 1.0}, lambda its, before: nested(before, its)),
    ("multi-object", {"hard_negatives": 0.25}, other_scenes),
    (f"{TWO} multi-object", {"mentioned": 0.5}, tells_less),
    (f"{TWO} multi-object", {"attributes": 0.4}, tells_less),
    (f"{TWO} multi-object", {"attributes": 0.0}, tells_less),
    ("binding multi-object", {"salient": 1.0}, tells_less),
    ("binding", {"negated": 1.0}, reworded),
    ("binding", {"negated": 0.3, "mentioned": 0.5, "attributes": 0.7, "salient": 0.2}, tells_less),
    ("binding", {"world": "tiny-sizes", "salient": 0.7, "attributes": 0.5}, in_sizes),
    (TWO, {"views": 2, "singles_views": 1}, fewer_alone),
    ("binding", {"compositions": 0.75, "world": "pug", "pairs": 0.4, "hard_negatives": 0.2}, unseen_compositions),
    ("spatial", {"relations": ("above/under",)}, other_scenes),
    ("spatial", {"singles_slots": ("center", "left")}, others_alone),
    ("spatial", {"unseen_under": "own", "seed": 1, "pairs": 1.0}, trained_elsewhere),
    ("spatial", {"seen_order": True}, seen_too),
    ("binding", {"seen_arrangements": True}, seen_too),
    ("dependence", {"information": 0.4}, informed),
    ("dependence", {"information": 0.85}, informed),
    ("multi-object", {"coverage": 0.25}, covers_less),
    ("multi-object", {"coverage": 0.75}, covers_less),
    ("multi-object", {"classes": 2, "coverage": 0.5}, covers_less),
    ("multi-object", {"layout": "overlap"}, other_scenes),
    (
        "multi-object",
        {"test_layout": "rows"},
        lambda its, before: its.train == before.train and its.tests != before.tests,
    ),
    ("multi-object", {"objects": (1, 4)}, other_scenes),
    ("multi-object", {"test_objects": (2, 5)}, lambda its, before: list(its.tests) == ["seen_2", "seen_5"]),
    ("multi-object", {"train_scenes": 300}, lambda its, before: len(its.train) == 300),
    ("multi-object", {"relations_stated": 2, "layout": "rows"}, states_chains),
    ("multi-object", {"searches": (3,), "triplets": (0, 1, 2)}, lambda its, before: its.train == before.train),
    ("multi-object", {"exchanged": (2, 4), "coverage": 0.5}, lambda its, before: len(its.tests) == 8),
    ("probe", {"animals": ()}, more_or_fewer),
    ("probe", {"textures": ("red", "white")}, more_or_fewer),
    ("probe", {"probe_views": 1}, more_or_fewer),
    ("probe", {"first_view": 30_000}, other_scenes),
    (
        "probe",
        {"layout": "overlap", "objects": 4, "quartets": 30, "world": "pug-textures", "animals": ()},
        other_scenes,
    ),
]
TABLE = [(kind, change, effect) for kinds, change, effect in ROWS for kind in kinds.split()]
NAMES = [f"{kind} {' '.join(f'{k}={v}' for k, v in change.items())}" for kind, change, _ in TABLE]


@pytest.mark.parametrize(("kind", "change", "effect"), TABLE, ids=NAMES)
def test_an_option_changes_what_it_says_and_nothing_leaks(kind, change, effect):
    its = made(replace(PLAIN[kind], **change))
    check_all(its)
    assert effect(its, made(PLAIN[kind]))
    assert wrong(audit_records(its.split)) == []


def wrong(findings):
    return [finding for finding in findings if not finding.holds or finding.skipped]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_scenes_in_each_test_and_passes_the_audit(kind):
    its = made(PLAIN[kind])
    check_subsets(its)
    assert all(its.tests.values())
    assert wrong(audit_records(its.split)) == []


@pytest.mark.parametrize("kind", WITHOUT)
def test_every_option_has_a_row(kind):
    assert {name for its, change, _ in TABLE if its == kind for name in change} | {*WITHOUT[kind]} == {
        field.name for field in fields(KINDS[kind])
    }


@pytest.mark.parametrize("kind", ["binding", "spatial"])
def test_pairs_with_hard_negatives_are_nested_in_both_fractions(kind):
    """Those at half of the pairs are among those at all, at the same fraction of hard negatives or at a higher one."""
    at = {
        its: Made(replace(PLAIN[kind], pairs=its[0], hard_negatives=its[1], views=1))
        for its in product((0.5, 1.0), repeat=2)
    }
    hard = {its: {s for s in many(one.train) if one.recipe.swap(s) in set(one.train)} for its, one in at.items()}
    assert hard[0.5, 0.5] < hard[1.0, 0.5] < hard[1.0, 1.0] > hard[0.5, 1.0] > hard[0.5, 0.5]


WORLD = load_world("tiny")
ATOM = st.sampled_from(
    [
        *(f"{kind[:-1]}={name}" for kind in ("animals", "textures", "backgrounds") for name in getattr(WORLD, kind)),
        *(
            "slot=under",
            "count=2",
            "animal=penguin & background=city",
            "pair={elephant, rabbit}",
            "relation=left & first=penguin",
        ),
    ]
)
RULE = st.lists(ATOM, min_size=1, max_size=3, unique=True).map(" & ".join)
FRACTION = st.integers(0, 10).map(lambda n: n / 10)
ANY = st.fixed_dictionaries(
    {
        "world": st.sampled_from(["tiny", "tiny-sizes"]),
        "hold_out": st.lists(RULE, max_size=2, unique=True).map(tuple),
        "pairs": FRACTION,
        "hard_negatives": FRACTION,
        "seed": st.integers(0, 99),
    }
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.sampled_from(["binding", "spatial"]), st.sampled_from(["", "pug-", "free-", "statement-"]), ANY)
def test_random_recipes_keep_the_contract(kind, style, change):
    template = style + ("relation" if kind == "spatial" else "conjunction")
    recipe = replace(PLAIN[kind], template=template, views=1, **change)
    try:
        its = Made(recipe)
    except UserError:  # the rules take too much, or nothing
        assume(False)
    check_all(its)
    assert wrong(audit_records(its.split)) == []


CHANGES = {kind: [change for its, change, _ in TABLE if its == kind] for kind in sorted(WITHOUT)}
TOGETHER = st.sampled_from(sorted(CHANGES)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(st.sampled_from(CHANGES[kind]), min_size=2, max_size=4))
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(TOGETHER)
def test_options_together_make_splits_that_pass_the_audit(drawn):
    kind, changes = drawn
    try:
        split = in_memory(replace(PLAIN[kind], **{name: value for its in changes for name, value in its.items()}))
    except UserError:  # options that exclude each other
        assume(False)
    assert wrong(audit_records(split)) == []


RENDERED = {
    "binding": replace(PLAIN["binding"], world="tiny-sizes", mentioned=0.6, attributes=0.7, negated=0.3),
    "spatial": replace(PLAIN["spatial"], views=1, seen_order=True, hold_out=("relation=above & first=elephant",)),
    "dependence": PLAIN["dependence"],
    "counting": PLAIN["counting"],
    "multi-object": MultiObjectRecipe(
        **{"world": "four-textures", "layout": "overlap", "objects": (2, 3), "test_objects": (2, 3), "views": 1},
        **{"train_scenes": 80, "test_scenes": 12, "test_views": 1, "least_visible": 0.7, "relations_stated": 1},
    ),
    "probe": PLAIN["probe"],
}


@pytest.mark.parametrize("kind", RENDERED)
def test_a_rendered_split_passes_the_whole_audit(kind, tmp_path):
    """Objects of multi-object scenes hide others: scenes are left out, and the audit knows which."""
    path = make_split(tmp_path, RENDERED[kind], resolution=32)
    pack(path)
    assert wrong(audit(path)) == []
    assert bool(read_split(path).recipe.get("left_out")) == (kind == "multi-object")
