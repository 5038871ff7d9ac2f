"""Probes: whether a linear reader can tell which animal has which texture, on pairs of animals not trained on. Linear
readers are logistic regressions of standardised dimensions, tested on held-out folds."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num
from scipy.optimize import minimize_scalar
from threadpoolctl import threadpool_limits

from menagerie.envs.core.errors import UserError
from menagerie.studies.measures.probe_set import Measured, ProbeAxes

FOLDS = 3
WIDEST = 128  # dimensions; wider embeddings are reduced to as many principal components
PENALTY = 1e-2  # times half of the squared weights, added to the mean loss
LOSSES = 4  # binary variables of a scene: its two animals with its two textures
SCALES = (-9.0, 9.0)  # natural logarithms of the scales that are tried, for margins whose mean size is 1
one_core = threadpool_limits.wrap(limits=1)  # small matrices: several threads mostly wait for one another


def bits(margins: Float[np.ndarray, "..."], losses: int = 1) -> Measured:
    """Return the bits of margins m: 1 - losses * min over b >= 0 of mean log2(1 + exp(-b m)), and at least 0. Chance is
    0, and 1 is all.

    A margin is positive if the answer to a binary question is right. The bits are a lower bound of the mutual
    information between answer and margin: the question's entropy minus the loss of a reader (2606.03976). Ours
    conditions on which objects and textures a scene has, so that exactly 1 bit is left. That paper adds up the losses
    of all questions "has this object this attribute?": in a scene of two there are 4 (`LOSSES`), so that a reader that
    errs with probability e is left with 1 - 4 H(e). Fitting b adds less than 0.001 bit for a thousand margins."""
    flat = np.asarray(margins, np.float64).reshape(-1)
    if not len(flat) or not np.isfinite(flat).all():
        raise UserError("there must be margins of scenes, all of them finite")
    if (flat > 0).all():
        return Measured(1.0, 0.0)  # what a growing b tends to
    flat = flat / (np.abs(flat).mean() or 1.0)

    def loss(log_scale: float) -> float:
        return float(np.logaddexp(0, -np.exp(log_scale) * flat).mean())

    found = minimize_scalar(loss, bounds=SCALES, method="bounded", options={"xatol": 1e-4})
    return Measured(max(0.0, 1 - losses * float(found.fun) / np.log(2)), 0.0)


class BindingProbes(NamedTuple):
    """Bits, of exactly 1 bit, that probes read. An embedding may bind though a linear probe is at chance: one with
    separate coordinates for each place has 0 `bits`, but 1 `place_bits`."""

    bits: Measured
    """By probes of the texture of each animal."""
    place_bits: Measured
    """By probes of the left animal and of the left texture, which are both right or both wrong."""
    bernoulli_bits: Measured
    """By probes of the texture of each animal, as a sum of losses over animals and textures."""


@one_core
def probe_binding(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> BindingProbes:
    """Read which animal has which texture by multinomial logistic probes, trained on other pairs of animals, as in
    Koishigarina et al. (2502.03566), with swaps and mirrors kept together; bits are after 2606.03976."""
    axes.check(embeddings)
    x = standardise(embeddings)
    margins = object_margins(x, axes)
    return BindingProbes(bits(margins.sum(-1)), bits(place_margins(x, axes)), bits(margins, LOSSES))


def texture_margins(x: Float[np.ndarray, "v p q d"], axes: ProbeAxes) -> Float[np.ndarray, "v p q"]:
    """Return the sum of both objects' margins of each scene."""
    return object_margins(x, axes).sum(-1)


def object_margins(x: Float[np.ndarray, "v p q d"], axes: ProbeAxes) -> Float[np.ndarray, "v p q 2"]:
    """Return for both objects of each scene the logit of the object's texture minus that of the other's, by a probe for
    each animal."""
    margins, folds = np.zeros((*x.shape[:3], 2)), axes.folds(FOLDS)
    for animal in range(axes.kinds[0]):
        rows, side = np.nonzero(axes.animals == animal)
        shape = len(x), len(rows), x.shape[2]
        own, other = (np.broadcast_to(axes.textures[:, place].T, shape) for place in (side, 1 - side))
        logits = held_out_logits(x[:, rows], own, folds[rows][:, None], axes.kinds[1])
        of_own, of_other = (np.take_along_axis(logits, its[..., None], -1)[..., 0] for its in (own, other))
        margins[:, rows, :, side] = (of_own - of_other).swapaxes(0, 1)
    return margins


