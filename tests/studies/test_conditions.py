"""The conditions on an ideal CLIP: what scorers that are known in advance meet."""

from types import SimpleNamespace

import numpy as np
import pytest

from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import edge_holds
from menagerie.generators.captions.templates import TEMPLATES
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.studies.embeddings.conditions import (
    ALL,
    BINDING,
    CATEGORISATION,
    CONDITIONS,
    EVERY,
    INDEPENDENT,
    NEGATED,
    NEGATION,
    PARTS,
    PLACE,
    SAYS,
    by_embeddings,
    by_scores,
    chance,
    held,
)
from menagerie.studies.embeddings.ideal import IdealEmbedding, pair_margins
from menagerie.studies.measures.conditions import texts_of_all
from menagerie.studies.measures.on_probes import scenes_of
from tests.studies.known_embeddings import axes as known_axes
from tests.studies.known_embeddings import embedding

TEMPLATE = TEMPLATES["conjunction"]


@pytest.fixture(scope="module")
def probe_set():
    """The scenes of a probe set, their axes, the number of each, and their texts."""
    scenes = ProbeRecipe(world="tiny").plan(load_world("tiny"))["left_first"]
    made, numbers = scenes_of(SimpleNamespace(records=SimpleNamespace(scenes=scenes)))
    return scenes, made, numbers, texts_of_all(scenes, TEMPLATE, 0)


def found_of(score, probe_set, unsaid=()):
    """What a scorer that gives a scene and a caption a number meets."""
    scenes, made, numbers, texts = probe_set
    scores = {
        name: np.array([score(scene, its[name]) for scene, its in zip(scenes, texts, strict=True)], float)[numbers]
        for name in SAYS
    }
    rows = by_scores(scores, made, dict(unsaid))
    return {(its.condition, its.part): its.measured for its in rows if its.measure == "edge_holds"}


def knowing(scene, caption):
    """One more for each statement that is true, one less for each that isn't."""
    shown = {f"{obj.texture} {obj.animal}" for obj in scene.objects}
    objects = [node for node in caption.graph.nodes if node != scene.background]
    true = [(node.removeprefix("no ") in shown) != node.startswith("no ") for node in objects]
    true += [edge_holds(edge, caption.graph, scene) for edge in caption.graph.edges]
    return sum(2 * one - 1 for one in true)


def bag(scene, caption):
    """The number of words that name something shown, less those that name something else; "no" tells it nothing."""
    shown = {word for obj in scene.objects for word in (obj.animal, obj.texture)}
    named = [word for node in caption.graph.nodes if node != scene.background for word in node.split() if word != "no"]
    return sum(1 if word in shown else -1 for word in named)


def test_a_scorer_that_knows_meets_every_condition_in_every_scene(probe_set):
    found = found_of(knowing, probe_set)
    assert {its.value for its in found.values()} == {1.0}
    assert {condition for condition, _ in found} == {*CONDITIONS, ALL}


def test_a_bag_of_words_categorises_and_does_nothing_else(probe_set):
    found = {condition: its.value for (condition, part), its in found_of(bag, probe_set).items() if part == EVERY}
    assert found == {CATEGORISATION: 1, BINDING: 0, PLACE: 0, NEGATION: 0, ALL: 0}


def test_who_knows_attributes_and_not_places_meets_but_those(probe_set):
    def unplaced(scene, caption):
        return knowing(scene, caption._replace(graph=caption.graph._replace(edges=())))

    found = found_of(unplaced, probe_set)
    assert [found[name, EVERY].value for name in CONDITIONS] == [1, 1, 0, 1]
    assert found[ALL, INDEPENDENT].value == 0


def test_random_scores_meet_as_many_as_chance_says(probe_set):
    made = known_axes(animals=20, views=4)
    random = np.random.default_rng(0)
    scores = {name: random.random((4, len(made.animals), len(made.textures))) for name in SAYS}
    for its in by_scores(scores, made, {}):
        if its.measure == "edge_holds" and its.part != INDEPENDENT:
            spread = np.sqrt(its.measured.chance / 4 / len(made.animals) / len(made.textures))
            assert its.measured.value == pytest.approx(its.measured.chance, abs=6 * spread + 1e-9), its
    assert chance(PARTS[:1]) == 1 / 4
    assert chance(PARTS[:2]) == 1 / 9, "a text that is above two is the highest of three"


def test_both_a_scene_and_its_counterfactual_have_to_be_right():
    made = known_axes(animals=4, textures=3)
    swap = next(part for part in PARTS if part.counterfactual == "swap")
    mirror = next(part for part in PARTS if part.counterfactual == "mirror")
    for part in (swap, mirror):
        right = np.random.default_rng(1).random((2, 12, 6)) < 0.5
        names = part.above[0]
        found = held({names[0]: right.astype(float), names[1]: 0.5 + 0 * right}, part, made)
        turned = right[:, :, made.swaps] if part is swap else right[:, made.mirrors][:, :, made.swaps]
        assert (found == (right & turned)).all()


def test_embeddings_of_objects_tell_a_swap_from_another_view_and_those_of_concepts_do_not():
    made = known_axes()
    told = {}
    for kind in ("object", "concept", "place"):
        rows = by_embeddings(embedding(kind, made), {}, made)
        told[kind] = {its.condition: its.measured.value for its in rows if its.measure == "edge_holds"}
        assert {*told[kind]} == {CATEGORISATION, BINDING, PLACE}
    assert told["object"][BINDING] > 0.95
    assert told["concept"][BINDING] == pytest.approx(0.5, abs=0.05)
    assert told["concept"][CATEGORISATION] > 0.95
    assert told["concept"][PLACE] == pytest.approx(0.5, abs=0.05)
    assert told["object"][PLACE] == pytest.approx(0.5, abs=0.05)
    assert told["place"][PLACE] > 0.95


def test_texts_that_deny_are_near_what_they_do_not_name():
    made, random = known_axes(animals=6, views=2), np.random.default_rng(0)
    shape = (2, len(made.animals), len(made.textures), 64)
    one, two, common = (random.normal(size=shape) for _ in range(3))
    good = dict(zip(NEGATED, (one, two, 3 * common - one, 3 * common - two), strict=True))
    bad = dict(zip(NEGATED, (one, two, one, two), strict=True))
    images = random.normal(size=shape)
    for texts, right in ((good, (0.9, 1)), (bad, (0, 0.1))):
        rows = [
            its.measured.value
            for its in by_embeddings(images, texts, made)
            if (its.condition, its.measure) == (NEGATION, "edge_holds")
        ]
        assert len(rows) == 2
        assert right[0] <= rows[0] <= right[1]


def test_the_margins_of_a_pair_trade_categorisation_for_binding():
    both = np.array([pair_margins(IdealEmbedding(weight)) for weight in (0.0, 0.3, 1.0, 3.0)])
    assert both[0, 1] == pytest.approx(0)
    assert (np.diff(both[:, 1]) > 0).all()
    assert (np.diff(both[:, 0]) < 0).all()
    assert both[0, 0] == pytest.approx(1 / 4), "one of four concepts is another"
