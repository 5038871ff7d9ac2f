"""Scorers whose results are known, through every task of multi-object scenes, for two to six objects: nothing is
rendered."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.relations import RELATIONS
from menagerie.envs.world import PUG, TWELVE_TEXTURES
from menagerie.generators.benchmarks.benchmark import FOUR_WAY, FOUR_WAY_RULES, texts_chosen
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.relations import claims
from menagerie.generators.coverage import coverage_of
from menagerie.generators.parsers.world_grammar import parse_caption
from menagerie.generators.sources.information import information_of, mentions_in
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.studies.analysis.words import CHANCES, MEANINGS, explain_subsets
from tests.helpers.splits import in_memory

# Long captions for every task; few objects in train, so that tests have more than captions mention.
LONG = MultiObjectRecipe(
    **{"objects": (2, 6), "train_scenes": 120, "test_scenes": 40},
    **{"relations_stated": 5, "searches": (1, 3, 5), "triplets": (0, 1, 2)},
)
SHORT = MultiObjectRecipe(layout="overlap", train_scenes=120, test_scenes=40, coverage=0.5)
PAIRS = MultiObjectRecipe(
    train_scenes=120, test_scenes=40, coverage=0.5, objects=(1, 6), test_objects=(2,), exchanged=(2, 4, 6)
)
REPEATED = {"repeated animal", "repeated texture"}
RECIPES = {"long": LONG, "short": SHORT, "pairs": PAIRS}


def everything(scene):
    """All that is true of a scene, as claims."""
    nodes = (*map(phrase, scene.objects), scene.background)
    edges = tuple(Edge(RELATIONS[name].predicates[0], one, other) for name, one, other in scene.relations)
    return claims(SceneGraph(nodes, edges), frozenset(obj.animal for obj in scene.objects))


def perfect(scene, text):
    return float(claims(text.graph, frozenset(obj.animal for obj in scene.objects)) <= everything(scene))


def words(scene, text):
    """The share of a caption's words that would describe the scene, whatever belongs together."""
    known = {word for obj in scene.objects for word in phrase(obj).split()} | {scene.background}
    predicates = {word for its in RELATIONS.values() for name in its.predicates for word in name.split()}
    kept = set(text.text.split()) - predicates
    return len(kept & known) / len(kept)


def objects_alone(scene, text):
    """Knows which objects and textures there are and likes some combinations by chance; that is no binding."""
    return sum(generator(0, "likes", scene.key, node).random() for node in text.graph.nodes)


SCORERS: dict[str, Callable] = {
    "perfect": perfect,
    "inverted": lambda scene, text: -perfect(scene, text),
    "constant": lambda scene, text: 0.0,
    "random": lambda scene, text: generator(0, "random", scene.key, text.text).random(),
    "words": words,
    "objects alone": objects_alone,
}


@cache
def asked_of(name):
    split = in_memory(RECIPES[name])
    return {test: SplitTests(SplitDataset(split, test, preload=False)) for test in RECIPES[name].tests}


def outcomes(test, scorer, group):
    """The outcomes of the items of a group; pictures of counterfactuals follow those of records."""
    scenes, swap = test.data.records.scenes, RECIPES["long"].swap
    found = []
    for item in (item for item in test.items if item.task == group):
        shown = [scenes[i] if i < len(scenes) else swap(scenes[i - len(scenes)]) for i in item.images]
        found.append((item, np.array([[SCORERS[scorer](scene, text) for text in item.texts] for scene in shown])))
    return found


