"""A smooth guess of accuracy between the settings that were tried."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

# How far apart, in a cube of side 1, settings say of each other: half an edge. Not fitted: a dozen
# points don't determine it.
REACH = 0.5
# Variance put down to chance, as a share of the variance of what is guessed.
NOISE = 0.05
CHANCE = 0.5

Guess = Callable[[Float64[np.ndarray, "m d"]], tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, " m"]]]


def surrogate(points: Float64[np.ndarray, "n d"], values: Float64[np.ndarray, " n"]) -> Guess:
    """Gaussian process regression (scikit-learn's): gives mean and standard deviation at other points."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0) * RBF(REACH) + WhiteKernel(NOISE)
    process = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None).fit(points, values)
    return lambda others: process.predict(others, return_std=True)


def log_odds(accuracy: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Accuracy above chance on a scale without ends, on which more data goes on to count near 100 %."""
    share = np.clip((accuracy - CHANCE) / (1 - CHANCE), 0.02, 0.995)
    return np.log(share / (1 - share))


def trend(images: Float64[np.ndarray, " n"], odds: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " 2"]:
    """Slope and height of the line of log-odds by the logarithm of images; flat where images are all alike."""
    if len(np.unique(images)) < 2:
        return np.array([0.0, odds.mean()])
    return np.polyfit(np.log(images), odds, 1)
