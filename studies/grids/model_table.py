"""What each model of a grid is and sees in training, beside what all of them see."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from envs.common.figure_style import short
from studies.analysis.tables import DASH


def model_table(models: Sequence[str], results: Sequence[dict[str, Any]], titles: Mapping[str, str]) -> pd.DataFrame:
    """A row per model with a finished cell: its full name by `titles`, parameters, images of all steps, and the
    negatives in its loss."""
    rows = []
    for model in models:
        own = [result for result in results if result["model"] == model]
        if own:
            sizes = (values(own, name) for name in ("parameters", "images_seen"))
            rows.append([short(model), titles.get(model, ""), *sizes, negatives_seen(own)])
    return pd.DataFrame(
        rows, columns=["model", "in full", "parameters", "images in all steps", "negatives in its loss"]
    )


def values(own: Sequence[dict[str, Any]], name: str) -> str:
    """A number that cells of one model have, or the least and the most."""
    least, most = (choose(result[name] for result in own) for choose in (min, max))
    return f"{least}" if least == most else f"{least} to {most}"


def negatives_seen(own: Sequence[dict[str, Any]]) -> str:
    """What a model's losses compared with beside other images and captions of a batch; a dash where no cell says."""
    lists = [result["loss_negatives"] for result in own if "loss_negatives" in result]
    if not lists:
        return DASH
    names = dict.fromkeys(name for its in lists for name in its)
    texts = [name if all(name in its for its in lists) else f"{name} (where training has them)" for name in names]
    return ", ".join(texts) or "none"
