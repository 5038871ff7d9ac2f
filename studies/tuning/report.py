"""What a tuning study writes: trials as CSV, and a page with their course."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from envs.common.figure_files import data_uri, png
from envs.common.pages import write_page
from studies.analysis.format import shown

matplotlib.use("Agg")
from matplotlib.figure import Figure


def write_report(out: Path, rows: Sequence[dict[str, Any]], failed: dict[str, str], notes: dict[str, Any]) -> Path:
    """`report.html`, best trials first, with the reasons of those that failed."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    ordered = sorted(
        rows, key=lambda row: (models.index(row["model"]), -(row["repeated"] or 0), -value(row), row["trial"])
    )
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title="Equal tuning",
        trials=len(rows) // len(models),
        figure=data_uri(png(course(rows, models))),
        table=[list(rows[0]), *([shown(cell) for cell in row.values()] for row in ordered)],
        failed=failed,
        notes=notes,
    )


def value(row: dict[str, Any]) -> float:
    """Validation accuracy of a trial; 0 for one that failed."""
    return row["validation"] or 0.0


def course(rows: Sequence[dict[str, Any]], models: Sequence[str]) -> Figure:
    """Validation accuracy of every trial, and the best so far."""
    figure = Figure((7, 3.6), layout="constrained")
    axis = figure.subplots()
    for number, model in enumerate(models):
        values = 100 * np.array([value(row) for row in rows if row["model"] == model])
        steps = np.arange(1, len(values) + 1)
        axis.scatter(steps, values, s=18, color=f"C{number}")
        axis.step(steps, np.maximum.accumulate(values), where="post", color=f"C{number}", label=f"{model}, best so far")
    axis.axhline(50, color="0.6", linewidth=1, linestyle=":")
    axis.set_xlabel("trial")
    axis.set_ylabel("validation accuracy (%)")
    axis.legend()
    return figure
