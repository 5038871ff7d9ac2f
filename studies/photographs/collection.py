"""The photographs that a study has: by animal, from the folder that `menagerie photos` writes."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file
from menagerie.envs.custom.world_file import read_table
from menagerie.envs.world import PUG, World
from menagerie.envs.worlds import load_world

NAMES = ("photos.toml", "photos-wide.toml")
FEWEST = 3  # animals: fewer have no pair for training, validation and test
PACKAGE_SIDE = 224  # pixels of the scenes for which the package's photographs are large enough, as by default there
SIDE, MARGIN = 160, 2  # of pictures that take the place of photographs in a rehearsal
EACH, VIEW = 2, 1000  # such pictures of each animal, and the first view: no scene of the study has it
FURTHER = ("lion", "pig", "zebra", "camel")  # animals that the world of the rehearsal lacks


class Photographs(NamedTuple):
    """Files by animal."""

    tested: dict[str, tuple[Path, ...]]
    """Animals that the synthetic world has too."""
    others: dict[str, tuple[Path, ...]]
    """All others."""

    @property
    def several(self) -> dict[str, tuple[Path, ...]]:
        """Tested animals with more than one photograph; empty where too few have."""
        found = {name: files for name, files in self.tested.items() if len(files) > 1}
        return found if len(found) >= FEWEST else {}


def photographs_of(config: Any, folder: Path) -> Photographs:
    """Read the photographs of `--photos`; without it, write those of the package, or of a rehearsal, to `folder`
    first."""
    synthetic = load_world(config.world)
    if config.photos:
        return read_photographs(config.photos, synthetic)
    from menagerie.envs.custom import photos

    if config.rehearsal and not config.package:
        pictures = draw_pictures(synthetic, folder / "pictures")
        photos.run(photos.Config(folder, cutouts=pictures, resolution=config.resolution))
    else:
        photos.run(photos.Config(folder, config.package, resolution=max(config.resolution, PACKAGE_SIDE)))
    return read_photographs(folder, synthetic)


def read_photographs(folder: Path, synthetic: World) -> Photographs:
    """The cut-outs of all world files in `folder`; raises where too few are of animals that `synthetic` has."""
    found: dict[str, tuple[Path, ...]] = {}
    for path in (folder / name for name in NAMES):
        if path.exists():
            load_world(str(path))  # raises for what can't be drawn
            entries = read_table(path).animal.items()
            found |= {
                name: tuple(folder / file for file in entry["cutouts"]) for name, entry in entries if "cutouts" in entry
            }
    if not found:
        raise UserError(f"{folder} has no {NAMES[0]} with cut-outs; write it with menagerie photos {folder}")
    tested = {name: found[name] for name in sorted(found) if name in synthetic.animals}
    if len(tested) < FEWEST:
        raise UserError(
            f"{folder} has photographs of {len(tested)} animals of world {synthetic.name!r}; the study needs {FEWEST} "
            f"or more, such as {', '.join(synthetic.animals[:FEWEST])}"
        )
    return Photographs(tested, {name: found[name] for name in sorted(found) if name not in tested})


def draw_pictures(world: World, folder: Path) -> Path:
    """Rendered animals cut out along their masks, in the place of photographs: a world's, and a few further ones."""
    from PIL import Image

    from menagerie.envs.render.renderer import Renderer
    from menagerie.envs.scene import Scene, Thing

    animals = (*world.animals, *(name for name in FURTHER if name not in world.animals))
    scenes = [Scene("desert", (Thing(name, "white", "center"),), VIEW + k) for name in animals for k in range(EACH)]
    images, masks = Renderer(PUG, SIDE).render(scenes)
    for number, (image, mask) in enumerate(zip(images, masks, strict=True)):
        rows, columns = (np.flatnonzero((mask > 0).any(axis)) for axis in (1, 0))
        box = tuple(slice(max(covered[0] - MARGIN, 0), covered[-1] + 1 + MARGIN) for covered in (rows, columns))
        pixels = np.dstack([image, np.where(mask > 0, 255, 0).astype(np.uint8)])[box]
        name = f"{animals[number // EACH].replace(' ', '_')}-{number % EACH + 1}.png"
        with whole_file(folder / name) as temporary:
            Image.fromarray(pixels).save(temporary, "PNG")
    return folder
