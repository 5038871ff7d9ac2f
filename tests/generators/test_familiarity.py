"""What training had of captions: bindings as a parser reads them, counted in another way, and facts of our own splits,
which are exactly what recipes imply."""

from collections import Counter
from functools import cache
from itertools import chain

import numpy as np
import pytest

from menagerie.envs.core.identity import generator, json_value
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.benchmark import Item
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.generators.familiarity import (
    EVERY,
    FALSE_ONLY,
    NEITHER,
    TRUE_ONLY,
    UNREAD,
    bindings_in,
    familiar_captions,
    familiar_records,
    familiar_training,
    record_familiarity,
    seen_columns,
    stratum_of,
)
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import recorded_fields
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.columns import make_columns
from menagerie.generators.storage.records import Records
from menagerie.generators.trained_on import RecipeScenes, Training
from menagerie.generators.vocabulary import Vocabulary

DEFAULT = BindingRecipe(test_scenes=200)  # the recipe that ships, with fewer scenes in each test
SPATIAL = SpatialRecipe("eight", pairs=0.5, seen_order=True, test_scenes=60, test_views=1, views=2)
COMPOSITIONS = BindingRecipe("eight", pairs=0.8, compositions=0.75, test_scenes=60, test_views=1, views=2)


def test_bindings_are_attributes_and_relations_that_are_stated():
    graph = SceneGraph(
        ("black and white cat", "two dogs", "no red bird"), (Edge("to the right of", 0, 1), Edge("chasing", 1, 0))
    )
    relations = {("dogs", "to the left of", "cat"), ("dogs", "chasing", "cat")}
    assert bindings_in(graph) == {("cat", "black"), ("cat", "white"), ("dogs", "two"), *relations}


NOUNS, ADJECTIVES, VERBS = ("cat", "dog", "bus"), ("red", "big", "old", "wet"), ("on", "near")


def drawn_graph(random):
    """Two things with an adjective each, in a relation."""
    nouns = random.choice(NOUNS, 2, replace=False)
    nodes = tuple(f"{random.choice(ADJECTIVES)} {noun}" for noun in nouns)
    return SceneGraph(nodes, (Edge(str(random.choice(VERBS)), 0, 1),))


def said(graph):
    (first, second), ((verb, _, _),) = graph.nodes, graph.edges
    return f"A {first} {verb} a {second}."


def stated_by(text):
    """The bindings of such a text, read from its words alone."""
    _, one, first, verb, _, other, second = text.lower().strip(".").split()
    return {f"{one} {first}", f"{other} {second}", f"{first} {verb} {second}"}


def test_familiarity_equals_a_count_over_words():
    random, graphs = generator(0, "familiarity"), {}
    for _ in range(400):
        graph = drawn_graph(random)
        graphs[said(graph)] = graph
    texts = sorted(graphs)
    trained = [texts[i] for i in random.integers(0, len(texts), 4)]
    known = familiar_captions(trained, map(graphs.__getitem__, trained))
    found = Counter()
    for number in range(200):
        captions = [texts[i] for i in random.choice(len(texts), 2, replace=False)]
        item = Item(str(number), "all", (0,), tuple(Caption(text, graphs[text]) for text in captions))
        its = record_familiarity(item, known, graphs.__getitem__)
        true, false = map(stated_by, captions)
        sides = true - false, false - true
        counts = [sum(binding in stated_by(text) for text in trained for binding in side) for side in sides]
        assert its.seen == tuple(count if side else None for count, side in zip(counts, sides, strict=True))
        assert its.texts == tuple(map(trained.count, captions))
        wanted = {(0, 0): NEITHER, (1, 1): EVERY, (1, 0): TRUE_ONLY, (0, 1): FALSE_ONLY}
        assert its.stratum == wanted[bool(counts[0]), bool(counts[1])]
        found[its.stratum] += 1
    assert found.keys() == {*wanted.values()}, found


