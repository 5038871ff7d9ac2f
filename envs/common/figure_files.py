"""Figures as files."""

import base64
import io
from pathlib import Path

from matplotlib.figure import Figure

from envs.common.files import whole_file

DOTS_PER_INCH = 110


def png(figure: Figure, fitted: bool = False) -> bytes:
    """The figure as a PNG file; `fitted` to all that was drawn, which may be more than the figure's size."""
    buffer = io.BytesIO()
    box = {"bbox_inches": "tight"} if fitted else {}
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, facecolor="white", **box)
    return buffer.getvalue()


def data_uri(content: bytes) -> str:
    """A PNG for the `src` of an image, so that a page needs no other file."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def write_png(path: Path, figure: Figure) -> str:
    """Write the figure to `path`; returns it as a data URI for a page that needs no other file."""
    content = png(figure)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
    return data_uri(content)
