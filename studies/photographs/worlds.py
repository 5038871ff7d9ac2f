"""The photographs of a study, as `menagerie photos` writes them, and the files of the worlds that are made of them.

`shared_photographs` checks that no run is trained on a photograph of its tests.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.identity import digest
from menagerie.envs.core.records import sha256
from menagerie.envs.custom.world_file import read_table
from menagerie.envs.world import PUG, WORLDS, World
from menagerie.envs.worlds import load_world
from menagerie.studies.photographs.trainings import (
    FEWEST,
    SYNTHETIC,
    VARIED,
    AnimalPhotographs,
    PhotographCounts,
    all_runs,
    photograph_worlds,
    world_name,
    worlds_tested,
)

Worlds = Mapping[str, Path]  # the files of worlds by their names
NAMES = ("photos.toml", "photos-wide.toml")
PACKAGE_SIDE = 224  # pixels: the largest scenes for which the package's photographs are large enough
SIDE, MARGIN = 160, 2  # pixels, of pictures that take the place of photographs in a rehearsal
EACH, VIEW = 2, 1000  # number of such pictures of each animal, and the first view, which no scene of the study has
FURTHER = ("lion", "pig", "zebra", "camel")  # animals that the world of the rehearsal lacks
CUTOUTS, BACKGROUNDS = "cutouts", "backgrounds"  # folders beside the world files
# The textures that the factor `textures` adds: plain colours, as red, green and blue.
COLORS = {"blue": (40, 70, 190), "yellow": (220, 190, 40), "purple": (130, 50, 150), "black": (25, 25, 25)}
PATCH = 8  # side of their pictures, in pixels


def photographs_of(config: Any, folder: Path) -> AnimalPhotographs:
    """Read the photographs of `--photos`; without it, first write the package's or a rehearsal's to `folder`."""
    synthetic = load_world(config.world)
    if config.photos:
        return read_cutouts(config.photos, synthetic)
    from menagerie.envs.custom import photos

    if config.rehearsal and not config.package:
        pictures = draw_pictures(synthetic, folder / "pictures")
        photos.run(photos.Config(folder, cutouts=pictures, resolution=config.resolution))
    else:
        photos.run(photos.Config(folder, config.package, resolution=max(config.resolution, PACKAGE_SIDE)))
    return read_cutouts(folder, synthetic)


def read_cutouts(folder: Path, synthetic: World) -> AnimalPhotographs:
    """Read the cut-outs of world files (`NAMES`) in `folder`. Raises if too few are of animals that `synthetic` has."""
    found: dict[str, tuple[Path, ...]] = {}
    for path in (folder / name for name in NAMES):
        if path.exists():
            load_world(str(path))  # raises if anything in it can't be drawn
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
    return AnimalPhotographs(tested, {name: found[name] for name in sorted(found) if name not in tested})


def draw_pictures(world: World, folder: Path) -> Path:
    """Write cut-outs of rendered animals, the world's and a few further ones, in place of photographs."""
    from PIL import Image

    from menagerie.envs.render.renderer import Renderer
    from menagerie.envs.scene import Object, Scene

    animals = (*world.animals, *(name for name in FURTHER if name not in world.animals))
    scenes = [Scene("desert", (Object(name, "white", "center"),), VIEW + k) for name in animals for k in range(EACH)]
    drawn = replace(PUG, textures=("white",), backgrounds=("desert",))  # a renderer draws its whole world
    images, masks = Renderer(drawn, SIDE).render(scenes)
    for number, (image, mask) in enumerate(zip(images, masks, strict=True)):
        rows, columns = (np.flatnonzero((mask > 0).any(axis)) for axis in (1, 0))
        box = tuple(slice(max(covered[0] - MARGIN, 0), covered[-1] + 1 + MARGIN) for covered in (rows, columns))
        pixels = np.dstack([image, np.where(mask > 0, 255, 0).astype(np.uint8)])[box]
        name = f"{animals[number // EACH].replace(' ', '_')}-{number % EACH + 1}.png"
        with whole_file(folder / name) as temporary:
            Image.fromarray(pixels).save(temporary, "PNG")
    return folder


def write_worlds(config: Any, photographs: AnimalPhotographs, folder: Path) -> dict[str, Path]:
    """Write all worlds that the study needs, and return their files by name."""
    chosen = dict(photograph_worlds(config, photographs))
    rendered = [SYNTHETIC, *(f"{SYNTHETIC}-{factor}" for factor in VARIED)]
    files = {name: folder / f"{name}.toml" for name in (*chosen, *rendered)}
    for name, content in chosen.items():
        write_transfer_world(files[name], config.world, *content)
    write_synthetic(files, config, sorted(photographs.tested))
    return files


