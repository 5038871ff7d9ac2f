"""Small drawn cut-outs, and worlds of them, for tests: nothing here is a photograph."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

GREY, PALE, ORANGE = (90, 90, 90), (200, 200, 200), (230, 130, 40)


def draw(path: Path, color=ORANGE, width: int = 160, height: int = 110, dark=None) -> Path:
    """Draw an animal that faces right, with its rear half in the colour `dark` if there is one."""
    big = Image.new("RGBA", (4 * width, 4 * height))
    pen = ImageDraw.Draw(big)

    def box(left: float, top: float, right: float, bottom: float) -> list[float]:
        return [4 * width * left, 4 * height * top, 4 * width * right, 4 * height * bottom]

    pen.ellipse(box(0.08, 0.3, 0.75, 0.75), fill=color)
    for left in (0.16, 0.28, 0.52, 0.62):
        pen.rectangle(box(left, 0.6, left + 0.06, 0.97), fill=color)
    pen.polygon(
        [(4 * width * x, 4 * height * y) for x, y in ((0.6, 0.4), (0.75, 0.1), (0.85, 0.2), (0.72, 0.6))], color
    )
    pen.ellipse(box(0.72, 0.04, 0.95, 0.28), fill=color)
    if dark is not None:
        pixels = np.array(big)
        pixels[:, : 2 * width, :3] = dark
        big = Image.fromarray(pixels)
    path.parent.mkdir(parents=True, exist_ok=True)
    big.resize((width, height), Image.Resampling.BOX).save(path)
    return path


def world_of(folder: Path, entries: str, animals: str, more: str = "") -> str:
    """A world file with the given animal entries; returns its path."""
    path = folder / "mine.toml"
    path.write_text(f'extends = "tiny"\nanimals = {animals}\n{more}\n{entries}')
    return str(path)
