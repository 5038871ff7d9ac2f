"""Embeddings of objects from those of patches, and whether two patches' embeddings tell if they show one object."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num
from scipy.optimize import minimize

from menagerie.envs.core.errors import UserError
from menagerie.studies.embeddings.axes import ProbeAxes
from menagerie.studies.embeddings.linear import one_core
from menagerie.studies.embeddings.measured import Measured, no_number

FOLDS = 3
SCENES = 1500  # drawn
PAIRS = 6  # of patches of each scene, half of them of the same object
RANK = 16
PENALTY = 1e-3
MOST = 0.95  # of pairs that a reader of places alone may tell rightly, so that there is something to measure


def patch_shares(masks: Int[np.ndarray, "v p q h w"], patches: int) -> Float[np.ndarray, "v p q n 2"]:
    """Return how much of each patch, row by row, the left object (1 in masks) and the right one (2) cover."""
    side, (height, width) = round(patches**0.5), masks.shape[-2:]
    if side**2 != patches or height % side or width % side:
        raise UserError(f"{patches} patches don't divide masks of {height} x {width} into equal squares")
    cut = masks.reshape(*masks.shape[:3], side, height // side, side, width // side)
    found = np.stack([(cut == obj).mean((4, 6)) for obj in (1, 2)], -1)
    return found.reshape(*masks.shape[:3], patches, 2)


def mask_means(
    tokens: Num[np.ndarray, "v p q n d"], masks: Int[np.ndarray, "v p q h w"]
) -> Num[np.ndarray, "v p q 2 d"]:
    """Return the mean embedding of the patches of each object, weighted by how much of each patch it covers."""
    weights = patch_shares(masks, tokens.shape[3])
    sizes = weights.sum(3, keepdims=True)
    if not sizes.all():
        raise UserError("an object of the probe set has no pixel in its mask")
    return np.matmul((weights / sizes).swapaxes(3, 4).astype(tokens.dtype), tokens)


class Same(NamedTuple):
    """Share of pairs of patches for which a reader tells if they show the same object; chance reads places alone."""

    tokens: Measured
    less_places: Measured
    """The same for tokens minus the mean token of their place over all scenes."""


class PatchPairs(NamedTuple):
    """m pairs of patches."""

    scenes: tuple[Int[np.ndarray, " m"], ...]
    """The view, p and q of each pair's scene."""
    patches: Int[np.ndarray, "m 2"]
    same: Bool[np.ndarray, " m"]
    """Whether both patches show the same object."""


@one_core
def same_object(
    tokens: Num[np.ndarray, "v p q n d"], masks: Int[np.ndarray, "v p q h w"], axes: ProbeAxes, seed: int = 0
) -> Same:
    """Measure IsSameObject (2510.24709): a reader x'(L'L - M'M)y + c of rank 16, trained on other pairs of animals,
    tells whether two patches show the same object. An object covers over half of each patch; half of the pairs show the
    same object.

    A left and a right object can be told apart by the places of patches alone. If these tell more than 95 % of pairs
    rightly, the measure is refused: it needs scenes whose objects overlap, or stand anywhere."""
    axes.check(tokens)
    drawn = draw_patch_pairs(patch_shares(masks, tokens.shape[3]), seed)
    fold = axes.folds(FOLDS)[drawn.scenes[1]]
    places = reader_accuracy(np.eye(tokens.shape[3])[drawn.patches], drawn.same, fold)
    if places > MOST:
        reason = f"places of patches alone tell {100 * places:.0f} % rightly: objects must overlap, or stand anywhere"
        return Same(no_number(reason, places), no_number(reason, places))
    kinds = (tokens, tokens - tokens.mean((0, 1, 2)))
    scenes = tuple(numbers[:, None] for numbers in drawn.scenes)
    found = (reader_accuracy(kind[(*scenes, drawn.patches)].astype(float), drawn.same, fold) for kind in kinds)
    return Same(*(Measured(share, places) for share in found))


