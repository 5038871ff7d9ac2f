"""Scores images with texts: the items of a benchmark, or all images of a pool with all its texts.

A scorer encodes each image once. For a pool, vectors of texts are computed once, and other embeddings of texts again
for each chunk of images. A judge encodes nothing: it is asked for the scores of items."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn.functional import normalize

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Scores
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.generators.captions.templates import Caption
from menagerie.models.judges.judge import Judge
from menagerie.models.layers import evaluation_mode
from menagerie.models.scorer import Diverged, Scorer
from menagerie.models.texts import Tensors, concatenate, map_tensors

BLOCK = 32  # images encoded at once
Block = Sequence[int]
# Takes blocks of image numbers, each number in one block; yields the embedding of each block.
Encode = Callable[[Sequence[Block]], Iterator[Tensors]]
TEXTS = 256  # phrasings encoded at once
CHUNK = 8 * BLOCK  # images whose embeddings are kept in memory while all texts are scored
MOST_BYTES = 8 << 30  # of a matrix of scores
MOST_PAIRS = 1_000_000  # in a pool, for a scorer that reads images and texts together
MOST_TEXTS = 4096  # whose embeddings such a scorer keeps
Phrasings = tuple[Caption, ...]
Read = Callable[[Sequence[Caption]], Tensors]  # gives the embedding of texts
T = TypeVar("T")


def encode_blocks(
    scorer: Scorer,
    images: Callable[[Block], UInt8[Tensor, "n 3 h w"]],
    blocks: Sequence[Block],
    report: Callable[[int], None] = lambda count: None,
) -> Iterator[Tensors]:
    """Yield the embedding of each block of images; `images` gives the pixels of a block. `report` gets the number of
    images of each block before it is yielded."""
    for block in blocks:
        distinct = list(dict.fromkeys(block))
        pixels = images(distinct)
        report(len(distinct))
        again = len(distinct) < len(block)
        yield encode_pixels(scorer, pixels[[distinct.index(number) for number in block]] if again else pixels)


@torch.no_grad()
def encode_pixels(scorer: Scorer, pixels: UInt8[Tensor, "n 3 h w"]) -> Tensors:
    """Return the scorer's embedding of images, given in uint8."""
    return scorer.encode_images(scorer.pixel_scale(pixels.to(scorer.device)))


def check_finite_scores(scorer: Scorer, scores: Iterable[np.ndarray]) -> None:
    """Raise if a score isn't finite."""
    if not all(np.isfinite(matrix).all() for matrix in scores):
        raise Diverged(f"{type(scorer).__name__} gives scores that are not finite numbers; train it again")


def score_items(
    scorer: Scorer | Judge, benchmark: Benchmark, items: Sequence[Item] | None = None, encode: Encode | None = None
) -> list[Scores]:
    """Return the scores (k, m) of each of `items`, by default all of the benchmark: its k images with its m texts.

    `encode` gives the embeddings of images; by default they are computed block by block. Raises if a scorer's score
    isn't finite. A judge's are NaN where it has no verdict: `judged` in `menagerie.generators.benchmarks.benchmark`
    gives outcomes of these too."""
    items = benchmark.items if items is None else items
    if isinstance(scorer, Judge):
        return scorer.scores(benchmark, items)
    texts_of: dict[int, dict[Caption, None]] = {}
    for item in items:
        for image in item.images:
            texts_of.setdefault(image, {}).update(dict.fromkeys(item.texts))
    known: dict[tuple[int, Caption], float] = {}
    blocks = list(benchmark.blocks(list(texts_of), BLOCK))
    embeddings = encode(blocks) if encode else encode_blocks(scorer, benchmark.images, blocks)
    with evaluation_mode(scorer):
        read = text_embeddings(scorer, list(dict.fromkeys(text for item in items for text in item.texts)))
        for block, embedding in zip(blocks, embeddings, strict=True):
            known.update(score_block(scorer, read, embedding, {image: list(texts_of[image]) for image in block}))
    scores = [np.array([[known[i, text] for text in item.texts] for i in item.images]) for item in items]
    check_finite_scores(scorer, scores)
    return scores


