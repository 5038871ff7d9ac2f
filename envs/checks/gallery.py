"""Draws contact sheets: scenes pixel for pixel, with labels.

menagerie gallery --out scenes.png                       # random scenes
menagerie gallery --out animals.png --kind animals       # every animal in every texture
menagerie gallery --out layouts.png --layout overlap --world pug-textures   # two to six objects
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file
from menagerie.envs.core.validation import FIRST_SEED, SIDE, Range
from menagerie.envs.layouts import MOST
from menagerie.envs.scene import Object, Scene

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import UInt8

    from menagerie.envs.world import World

# Pixels: width of the labels of rows, height of a line, and width of a letter.
LABEL, LINE, LETTER = 110, 13, 8


@dataclass(frozen=True)
class Config:
    """Draw a contact sheet."""

    out: Path
    """PNG file to write."""
    kind: Literal["scenes", "animals", "backgrounds", "slots"] = "scenes"
    """scenes (random), or every animal in all textures, on all backgrounds, or in all slots and sizes."""
    layout: Literal["", "apart", "rows", "overlap"] = ""
    """Layout of random scenes of two to six objects; without it, scenes have one or two."""
    world: str = "pug"
    """World to draw from."""
    resolution: Annotated[int, SIDE] = 224
    """Pixels along a scene's side."""
    rows: Annotated[int, Range(1, 500)] = 4
    """Rows of random scenes."""
    columns: Annotated[int, Range(1, 500)] = 5
    """Random scenes of one or two objects in a row."""
    seed: Annotated[int, FIRST_SEED] = 0
    """Seed with which scenes are drawn."""


class ContactSheet(NamedTuple):
    """Rows of scenes, with a label for each row and each column, which may be empty."""

    rows: Sequence[str]
    columns: Sequence[str]
    scenes: list[list[Scene]]


def random_sheet(world: "World", config: Config) -> ContactSheet:
    """Draw random scenes, mostly pairs; or those of a layout, with a column for each number of objects."""
    from menagerie.envs.worlds import random_in_layout, random_scenes

    if config.layout:
        columns = [f"{n} objects" for n in range(2, min(MOST, len(world.animals)) + 1)]
        scenes = random_in_layout(world, config.layout, config.rows * len(columns), config.seed)
    else:
        columns = [""] * config.columns
        scenes = random_scenes(world, config.rows * len(columns), config.seed, pairs=0.85)
    rows = [scenes[i : i + len(columns)] for i in range(0, len(scenes), len(columns))]
    return ContactSheet([""] * config.rows, columns, rows)


def animal_sheet(world: "World", kind: str) -> ContactSheet:
    """Show every animal in all textures, on all backgrounds, or in all slots and sizes; the others alternate."""
    from menagerie.envs.slots import PAIR_SLOTS

    slots = PAIR_SLOTS if kind == "slots" else ("center",)
    places = {f"{size} {slot}".lstrip(): (slot, size) for slot in slots for size in world.sizes or ("",)}
    factors = {"animals": world.textures, "backgrounds": world.backgrounds, "slots": tuple(places)}
    rows = []
    for start, animal in enumerate(world.animals):
        rows.append([])
        for index, name in enumerate(factors[kind], start):
            usual = {factor: names[index % len(names)] for factor, names in factors.items()}
            texture, background, place = (usual | {kind: name}).values()
            rows[-1].append(Scene(background, (Object(animal, texture, *places[place]),)))
    return ContactSheet(world.animals, factors[kind], rows)


def write_sheet(path: Path, sheet: ContactSheet, images: "UInt8[np.ndarray, 'n h w 3']") -> None:
    """Write a PNG of the images, with the labels around them."""
    from PIL import Image, ImageDraw

    side = images.shape[1]
    columns = [textwrap.fill(label, max(1, side // LETTER)) for label in sheet.columns]
    left = LABEL if any(sheet.rows) else 0
    top = LINE * (2 + max(label.count("\n") for label in columns)) if any(columns) else 0
    picture = Image.new("RGB", (left + side * len(columns), top + side * len(sheet.rows)), "white")
    pen = ImageDraw.Draw(picture)
    for place, image in enumerate(images):
        row, column = divmod(place, len(columns))
        picture.paste(Image.fromarray(image), (left + side * column, top + side * row))
    for row, label in enumerate(sheet.rows):
        pen.text((2, top + side * row + side // 2), label, "black", anchor="lm")
    for column, label in enumerate(columns):
        pen.text((left + side * column + side // 2, top // 2), label, "black", anchor="mm", align="center")
    with whole_file(path) as temporary:
        picture.save(temporary, "PNG")


def run(config: Config) -> None:
    """Write the sheet."""
    from menagerie.envs.render.renderer import Renderer
    from menagerie.envs.worlds import load_world

    if config.out.suffix != ".png":
        raise UserError(f"--out {config.out}: a sheet is a .png file")
    world = load_world(config.world)
    sheet = random_sheet(world, config) if config.kind == "scenes" else animal_sheet(world, config.kind)
    scenes = [scene for row in sheet.scenes for scene in row]
    write_sheet(config.out, sheet, Renderer(world, config.resolution).render(scenes).images)
    print(config.out)
