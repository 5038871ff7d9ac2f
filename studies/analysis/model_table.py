"""The models of a study with what their runs were: parameters, images, processor time, negatives in the loss."""

import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd

from menagerie.envs.core.figures import short
from menagerie.models.registry import spec_of
from menagerie.studies.analysis.tables import DASH

TIME = "CPU ms a step"


def model_table(models: Sequence[str], results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per model with a finished cell: parameters, images of all steps, processor time of a step, and the
    negatives in its loss, with why a loss against altered scene graphs has none."""
    rows = []
    for model in models:
        of_model = [result for result in results if result["model"] == model]
        if of_model:
            sizes = (values(of_model, name) for name in ("parameters", "images_seen"))
            negatives = negatives_seen(of_model)
            if "graphs" not in negatives and spec_of(model).local_loss:
                negatives += " (of altered scene graphs: no caption here states a relation that could be altered)"
            rows.append([short(model), *sizes, step_time(of_model), negatives])
    columns = ["model", "parameters", "images in all steps", TIME, "negatives in its loss"]
    return pd.DataFrame(rows, columns=columns)


def values(of_model: Sequence[dict[str, Any]], name: str) -> str:
    """A number that cells of one model have, or the least and the most."""
    least, most = (choose(result[name] for result in of_model) for choose in (min, max))
    return f"{least}" if least == most else f"{least} to {most}"


def step_time(of_model: Sequence[dict[str, Any]]) -> str:
    """Median processor time of a step over cells, in milliseconds; a dash where none was timed."""
    timed = [result["provenance"].get("step_cpu_seconds") for result in of_model]
    known = [seconds for seconds in timed if seconds is not None]
    return f"{1000 * statistics.median(known):.0f}" if known else DASH


def negatives_seen(of_model: Sequence[dict[str, Any]]) -> str:
    """Name the negatives of a model's losses beside the other images and captions of a batch."""
    lists = [result["loss_negatives"] for result in of_model]
    names = dict.fromkeys(name for seen in lists for name in seen)
    texts = [name if all(name in seen for seen in lists) else f"{name} (where training has them)" for name in names]
    return ", ".join(texts) or "none"
