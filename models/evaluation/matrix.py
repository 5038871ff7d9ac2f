"""Scores of all images of a pool with all its texts, in blocks: vectors are made once, other codes chunk by chunk."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.generators.captions.templates import Caption
from menagerie.models.evaluation.encoding import BLOCK, Encode
from menagerie.models.scorer import Diverged, Scorer

TEXTS = 256  # phrasings that are encoded at once
CHUNK = 8 * BLOCK  # images whose codes are kept while all texts pass
MOST_BYTES = 8 << 30  # of a matrix
Phrasings = tuple[Caption, ...]


class Columns(NamedTuple):
    """Some texts, encoded."""

    place: slice
    code: Any
    bounds: list[int]
    """Where the phrasings of each text begin, and where the last end; empty where a text is one row of the code."""


@torch.no_grad()
def score_pool(scorer: Scorer, pool: Pool, encode: Encode) -> Float[np.ndarray, "n m"]:
    """The score of every image with every text, float32; scores that are not finite raise.

    `encode` gives the codes of blocks of images. Equal texts are scored once, so that they tie.
    """
    shape = len(pool.images), len(pool.texts)
    if 4 * shape[0] * shape[1] > MOST_BYTES:
        raise UserError(f"{shape[0]} images with {shape[1]} texts take more than {MOST_BYTES >> 30} GB; give fewer")
    was_training = scorer.training
    scorer.eval()
    out = np.empty(shape, np.float32)
    texts = list(dict.fromkeys(pool.texts))
    place = {text: column for column, text in enumerate(texts)}
    columns = [place[text] for text in pool.texts]
    passes, codes = Passes(scorer, texts), encode(blocks_of(pool.images))
    for start in range(0, shape[0], CHUNK):
        rows = np.empty((min(CHUNK, shape[0] - start), len(texts)), np.float32)
        chunk = list(islice(codes, CHUNK // BLOCK))
        for own in passes:
            for k, code in enumerate(chunk):
                part = rows[k * BLOCK : (k + 1) * BLOCK]
                part[:, own.place] = scores_of(scorer, code, own)[: len(part)]
        out[start : start + CHUNK] = rows[:, columns]
    scorer.train(was_training)
    if not np.isfinite(out).all():
        raise Diverged(f"{type(scorer).__name__} gives scores that are not finite numbers; train it again")
    return out


def blocks_of(images: Sequence[int]) -> list[Sequence[int]]:
    """Images by blocks; the last of several is filled up with its first: last bits may depend on the shape."""
    blocks = [images[k : k + BLOCK] for k in range(0, len(images), BLOCK)]
    if len(blocks) > 1:
        blocks[-1] = [*blocks[-1], *blocks[-1][:1] * (BLOCK - len(blocks[-1]))]
    return blocks


class Passes:
    """All texts, encoded, as often as they are wanted: vectors are kept, other codes are made again."""

    def __init__(self, scorer: Scorer, texts: Sequence[Phrasings]) -> None:
        self.scorer, self.texts = scorer, texts
        self.size = max(1, TEXTS // max(map(len, texts)))  # texts of a block
        self.width = TEXTS if len(texts) > self.size else 0  # of one shape: last bits may depend on it
        self.vectors: Tensor | None = None

    def __iter__(self) -> Iterator[Columns]:
        if self.vectors is None:
            blocks = self._blocks()
            first = next(blocks)
            if first.bounds:
                yield from chain([first], blocks)
                return
            self.vectors = torch.cat([first.code, *(block.code for block in blocks)])
        yield Columns(slice(0, len(self.texts)), self.vectors, [])

    def _blocks(self) -> Iterator[Columns]:
        for start in range(0, len(self.texts), self.size):
            block = self.texts[start : start + self.size]
            phrasings = list(chain.from_iterable(block))
            bounds = np.cumsum([0, *map(len, block)]).tolist()
            filled = phrasings + phrasings[:1] * (self.width - len(phrasings))
            code = self.scorer.encode_texts(self.scorer.read(*map(list, zip(*filled, strict=True))))
            place = slice(start, start + len(block))
            if isinstance(code, Tensor) and code.ndim == 2:
                yield Columns(place, averaged(code, bounds), [])
            else:
                yield Columns(place, code, bounds)


def averaged(code: Float[Tensor, "p d"], bounds: Sequence[int]) -> Float[Tensor, "m d"]:
    """One vector for each text: of several phrasings the mean of their directions, of length 1."""
    code = code[: bounds[-1]]
    if len(code) == len(bounds) - 1:
        return code
    parts = torch.tensor_split(normalize(code, dim=1), list(bounds[1:-1]))
    return normalize(torch.stack([part.mean(0) for part in parts]), dim=1)


def scores_of(scorer: Scorer, code: Any, own: Columns) -> Float[np.ndarray, "b m"]:
    """The scores of a block of images with some texts; of several phrasings the mean."""
    scores = scorer.similarity(code, own.code).float().cpu().numpy()
    if not own.bounds:
        return scores
    return np.add.reduceat(scores[:, : own.bounds[-1]], own.bounds[:-1], axis=1) / np.diff(own.bounds)
