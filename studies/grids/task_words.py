"""What each task tests, in words for the report of a grid."""

from collections.abc import Sequence

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
    "quad text": "two images and two captions, each true of one image: does each image prefer its own? Chance is 25 %",
    "quad image": "does each of the two captions prefer its image? Chance is 25 %",
    "quad group": "both at once. Chance is 17 %",
}


def explained(tasks: Sequence[str], swap: str) -> dict[str, str]:
    """The tasks that a table shows, each with its question; `swap` says what a hard negative is in this study."""
    meanings = {"swap": swap} | MEANINGS
    return {task: meaning for task, meaning in meanings.items() if task in tasks}
