"""Writes contact sheets: pictures pixel for pixel with labels, or self-contained pages."""

import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from menagerie.envs.core.files import whole_file
from menagerie.envs.scene import Scene

# Pixels: (width of row labels, height of column labels), height of each further line of labels, width of a letter.
LABEL, LINE, LETTER = (110, 22), 13, 8


class Sheet(NamedTuple):
    """Rows of scenes, with a label for each row and each column, which may be empty."""

    rows: list[str]
    columns: list[str]
    scenes: list[list[Scene]]


class Shown(NamedTuple):
    """A picture of a page, and the text below it."""

    uri: str
    caption: str


def write_picture(path: Path, sheet: Sheet, images: UInt8[np.ndarray, "n h w 3"]) -> None:
    """Write a PNG that shows every scene pixel for pixel, with the labels around them."""
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
    canvas_pixels = np.full((height, width, 3), 255, np.uint8)
    remaining = iter(images)
    for row, scenes in enumerate(sheet.scenes):
        for column, _ in enumerate(scenes):
            y, x = top + row * side, left + column * side
            canvas_pixels[y : y + side, x : x + side] = next(remaining)
        figure.text(0.01 * left / width, 1 - (top + (row + 0.5) * side) / height, sheet.rows[row], va="center", size=8)
    for column, label in enumerate(columns):
        figure.text(
            (left + (column + 0.5) * side) / width, 1 - top / 2 / height, label, ha="center", va="center", size=8
        )
    canvas.draw()
    labels = np.asarray(canvas.buffer_rgba())[..., :3]
    with whole_file(path) as temporary:
        matplotlib.image.imsave(temporary, np.minimum(canvas_pixels, labels))


def write_page(path: Path, sheet: Sheet, images: UInt8[np.ndarray, "n h w 3"], title: str, note: str) -> None:
    """Write an HTML page that needs no other file, with a description below each picture and the line `note` above all
    of them."""
    from menagerie.envs.core.figures import picture
    from menagerie.envs.core.pages import write_page as fill

    captions = [in_words(scene) for row in sheet.scenes for scene in row]
    shown = iter([Shown(picture(image), text) for image, text in zip(images, captions, strict=True)])
    rows = [(label, [next(shown) for _ in scenes]) for label, scenes in zip(sheet.rows, sheet.scenes, strict=True)]
    columns = sheet.columns if any(sheet.columns) else []
    template = Path(__file__).with_name("sheet_page.html")
    fill(path, template, title=title, note=note, side=images.shape[1], columns=columns, rows=rows)


def in_words(scene: Scene) -> str:
    """Describe everything that decides a picture: "red cat left, white pig right; desert; view 3"."""
    things = (f"{thing.size} {thing.texture} {thing.animal} {thing.slot}".lstrip() for thing in scene.things)
    return f"{', '.join(things)}; {scene.background}; view {scene.view}"
