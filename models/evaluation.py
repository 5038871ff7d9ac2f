"""Caption against hard negative: which does the scorer prefer?"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from envs.errors import UserError
from generators.dataset import SplitDataset
from models.scorer import Scorer
from models.towers import normalise

# Images and texts are compared in blocks of this many; only the diagonal is used.
BLOCK = 32


@dataclass(frozen=True)
class BinaryScores:
    """Scores (n,) of each image with its true caption and with its hard negative."""

    true: Float[np.ndarray, " n"]
    negative: Float[np.ndarray, " n"]

    @property
    def accuracy(self) -> float:
        """Share of images whose true caption scores higher; a tie counts one half; NaN if none."""
        return float(np.mean((self.true > self.negative) + 0.5 * (self.true == self.negative))) if self.n else np.nan

    @property
    def tie_rate(self) -> float:
        """Share of images whose two captions score the same; NaN if none."""
        return float(np.mean(self.true == self.negative)) if self.n else np.nan

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.true)


@torch.no_grad()
def score_negatives(scorer: Scorer, data: SplitDataset) -> BinaryScores:
    """Score every image of `data` with its caption and its hard negative; all must have one."""
    scorer.eval()
    r = data.records
    if not all(r.negatives):
        raise UserError(f"some scenes of this subset of {data.split.path} have no hard negative to score")
    true, negative = [np.empty(0, np.float32)], [np.empty(0, np.float32)]
    for start in range(0, len(data), BLOCK):
        block = slice(start, start + BLOCK)
        pixels = normalise(data.images(range(len(data))[block]).to(scorer.log_scale.device))
        images = scorer.encode_images(pixels)
        for out, captions, graphs in ((true, r.captions, r.graphs), (negative, r.negatives, r.negative_graphs)):
            texts = scorer.encode_texts(captions[block], graphs[block])
            out.append(scorer.similarity(images, texts).diagonal().float().cpu().numpy())
    scores = BinaryScores(np.concatenate(true), np.concatenate(negative))
    if not (np.isfinite(scores.true).all() and np.isfinite(scores.negative).all()):
        raise UserError(f"{type(scorer).__name__} gives scores that are not finite numbers; train it again")
    return scores
