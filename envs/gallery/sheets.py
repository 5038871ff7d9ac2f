"""Writes contact sheets: pictures pixel for pixel with labels, or self-contained pages."""

import base64
import io
import textwrap
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from envs.common.files import whole_file, write_text
from envs.scene import Scene

# Pixels: (width of row labels, height of column labels), height of a further line of those, width of a letter.
LABEL, LINE, LETTER = (110, 22), 13, 8


class Sheet(NamedTuple):
    """Rows of scenes with a label for each row and column (may be empty)."""

    rows: list[str]
    columns: list[str]
    scenes: list[list[Scene]]


def write_picture(path: Path, sheet: Sheet, images: UInt8[np.ndarray, "n h w 3"]) -> None:
    """A PNG in which every scene keeps its own pixels."""
    import matplotlib.image
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    side, dpi = images.shape[1], 100
    columns = [textwrap.fill(label, max(1, side // LETTER)) for label in sheet.columns]
    lines = max(label.count("\n") for label in columns)
    left, top = (LABEL[0] if any(sheet.rows) else 0), (LABEL[1] + LINE * lines if any(sheet.columns) else 0)
    width, height = left + side * len(sheet.columns), top + side * len(sheet.rows)
    figure = Figure((width / dpi, height / dpi), dpi, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    picture = np.full((height, width, 3), 255, np.uint8)
    remaining = iter(images)
    for row, scenes in enumerate(sheet.scenes):
        for column, _ in enumerate(scenes):
            y, x = top + row * side, left + column * side
            picture[y : y + side, x : x + side] = next(remaining)
        figure.text(0.01 * left / width, 1 - (top + (row + 0.5) * side) / height, sheet.rows[row], va="center", size=8)
    for column, label in enumerate(columns):
        figure.text(
            (left + (column + 0.5) * side) / width, 1 - top / 2 / height, label, ha="center", va="center", size=8
        )
    canvas.draw()
    labels = np.asarray(canvas.buffer_rgba())[..., :3]
    with whole_file(path) as temporary:
        matplotlib.image.imsave(temporary, np.minimum(picture, labels))


def write_page(path: Path, sheet: Sheet, images: UInt8[np.ndarray, "n h w 3"]) -> None:
    """An HTML page that needs no other file; each picture's title is its scene's key."""
    remaining = iter(images)
    head = "".join(f"<th>{escape(label)}</th>" for label in ("", *sheet.columns))
    rows = []
    for label, scenes in zip(sheet.rows, sheet.scenes, strict=True):
        cells = "".join(
            f'<td><img src="data:image/png;base64,{_png(next(remaining))}" title="{escape(scene.key)}"></td>'
            for scene in scenes
        )
        rows.append(f"<tr><th>{escape(label)}</th>{cells}</tr>")
    style = "body{font:14px sans-serif;background:#fff;color:#222} th{text-align:left} img{display:block}"
    page = f"<!doctype html><meta charset=utf-8><title>Contact sheet</title><style>{style}</style>"
    write_text(path, f"{page}<table><tr>{head}</tr>{''.join(rows)}</table>\n")


def _png(image: UInt8[np.ndarray, "h w 3"]) -> str:
    import matplotlib.image

    buffer = io.BytesIO()
    matplotlib.image.imsave(buffer, np.ascontiguousarray(image), format="png")
    return base64.b64encode(buffer.getvalue()).decode()
