"""Draws contact sheets, as a picture or a page.

    menagerie gallery --out scenes.png                       # random scenes
    menagerie gallery --out animals.html --kind animals      # every animal in every texture
    menagerie gallery --out slots.png --kind slots --renderer pyrender
    menagerie gallery --out crowds.png --layout overlap --world pug-textures   # two to six things

The file's ending decides the format: .png, or .html with a description below each picture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from menagerie.envs.checks.sheets import Sheet
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import check_place
from menagerie.envs.core.validation import FIRST_SEED, SIDE, Range
from menagerie.envs.layouts import MOST
from menagerie.envs.scene import Scene, Thing

if TYPE_CHECKING:
    import numpy as np

    from menagerie.envs.world import World


@dataclass(frozen=True)
class Config:
    """Draw a contact sheet."""

    out: Path
    """PNG or HTML file to write."""
    kind: Literal["scenes", "animals", "backgrounds", "slots"] = "scenes"
    """scenes (random), or every animal in all textures, on all backgrounds, or in all slots and sizes."""
    layout: Literal["", "apart", "rows", "overlap"] = ""
    """Layout of random scenes of two to six things; without it, scenes have one or two."""
    world: str = "pug"
    """World to draw from."""
    resolution: Annotated[int, SIDE] = 224
    """Pixels along a scene's side."""
    rows: Annotated[int, Range(1, 500)] = 4
    """Rows of random scenes."""
    columns: Annotated[int, Range(1, 500)] = 5
    """Random scenes of one or two things in a row."""
    seed: Annotated[int, FIRST_SEED] = 0
    """Seed with which scenes are drawn."""
    renderer: Literal["menagerie", "direct", "pyrender", "tiny"] = "menagerie"
    """menagerie (the compositor), direct (ours, scene by scene), or an external renderer: pyrender, tiny."""
    cache: Path | None = None
    """Folder that keeps atlas entries between runs."""


def random_sheet(world: "World", config: Config) -> Sheet:
    """Draw random scenes, mostly pairs; or those of a layout, with a column for each number of things."""
    from menagerie.envs.worlds import random_crowds, random_scenes

    if config.layout:
        columns = [f"{n} things" for n in range(2, min(MOST, len(world.animals)) + 1)]
        scenes = random_crowds(world, config.layout, config.rows * len(columns), config.seed)
    else:
        columns = [""] * config.columns
        scenes = random_scenes(world, config.rows * len(columns), config.seed, pairs=0.85)
    rows = [scenes[i : i + len(columns)] for i in range(0, len(scenes), len(columns))]
    return Sheet([""] * config.rows, columns, rows)


def _sizes(world: "World") -> tuple[str, ...]:
    """Return the sizes of a world; ("",) if it has none."""
    return world.sizes or ("",)


def _alone(world: "World", columns: list[str], scene: Callable[[str, str], Scene]) -> Sheet:
    """Make a sheet with a row for each animal; `scene` makes the scene of an animal and a column."""
    rows = [[scene(animal, column) for column in columns] for animal in world.animals]
    return Sheet(list(world.animals), columns, rows)


def texture_sheet(world: "World", config: Config) -> Sheet:
    """Show every animal in every texture, on one background after another."""

    def scene(animal: str, texture: str) -> Scene:
        place = world.animals.index(animal) + world.textures.index(texture)
        thing = Thing(animal, texture, "center", _sizes(world)[place % len(_sizes(world))])
        return Scene(world.backgrounds[place % len(world.backgrounds)], (thing,))

    return _alone(world, list(world.textures), scene)


def background_sheet(world: "World", config: Config) -> Sheet:
    """Show every animal on every background, in one texture after another."""

    def scene(animal: str, background: str) -> Scene:
        place = world.animals.index(animal) + world.backgrounds.index(background)
        texture, size = (names[place % len(names)] for names in (world.textures, _sizes(world)))
        return Scene(background, (Thing(animal, texture, "center", size),))

    return _alone(world, list(world.backgrounds), scene)


def slot_sheet(world: "World", config: Config) -> Sheet:
    """Show every animal in every size and every slot but those of crowds."""
    from menagerie.envs.slots import PAIR_SLOTS

    columns = {f"{size} {slot}".lstrip(): (slot, size) for slot in PAIR_SLOTS for size in _sizes(world)}

    def scene(animal: str, column: str) -> Scene:
        return Scene(world.backgrounds[0], (Thing(animal, world.textures[0], *columns[column]),))

    return _alone(world, list(columns), scene)


KINDS: dict[str, Callable[["World", Config], Sheet]] = {
    "scenes": random_sheet,
    "animals": texture_sheet,
    "backgrounds": background_sheet,
    "slots": slot_sheet,
}


def draw(world: "World", scenes: list[Scene], config: Config) -> "np.ndarray":
    """Render the scenes by the renderer of `config`; returns images (n, h, w, 3) of uint8."""
    import numpy as np

    from menagerie.envs.checks.direct import render_directly
    from menagerie.envs.render.renderer import Renderer

    if config.renderer == "menagerie":
        return Renderer(world, config.resolution, config.cache).render(scenes)[0]
    if config.renderer == "direct":
        cutouts, drawn = dict(world.cutouts), map(world.as_drawn, scenes)
        return np.array([render_directly(scene, config.resolution, cutouts).image for scene in drawn])
    if world.cutouts:
        raise UserError(f"{config.world} has cut-outs, which --renderer {config.renderer} doesn't draw")
    from menagerie.envs.checks.external_renderers import open_external_renderer

    renderer = open_external_renderer(config.renderer, config.resolution)
    try:
        return np.array([renderer.render(world.as_drawn(scene)).image for scene in scenes])
    finally:
        renderer.close()


def run(config: Config) -> None:
    """Write the sheet."""
    from menagerie.envs.checks.sheets import write_page, write_picture
    from menagerie.envs.worlds import load_world

    check_place("--cache", config.cache)
    if config.out.suffix not in (".png", ".html"):
        raise UserError(f"--out {config.out}: a sheet is a .png or an .html file")
    world = load_world(config.world)
    sheet = KINDS[config.kind](world, config)
    images = draw(world, [scene for row in sheet.scenes for scene in row], config)
    if config.out.suffix == ".png":
        write_picture(config.out, sheet, images)
    else:
        note = f"World {config.world}, {config.resolution} pixels, renderer {config.renderer}, seed {config.seed}."
        write_page(config.out, sheet, images, f"Contact sheet: {config.kind}", note)
    print(config.out)
