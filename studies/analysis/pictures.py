"""Images and figures made of pictures: as files, and as data URIs, so that a page needs no other file."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

from menagerie.envs.core.files import whole_file

DOTS_PER_INCH = 110


def svg(figure: Figure) -> bytes:
    """Return the figure as an SVG file, always with the same bytes."""
    with rc_context({"svg.hashsalt": "menagerie"}):
        return figure_bytes(figure, format="svg", metadata={"Date": None})


def figure_bytes(figure: Figure, **options: Any) -> bytes:
    """Save a figure to bytes; `options` go to `Figure.savefig`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, facecolor="white", **options)
    return buffer.getvalue()


def data_uri(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def write_png(path: Path, figure: Figure) -> str:
    """Write a figure made of pictures to `path`; returns it as a data URI."""
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


def image_uri(image: UInt8[np.ndarray, "h w 3"], most: int = 0) -> str:
    """Return an image as a data URI, its longer side scaled down to `most` pixels (0: never)."""
    shown, buffer = Image.fromarray(image), io.BytesIO()
    if most and max(shown.size) > most:
        shown.thumbnail((most, most), Image.Resampling.LANCZOS)
    shown.save(buffer, format="png", optimize=True)
    return data_uri(buffer.getvalue())
