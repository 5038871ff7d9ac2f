"""Ranks the candidates of a pool in two passes: a scorer with vectors compares all images with all texts, and one that
reads each pair by itself scores the best candidates of each query (image-text retrieval in ALBEF: Li et al. 2021)."""

from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.models.evaluation import scoring
from menagerie.models.evaluation.scoring import Encode
from menagerie.models.layers import evaluation_mode
from menagerie.models.scorer import Scorer
from menagerie.models.texts import map_tensors


class Reranked(NamedTuple):
    """Scores by which each image ranks the texts of a pool, and by which each text ranks the images."""

    by_image: Float[np.ndarray, "n m"]
    by_text: Float[np.ndarray, "n m"]
    pairs: int
    """Number of pairs that the second scorer read."""


def rerank(scorer: Scorer, pool: Pool, encode: Encode, first: Float[np.ndarray, "n m"], top: int) -> Reranked:
    """Rank the `top` best candidates of each query by `scorer`. All others come after them, in the order of `first`,
    the first scorer's scores of all pairs.

    Candidates that tie with the last of the best are among the best. Raises if `scorer` would read too many pairs.
    """
    by_image, by_text = top_candidates(first, top), top_candidates(first.T, top).T
    wanted = by_image | by_text
    columns = {text: column for column, text in enumerate(pool.texts)}  # equal texts are read once
    pairs = sum(int(wanted[:, column].sum()) * len(text) for text, column in columns.items())
    if pairs > scoring.MOST_PAIRS:
        raise UserError(
            f"the best {top} of each query are {pairs} pairs, and more than {scoring.MOST_PAIRS} aren't read one by "
            "one; lower --rerank-top"
        )
    scores = scores_of_pairs(scorer, pool, encode, wanted)
    scoring.check_finite_scores(scorer, [scores[wanted]])
    return Reranked(rank_chosen(scores, by_image, first), rank_chosen(scores.T, by_text.T, first.T).T, pairs)


def top_candidates(scores: Float[np.ndarray, "n m"], top: int) -> Bool[np.ndarray, "n m"]:
    """Return which candidates of each row are among the `top` best, or tie with the last of these."""
    if top >= scores.shape[1]:
        return np.ones(scores.shape, bool)
    return scores >= np.partition(scores, -top, axis=1)[:, -top, None]


@torch.no_grad()
def scores_of_pairs(
    scorer: Scorer, pool: Pool, encode: Encode, wanted: Bool[np.ndarray, "n m"]
) -> Float[np.ndarray, "n m"]:
    """Return the scores of the wanted pairs, each a mean over the text's phrasings; NaN for others. Equal texts tie."""
    out, blocks = np.full(wanted.shape, np.nan, np.float32), scoring.equal_blocks(pool.images)
    size = len(blocks[0])
    with evaluation_mode(scorer):
        read = scoring.text_embeddings(scorer, list(dict.fromkeys(chain.from_iterable(pool.texts))))
        for start, embedding in zip(range(0, len(wanted), size), encode(blocks), strict=True):
            places = np.argwhere(wanted[start : start + size]).tolist()
            distinct = list(dict.fromkeys((row, text) for row, column in places for text in pool.texts[column]))
            scores: list[float] = []
            for some in scoring.fill_last_block([distinct[k : k + size] for k in range(0, len(distinct), size)]):
                rows = torch.tensor([row for row, _ in some], device=scorer.device)
                images = map_tensors(embedding, itemgetter(rows))
                scores += scorer.pair_similarity(images, read([text for _, text in some])).float().cpu().tolist()
            known = dict(zip(distinct, scores, strict=False))  # the last block may be filled up
            for row, column in places:
                out[start + row, column] = np.mean([known[row, text] for text in pool.texts[column]])
    return out


def rank_chosen(
    scores: Float[np.ndarray, "n m"], chosen: Bool[np.ndarray, "n m"], first: Float[np.ndarray, "n m"]
) -> Float[np.ndarray, "n m"]:
    """Keep the scores of chosen candidates; others get lower ones, in the order of `first` and with the same ties."""
    out = np.where(chosen, scores, 0).astype(np.float32)
    for row, its in enumerate(chosen):
        if not its.all():
            place = np.unique(-first[row, ~its], return_inverse=True)[1]
            out[row, ~its] = np.floor(scores[row, its].min()) - 1 - place
    return out
