"""Unbound bits: what an embedding tells of which animals and textures a scene has, but not which belong together."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num

from menagerie.studies.embeddings.axes import ProbeAxes
from menagerie.studies.embeddings.bits import set_bits
from menagerie.studies.embeddings.linear import held_out_logits, one_core, standardise
from menagerie.studies.embeddings.measured import Measured
from menagerie.studies.embeddings.probes import FOLDS


class Unbound(NamedTuple):
    """Bits about the sets of a scene's animals and textures, its bag: of both, of animals, of textures."""

    bits: Measured
    animals: Measured
    textures: Measured
    entropy: Measured
    """Bits of the bag in total: exactly log2(C(n, 2) C(t, 2))."""


@one_core
def unbound(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> Unbound:
    """Return the entropy of the bag minus its held-out cross-entropy, on pairs of animals that the reader wasn't
    trained on.

    A multinomial logistic reader, trained on both animals of each scene, scores animals. The likelihood of two
    different animals is proportional to exp(b (sum of their scores)), with b >= 0 fitted to the test. Textures are read
    in the same way. The result is a lower bound, as in 2606.03976.
    """
    axes.check(embeddings)
    x = standardise(embeddings)
    folds = np.broadcast_to(axes.folds(FOLDS)[:, None], x.shape[1:3])
    found = [set_bits_told(x, axes.animals, folds), set_bits_told(x.swapaxes(1, 2), axes.textures, folds.T)]
    (animals, of_animals), (textures, of_textures) = found
    told_of = (Measured(number, 0.0) for number in (animals + textures, animals, textures))
    return Unbound(*told_of, Measured(of_animals + of_textures, None))


def set_bits_told(
    x: Float[np.ndarray, "v r s d"], pairs: Int[np.ndarray, "r 2"], folds: Int[np.ndarray, "r s"]
) -> tuple[float, float]:
    """Return the bits that embeddings carry about the unordered pairs along the second axis, and their entropy."""
    sets, true = np.unique(np.sort(pairs, 1), axis=0, return_inverse=True)
    scenes = x.shape[:3]
    shown = np.broadcast_to(pairs[:, None], (*scenes, 2)).reshape(-1, 2)
    fold = np.broadcast_to(folds, scenes).reshape(-1)
    logits = held_out_logits(x.reshape(-1, x.shape[-1]), shown, fold, int(pairs.max()) + 1)
    of_row = np.broadcast_to(true.reshape(-1, 1), scenes).reshape(-1)
    return set_bits(logits[:, sets].sum(-1), of_row)