def text_embeddings(scorer: Scorer, texts: Sequence[Caption]) -> Read:
    """Make a function that gives the embedding of some of the texts.

    It encodes them when it is called. But for a scorer with `pairs_only`, if there are at most `MOST_TEXTS` texts, all
    are encoded here, once, because the prior alone may take as long as all scores of a text.
    """
    if not (scorer.pairs_only and 0 < len(texts) <= MOST_TEXTS):
        return lambda some: encode_texts(scorer, some)
    blocks = fill_last_block([texts[k : k + TEXTS] for k in range(0, len(texts), TEXTS)])
    whole = concatenate([encode_texts(scorer, block) for block in blocks])
    row_of = {text: row for row, text in enumerate(texts)}

    def rows(some: Sequence[Caption]) -> Tensors:
        numbers = torch.tensor([row_of[text] for text in some], device=scorer.device)
        return map_tensors(whole, lambda tensor: tensor[numbers])

    return rows


def encode_texts(scorer: Scorer, texts: Sequence[Caption]) -> Tensors:
    """Return the scorer's embedding of texts."""
    return scorer.encode_texts(scorer.read([text for text, _ in texts], [graph for _, graph in texts]))


@torch.no_grad()
def text_vectors(scorer: Scorer, texts: Sequence[Caption]) -> dict[Caption, Float[np.ndarray, " _d"]]:
    """Return the unit vector of each text; nothing for a scorer without vectors of texts."""
    some, found = list(dict.fromkeys(texts)), {}
    with evaluation_mode(scorer):
        for block in fill_last_block([some[k : k + TEXTS] for k in range(0, len(some), TEXTS)]):
            if (vectors := scorer.vectors_of(encode_texts(scorer, block))) is None:
                return {}
            found.update(zip(block, normalize(vectors.float(), dim=1).cpu().numpy(), strict=True))
    return found


def score_block(
    scorer: Scorer, read: Read, embedding: Tensors, wanted: dict[int, list[Caption]]
) -> Iterator[tuple[tuple[int, Caption], float]]:
    """Yield the scores of a block of images with all their texts: first all first texts, then all second ones, and so
    on.

    `embedding` is the images' embedding, `read` gives that of texts. An image with fewer texts repeats its first, so
    that each round has the same shape: the last bit of a product may depend on it."""
    for k in range(max(map(len, wanted.values()))):
        row = [texts[k] if k < len(texts) else texts[0] for texts in wanted.values()]
        scores = scorer.pair_similarity(embedding, read(row))
        yield from zip(zip(wanted, row, strict=True), scores.float().cpu().tolist(), strict=True)


class Columns(NamedTuple):
    """Several encoded texts; their scores with images are the columns `place` of the matrix of all scores."""

    place: slice
    embedding: Tensors
    bounds: list[int]
    """First row of each text's phrasings in the embedding, and the end of the last; empty if each text is one row."""


