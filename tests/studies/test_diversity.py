"""The study of diversity: what its runs are shown and tested on, what is recognised, and what the page concludes."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from menagerie.studies.diversity import PRESETS
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.measure import write_measured
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.recognition import (
    ANIMAL,
    COMPOSITION,
    NAME,
    Recognised,
    Recognition,
    recognition_chances,
    recognition_value,
)
from menagerie.studies.measures.robustness import effective_robustness, jump_along, slope_along
from tests.studies.stored import stored_run

COVERAGE = (0.167, 0.333, 0.5, 0.667, 0.833)
STUDY = replace(
    PRESETS["laptop"],
    **{"world": "twelve-textures", "classes": 6, "coverage": COVERAGE, "worlds": ("four-textures", "eight-textures")},
    **{"train_scenes": 600, "more_scenes": (1200,), "test_scenes": 60},
)
TESTS = ("seen_2", "unseen_2")


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    return list(STUDY.plan(Records((), tmp_path_factory.mktemp("none"))))


@pytest.fixture(scope="module")
def first(arms):
    """The recipes of the main runs of one seed, by supervision and coverage."""
    main = {"world": STUDY.world, "images": STUDY.train_scenes}
    return {
        (arm.labels["supervision"], arm.labels["coverage"]): arm.cell.data.recipe
        for arm in arms
        if arm.cell.seed == 0 and {name: arm.labels[name] for name in main} == main
    }


def test_all_places_of_the_study_are_planned_once_with_equal_steps(arms, first):
    assert len(first) == 15
    places = [(arm.cell.seed, *arm.labels.values()) for arm in arms]
    assert len({*places}) == len({arm.id for arm in arms}) == len(arms) == 3 * (15 + 4 + 1)
    assert len({arm.cell.recipe for arm in arms}) == 1, "as many steps for all"
    assert {(arm.labels["values"], arm.labels["combinations"]) for arm in arms} == {
        (4, 2), (8, 2), (8, 4), (8, 6), (12, 2), (12, 4), (12, 6), (12, 8), (12, 10),
    }  # fmt: skip


def test_tests_are_the_same_for_all_runs_and_in_no_training(first):
    tests, trained = set(), {}
    for (_, coverage), recipe in first.items():
        subsets = recipe.subsets()
        tests.add(tuple((scene, recipe.texts("unseen_2", scene)) for scene in subsets["unseen_2"]))
        cells = {(obj.animal, obj.texture) for scene in subsets["train"] for obj in scene.objects}
        unseen = {(obj.animal, obj.texture) for scene in subsets["unseen_2"] for obj in scene.objects}
        assert not cells & unseen
        assert len(cells) == round(coverage * 144)
        assert len(subsets["train"]) == STUDY.train_scenes
        trained.setdefault(coverage, set()).add(tuple(subsets["train"]))
    assert len(tests) == 1
    assert [len(images) for images in trained.values()] == [1] * 5, "supervision changes texts alone"


def test_only_captions_with_textures_mention_them(first):
    world = load_world(STUDY.world)
    for (supervision, _), recipe in first.items():
        texts = [recipe.texts("train", scene)[0].text for scene in recipe.subsets()["train"][:50]]
        words = {word for text in texts for word in text.split()}
        assert bool(words & {*world.textures}) == (supervision == "captions")


def test_the_pages_nmi_is_that_of_training_scenes(first):
    for (_, coverage), recipe in first.items():
        objects = [obj for scene in recipe.subsets()["train"] for obj in scene.objects]
        pairs = [[obj.animal for obj in objects], [obj.texture for obj in objects]]
        assert normalized_mutual_info_score(*pairs) == pytest.approx(STUDY.nmi(coverage), abs=0.03)


NAMES = [("cat", ""), ("dog", ""), ("pig", "")]
CELLS = [(animal, texture) for animal, _ in NAMES for texture in ("red", "white")]
SCENE = Scene("city", (Object("cat", "red", "front left"), Object("dog", "white", "front right")))


def values(scores, textures=True):
    rows = list(Recognition(textures).of_scene(SCENE, NAMES, CELLS if textures else [], np.array(scores, float)))
    assert {row["caption"] for row in rows} == {"red cat", "white dog"}
    return {task: [row["value"] for row in rows if row["task"] == task] for task in (ANIMAL, NAME, COMPOSITION)}


def test_recognition_of_scorers_of_known_scores():
    perfect = values([1, 1, 0, 1, 0, 0, 1, 0, 0])
    assert perfect == {ANIMAL: [1, 1], NAME: [1, 1], COMPOSITION: [1, 1]}
    assert values([0, 0, 1, 0, 1, 1, 0, 1, 1]) == {ANIMAL: [0, 0], NAME: [0, 0], COMPOSITION: [0, 0]}
    by_chance = recognition_chances(3, 2, 2)
    assert values([0] * 9) == {task: [chance] * 2 for task, chance in by_chance.items()} | {COMPOSITION: [1 / 5] * 2}
    knows_objects = values([1, 1, 0, 1, 1, 1, 1, 0, 0])  # but not which has which texture
    assert knows_objects == {ANIMAL: [1, 1], NAME: [1, 1], COMPOSITION: [1 / 3, 1 / 3]}
    assert values([1, 0, 0], textures=False) == {ANIMAL: [1, 1 / 2], NAME: [], COMPOSITION: []}
    assert recognition_value(0.5, np.array([0.5, 0.9, 0.2]), np.array([True, True, False])) == 1


def test_effective_robustness_is_the_distance_from_the_baselines_line():
    line = [0.6, 0.8, 0.9], [0.3, 0.5, 0.7]
    odds = [np.log(np.array(side) / (1 - np.array(side))) for side in line]
    slope, height = np.polyfit(*odds, 1)
    expected = 1 / (1 + np.exp(-(height + slope * np.log(0.7 / 0.3))))
    means = np.array([[0.7, expected + 0.2, *line[0], *line[1]], [0.7, expected, *line[0], *line[1]]])
    assert effective_robustness(1)(means) == pytest.approx([0.2, 0.0])
    two = np.array([[0.7, 0.7, expected + 0.1, expected - 0.3, *line[0], *line[1]]])
    assert effective_robustness(2)(two) == pytest.approx([-0.1])


def test_a_steady_rise_is_no_jump():
    rise = jump_along(COVERAGE)
    assert rise(np.array([COVERAGE])) == pytest.approx([0.0], abs=1e-9)
    assert rise(np.array([[0.1, 0.1, 0.8, 0.8, 0.8]]))[0] > 0.2
    assert rise(np.array([[0.1, 0.1, 0.1, 0.1, 0.8]]))[0] < -0.2
    assert jump_along((0.5, 0.75)) is None
    assert slope_along([0.1, 0.3])(np.array([[0.2, 0.6]])) == pytest.approx([0.2])


def measured(out, arm, skills, seed, right):
    """A stored run with given rates of recognition, by test and task, and as many swaps right."""
    labels = arm.labels
    stored = stored_run(out, arm.cell.model, seed, labels, right, name=f"run-{arm.id}", tests=TESTS)
    random, rows = np.random.default_rng(seed), []
    for (test, task), skill in skills.items():
        for pair in range(14):
            for number in range(12):
                about = {"scene": f"{pair} {number}", "caption": "a", "animals": f"pair {pair}"}
                rows.append({"subset": test, "task": task, "value": float(random.random() < skill)} | about)
    write_measured(out / "cells" / stored.id, STUDY.recognition(arm), None, rows)
    return Arm(stored.cell, labels)


@pytest.mark.parametrize("right", [1.0, 0.8])
def test_the_page_confirms_planted_effects_where_models_have_learnt(arms, tmp_path_factory, right):
    """Runs in which captions gain with coverage, n and k, and neither with classes nor with images."""
    out, made = tmp_path_factory.mktemp("diversity"), []
    late = {0.167: 0.1, 0.333: 0.2, 0.5: 0.25, 0.667: 0.5, 0.833: 0.65}
    for arm in arms:
        told, share = arm.labels["supervision"] == "captions", arm.labels["coverage"]
        skill = 0.5 + 0.4 * share if told else 0.3
        seen = 0.9 if told else 0.6 + 0.3 * share
        skills = {("seen_2", ANIMAL): seen, ("unseen_2", ANIMAL): skill}
        if told:
            more = 0.3 * (arm.labels["values"] == 12)
            skills |= {
                ("seen_2", COMPOSITION): seen,
                ("unseen_2", COMPOSITION): more + np.interp(share, [*late], [*late.values()]),
            }
        made.append(measured(out, arm, skills, arm.cell.seed, right))
    objects, swaps = Recognised(tuple(made), out, measure_of=STUDY.recognition), Records(tuple(made), out)
    verdicts = STUDY.verdicts(objects, swaps.where(task="swap", subset=TESTS))
    outcomes = {(its.claim.partition(": ")[2], its.row): its.outcome for its in verdicts}
    assert len(outcomes) == 9
    for (claim, row), outcome in outcomes.items():  # accuracy rises fastest after the coverages of the jump
        expected = "contradicted" if "jumps" in claim else "confirmed"
        assert outcome == (expected if right == 1 else "not testable"), (claim, row)
