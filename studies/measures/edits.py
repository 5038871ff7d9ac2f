"""Edits: whether a scorer takes a scene for its swap once the scene's embedding is moved towards the swap's."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num

from menagerie.envs.core.errors import UserError
from menagerie.studies.measures.axes import ProbeAxes, composition_means
from menagerie.studies.measures.measured import Measured, no_number

FOLDS = 2
COMPOSITIONS, OTHERS, PLACES, RANDOM = "compositions", "others", "places", "random"
Margins = Callable[[Num[np.ndarray, "v p q d"]], Float[np.ndarray, "v p q"]]
"""From embeddings to margins: s(x, c) - s(x, c') for each scene x, its caption c and the swapped caption c'."""


class Edits(NamedTuple):
    """Of the scenes whose own caption is preferred, the share in which an edit makes the swapped caption preferred.
    Chance is the share after a move as far in a random direction."""

    compositions: Measured
    """Moved by the mean embeddings of the scene's own compositions, in their places."""
    others: Measured
    """Moved by the mean embeddings of the same textures on two other animals."""
    places: Measured
    """Moved by the mean embeddings of textures in their places, over all animals."""


def measure_edits(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes, margins: Margins, seed: int = 0) -> Edits:
    """Measure how often edits change which caption is preferred. For both objects an edit adds omega_target -
    omega_source to an embedding z, where omega is the mean embedding of a composition or of a texture in a place, over
    scenes of other pairs of animals.

    Embeddings of several parts, such as keys and values of all patches, are given as one vector each. Uselis et al.
    (2605.31503) ask how vectors of compositions are composed; this is our causal test of such vectors."""
    axes.check(embeddings)
    right = margins(embeddings) > 0
    flipped = {}
    for name, moved in edited_embeddings(embeddings, axes, seed):
        flipped[name] = ((margins(moved) < 0) & right).sum() / max(1, right.sum())
    if not right.any():
        return Edits(*[no_number("no scene's own caption is preferred before the edit")] * 3)
    return Edits(*(Measured(flipped[name], flipped[RANDOM]) for name in (COMPOSITIONS, OTHERS, PLACES)))


def edited_embeddings(
    embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes, seed: int = 0
) -> Iterator[tuple[str, Num[np.ndarray, "v p q d"]]]:
    """Yield the name of each edit and the embeddings after it, one edit at a time, because embeddings may be large."""
    if axes.kinds[0] < 4:
        raise UserError(f"edits by compositions of two other animals need 4 animals, not {axes.kinds[0]}")
    random = np.random.default_rng(seed)
    folds = axes.folds(FOLDS)
    means = [composition_means(embeddings, axes, folds != fold) for fold in range(FOLDS)]
    others = np.array(
        [random.choice(np.setdiff1d(np.arange(axes.kinds[0]), pair), 2, replace=False) for pair in axes.animals]
    )
    ways = {
        COMPOSITIONS: lambda p: exchange(means[folds[p]], axes, axes.animals[p]),
        OTHERS: lambda p: exchange(means[folds[p]], axes, others[p]),
        PLACES: lambda p: exchange(means[folds[p]].mean(1, keepdims=True), axes, np.zeros(2, int)),
        RANDOM: lambda p: as_long(exchange(means[folds[p]], axes, axes.animals[p]), random),
    }
    for name, way in ways.items():
        yield name, embeddings + np.stack([way(p) for p in range(len(folds))]).astype(embeddings.dtype)


def exchange(
    means: Num[np.ndarray, "2 a t d"], axes: ProbeAxes, animals: Num[np.ndarray, " 2"]
) -> Num[np.ndarray, "q d"]:
    """Return by how much embeddings change when two animals exchange textures, for each pair of textures."""
    (left, right), (t, u) = animals, axes.textures.T
    return means[0, left, u] - means[0, left, t] + means[1, right, t] - means[1, right, u]


def as_long(moves: Num[np.ndarray, "q d"], random: np.random.Generator) -> Num[np.ndarray, "q d"]:
    """Draw random directions that are as long as `moves`."""
    drawn = random.normal(size=moves.shape)
    return drawn * np.linalg.norm(moves, axis=-1, keepdims=True) / np.linalg.norm(drawn, axis=-1, keepdims=True)