def draw_patch_pairs(share: Float[np.ndarray, "v p q n 2"], seed: int) -> PatchPairs:
    """Draw scenes in which each object has at least two patches that are mostly its own, and pairs of such patches."""
    random = np.random.default_rng(seed)
    there = share > 0.5
    enough = np.argwhere((there.sum(3) >= 2).all(-1))
    if not len(enough):
        raise UserError("in no scene of the probe set both objects have two patches that are mostly theirs")
    scenes = np.repeat(enough[random.integers(len(enough), size=SCENES)], PAIRS, 0)
    same = np.arange(len(scenes)) % 2 == 0
    patches = [draw_pair(there[tuple(scene)], bool(one), random) for scene, one in zip(scenes, same, strict=True)]
    return PatchPairs(tuple(scenes.T), np.array(patches), same)


def draw_pair(there: Bool[np.ndarray, "n 2"], same: bool, random: np.random.Generator) -> list[int]:
    """Draw two patches of the same object, or one patch of each object."""
    of_objects = [np.flatnonzero(column) for column in there.T]
    if not same:
        return [int(of_object[random.integers(len(of_object))]) for of_object in of_objects]
    one = of_objects[random.integers(2)]
    first, step = random.integers(len(one)), random.integers(1, len(one))
    return [int(one[first]), int(one[(first + step) % len(one)])]


def reader_accuracy(x: Float[np.ndarray, "m 2 d"], same: Bool[np.ndarray, " m"], fold: Int[np.ndarray, " m"]) -> float:
    """Return the share of pairs told rightly, each by a reader that was trained without the pair's fold."""
    spread = x.std((0, 1))
    x = (x - x.mean((0, 1))) / np.where(spread > 0, spread, 1)
    right = 0
    for f in np.unique(fold):
        train, test = fold != f, fold == f
        right += ((reader_scores(fit_reader(x[train], same[train]), x[test]) > 0) == same[test]).sum()
    return float(right / len(x))


Reader = tuple[Float[np.ndarray, "d r"], Float[np.ndarray, "d r"], float]
"""L', M' and c."""


def fit_reader(x: Float[np.ndarray, "m 2 d"], same: Bool[np.ndarray, " m"]) -> Reader:
    """Fit the reader with the smallest logistic loss."""
    width, sign = x.shape[2], np.where(same, 1.0, -1.0)
    random = np.random.default_rng(0)
    start = np.append(0.1 * random.normal(size=2 * width * RANK), 0.0)

    def loss(flat: Float[np.ndarray, " k"]) -> tuple[float, Float[np.ndarray, " k"]]:
        reader = unpack_reader(flat, width)
        margins = sign * reader_scores(reader, x)
        slope = -sign / (1 + np.exp(np.clip(margins, -500, 500))) / len(x)
        gradients = [
            kind * (x[:, 0].T @ (slope[:, None] * (x[:, 1] @ part)) + x[:, 1].T @ (slope[:, None] * (x[:, 0] @ part)))
            + 2 * PENALTY * part
            for kind, part in ((1, reader[0]), (-1, reader[1]))
        ]
        value = np.logaddexp(0, -margins).mean() + PENALTY * (flat[:-1] ** 2).sum()
        return float(value), np.concatenate([*(part.reshape(-1) for part in gradients), [slope.sum()]])

    return unpack_reader(minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x, width)


def unpack_reader(flat: Float[np.ndarray, " k"], width: int) -> Reader:
    alike, unlike = flat[:-1].reshape(2, width, -1)
    return alike, unlike, float(flat[-1])


def reader_scores(reader: Reader, x: Float[np.ndarray, "m 2 d"]) -> Float[np.ndarray, " m"]:
    alike, unlike, constant = reader
    return (x @ alike).prod(1).sum(-1) - (x @ unlike).prod(1).sum(-1) + constant
