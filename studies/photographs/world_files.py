"""World files of a study, with copies of the pictures that they name."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.identity import digest
from menagerie.envs.core.records import sha256
from menagerie.envs.world import WORLDS
from menagerie.studies.photographs.apart import check_apart
from menagerie.studies.photographs.collection import Photographs
from menagerie.studies.photographs.trainings import SYNTHETIC
from menagerie.studies.photographs.worlds import VARIED, material_of, worlds_of

CUTOUTS, BACKGROUNDS = "cutouts", "backgrounds"  # folders beside the world files
# Further textures of the factor of this name: plain colours, in red, green and blue.
COLORS = {"blue": (40, 70, 190), "yellow": (220, 190, 40), "purple": (130, 50, 150), "black": (25, 25, 25)}
PATCH = 8  # pixels along the side of their pictures


def write_worlds(config: Any, photographs: Photographs, folder: Path) -> dict[str, Path]:
    """Write every world that the study needs; returns their files by name. Raises where a photograph of a test is
    trained on."""
    chosen = dict(worlds_of(config, photographs))
    rendered = [SYNTHETIC, *(f"{SYNTHETIC}-{factor}" for factor in VARIED)]
    files = {name: folder / f"{name}.toml" for name in (*chosen, *rendered)}
    for name, content in chosen.items():
        write_world(files[name], config.world, *content)
    write_synthetic(files, config, sorted(photographs.tested))
    check_apart(config, material_of(config, photographs), files)
    return files


def write_world(path: Path, extends: str, photographs: Mapping[str, Sequence[Path]], natural: bool) -> None:
    """Write a world of photographs with copies of its pictures. Its name and theirs tell them apart by content, so that
    worlds of several seeds with the same photographs have one image store."""
    lines = [f"extends = {json.dumps(extends)}", f"animals = {json.dumps(sorted(photographs))}"]
    for animal, files in sorted(photographs.items()):
        copies = [f"{CUTOUTS}/{copied(file, path.parent / CUTOUTS)}" for file in files]
        lines += ["", f"[animal.{json.dumps(animal)}]", f"cutouts = {json.dumps(copies)}"]
        lines += ['texture = "own"'] if natural else []
    start, _, seed = path.stem.rpartition("-")
    name = f"{start if seed.isdigit() else path.stem}-{digest(lines)}"
    write_text(path, "\n".join([f"name = {json.dumps(name)}", *lines]) + "\n")


def copied(file: Path, folder: Path) -> str:
    """The name of a copy of `file` in `folder`."""
    name = f"{file.stem}-{sha256(file).hex()[:12]}{file.suffix.lower()}"
    if not (folder / name).exists():
        with whole_file(folder / name) as temporary:
            shutil.copyfile(file, temporary)
    return name


def write_synthetic(files: Mapping[str, Path], config: Any, animals: Sequence[str]) -> None:
    """Write the rendered worlds: the plain one, and with more textures, more backgrounds or all animals."""
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
    """Lines of a world with plain colours beside its own textures."""
    lines = [f"textures = {json.dumps([*WORLDS[config.world].textures, *COLORS])}"]
    for name, color in COLORS.items():
        write_patch(folder / f"{name}.png", color)
        lines += [f"[texture.{json.dumps(name)}]", f'image = "{name}.png"']
    return lines


def more_backgrounds(config: Any, folder: Path) -> list[str]:
    """Lines of a world with the photographs of `--backgrounds` beside its own; none without."""
    if not config.backgrounds:
        return []
    from menagerie.envs.custom.photo_sources import background_pictures

    scenery = background_pictures(config.backgrounds)
    lines = [f"backgrounds = {json.dumps([*WORLDS[config.world].backgrounds, *scenery])}"]
    for name, pictures in scenery.items():
        places = [f"{BACKGROUNDS}/{copied(picture, folder / BACKGROUNDS)}" for picture in pictures]
        lines += [f"[background.{json.dumps(name)}]", f"image = {json.dumps(places)}"]
    return lines


def write_patch(path: Path, color: tuple[int, int, int]) -> None:
    """A picture of one colour."""
    from PIL import Image

    with whole_file(path) as temporary:
        Image.fromarray(np.full((PATCH, PATCH, 3), color, np.uint8)).save(temporary, "PNG")
