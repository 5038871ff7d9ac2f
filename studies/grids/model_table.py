"""What each model of a grid is and sees in training, beside what all of them see."""

import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd

from menagerie.envs.core.figure_style import short
from menagerie.models.registry import spec_of
from menagerie.studies.analysis.tables import DASH

TIME = "CPU ms a step"


def model_table(models: Sequence[str], results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per model with a finished cell: parameters, images of all steps, processor time of a step, and the
    negatives in its loss, with why a loss against altered scene graphs has none."""
    rows = []
    for model in models:
        own = [result for result in results if result["model"] == model]
        if own:
            sizes = (values(own, name) for name in ("parameters", "images_seen"))
            negatives = negatives_seen(own)
            if "graphs" not in negatives and spec_of(model).altered_graphs:
                negatives += " (of altered scene graphs: no caption here states a relation that could be altered)"
            rows.append([short(model), *sizes, step_time(own), negatives])
    columns = ["model", "parameters", "images in all steps", TIME, "negatives in its loss"]
    return pd.DataFrame(rows, columns=columns)


def titles_of(models: Sequence[str]) -> dict[str, str]:
    """The full names of models."""
    return {model: spec_of(model).title or spec_of(model).name for model in models}


def values(own: Sequence[dict[str, Any]], name: str) -> str:
    """A number that cells of one model have, or the least and the most."""
    least, most = (choose(result[name] for result in own) for choose in (min, max))
    return f"{least}" if least == most else f"{least} to {most}"


def step_time(own: Sequence[dict[str, Any]]) -> str:
    """Median processor time of a step over cells, in milliseconds; a dash where none was timed."""
    timed = [result["provenance"].get("step_cpu_seconds") for result in own]
    known = [seconds for seconds in timed if seconds is not None]
    return f"{1000 * statistics.median(known):.0f}" if known else DASH


def negatives_seen(own: Sequence[dict[str, Any]]) -> str:
    """What a model's losses compared with beside other images and captions of a batch."""
    lists = [result["loss_negatives"] for result in own]
    names = dict.fromkeys(name for its in lists for name in its)
    texts = [name if all(name in its for its in lists) else f"{name} (where training has them)" for name in names]
    return ", ".join(texts) or "none"
