"""Figures as files."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib import rc_context
from matplotlib.figure import Figure

from menagerie.envs.core.files import whole_file

DOTS_PER_INCH = 110
# The same figure is the same bytes: ids that matplotlib draws come from this, and no date is written.
SALT = "menagerie"


def png(figure: Figure, fitted: bool = False) -> bytes:
    """The figure as a PNG file; `fitted` to all that was drawn, which may be more than the figure's size."""
    box = {"bbox_inches": "tight"} if fitted else {}
    return saved(figure, format="png", dpi=DOTS_PER_INCH, **box)


def svg(figure: Figure) -> bytes:
    """The figure as an SVG file, for papers; its text is drawn as paths, so that it needs no font."""
    with rc_context({"svg.hashsalt": SALT}):
        return saved(figure, format="svg", metadata={"Date": None})


def saved(figure: Figure, **options: Any) -> bytes:
    """What `Figure.savefig` writes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, facecolor="white", **options)
    return buffer.getvalue()


def data_uri(content: bytes, kind: str = "png") -> str:
    """An image file for the `src` of an image, so that a page needs no other file."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def write_png(path: Path, figure: Figure) -> str:
    """Write a figure made of pictures to `path`; returns it as a data URI for a page that needs no other file."""
    content = png(figure)
    write_bytes(path, content)
    return data_uri(content)


def write_figure(path: Path, figure: Figure) -> str:
    """Write a figure of lines and text to `path`, a PNG, and as an SVG beside it; returns the PNG as a data URI."""
    uri = write_png(path, figure)
    figure.set_layout_engine("none")  # all has its place by now
    write_bytes(path.with_suffix(".svg"), svg(figure))
    return uri


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def picture(image: UInt8[np.ndarray, "h w 3"], most: int = 0) -> str:
    """An image as a data URI; with `most`, one that is larger is scaled to that many pixels along its longer side."""
    from PIL import Image

    shown, buffer = Image.fromarray(image), io.BytesIO()
    if most and max(shown.size) > most:
        shown.thumbnail((most, most), Image.Resampling.LANCZOS)
    shown.save(buffer, format="png", optimize=True)
    return data_uri(buffer.getvalue())


def photograph(image: UInt8[np.ndarray, "h w 3"]) -> str:
    """A photograph as a data URI: a JPEG, a tenth of a PNG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="jpeg", quality=80, optimize=True)
    return data_uri(buffer.getvalue(), "jpeg")
