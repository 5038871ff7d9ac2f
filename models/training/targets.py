"""Finds which texts of a batch are positives of which images; computed before the step, not in it."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool
from scipy.sparse import csr_matrix

from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import plain_text
from menagerie.generators.captions.relations import claims
from menagerie.generators.captions.templates import Caption
from menagerie.models.objectives import Targets


class Claims:
    """Gives each distinct claim of scene graphs a number (see `menagerie.generators.captions.relations.claims`). The
    claims of each graph are computed once."""

    def __init__(self, names: frozenset[str] = frozenset()) -> None:
        """`names` of several words stand for one object (`Captioned.names`)."""
        self.names = names
        self._numbers: dict[str, int] = {}
        self._rows: dict[SceneGraph, list[int]] = {}

    def row(self, graph: SceneGraph) -> list[int]:
        """The numbers of a graph's claims."""
        if graph not in self._rows:
            claimed = sorted(claims(graph, self.names))
            self._rows[graph] = [self._numbers.setdefault(claim, len(self._numbers)) for claim in claimed]
        return self._rows[graph]

    def table(self, graphs: Sequence[SceneGraph]) -> csr_matrix:
        """A sparse matrix with a row for each graph: 1 in the columns of the claims that the graph makes, else 0."""
        rows = [self.row(graph) for graph in graphs]
        starts = np.cumsum([0, *map(len, rows)])
        columns = np.fromiter((number for row in rows for number in row), np.int64, starts[-1])
        return csr_matrix((np.ones(len(columns), np.int32), columns, starts), (len(rows), len(self._numbers)))


Compared = tuple[Bool[np.ndarray, "n m"], Bool[np.ndarray, "n m"]]  # means the same; is true of the image


def by_claims(texts: Sequence[Caption], known: Claims) -> Callable[[slice], Compared]:
    """Make a function that compares all texts (columns) with a slice of them (rows) by their graphs' claims: whether
    the claims are the same, and whether the column's text claims nothing that the row's doesn't."""
    table = known.table([text.graph for text in texts])
    sizes = np.asarray(table.sum(1)).ravel()

    def compared(rows: slice) -> Compared:
        true = (table[rows] @ table.T).toarray() == sizes
        return true & (sizes[rows, None] == sizes), true

    return compared


def by_words(texts: Sequence[Caption]) -> Callable[[slice], Compared]:
    """Make a function that compares texts by their words, without capitals and punctuation, for incomplete graphs.

    Words alone don't tell whether one text implies another: ice cream isn't a kind of cream.
    """
    words = np.array([plain_text(text.text) or text.text for text in texts])

    def compared(rows: slice) -> Compared:
        same = words[rows, None] == words
        return same, same

    return compared


def targets_of(
    texts: Sequence[Caption], n_images: int, complete: bool, mask: bool, known: Claims, matched: int | None = None
) -> Targets:
    """Find the targets of a batch of n images; image i has text i and, with several captions, texts i + jn. Texts after
    the first `matched` (by default n) are only negatives.

    If captions are `complete`, texts with the same claims as an image's caption are its positives. A text that claims
    less is also true of the image: with `mask` such a pair is masked. If captions aren't complete, only texts of the
    same words are known to be positives.
    """
    matched = n_images if matched is None else matched
    same, true = np.zeros((2, n_images, len(texts)), bool)
    compared = by_claims(texts, known) if complete else by_words(texts)
    for start in range(0, matched, n_images):
        same_as_these, true_of_these = compared(slice(start, start + n_images))
        same |= same_as_these
        true |= true_of_these
    masked = true & ~same if mask else np.zeros_like(same)
    # A negative that happens to be true is dropped: it is neither a negative nor a target.
    masked[:, matched:] |= same[:, matched:]
    same[:, matched:] = False
    some = mask or masked.any()
    return Targets(torch.from_numpy(same), torch.from_numpy(masked) if some else None, matched)


def phrases_in(captions: Sequence[Caption]) -> list[tuple[int, Caption]]:
    """Make a caption of each node in the captions' graphs, but negated ones, with its caption's index."""
    nodes = ((k, node) for k, text in enumerate(captions) for node in text.graph.nodes if not node.startswith("no "))
    return [(k, Caption(node, SceneGraph((node,)))) for k, node in nodes]


def with_phrases(targets: Targets, phrases: Sequence[Caption]) -> Targets:
    """Mark the last texts of a batch as phrases: each is a positive of the image that owns it, and masked for every
    other image whose caption has the same phrase or is known to claim it."""
    if not phrases:
        return targets
    count, owner = len(phrases), targets.owner[-len(phrases) :]
    words = np.array([text.text for text in phrases])
    right = owner == torch.arange(len(targets.same))[:, None]
    named = (right.double() @ torch.from_numpy(words[:, None] == words).double()).bool()
    same, masked = targets.same.clone(), targets.masked
    masked = torch.zeros_like(same) if masked is None else masked.clone()
    masked[:, -count:] = (masked[:, -count:] | named) & ~right
    same[:, -count:] = right
    return targets._replace(same=same, masked=masked, phrases=count)
