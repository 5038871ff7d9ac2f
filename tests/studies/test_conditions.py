"""The conditions on an ideal CLIP: in which scenes scorers of known behaviour meet them."""

from types import SimpleNamespace

import numpy as np
import pytest

from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import edge_holds
from menagerie.generators.captions.templates import TEMPLATES
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.studies.measures.conditions import (
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
    by_embeddings,
    by_scores,
    chance_of_parts,
    named_texts_of_all,
    scenes_in_which_holds,
)
from menagerie.studies.measures.probe_set import probe_axes
from tests.studies.known_embeddings import axes as known_axes
from tests.studies.known_embeddings import embedding

TEMPLATE = TEMPLATES["conjunction"]
NAMES = {name for part in PARTS for name in part.texts}


@pytest.fixture(scope="module")
def probe_set():
    """The scenes of a probe set, their axes, their numbers and their texts."""
    scenes = ProbeRecipe(world="tiny").plan(load_world("tiny"))["left_first"]
    made, numbers = probe_axes(SimpleNamespace(records=SimpleNamespace(scenes=scenes)))
    return scenes, made, numbers, named_texts_of_all(scenes, TEMPLATE, 0)


def found_of(score, probe_set, unsaid=()):
    """How often a scorer meets the conditions; `score` gives a number for a scene and a caption."""
    scenes, made, numbers, texts = probe_set
    scores = {
        name: np.array([score(scene, its[name]) for scene, its in zip(scenes, texts, strict=True)], float)[numbers]
        for name in NAMES
    }
    rows = by_scores(scores, made, dict(unsaid))
    return {(its["condition"], its["part"]): its["value"] for its in rows if its["measure"] == "holds"}


def knowing(scene, caption):
    """The number of true statements minus that of false ones."""
    shown = {f"{obj.texture} {obj.animal}" for obj in scene.objects}
    objects = [node for node in caption.graph.nodes if node != scene.background]
    true = [(node.removeprefix("no ") in shown) != node.startswith("no ") for node in objects]
    true += [edge_holds(edge, caption.graph, scene) for edge in caption.graph.edges]
    return sum(2 * one - 1 for one in true)


def bag(scene, caption):
    """The number of words that name something shown minus that of other words; "no" is ignored."""
    shown = {word for obj in scene.objects for word in (obj.animal, obj.texture)}
    named = [word for node in caption.graph.nodes if node != scene.background for word in node.split() if word != "no"]
    return sum(1 if word in shown else -1 for word in named)


def unplaced(scene, caption):
    """As `knowing`, without relations."""
    return knowing(scene, caption._replace(graph=caption.graph._replace(edges=())))


@pytest.mark.parametrize(("scorer", "held"), [(knowing, (1, 1, 1, 1)), (bag, (1, 0, 0, 0)), (unplaced, (1, 1, 0, 1))])
def test_scorers_meet_the_conditions_that_they_know_in_every_scene(scorer, held, probe_set):
    found = found_of(scorer, probe_set)
    assert {name: found[name, EVERY] for name in CONDITIONS} == dict(zip(CONDITIONS, held, strict=True))
    assert found[ALL, EVERY] == found[ALL, INDEPENDENT] == min(held)
    assert scorer is not knowing or {*found.values()} == {1.0}


def test_random_scores_meet_conditions_at_chance():
    made = known_axes(animals=20, views=4)
    random = np.random.default_rng(0)
    scores = {name: random.random((4, len(made.animals), len(made.textures))) for name in NAMES}
    for its in by_scores(scores, made, {}):
        if its["measure"] == "holds" and its["part"] != INDEPENDENT:
            spread = np.sqrt(its["chance"] / 4 / len(made.animals) / len(made.textures))
            assert its["value"] == pytest.approx(its["chance"], abs=6 * spread + 1e-9), its
    assert chance_of_parts(PARTS[:1]) == 1 / 4
    assert chance_of_parts(PARTS[:2]) == 1 / 9, "a text that is above two is the highest of three"


def test_a_part_holds_only_if_scene_and_counterfactual_are_right():
    made = known_axes(animals=4, textures=3)
    right = np.random.default_rng(1).random((2, 12, 6)) < 0.5
    others = {"swap": right[:, :, made.swaps], "mirror": right[:, made.mirrors][:, :, made.swaps]}
    for part in (part for part in PARTS if part.counterfactual):
        names = part.above[0]
        found = scenes_in_which_holds({names[0]: right.astype(float), names[1]: 0.5 + 0 * right}, part, made)
        assert (found == (right & others.pop(part.counterfactual))).all()
    assert not others


def test_only_embeddings_of_objects_are_nearer_to_another_view_than_to_the_swap():
    made = known_axes()
    told = {}
    for kind in ("object", "concept", "place"):
        rows = by_embeddings(embedding(kind, made), {}, made)
        told[kind] = {its["condition"]: its["value"] for its in rows if its["measure"] == "holds"}
        assert {*told[kind]} == {CATEGORISATION, BINDING, PLACE}
    assert told["object"][BINDING] > 0.95
    assert told["concept"][BINDING] == pytest.approx(0.5, abs=0.05)
    assert told["concept"][CATEGORISATION] > 0.95
    assert told["concept"][PLACE] == pytest.approx(0.5, abs=0.05)
    assert told["object"][PLACE] == pytest.approx(0.5, abs=0.05)
    assert told["place"][PLACE] > 0.95


def test_negation_holds_only_for_texts_near_what_they_do_not_deny():
    made, random = known_axes(animals=6, views=2), np.random.default_rng(0)
    shape = (2, len(made.animals), len(made.textures), 64)
    one, two, common = (random.normal(size=shape) for _ in range(3))
    good = dict(zip(NEGATED, (one, two, 3 * common - one, 3 * common - two), strict=True))
    bad = dict(zip(NEGATED, (one, two, one, two), strict=True))
    images = random.normal(size=shape)
    for texts, right in ((good, (0.9, 1)), (bad, (0, 0.1))):
        rows = by_embeddings(images, texts, made)
        first, _ = (its["value"] for its in rows if (its["condition"], its["measure"]) == (NEGATION, "holds"))
        assert right[0] <= first <= right[1]
