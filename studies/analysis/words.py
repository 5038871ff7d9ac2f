"""Explanations in reports: terms, models with their papers, tests, tasks; and the warning about smoke runs."""

import re
from collections.abc import Sequence

from menagerie.envs.core.options import docstring
from menagerie.models.registry import is_own, scorer_class, spec_of

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


def explain_model(model: str) -> str:
    """Explain a model in a line, with its paper, as far as its spec gives these."""
    spec = spec_of(model)
    own = (docstring(scorer_class(model)) or "a class of the user's") if is_own(model) else ""
    says = f"{spec.title}: {spec.about}" if spec.about else spec.title or own.partition("\n")[0].removesuffix(".")
    return f"{says} ({spec.source})" if spec.source else says


LEAST_STEPS = 200  # a run of fewer measures nothing


def smoke_warning(most: int) -> str:
    """Return a warning for a report whose runs took at most `most` steps (0: unknown); empty if these are enough."""
    says = f"This is a smoke run: no model was trained for more than {most} steps."
    return f"{says} Its numbers say nothing about the models." if 0 < most < LEAST_STEPS else ""


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
    "add relation": "the true caption mentions one animal, the false one both in a wrong relation: a half-truth",
    "swap all": "both captions mention all objects of the scene, more than any training caption",
    "two mentioned": "both captions mention only the two objects whose textures are exchanged",
    **{
        f"assignment of {k}": f"the textures of {n} objects exchanged in every other way. Chance is {percent} %"
        for k, (n, percent) in {2: ("two", 50), 3: ("three", 17), 4: ("four", 4)}.items()
    },
    **{
        f"exchanges of {k}": f"the textures exchanged within {pairs}, in every way. Chance is {percent} %"
        for k, (pairs, percent) in {1: ("a pair", 50), 2: ("each of two pairs", 25), 3: ("each of three", 12.5)}.items()
    },
    "illusion": "both captions mention one object, the false one with the texture of another object of the scene",
    "repeated animal": "both captions mention an animal twice, in two textures; in the false one a texture is another "
    "animal's. All words are true of the image",
    "repeated texture": "both captions mention a texture twice, on two animals; in the false one an animal is there "
    "only in another texture. All words are true of the image",
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
    **{f"exchanges of {k}": 100 / 2**k for k in (1, 2, 3)},
    **{"text score": 25.0, "image score": 25.0, "group score": 100 / 6},
}

# The scenes in each test; N, K and T stand for a number.
SUBSETS: dict[str, str] = {
    "seen_pairs": "animal pairs of training with their two textures swapped, where training doesn't show the swap",
    "unseen_pairs": "animal pairs that no cell trains on",
    "different_bag": "animal pairs of training in textures other than theirs there: another bag of words",
    "one_unseen_composition": "scenes of which, or of whose swap, training never shows one combination of animal and "
    "texture",
    "two_unseen_compositions": "scenes of which, or of whose swap, training never shows either combination",
    "train_pairs": "animal pairs of training that it shows swapped too, in new views; empty where none is",
    "seen_arrangements": "animal pairs of training in its textures, in new views: fit, not generalisation",
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
    "seen_in_pairs_N": "N objects as in seen_N, pairs of which each can exchange its textures",
    "unseen_in_pairs_N": "the same, all in combinations that training doesn't show",
    "held_out": "what the hold-out rules take out of training",
    "validation": "scenes for choosing settings, as tuning does",
}


def explain_subsets(tests: Sequence[str]) -> dict[str, str]:
    """Return the tests in a report with their scenes; those that differ only in their relation or number once."""
    patterns = {name: rf"(.+_)?{re.sub('_[NKT]$', r'_[0-9]+', name)}" for name in SUBSETS}
    shown = [name for name, pattern in patterns.items() if any(re.fullmatch(pattern, test) for test in tests)]
    return {name: SUBSETS[name] for name in shown}
