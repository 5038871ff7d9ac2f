"""A heat map with its numbers, for a study that doesn't run on the frame yet."""

import matplotlib
import numpy as np

from menagerie.envs.core.figures import ACCURACY, colour_at, ink
from menagerie.studies.analysis.tables import gap
from menagerie.studies.runs.results import Mean

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

WIDEST = 10.0  # inches, as wide as a page


def draw_panel(axis: Axes, table: list[list[Mean]]) -> AxesImage:
    """One heat map with its numbers: mean, and deviation where there are several seeds."""
    values = np.array([[np.nan if cell.mean is None else 100 * cell.mean for cell in row] for row in table])
    image = axis.imshow(values, **ACCURACY, origin="lower", aspect="auto")
    axis.set_facecolor("0.85")
    for y, row in enumerate(table):
        for x, cell in enumerate(row):
            text = gap(cell.seeds) if cell.mean is None else f"{100 * cell.mean:.1f}"
            if cell.deviation is not None:
                text += f"\n±{100 * cell.deviation:.1f}"
            colour = "black" if cell.mean is None else ink(colour_at(100 * cell.mean, ACCURACY))
            axis.text(x, y, text, ha="center", va="center", fontsize=9, color=colour)
    return image


BAR_PANEL, BAR_NAMES = 2.2, 1.6  # inches of a panel of bars, and of what stands beside it