def test_records_that_cannot_be_judged_are_apart():
    cat, dog = SceneGraph(("cat",)), SceneGraph(("red dog",))
    known = familiar_captions(["a red dog"], [dog])
    item = Item("0", "all", (0,), (Caption("A cat", cat), Caption("A red dog!", dog)))
    assert record_familiarity(item, known, {"A cat": cat, "A red dog!": dog}.get).stratum == FALSE_ONLY
    assert record_familiarity(item, known, {"A cat": cat, "A red dog!": None}.get).stratum == UNREAD
    assert record_familiarity(item, known, {"A cat": cat, "A red dog!": cat}.get)[3:] == ((None, None), (0, 1), None)


@cache
def made(recipe):
    """The records of all subsets of a recipe, without a file."""
    vocabulary, written = Vocabulary.of(load_world(recipe.world)), json_value(recorded_fields(recipe))
    tables = {name: make_columns(name, scenes, recipe, vocabulary) for name, scenes in recipe.subsets().items()}
    return {name: Records(written, vocabulary, *table) for name, table in tables.items()}


def swaps(records):
    both = zip(records.scenes, records.true, records.false, strict=True)
    return [(scene, Item(scene.key, "swap", (0,), (true, false))) for scene, true, false in both]


@cache
def rows_by_test(recipe):
    """The swaps of each test that has some: scene, item and columns."""
    train = made(recipe)["train"]
    columns = seen_columns(train.vocabulary, familiar_records(train, range(len(train))))
    tests = {name: swaps(its) for name, its in made(recipe).items() if name != "train" and len(its)}
    return {name: [(scene, item, columns(item)) for scene, item in its] for name, its in tests.items()}


def strata(recipe, what):
    """The strata of the swaps of each test, by a kind of fact."""
    names, found = [f"{side}_{what}_seen" for side in ("true", "false")], rows_by_test(recipe).items()
    return {name: {stratum_of(*map(row.get, names)) for *_, row in rows} for name, rows in found}


def test_swaps_of_the_default_split_are_in_the_strata_that_its_recipe_implies():
    """Training shows every animal in every texture, of `seen_pairs` the swap and not the scene."""
    tests = {"validation": {NEITHER}, "unseen_pairs": {NEITHER}, "different_bag": {NEITHER}, "seen_pairs": {FALSE_ONLY}}
    assert strata(DEFAULT, "composition") == {name: {EVERY} for name in tests}
    assert strata(DEFAULT, "arrangement") == strata(DEFAULT, "text") == tests
    assert strata(DEFAULT, "order") == strata(DEFAULT, "pair") == {name: {UNREAD} for name in tests}


def test_swaps_of_a_spatial_split_are_in_the_strata_that_its_recipe_implies():
    known = strata(SPATIAL, "order")
    named = {
        name: next(end for end in ("unseen_pairs", "unseen_order", "seen_order") if name.endswith(end))
        for name in known
        if name != "validation"
    }
    wanted = {"unseen_pairs": {NEITHER}, "seen_order": {TRUE_ONLY}, "unseen_order": {FALSE_ONLY}}
    assert known == {name: wanted[end] for name, end in named.items()} | {"validation": {NEITHER}}
    assert set(named.values()) == set(wanted)


@pytest.mark.parametrize("recipe", [DEFAULT, COMPOSITIONS], ids=["default", "compositions"])
def test_numbers_are_those_of_training_scenes_counted_by_hand(recipe):
    train = made(recipe)["train"]
    shown = Counter(its for scene in train.scenes for its in {obj[:2] for obj in scene.objects})
    for scene, item, row in chain.from_iterable(rows_by_test(recipe).values()):
        (a, x), (b, y) = (obj[:2] for obj in scene.objects)
        assert row["true_composition_seen"] == shown[a, x] + shown[b, y]
        assert row["false_composition_seen"] == shown[a, y] + shown[b, x]
        assert row["true_text_seen"] == train.captions.count(item.texts[0].text)


def test_all_ways_to_a_training_give_the_same_counts():
    train = made(COMPOSITIONS)["train"]
    whole, of_recipe = (
        familiar_records(train, range(len(train))),
        familiar_training(Training((RecipeScenes(COMPOSITIONS),))),
    )
    assert whole == of_recipe
    halves = [familiar_records(train, np.arange(len(train))[start::2]) for start in (0, 1)]
    assert Counter(halves[0].bindings) + halves[1].bindings == whole.bindings
    assert familiar_training(Training((RecipeScenes(COMPOSITIONS),), unknown=("x",))) is None
