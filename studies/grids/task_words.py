"""What each task and each subset tests, in words for all reports."""

from collections.abc import Sequence

from menagerie.envs.slots import RELATIONS
from menagerie.generators.splits.recipe_file import KINDS

# Each task's question: what the false caption says.
MEANINGS: dict[str, str] = {
    "swap size": "the two sizes exchanged; records whose animals differ in size",
    "one animal": "both captions mention one of the two animals, the false one with the other's texture",
    "replace texture": "one animal in a texture that the image does not show: recognition",
    "replace animal": "an animal that the image does not show in place of one: recognition",
    "replace size": "one animal in a size that it does not have: recognition",
    "replace relation": "the predicate of another relation: recognition",
    "add animal": "a third animal, which the image does not show, beside the two: recognition",
    "add attribute": "the true caption leaves out one animal's texture, the false one gives it one that the image does "
    "not show: recognition",
    "negation": "the true caption mentions one animal and denies an absent one, the false one denies one that is there",
    "pure negation": "the true caption denies an animal that is absent, the false one denies one that is there",
    "quad text": "two images and two captions, each true of one image: does each image prefer its own? Chance is 25 %; "
    "a model that prefers the same caption for both images has 0, so what is below chance is such a liking",
    "quad image": "does each of the two captions prefer its image? Chance is 25 %; with one image for both it is 0",
    "quad group": "both at once. Chance is 17 %",
}

# Accuracy in percent of who guesses, where it isn't 50.
CHANCES: dict[str, float] = {"quad text": 25.0, "quad image": 25.0, "quad group": 100 / 6}

# Each test's scenes.
SUBSETS: dict[str, str] = {
    "seen_pairs": "animal pairs of training with their two textures swapped, where training doesn't show the swap",
    "unseen_pairs": "animal pairs that no cell trains on",
    "different_bag": "animal pairs of training in textures other than theirs there: another bag of words",
    "train_pairs": "animal pairs of training that it shows swapped too, in new views; empty where none is",
    "seen_order": "animal pairs of training in the order that it shows, in new views: fitting, not generalising",
    "unseen_order": "animal pairs of training in the order that it doesn't show",
    "seen_counts": "animals that training shows in several copies",
    "unseen_counts": "animals that training shows only singly",
    "seen_textures": "animals in the texture that training shows most on them",
    "unseen_textures": "animals in the texture that training never shows on them",
    "held_out": "what the hold-out rules take out of training",
    "validation": "scenes set apart for choosing settings, as tuning does",
}


def subsets_explained(tests: Sequence[str]) -> dict[str, str]:
    """The tests that a report shows, each with its scenes: those of relations once, those of single rules not."""
    shown = [name for name in SUBSETS if any(test == name or test.endswith(f"_{name}") for test in tests)]
    return {name: SUBSETS[name] for name in shown}


def columns_explained(columns: Sequence[tuple[str, str]], kind: str) -> dict[str, str]:
    """The subsets and the tasks in the columns of a table of a kind of split, subsets as its header has them."""
    subsets = [subset for subset, _ in columns]
    texts = {name.replace("_", " "): text for name, text in subsets_explained(subsets).items()}
    prefixes = [relation.replace("/", "_") for relation in RELATIONS.values()]
    if shown := [name.replace("_", " ") for name in prefixes if any(its.startswith(f"{name}_") for its in subsets)]:
        texts[", ".join(shown)] = "the relation between an image's two animals, which its caption states"
    return texts | explained([task for _, task in columns], f"the hard negative: {KINDS[kind].task}")


def explained(tasks: Sequence[str], swap: str) -> dict[str, str]:
    """The tasks that a table shows, each with its question; `swap` says what a hard negative is in this study."""
    meanings = {"swap": swap} | MEANINGS
    return {task: meaning for task, meaning in meanings.items() if task in tasks}
