"""A classifier that sees two texts and no picture, and says which of them is true.

It is a ridge regression on the difference of both texts' features, fitted on half of the animal pairs of a test and
scored on the other half, in turn.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from menagerie.envs.scene import Scene
from menagerie.generators.audit.chance import Contrast
from menagerie.generators.audit.symmetry import Turn

RIDGE = 1.0  # on features that are counts
NO_DIFFERENCE = 1e-9  # of two scores: then the classifier guesses

# The features of a text.
Features = Callable[[str], Sequence[Hashable]]


class Pair(NamedTuple):
    """A scene, its true text and its false one."""

    scene: Scene
    true: str
    false: str


def scored(pairs: Sequence[Pair], turn: Turn, features: Features, what: str) -> list[Contrast]:
    """How often the classifiers of either half of the animal pairs are right on the other half, less how often not."""
    if not pairs:
        return []
    table = differences(pairs, features)
    kinds = [frozenset(thing.animal for thing in pair.scene.things) for pair in pairs]
    number = {kind: i for i, kind in enumerate(sorted(set(kinds), key=sorted))}
    half = np.array([number[kind] % 2 for kind in kinds])
    groups = [turn.group(pair.scene) for pair in pairs]
    found = []
    for tested in (0, 1):
        own = np.flatnonzero(half == tested)
        if len(own) and len(own) < len(pairs):
            scores = table[own] @ fitted(table[half != tested])
            signs = np.sign(np.where(np.abs(scores) < NO_DIFFERENCE, 0, scores)).astype(int).tolist()
            found.append(
                right_less_wrong(what, [(groups[i], sign) for i, sign in zip(own.tolist(), signs, strict=True)])
            )
    return found


def differences(pairs: Sequence[Pair], features: Features) -> Float64[np.ndarray, "n features"]:
    """The counts of all features in the true texts less those in the false ones."""
    rows = [(features(pair.true), features(pair.false)) for pair in pairs]
    column = {its: i for i, its in enumerate(dict.fromkeys(its for both in rows for text in both for its in text))}
    table = np.zeros((len(pairs), len(column)))
    for row, both in zip(table, rows, strict=True):
        for sign, text in zip((1, -1), both, strict=True):
            for its in text:
                row[column[its]] += sign
    return table


def fitted(table: Float64[np.ndarray, "n features"]) -> Float64[np.ndarray, " features"]:
    """The weights of a ridge regression of 1 on the differences, true less false."""
    return np.linalg.solve(table.T @ table + RIDGE * np.eye(table.shape[1]), table.sum(0))


def right_less_wrong(what: str, signs: Sequence[tuple[Hashable, int]]) -> Contrast:
    """The contrast of a classifier's signs, 1 where it is right and -1 where it is wrong.

    A group's part lies within its number of records: what a coin turns round need not be the exact opposite.
    """
    sizes: dict[Hashable, int] = {}
    for group, _ in signs:
        sizes[group] = sizes.get(group, 0) + 1
    right, total = sum(sign > 0 for _, sign in signs), sum(sign for _, sign in signs)
    width = sum(size**2 for size in sizes.values()) ** 0.5
    return Contrast("the classifier is right", what, right, len(signs), float(total), width)
