"""Scores of a benchmark's items: every image is encoded once, and every pair of image and text scored once."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Scores
from menagerie.generators.captions.templates import Caption
from menagerie.models.evaluation.encoding import BLOCK, Encode, encoded
from menagerie.models.scorer import Diverged, Scorer, Tensors


class Pair(NamedTuple):
    """An image of a benchmark, and a text."""

    image: int
    text: Caption


@torch.no_grad()
def score_items(
    scorer: Scorer, benchmark: Benchmark, items: Sequence[Item] | None = None, encode: Encode | None = None
) -> list[Scores]:
    """The scores (k, m) of each item, or of each of `items`; scores that are not finite raise.

    `encode` gives the codes of images; without it they are encoded here, block by block.
    """
    items = benchmark.items if items is None else items
    encode = encode or partial(encoded, scorer, benchmark.images)
    was_training = scorer.training
    scorer.eval()
    pairs = dict.fromkeys(Pair(image, text) for item in items for image in item.images for text in item.texts)
    texts_of: dict[int, list[Caption]] = {}
    for image, text in pairs:
        texts_of.setdefault(image, []).append(text)
    known: dict[Pair, float] = {}
    blocks = list(benchmark.blocks(list(texts_of), BLOCK))
    for block, code in zip(blocks, encode(blocks), strict=True):
        known.update(score_block(scorer, code, {image: texts_of[image] for image in block}))
    scorer.train(was_training)
    scores = [np.array([[known[Pair(i, text)] for text in item.texts] for i in item.images]) for item in items]
    if not all(np.isfinite(matrix).all() for matrix in scores):
        raise Diverged(f"{type(scorer).__name__} gives scores that are not finite numbers; train it again")
    return scores


def score_block(scorer: Scorer, code: Tensors, wanted: dict[int, list[Caption]]) -> Iterator[tuple[Pair, float]]:
    """The scores of some images with all their texts: all first texts, all second ones, and so on.

    `code` is that of the images. An image with fewer texts repeats its first, so that each round has the same shape:
    the last bit of a product may depend on it.
    """
    for k in range(max(map(len, wanted.values()))):
        row = [texts[k] if k < len(texts) else texts[0] for texts in wanted.values()]
        read = scorer.read([text for text, _ in row], [graph for _, graph in row])
        scores = scorer.paired(code, scorer.encode_texts(read))
        yield from zip(map(Pair, wanted, row), scores.float().cpu().tolist(), strict=True)
