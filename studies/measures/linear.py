"""Linear readers of embeddings: standardised dimensions, logistic regressions tested on held-out folds."""

import numpy as np
from jaxtyping import Float, Int, Num
from threadpoolctl import threadpool_limits

from menagerie.envs.core.errors import UserError

WIDEST = 128  # dimensions; wider embeddings are reduced to as many principal components
one_core = threadpool_limits.wrap(limits=1)  # small matrices: several threads mostly wait for one another
PENALTY = 1e-2  # times half of the squared weights, added to the mean loss


def standardise(embeddings: Num[np.ndarray, "*n d"], widest: int = WIDEST) -> Float[np.ndarray, "*n e"]:
    """Scale embeddings to mean 0 and variance 1 in each dimension; dimensions that don't vary become 0. Embeddings
    wider than `widest` are first reduced to `widest` principal components."""
    flat = embeddings.reshape(-1, embeddings.shape[-1])
    flat = flat - flat.mean(0)
    if flat.shape[1] > widest:
        from sklearn.utils.extmath import randomized_svd

        flat = flat.astype(np.float32)
        directions = randomized_svd(flat, widest, n_iter=2, random_state=0)[2]
        flat = flat @ directions.T
    flat = flat.astype(np.float64)
    spread = flat.std(0)
    alive = spread > 1e-6 * spread.max()  # what a dead unit varies by is rounding
    return np.where(alive, flat / np.where(alive, spread, 1), 0).reshape(*embeddings.shape[:-1], -1)


def held_out_logits(
    x: Float[np.ndarray, "n d"], y: Int[np.ndarray, " n"], fold: Int[np.ndarray, " n"], classes: int
) -> Float[np.ndarray, "n classes"]:
    """Return the logits of each row by a multinomial logistic regression that was trained on the other folds.

    Raises `UserError` if training lacks a class.
    """
    from sklearn.linear_model import LogisticRegression

    logits = np.zeros((len(x), classes))
    for f in np.unique(fold):
        train = fold != f
        if len(np.unique(y[train])) < classes:
            raise UserError("the probe set is too small: without the held-out scenes a probe lacks a class")
        reader = LogisticRegression(C=1 / (PENALTY * train.sum()), max_iter=1000).fit(x[train], y[train])
        found = reader.decision_function(x[~train])
        logits[~train] = np.stack([0 * found, found], 1) if classes == 2 else found
    return logits


def ridge(x: Float[np.ndarray, "n k"], y: Float[np.ndarray, "n d"], penalty: float) -> Float[np.ndarray, "k d"]:
    """Return the weights of a linear map from x to y, fitted with a penalty on their squares."""
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)