def write_transfer_world(path: Path, extends: str, photographs: Mapping[str, Sequence[Path]], natural: bool) -> None:
    """Write a world of photographs with copies of its pictures. World and pictures are named by their content, so that
    worlds of several seeds with the same photographs share one atlas."""
    lines = [f"extends = {json.dumps(extends)}", f"animals = {json.dumps(sorted(photographs))}"]
    for animal, files in sorted(photographs.items()):
        copies = [f"{CUTOUTS}/{copy_by_hash(file, path.parent / CUTOUTS)}" for file in files]
        lines += ["", f"[animal.{json.dumps(animal)}]", f"cutouts = {json.dumps(copies)}"]
        lines += ['texture = "own"'] if natural else []
    start, _, seed = path.stem.rpartition("-")
    name = f"{start if seed.isdigit() else path.stem}-{digest(lines)}"
    write_text(path, "\n".join([f"name = {json.dumps(name)}", *lines]) + "\n")


def copy_by_hash(file: Path, folder: Path) -> str:
    """Copy `file` into `folder` under a name with its hash, unless it is there already, and return the name."""
    name = f"{file.stem}-{sha256(file).hex()[:12]}{file.suffix.lower()}"
    if not (folder / name).exists():
        with whole_file(folder / name) as temporary:
            shutil.copyfile(file, temporary)
    return name


def write_synthetic(files: Worlds, config: Any, animals: Sequence[str]) -> None:
    """Write the rendered worlds: the unchanged one, and those with more textures, more backgrounds and all animals."""
    start, folder = f"extends = {json.dumps(config.world)}", files[SYNTHETIC].parent
    plain = [start, f"animals = {json.dumps(list(animals))}"]
    contents = {
        SYNTHETIC: plain,
        f"{SYNTHETIC}-textures": [*plain, *more_textures(config, folder)],
        f"{SYNTHETIC}-backgrounds": [*plain, *more_backgrounds(config, folder)],
        f"{SYNTHETIC}-vocabulary": [start],
    }
    for name, lines in contents.items():
        write_text(files[name], "\n".join([f"name = {json.dumps(name)}", *lines]) + "\n")


def more_textures(config: Any, folder: Path) -> list[str]:
    """Return lines of a world file that add plain colours to the world's textures."""
    lines = [f"textures = {json.dumps([*WORLDS[config.world].textures, *COLORS])}"]
    for name, color in COLORS.items():
        write_patch(folder / f"{name}.png", color)
        lines += [f"[texture.{json.dumps(name)}]", f'image = "{name}.png"']
    return lines


def more_backgrounds(config: Any, folder: Path) -> list[str]:
    """Return lines of a world file that add the photographs of `--backgrounds`; none without that option."""
    if not config.backgrounds:
        return []
    from menagerie.envs.custom.photos import background_pictures

    scenery = background_pictures(config.backgrounds)
    lines = [f"backgrounds = {json.dumps([*WORLDS[config.world].backgrounds, *scenery])}"]
    for name, pictures in scenery.items():
        places = [f"{BACKGROUNDS}/{copy_by_hash(picture, folder / BACKGROUNDS)}" for picture in pictures]
        lines += [f"[background.{json.dumps(name)}]", f"image = {json.dumps(places)}"]
    return lines


def write_patch(path: Path, color: tuple[int, int, int]) -> None:
    """Write a picture of one colour."""
    from PIL import Image

    with whole_file(path) as temporary:
        Image.fromarray(np.full((PATCH, PATCH, 3), color, np.uint8)).save(temporary, "PNG")


class CommonFiles(NamedTuple):
    """The numbers of photographs of a training world, of a test world, and of both."""

    training: str
    trained: int
    test: str
    tested: int
    both: int


def shared_photographs(config: Any, material: PhotographCounts, files: Worlds) -> list[CommonFiles]:
    """Compare the files of each world of photographs that is trained on with those of each world that its runs are
    tested on.

    Raises if a photograph is in both, even under different names.
    """
    runs = [run for run in all_runs(config, material) if run.world != SYNTHETIC]
    pairs = dict.fromkeys((world_name(run), test) for run in runs for test in worlds_tested(run) if test in files)
    rows = []
    for world, test in pairs:
        trained, tested = cutouts_in(files[world]), cutouts_in(files[test])
        if both := trained.keys() & tested.keys():
            raise UserError(
                f"{trained[min(both)]} of training world {world!r} and {tested[min(both)]} of test world {test!r} are "
                "the same photograph (SHA-256); remove one of them from the folder of --photos or --cutouts"
            )
        rows.append(CommonFiles(world, len(trained), test, len(tested), len(both)))
    return rows


def cutouts_in(path: Path) -> dict[bytes, Path]:
    """Return the photographs that a world file names, by SHA-256."""
    entries = read_table(path).animal.values()
    files = [path.parent / name for entry in entries for name in entry.get("cutouts", ())]
    return {sha256(file): file for file in files}
