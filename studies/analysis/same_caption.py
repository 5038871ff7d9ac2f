"""Accuracies of models that prefer the same caption whatever the image: they are flagged, high or low.

Such a model gets an image or its partner right, never both: its `quad text` is near 0, far below chance.
"""

import pandas as pd

from menagerie.studies.analysis.tables import Pivot

QUAD = "quad text"
NEAR = 0.05  # a fifth of chance
FLAG = ", same caption"
MEANS = (
    f"same caption: its {QUAD} there is below {100 * NEAR:.0f} %, chance being 25: it prefers the same caption for an "
    "image and for its partner, whatever they show. Then an accuracy on swaps, high or low, says which caption it "
    "likes and nothing of binding"
)


def flagged(texts: pd.DataFrame, quads: Pivot) -> pd.DataFrame:
    """Accuracies on swaps as texts, with `FLAG` behind those whose quads are `NEAR` 0; `quads` has the same rows and
    columns, as far as there are any."""
    near = quads.mean.reindex(index=texts.index, columns=texts.columns) < NEAR
    return texts.where(~near, texts + FLAG)


def meaning_of_flags(cells: pd.DataFrame) -> str:
    """What the flag says, for a page that has any; else nothing."""
    return MEANS if cells.astype(str).apply(lambda column: column.str.endswith(FLAG)).any(axis=None) else ""
