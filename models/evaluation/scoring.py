"""Scores of a benchmark's items: every image is encoded once, and every pair of image and text scored once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from envs.common.errors import UserError
from generators.benchmarks.benchmark import Benchmark, Item, Scores
from generators.captions.templates import Caption
from models.scorer import Scorer, rows_of

# Images are encoded in blocks of this many, pairs scored in blocks of that many.
IMAGES, PAIRS = 32, 128


class Pair(NamedTuple):
    """An image of a benchmark, and a text."""

    image: int
    text: Caption


@torch.no_grad()
def score_items(scorer: Scorer, benchmark: Benchmark, items: Sequence[Item] | None = None) -> list[Scores]:
    """The scores (k, m) of each item, or of each of `items`; scores that are not finite raise."""
    items = benchmark.items if items is None else items
    was_training = scorer.training
    scorer.eval()
    pairs = dict.fromkeys(Pair(image, text) for item in items for image in item.images for text in item.texts)
    by_image: dict[int, list[Pair]] = {}
    for pair in pairs:
        by_image.setdefault(pair.image, []).append(pair)
    known: dict[Pair, float] = {}
    for block in blocks(list(by_image), IMAGES):
        known.update(score_block(scorer, benchmark, {image: by_image[image] for image in block}))
    scorer.train(was_training)
    scores = [np.array([[known[Pair(i, text)] for text in item.texts] for i in item.images]) for item in items]
    if not all(np.isfinite(matrix).all() for matrix in scores):
        raise UserError(f"{type(scorer).__name__} gives scores that are not finite numbers; train it again")
    return scores


def score_block(scorer: Scorer, benchmark: Benchmark, wanted: dict[int, list[Pair]]) -> Iterator[tuple[Pair, float]]:
    """The scores of all pairs of some images."""
    row = {image: i for i, image in enumerate(wanted)}
    images = scorer.encode_images(scorer.pixel_scale(benchmark.images(list(wanted)).to(scorer.device)))
    for pairs in blocks([pair for its in wanted.values() for pair in its], PAIRS):
        texts, graphs = zip(*(pair.text for pair in pairs), strict=True)
        rows = torch.tensor([row[pair.image] for pair in pairs], device=scorer.device)
        scores = scorer.paired(rows_of(images, rows), scorer.encode_texts(scorer.read(texts, graphs)))
        yield from zip(pairs, scores.float().cpu().tolist(), strict=True)


def blocks(things: Sequence, size: int) -> Iterator[Sequence]:
    """Parts of `size`, in order; the last may be smaller."""
    return (things[start : start + size] for start in range(0, len(things), size))