@torch.no_grad()
def score_pool(scorer: Scorer, pool: Pool, encode: Encode) -> Float[np.ndarray, "n m"]:
    """Score every image with every text, as float32; raise if a score isn't finite, or if there are too many pairs.

    `encode` gives the embeddings of blocks of images. Equal texts are scored once, so that they tie.
    """
    shape = len(pool.images), len(pool.texts)
    if 4 * shape[0] * shape[1] > MOST_BYTES:
        raise UserError(f"{shape[0]} images with {shape[1]} texts take more than {MOST_BYTES >> 30} GB; give fewer")
    out = np.empty(shape, np.float32)
    texts = list(dict.fromkeys(pool.texts))
    if has_too_many_pairs(scorer, pool):
        passes = count_passes(pool)
        raise UserError(
            f"{type(scorer).__name__} reads each image together with each text: {len(pool.images)} images with "
            f"{passes // len(pool.images)} texts are {passes} passes, and more than {MOST_PAIRS} aren't made; leave "
            "out retrieval and classification with so many texts, or name a model with vectors whose best candidates "
            "it ranks again: transfer.py --rerank MODEL"
        )
    place = {text: column for column, text in enumerate(texts)}
    columns = [place[text] for text in pool.texts]
    with evaluation_mode(scorer):
        passes, embeddings = TextPasses(scorer, texts), encode(equal_blocks(pool.images))
        for start in range(0, shape[0], CHUNK):
            rows = np.empty((min(CHUNK, shape[0] - start), len(texts)), np.float32)
            chunk = list(islice(embeddings, CHUNK // BLOCK))
            for some in passes:
                for k, embedding in enumerate(chunk):
                    part = rows[k * BLOCK : (k + 1) * BLOCK]
                    part[:, some.place] = scores_of(scorer, embedding, some)[: len(part)]
            out[start : start + CHUNK] = rows[:, columns]
    check_finite_scores(scorer, [out])
    return out


def count_passes(pool: Pool) -> int:
    """Return the number of passes of a scorer with `pairs_only`: one for each image and different phrasing."""
    return len(pool.images) * sum(map(len, dict.fromkeys(pool.texts)))


def has_too_many_pairs(scorer: Scorer, pool: Pool) -> bool:
    """Whether a scorer reads each pair by itself, and a pool has more pairs than it can read in hours."""
    return scorer.pairs_only and count_passes(pool) > MOST_PAIRS


def equal_blocks(images: Sequence[int]) -> list[Sequence[int]]:
    """Divide images into blocks, all of one shape."""
    return fill_last_block([images[k : k + BLOCK] for k in range(0, len(images), BLOCK)])


def fill_last_block(blocks: list[Sequence[T]]) -> list[Sequence[T]]:
    """Fill up the last of several blocks with copies of its first item, since last bits may depend on the shape."""
    if len(blocks) > 1:
        last = blocks[-1]
        blocks[-1] = [*last, *last[:1] * (len(blocks[0]) - len(last))]
    return blocks


class TextPasses:
    """Yields all encoded texts each time it is iterated over. Vectors are kept, other embeddings are computed again."""

    def __init__(self, scorer: Scorer, texts: Sequence[Phrasings]) -> None:
        self.scorer, self.texts = scorer, texts
        self.size = max(1, TEXTS // max(map(len, texts)))  # texts in a block
        self.width = TEXTS if len(texts) > self.size else 0  # all blocks have one shape: last bits may depend on it
        self.vectors: Tensor | None = None

    def __iter__(self) -> Iterator[Columns]:
        if self.vectors is None:
            blocks = self._blocks()
            first = next(blocks)
            if first.bounds:
                yield from chain([first], blocks)
                return
            self.vectors = torch.cat([first.embedding, *(block.embedding for block in blocks)])
        yield Columns(slice(0, len(self.texts)), self.vectors, [])

    def _blocks(self) -> Iterator[Columns]:
        for start in range(0, len(self.texts), self.size):
            block = self.texts[start : start + self.size]
            phrasings = list(chain.from_iterable(block))
            bounds = np.cumsum([0, *map(len, block)]).tolist()
            full = phrasings + phrasings[:1] * (self.width - len(phrasings))
            embedding = encode_texts(self.scorer, full)
            place = slice(start, start + len(block))
            if isinstance(embedding, Tensor) and self.scorer.vectors_of(embedding) is not None:
                yield Columns(place, average_phrasings(embedding, bounds), [])
            else:
                yield Columns(place, embedding, bounds)


def average_phrasings(embedding: Float[Tensor, "p d"], bounds: Sequence[int]) -> Float[Tensor, "m d"]:
    """Return each text's mean unit vector, scaled to length 1; `embedding` itself if each text has one phrasing."""
    embedding = embedding[: bounds[-1]]
    if len(embedding) == len(bounds) - 1:
        return embedding
    parts = torch.tensor_split(normalize(embedding, dim=1), list(bounds[1:-1]))
    return normalize(torch.stack([part.mean(0) for part in parts]), dim=1)


def scores_of(scorer: Scorer, embedding: Tensors, texts: Columns) -> Float[np.ndarray, "b m"]:
    """Score a block of images with several texts. If a text has a row for each phrasing, its score is their mean."""
    scores = scorer.similarity(embedding, texts.embedding).float().cpu().numpy()
    if not texts.bounds:
        return scores
    return np.add.reduceat(scores[:, : texts.bounds[-1]], texts.bounds[:-1], axis=1) / np.diff(texts.bounds)
