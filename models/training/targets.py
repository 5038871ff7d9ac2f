"""Which texts of a batch are right of which images, computed before the step and not in it."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse import csr_matrix

from generators.captions.graph import SceneGraph
from generators.captions.relations import claims
from generators.captions.templates import Caption
from models.objectives import Targets


class Claims:
    """Numbers all that graphs claim, each graph once (`generators.captions.relations.claims`)."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._rows: dict[SceneGraph, list[int]] = {}

    def row(self, graph: SceneGraph) -> list[int]:
        """The numbers of what a graph claims."""
        if graph not in self._rows:
            self._rows[graph] = [self._numbers.setdefault(claim, len(self._numbers)) for claim in sorted(claims(graph))]
        return self._rows[graph]

    def table(self, graphs: Sequence[SceneGraph]) -> csr_matrix:
        """A row of ones and zeros for each graph."""
        rows = [self.row(graph) for graph in graphs]
        starts = np.cumsum([0, *map(len, rows)])
        columns = np.fromiter((number for row in rows for number in row), np.int64, starts[-1])
        return csr_matrix((np.ones(len(columns), np.int32), columns, starts), (len(rows), len(self._numbers)))


def targets_of(texts: Sequence[Caption], n_images: int, complete: bool, mask: bool, known: Claims) -> Targets:
    """Targets of a batch whose image i has text i; texts behind the images' own are negatives alone.

    Where captions are `complete`, texts with the same claims mean the same, and a text that claims no more than
    an image's own is true of it: with `mask` it is masked. Otherwise only equal texts are known to be right.
    """
    if complete:
        table = known.table([text.graph for text in texts])
        sizes = np.asarray(table.sum(1)).ravel()
        shared = (table[:n_images] @ table.T).toarray()
        true = shared == sizes
        same = true & (sizes[:n_images, None] == sizes)
    else:
        words = np.array([text.text for text in texts])
        true = same = words[:n_images, None] == words
    masked = true & ~same if mask else np.zeros_like(same)
    # A negative that happens to be right is no negative, and no target either.
    masked[:, n_images:] |= same[:, n_images:]
    same = same.copy()
    same[:, n_images:] = False
    some = mask or masked.any()
    return Targets(torch.from_numpy(same), torch.from_numpy(masked) if some else None, n_images)
