"""Explanations in reports: terms, models with their papers, tests, tasks; and the warning about smoke runs."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from menagerie.envs.core.options import docstring
from menagerie.models.registry import is_own, scorer_class, spec_of
from menagerie.studies.report.figures import model_label

# The same texts as in docs/glossary.md (tests/studies/test_report_words.py); a page shows the terms that it uses.
TERMS: dict[str, str] = {
    "scene": "what an image shows: a background, objects (an animal, its texture, its slot, perhaps its size), the "
    "number of a view",
    "view": "camera, light and jitter; tests and validation use numbers that training never uses",
    "world": "a vocabulary of scenes: animals, textures, backgrounds, perhaps sizes and sets of animals",
    "composition": "an animal in a texture",
    "pair": "two different animals, in either order; intervals are over the differences between pairs",
    "recipe": "the values that determine a split; or those of a training run: steps, batch, learning rates",
    "split": "named subsets of a world's scenes with captions, hard negatives and graphs: train, validation and tests",
    "record": "an image of a test with its true caption and, for each task, false ones",
    "counterfactual": "the scene of which a hard negative is true",
    "test pairs": "the pairs that no fraction puts into train, in the test unseen_pairs",
    "single-object phase": "the first steps of a run, which show scenes of one object alone",
    "cell": "one training run with its evaluation",
    "place": "a point of a grid: one value of each field that varies",
}


def one_line(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


def explain_models(models: Sequence[str]) -> dict[str, str]:
    """Return a line for each model, by its name in tables: what it does, and its paper."""
    return {model_label(model): explain_model(model) for model in models}


def explain_model(model: str) -> str:
    """Explain a model in a line, with its paper, as far as its spec gives these."""
    spec = spec_of(model)
    own = (docstring(scorer_class(model)) or "a class of the user's") if is_own(model) else ""
    says = f"{spec.title}: {spec.about}" if spec.about else spec.title or own.partition("\n")[0].removesuffix(".")
    return f"{says} ({spec.source})" if spec.source else says


# A run with fewer steps or records than this measures nothing.
LEAST_STEPS, LEAST_RECORDS = 200, 50


def smoke_warning(steps: Iterable[int], records: Iterable[int] = ()) -> str:
    """Return a warning for the head of a smoke run's report; empty for other runs.

    `steps` has the steps of its training runs, `records` the number in each test; either may be empty if unknown.
    """
    most, largest = max(steps, default=0), max(records, default=0)
    few = []
    if 0 < most < LEAST_STEPS:
        few.append(f"no model was trained for more than {most} steps")
    if 0 < largest < LEAST_RECORDS:
        few.append(f"no test has more than {largest} record{'s' * (largest > 1)}")
    return f"This is a smoke run: {' and '.join(few)}. Its numbers say nothing about the models." if few else ""


def records_in(results: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of records of all finished runs: in each test, by task, and in each benchmark."""
    parts = [tasks.values() for result in results for tasks in result.get("subsets", {}).values()]
    whole = [sum(task["n"] for task in result["tasks"].values()) for result in results if "tasks" in result]
    return [scores["n"] for tasks in parts for scores in tasks] + whole


# By task, how its captions differ.
MEANINGS: dict[str, str] = {
    "swap size": "the two sizes exchanged; records whose animals differ in size",
    "one animal": "both captions mention one of the two animals, the false one with the other's texture",
    "replace texture": "the texture of one animal replaced by one that isn't in the image: recognition",
    "replace animal": "one animal replaced by one that isn't in the image: recognition",
    "replace size": "the size of one animal replaced by a wrong one: recognition",
    "replace relation": "the predicate replaced by that of another relation: recognition",
    "add animal": "a third animal added, which isn't in the image: a half-truth; recognition",
    "add attribute": "the true caption leaves out one animal's texture, the false one has a texture that isn't in the "
    "image: a half-truth; recognition",
    "swap all": "both captions mention all objects of the scene, more than any training caption",
    "two mentioned": "both captions mention only the two objects whose textures are exchanged",
    **{
        f"assignment of {k}": f"the textures of {n} objects exchanged in every other way. Chance is {percent} %"
        for k, (n, percent) in {2: ("two", 50), 3: ("three", 17), 4: ("four", 4)}.items()
    },
    "illusion": "both captions mention one object, the false one with the texture of another object of the scene",
    "order": "two objects of the stated relations exchanged, or a relation reversed",
    "paraphrase": "two captions with the same content in two orders must both beat the swapped one. Chance is 33 %",
    "negation": "the true caption mentions one animal and denies an absent one, the false one denies one that is there",
    "pure negation": "the true caption denies an animal that is absent, the false one denies one that is there",
    "text score": "two images and two captions, each true of one image: does each image prefer its caption? Chance is "
    "25 %; a model that prefers the same caption for both images has 0",
    "image score": "does each of the two captions prefer its image? Chance is 25 %",
    "group score": "both text and image score are right. Chance is 17 %",
}

