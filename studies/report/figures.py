"""The look of figures: a colour scale for accuracies, readable text on it, lines of many models, and the files that
they are saved to."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib import colormaps, rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.typing import ColorType

from menagerie.envs.core.files import whole_file

# Colours of accuracies in percent; chance is the middle of the scale, and equal steps look equal.
ACCURACY: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": 100}
# Colours that colour-blind readers can tell apart; with as many markers, 56 lines have different styles.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a")
MARKERS = "osD^v<>P"
# With more models than this, each has a panel of its own, in which the others are pale.
MOST_TOGETHER = 6
# Chance is dotted in every figure, and nothing else is.
CHANCE: dict[str, Any] = {"color": "0.3", "linewidth": 1.2, "linestyle": (0, (1, 2)), "zorder": 1.9}
PALE: dict[str, Any] = {"color": "0.82", "linewidth": 0.9, "zorder": 0}
BESIDE = 4  # panels in a row
SEEN = 3.3  # inches of a figure's width that a narrow window shows without scrolling


def line_style(number: int) -> dict[str, str]:
    """Colour and marker of a model's line, for `Axes.plot`."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def model_label(model: str) -> str:
    """A model's name as figures show it: a user's class mine/file.py:Class is shown without its folder."""
    return model.rpartition("/")[2]


def ink(colour: ColorType) -> str:
    """Black or white, whichever contrasts more with a colour (WCAG)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "white"


def colour_at(value: float | int, scale: dict[str, Any]) -> str:
    """The colour of a value, such as #440154."""
    share = (value - scale["vmin"]) / (scale["vmax"] - scale["vmin"])
    return to_hex(colormaps[scale["cmap"]](share))


def count_axis(axes: Axes, name: str) -> None:
    """Give the axis "x" or "y" a logarithmic scale, with counts written out as ticks: 20, 50, 100."""
    getattr(axes, f"set_{name}scale")("log")
    axis = getattr(axes, f"{name}axis")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axis.set_minor_locator(NullLocator())


def panels_size(models: Sequence[str], together: tuple[float, float], each: tuple[float, float]) -> tuple[float, float]:
    """Width and height of a figure in inches: `together` if the models are few and share one panel, else enough for
    panels of size `each`."""
    if len(models) <= MOST_TOGETHER:
        return together
    return each[0] * min(BESIDE, len(models)) + 0.6, each[1] * -(-len(models) // BESIDE) + 0.9


def model_panels(figure: Figure | SubFigure, models: Sequence[str]) -> list[tuple[Axes, Sequence[str]]]:
    """Axes, each with the models to highlight on it: few models share one panel; with many, each has its own."""
    if len(models) <= MOST_TOGETHER:
        return [(figure.subplots(), models)]
    axes = figure.subplots(-(-len(models) // BESIDE), BESIDE, squeeze=False, sharex=True, sharey=True)
    for axis in axes.flat[len(models) :]:
        axis.axis("off")
    panels = list(zip(axes.flat, models, strict=False))
    for axis, model in panels:
        axis.set_title(model_label(model), fontsize=9, parse_math=False)
        axis.tick_params(labelsize=8)
    return [(axis, [model]) for axis, model in panels]


def chance_line(axes: Axes, name: str = "y", percent: float | int = 50, stretch: bool = True, **style: Any) -> None:
    """Draw a line at chance across the axis "x" or "y"; without `stretch`, only if chance is within the axis's
    limits."""
    low, high = sorted(getattr(axes, f"get_{name}lim")())
    if stretch or low <= percent <= high:
        (axes.axvline if name == "x" else axes.axhline)(percent, **CHANCE | style)


def legend_above(figure: Figure, keys: Sequence[Artist]) -> None:
    """Draw a legend above all axes, at most about `SEEN` inches wide, and make the figure higher. A name with $ isn't
    taken for a formula."""
    longest = max(len(str(key.get_label())) for key in keys)
    columns = max(1, int(SEEN / (0.07 * longest + 0.5)))
    figure.set_figheight(figure.get_figheight() + 0.18 * -(-len(keys) // columns) + 0.1)
    place = {"loc": "outside upper left", "ncols": columns, "fontsize": 9, "frameon": False, "columnspacing": 1.2}
    for text in figure.legend(handles=keys, borderpad=0.2, labelspacing=0.3, **place).get_texts():
        text.set_parse_math(False)


def bar_above(figure: Figure, colours: ScalarMappable, axes: Any, label: str, width: float = 2.6) -> Colorbar:
    """Draw a colour bar, `width` inches wide, above the axes and aligned to their left."""
    height = figure.get_figheight()
    place = {"location": "top", "anchor": (0.0, 0.0), "shrink": min(1.0, width / figure.get_figwidth())}
    bar = figure.colorbar(colours, ax=axes, aspect=16, fraction=0.2 / height, pad=0.1 / height, **place)
    bar.set_label(label, fontsize=8, loc="left")
    bar.ax.tick_params(labelsize=8)
    return bar


DOTS_PER_INCH = 110
# The same figure gives the same bytes: matplotlib makes its ids from this salt, and no date is written.
SALT = "menagerie"


def svg(figure: Figure) -> bytes:
    """The figure as an SVG file, for papers; its text is drawn as paths, so that it needs no font."""
    with rc_context({"svg.hashsalt": SALT}):
        return figure_bytes(figure, format="svg", metadata={"Date": None})


def figure_bytes(figure: Figure, **options: Any) -> bytes:
    """Save a figure to bytes; `options` go to `Figure.savefig`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, facecolor="white", **options)
    return buffer.getvalue()


def data_uri(content: bytes, kind: str = "png") -> str:
    """Return the content of an image file as a data URI, so that a page needs no other file."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def write_png(path: Path, figure: Figure) -> str:
    """Write a figure made of pictures to `path`; returns it as a data URI for a page that needs no other file."""
    content = figure_bytes(figure, format="png", dpi=DOTS_PER_INCH)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
    return data_uri(content)


def write_figure(path: Path, figure: Figure) -> str:
    """Write a figure of lines and text to `path`, a PNG, and as an SVG beside it; returns the PNG as a data URI."""
    uri = write_png(path, figure)
    figure.set_layout_engine("none")  # the PNG has fixed all positions
    with whole_file(path.with_suffix(".svg")) as temporary:
        temporary.write_bytes(svg(figure))
    return uri


def image_uri(image: UInt8[np.ndarray, "h w 3"], most: int = 0, kind: str = "png") -> str:
    """An image as a data URI; if its longer side has more than `most` pixels, it is scaled down to that (0: never).
    Photographs take a tenth as the `kind` "jpeg"."""
    from PIL import Image

    shown, buffer = Image.fromarray(image), io.BytesIO()
    if most and max(shown.size) > most:
        shown.thumbnail((most, most), Image.Resampling.LANCZOS)
    shown.save(buffer, format=kind, quality=80, optimize=True)
    return data_uri(buffer.getvalue(), kind)
