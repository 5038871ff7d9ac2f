"""The figures of the study of geometry: cells as dots, and the trade-off between two conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from menagerie.studies.embeddings.ideal import IdealEmbedding, pair_margins
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.parts import OwnFigure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE = [0.05 * k for k in range(61)]
MARKED = (0.0, 0.3, 0.5, 1.0, 2.0)
MARGIN = "margin"
SIZE = (3.3, 2.9)


@dataclass(frozen=True)
class CellDots(OwnFigure):
    """A panel for each measure, with a dot for each cell in its model's colour and accuracy along y."""

    cells: "pd.DataFrame"
    across: Sequence[str]
    up: str

    def numbers(self) -> list[dict[str, Any]]:
        return self.cells.to_dict("records")

    def figure(self) -> "Figure | None":
        if not len(self.cells):
            return None
        from menagerie.studies.frame.figures import panel_axes
        from menagerie.studies.report.figures import chance_line

        figure, axes = panel_axes(len(self.across), SIZE, sharey=True)
        for axis, name in zip(axes, self.across, strict=True):
            draw_dots(axis, self.cells, name, self.up, scale=(1, 100))
            axis.set_xlabel(name, fontsize=8)
            chance_line(axis)
        axes[0].set_ylabel("accuracy on unseen pairs (%)", fontsize=8)
        axes[0].legend(fontsize=7, loc="best")
        return figure


@dataclass(frozen=True)
class TradeOff(OwnFigure):
    """Two panels with categorisation along x and attribute binding along y. One shows margins, with a curve for
    the constructed embeddings; the other shows shares of scenes."""

    margins: "pd.DataFrame"
    shares: "pd.DataFrame"
    across: str
    up: str
    chances: Mapping[str, float]
    """Chance in both conditions, as shares of scenes."""

    def numbers(self) -> list[dict[str, Any]]:
        ideal = [
            {"model": f"constructed, weight {weight:.2f}", "unit": MARGIN} | self.constructed(weight)
            for weight in CURVE
        ]
        cells = self.margins.assign(unit=MARGIN), self.shares.assign(unit="share of scenes")
        return [*ideal, *(row for frame in cells for row in frame.to_dict("records"))]

    def constructed(self, weight: float) -> dict[str, float]:
        return dict(zip((self.across, self.up), pair_margins(IdealEmbedding(weight)), strict=True))

    def figure(self) -> "Figure | None":
        if not len(self.shares):
            return None
        from menagerie.studies.frame.figures import panel_axes
        from menagerie.studies.report.figures import CHANCE

        figure, (one, other) = panel_axes(2, (4.2, 3.4))
        self.draw_curve(one)
        draw_dots(one, self.margins, self.across, self.up, models=model_order(self.shares))
        draw_dots(other, self.shares, self.across, self.up, scale=(100, 100))
        for name, line in ((self.across, other.axvline), (self.up, other.axhline)):
            line(100 * self.chances[name], **CHANCE)
        for axis, unit in ((one, "margin of images"), (other, "% of scenes")):
            axis.set_xlabel(f"{self.across} ({unit})", fontsize=8)
            axis.set_ylabel(f"{self.up} ({unit})", fontsize=8)
        other.legend(fontsize=7, loc="best")
        return figure

    def draw_curve(self, axis: "Axes") -> None:
        """Draw the constructed embeddings as a curve, with the weight beside some of them."""
        points = [tuple(self.constructed(weight).values()) for weight in CURVE]
        axis.plot(*zip(*points, strict=True), color="0.3", linewidth=1.2)
        for weight in MARKED:
            at = tuple(self.constructed(weight).values())
            axis.plot(*at, color="0.3", marker="o", markersize=3)
            axis.annotate(f"{weight:g}", at, fontsize=7, xytext=(3, 2), textcoords="offset points")


def model_order(cells: "pd.DataFrame") -> list[str]:
    return list(dict.fromkeys(cells["model"])) if len(cells) else []


def draw_dots(
    axis: "Axes",
    cells: "pd.DataFrame",
    across: str,
    up: str,
    scale: tuple[int, int] = (1, 1),
    models: Sequence[str] = (),
) -> None:
    """Draw a dot for each cell, in its model's style."""
    from menagerie.studies.frame.figures import style_axes
    from menagerie.studies.report.figures import line_style

    for k, model in enumerate(models or model_order(cells)):
        its = cells[cells["model"] == model] if len(cells) else cells
        if len(its):
            style = line_style(k) | {"linestyle": "none", "markersize": 4, "alpha": 0.8}
            axis.plot(scale[0] * its[across], scale[1] * its[up], label=title_of(model), **style)
    axis.locator_params("x", nbins=5)
    style_axes(axis)