@one_core
def probe_left(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> Float[np.ndarray, "v p q"]:
    """Return the margins by which probes, one for each animal, say that the left animal of a scene is left."""
    axes.check(embeddings)
    return left_margins(standardise(embeddings), axes)[0]


def place_margins(x: Float[np.ndarray, "v p q d"], axes: ProbeAxes) -> Float[np.ndarray, "v p q"]:
    """Return the log-odds that the left texture of a scene is that of its left animal: that two binary variables are
    equal, 2 atanh(tanh(a / 2) tanh(t / 2)) of their own log-odds."""
    animal, texture = left_margins(x, axes)
    return np.logaddexp(0, animal + texture) - np.logaddexp(animal, texture)


def left_margins(
    x: Float[np.ndarray, "v p q d"], axes: ProbeAxes
) -> tuple[Float[np.ndarray, "v p q"], Float[np.ndarray, "v p q"]]:
    """Return the margins by which probes, one for each animal and each texture, say that the left ones are left."""
    folds = np.broadcast_to(axes.folds(FOLDS)[:, None], x.shape[1:3])
    of_animals = side_margins(x, axes.animals, folds)
    return of_animals, side_margins(x.swapaxes(1, 2), axes.textures, folds.T).swapaxes(1, 2)


def side_margins(
    x: Float[np.ndarray, "v r s d"], pairs: Int[np.ndarray, "r 2"], folds: Int[np.ndarray, "r s"]
) -> Float[np.ndarray, "v r s"]:
    """Return the margin by which probes say that the first of each ordered pair, along x's second axis, is left."""
    margins = np.zeros(x.shape[:3])
    for kind in range(pairs.max() + 1):
        rows, side = np.nonzero(pairs == kind)
        y = np.broadcast_to((side == 0)[:, None].astype(int), (len(x), len(rows), x.shape[2]))
        margins[:, rows] += np.where(side == 0, 1, -1)[:, None] * held_out_logits(x[:, rows], y, folds[rows], 2)[..., 1]
    return margins


def standardise(embeddings: Num[np.ndarray, "*n d"], widest: int = WIDEST) -> Float[np.ndarray, "*n e"]:
    """Scale embeddings to mean 0 and variance 1 in each dimension; dimensions that don't vary become 0. Embeddings
    wider than `widest` are first reduced to `widest` principal components."""
    flat = embeddings.reshape(-1, embeddings.shape[-1])
    flat = flat - flat.mean(0)
    if flat.shape[1] > widest:
        from sklearn.utils.extmath import randomized_svd

        flat = flat.astype(np.float32)
        flat = flat @ randomized_svd(flat, widest, n_iter=2, random_state=0)[2].T
    flat = flat.astype(np.float64)
    spread = flat.std(0)
    alive = spread > 1e-6 * spread.max()  # what a dead unit varies by is rounding
    return np.where(alive, flat / np.where(alive, spread, 1), 0).reshape(*embeddings.shape[:-1], -1)


def held_out_logits(
    x: Float[np.ndarray, "*n d"], y: Int[np.ndarray, "*n"], fold: Int[np.ndarray, "..."], classes: int
) -> Float[np.ndarray, "*n classes"]:
    """Return the logits of each embedding by a multinomial logistic regression that was trained on the other folds;
    raises `UserError` if training lacks a class."""
    from sklearn.linear_model import LogisticRegression

    rows, labels, folds = x.reshape(-1, x.shape[-1]), y.reshape(-1), np.broadcast_to(fold, y.shape).reshape(-1)
    logits = np.zeros((len(rows), classes))
    for f in np.unique(folds):
        train = folds != f
        if len(np.unique(labels[train])) < classes:
            raise UserError("the probe set is too small: without the held-out scenes a probe lacks a class")
        reader = LogisticRegression(C=1 / (PENALTY * train.sum()), max_iter=1000).fit(rows[train], labels[train])
        found = reader.decision_function(rows[~train])
        logits[~train] = np.stack([0 * found, found], 1) if classes == 2 else found
    return logits.reshape(*y.shape, classes)


def ridge(x: Float[np.ndarray, "n k"], y: Float[np.ndarray, "n d"], penalty: float) -> Float[np.ndarray, "k d"]:
    """Return the weights of a linear map from x to y, fitted with a penalty on their squares."""
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)


def view_product(d: Float[np.ndarray, "v *n d"]) -> Float[np.ndarray, "*n"]:
    """Return the mean inner product between two different views, over all pairs of views."""
    views = len(d)
    return ((d.sum(0) ** 2).sum(-1) - (d**2).sum((0, -1))) / (views * (views - 1))
