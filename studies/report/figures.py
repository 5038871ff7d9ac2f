"""Figures made of pictures, by matplotlib: the colour scale of accuracies, readable text on it, and the files that
figures are saved to."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib import colormaps, rc_context
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.typing import ColorType

from menagerie.envs.core.files import whole_file

# Colours of accuracies in percent; chance is the middle of the scale, and equal steps look equal.
ACCURACY: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": 100}


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