# Accuracy of guessing in percent, if it isn't 50.
CHANCES: dict[str, float] = {
    **{"paraphrase": 100 / 3, "assignment of 3": 100 / 6, "assignment of 4": 100 / 24},
    **{"text score": 25.0, "image score": 25.0, "group score": 100 / 6},
}

# Beginnings of names of tests that end in a number, and the placeholder of the number in `SUBSETS`.
NUMBERED = {name: f"_{end}" for name, end in (("seen", "N"), ("unseen", "N"), ("triplets", "T"))} | {
    f"search_{kind}": "_K" for kind in ("feature", "conjunction")
}

# The scenes in each test.
SUBSETS: dict[str, str] = {
    "seen_pairs": "animal pairs of training with their two textures swapped, where training doesn't show the swap",
    "unseen_pairs": "animal pairs that no cell trains on",
    "different_bag": "animal pairs of training in textures other than theirs there: another bag of words",
    "train_pairs": "animal pairs of training that it shows swapped too, in new views; empty where none is",
    "seen_order": "animal pairs of training in the order that it shows, in new views: fit, not generalisation",
    "unseen_order": "animal pairs of training in the order that it doesn't show",
    "seen_counts": "animals that training shows in several copies",
    "unseen_counts": "animals that training shows only singly",
    "seen_textures": "animals in the texture that training shows most on them",
    "unseen_textures": "animals in the texture that training never shows on them",
    "seen_N": "N objects, in combinations of animal and texture that training shows",
    "unseen_N": "N objects, of which the two exchanged ones are in combinations that training doesn't show",
    "search_feature_K": "one object among K others that share neither its animal nor its texture",
    "search_conjunction_K": "one object among K others, half of which share its animal and half its texture",
    "triplets_T": "four objects, with T triplets: an object, another of its animal, another of its texture",
    "held_out": "what the hold-out rules take out of training",
    "validation": "scenes for choosing settings, as tuning does",
}

# Subsets in titles of figures.
TITLES = {
    "seen_pairs": "Seen pairs,\nswapped textures",
    "unseen_pairs": "Unseen pairs",
    "different_bag": "Different bag,\nother textures",
    "train_pairs": "Training pairs,\nnew views",
    "left_right_seen_order": "Left/right,\nseen order",
    "left_right_unseen_order": "Left/right,\nunseen order",
    "left_right_unseen_pairs": "Left/right,\nunseen pairs",
    "above_under_seen_order": "Above/under,\nseen order",
    "above_under_unseen_order": "Above/under,\nunseen order",
    "above_under_unseen_pairs": "Above/under,\nunseen pairs",
}


def explain_subsets(tests: Sequence[str]) -> dict[str, str]:
    """Return the tests in a report, each with its scenes. Tests that differ only in their relation are listed once;
    tests of single hold-out rules are left out."""
    starts = {test: re.sub(r"_\d+$", "", test) for test in tests}
    numbered = {start + NUMBERED[start] if start in NUMBERED else test for test, start in starts.items()}
    shown = [name for name in SUBSETS if any(test == name or test.endswith(f"_{name}") for test in numbered)]
    return {name: SUBSETS[name] for name in shown}


def explain_tasks(tasks: Sequence[str], swap: str) -> dict[str, str]:
    """Return the tasks of a table with their meanings; `swap` describes this study's hard negative."""
    meanings = {"swap": swap} | MEANINGS
    return {task: meaning for task, meaning in meanings.items() if task in tasks}


def wrap(text: str, width: int = 30) -> str:
    """Break a text into lines of at most `width` characters; its own line breaks stay."""
    return "\n".join(line for given in text.split("\n") for line in textwrap.wrap(given, width))