def test_tasks_are_there_for_every_number_of_objects():
    tasks = MultiObjectRecipe.tasks_of("seen_2")
    for n in PAIRS.exchanged:
        for kind in ("seen", "unseen"):
            test = asked_of("pairs")[f"{kind}_in_pairs_{n}"]
            assert set(test.tasks) == {"swap", f"exchanges of {n // 2}", FOUR_WAY}
            assert {len(item.texts) for item in test.items if item.task.startswith("exchanges")} == {2 ** (n // 2)}
    for n in range(2, 7):
        others = {f"assignment of {k}" for k in (2, 3, 4) if k != min(n, 4)}
        others |= {"swap all", *REPEATED} | ({"two mentioned"} if n == 2 else set())
        assert set(asked_of("long")[f"seen_{n}"].tasks) == {"swap", *tasks, FOUR_WAY} - others
        for kind in ("seen", "unseen"):
            apart = {"order", *REPEATED, *(f"assignment of {k}" for k in (2, 3, 4))}
            apart |= {"swap all"} if n <= 3 else set()
            apart |= {"two mentioned"} if n == 2 else set()
            assert set(asked_of("short")[f"{kind}_{n}"].tasks) == {"swap", *tasks, FOUR_WAY} - apart


@pytest.mark.parametrize(("name", "subset"), [(name, test) for name in RECIPES for test in RECIPES[name].tests])
def test_scorers_of_known_skill_have_known_accuracies_on_tasks(name, subset):
    for task in asked_of(name)[subset].tasks:
        if task != FOUR_WAY:
            check_known(name, subset, task)


def check_known(name, subset, task):
    test, recipe = asked_of(name)[subset], RECIPES[name]
    chance = CHANCES.get(task, 50) / 100
    rates = {}
    for scorer in SCORERS:
        results = [(item, test.outcome(item, scores)) for item, scores in outcomes(test, scorer, task)]
        few = task == "replace texture" and name == "short"  # a class of three textures, which may all be shown
        assert len(results) == recipe.test_scenes or few
        rates[scorer] = np.mean([outcome.neutral for _, outcome in results])
        if scorer == "constant":
            assert all(outcome.official == 0 and outcome.tied for _, outcome in results)
            assert {round(outcome.neutral, 9) for _, outcome in results} == {round(chance, 9)}
        if scorer == "perfect":
            assert all(outcome.official == 1 and not outcome.tied for _, outcome in results)
    assert rates["inverted"] == 0
    tolerance = 4 * np.sqrt(chance * (1 - chance) / recipe.test_scenes)
    assert abs(rates["random"] - chance) < tolerance
    if not task.startswith("replace"):  # which ask what is there
        # Texts that say the same have the same objects; a turned relation has the same too.
        same = {"paraphrase": 1 / 2}.get(task, chance)
        assert abs(rates["objects alone"] - same) < tolerance
        if not subset.startswith("search") and task not in ("order", *REPEATED):  # articles of repeated names differ
            assert rates["words"] == pytest.approx(chance)


@pytest.mark.parametrize("subset", ["seen_2", "seen_6", "search_feature_3", "search_conjunction_5", "triplets_1"])
def test_four_way_items(subset):
    test = asked_of("long")[subset]
    expected = {"text": 1 / 4, "image": 1 / 4, "group": 1 / 6}
    for scorer in SCORERS:
        matrices = [scores for _, scores in outcomes(test, scorer, FOUR_WAY)]
        for rule, chance in expected.items():
            neutral = np.mean([FOUR_WAY_RULES[rule](scores).neutral for scores in matrices])
            tolerance = 4 * np.sqrt(chance * (1 - chance) / len(matrices))
            if scorer in ("perfect", "inverted"):
                assert neutral == (scorer == "perfect")
            elif scorer in ("random", "objects alone"):
                assert abs(neutral - chance) < tolerance
            elif scorer == "constant":
                assert neutral == pytest.approx(chance)


@pytest.mark.parametrize(("name", "longest"), [("long", 6), ("short", 3)])
def test_texts_are_worded_as_they_are_parsed_and_as_long_as_in_train(name, longest):
    for test in asked_of(name).values():
        for item in test.items:
            assert all(parse_caption(text.text, test.data.split.vocabulary) == text.graph for text in item.texts)
            assert item.task == "swap all" or len(item.texts[0].graph.nodes) <= longest + 1


def test_captions_of_the_exchanged_objects_alone():
    for item in asked_of("long")["seen_5"].items:
        if item.task == "two mentioned":
            true, false = (set(text.graph.nodes) for text in item.texts)
            assert len(true - false) == len(false - true) == 2
            assert len(true & false) == 1  # the background


def test_a_false_caption_has_as_many_unseen_compositions_as_its_caption():
    """Otherwise it would give itself away."""
    coverage = coverage_of(vars(SHORT), PUG.animals, TWELVE_TEXTURES)
    unseen = {f"{texture} {animal}" for animal, texture in coverage.with_ranks(2, 3)}
    for test in (*asked_of("short").values(), *asked_of("pairs").values()):
        for item in test.items:
            numbers = {len(unseen.intersection(text.graph.nodes)) for text in item.texts}
            if test.data.subset.startswith("unseen_in_pairs"):
                assert numbers == {len(item.texts[0].graph.nodes) - 1}, "all objects"
            assert len(numbers) == 1, item
            assert numbers == {0} or test.data.subset.startswith("unseen")


def test_both_captions_repeat_a_name_of_objects_that_share_it():
    for triplets, found in {0: set(), 1: REPEATED, 2: {"repeated animal"}}.items():
        test = asked_of("long")[f"triplets_{triplets}"]
        assert REPEATED.intersection(test.tasks) == found
        for item in (item for item in test.items if item.task in found):
            at = item.task == "repeated animal"
            shown = {name for obj in test.data.records.scenes[item.images[0]].objects for name in obj[:2]}
            for text in item.texts:
                named = [node.split(maxsplit=1) for node in text.graph.nodes[:-1]]
                assert len({its[at] for its in named}) == 1
                assert {name for its in named for name in its} <= shown


def test_true_texts_above_false_ones():
    assert texts_chosen(np.array([[2.0, 3, 1]]), 2) == (1, 1, False)
    assert texts_chosen(np.array([[2.0, 1, 1]]), 2) == (0, 1 / 2, True)
    assert texts_chosen(np.array([[1.0, 1, 1]]), 2) == (0, 1 / 3, True)
    assert texts_chosen(np.array([[2.0, 0, 1]]), 2) == (0, 0, False)


def test_reports_explain_every_task_and_test():
    assert {"swap", *MultiObjectRecipe.tasks} <= {"swap", *MEANINGS}
    tests = [test for recipe in RECIPES.values() for test in recipe.tests]
    said = [
        "seen_N",
        "unseen_N",
        "search_feature_K",
        "search_conjunction_K",
        "triplets_T",
        "seen_in_pairs_N",
        "unseen_in_pairs_N",
    ]
    assert list(explain_subsets(tests)) == said


def test_information_of_captions_is_that_of_the_table():
    split = in_memory(SHORT)
    objects = [(t.animal, t.texture) for scene in split.subsets["train"].scenes for t in scene.objects]
    expected = normalized_mutual_info_score(*zip(*objects, strict=True))
    assert information_of(objects).information == pytest.approx(expected)
    graphs = [SceneGraph(("red cat", "small white dog", "table"))]
    assert list(mentions_in(graphs)) == [("cat", "red"), ("dog", "small"), ("dog", "white")]
    with pytest.raises(UserError, match="names an object with an attribute"):
        information_of([])
