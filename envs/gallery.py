"""Draws a contact sheet of random scenes.

python -m envs.gallery --out sheet.png --resolution 224
"""

from dataclasses import dataclass
from pathlib import Path

from envs.errors import UserError, run_command


@dataclass(frozen=True)
class Config:
    """Draw a contact sheet of random scenes, mostly pairs."""

    out: Path
    """PNG file to write."""
    world: str = "pug"
    """World to draw from."""
    resolution: int = 224
    """Pixels along a scene's side."""
    rows: int = 4
    """Rows of scenes."""
    columns: int = 5
    """Scenes in a row."""
    seed: int = 0
    """Seed of the draw."""
    cache: Path | None = None
    """Folder that keeps atlas entries between runs."""


def main(config: Config) -> None:
    """Write the sheet."""
    import matplotlib.image
    import numpy as np

    from envs.files import whole_file
    from envs.renderer import Renderer
    from envs.sampling import random_scenes
    from envs.world import load_world

    if config.rows < 1 or config.columns < 1:
        raise UserError(f"--rows and --columns must be at least 1, got {config.rows} and {config.columns}")
    world = load_world(config.world)
    scenes = random_scenes(world, config.rows * config.columns, config.seed, pairs=0.85)
    images, _ = Renderer(world, config.resolution, config.cache).render(scenes)
    rows = [np.concatenate(list(row), 1) for row in np.split(images, config.rows)]
    with whole_file(config.out) as temporary:
        matplotlib.image.imsave(temporary, np.concatenate(rows, 0))
    print(config.out)


if __name__ == "__main__":
    import tyro

    run_command(lambda: main(tyro.cli(Config, description=__doc__)))
