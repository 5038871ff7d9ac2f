"""Photographs of animals, cut out as `menagerie photos` writes them, and the files of worlds that are made of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import copy_file, whole_file, write_text
from menagerie.envs.core.identity import digest
from menagerie.envs.core.records import sha256
from menagerie.envs.custom.world_file import read_table
from menagerie.envs.world import PUG, WORLDS, World
from menagerie.envs.worlds import load_world

Files = Mapping[str, Sequence[Path]]
"""The files of photographs, by what they show."""
FEWEST = 3  # animals: fewer make no pairs for training, validation and test
NAMES = ("photos.toml", "photos-wide.toml")
SYNTHETIC = "synthetic"
VARIED = ("textures", "backgrounds", "vocabulary")  # what the rendered worlds have more of than the plain one
SIDE, MARGIN = 160, 2  # pixels, of pictures that take the place of photographs in a rehearsal
EACH, VIEW = 2, 1000  # number of such pictures of each animal, and the first view, which no scene of the study has
FURTHER = ("lion", "pig", "zebra", "camel")  # animals that the world of the rehearsal lacks
# The textures that the factor `textures` adds: plain colours, as red, green and blue.
COLORS = {"blue": (40, 70, 190), "yellow": (220, 190, 40), "purple": (130, 50, 150), "black": (25, 25, 25)}
PATCH = 8  # side of their pictures, in pixels


class AnimalPhotographs(NamedTuple):
    """The files of photographs, by animal."""

    tested: dict[str, tuple[Path, ...]]
    """Animals that the synthetic world has as well."""
    others: dict[str, tuple[Path, ...]]
    """All other animals."""

    @property
    def several(self) -> dict[str, tuple[Path, ...]]:
        """Tested animals with more than one photograph; empty where too few have."""
        found = {name: files for name, files in self.tested.items() if len(files) > 1}
        return found if len(found) >= FEWEST else {}


def read_cutouts(folder: Path, synthetic: World) -> AnimalPhotographs:
    """Read the cut-outs of world files (`NAMES`) in `folder`. Raises if too few are of animals that `synthetic` has."""
    found: dict[str, tuple[Path, ...]] = {}
    for path in filter(Path.exists, (folder / name for name in NAMES)):
        load_world(str(path))  # raises if anything in it can't be drawn
        entries = read_table(path).animal.items()
        found |= {name: tuple(folder / file for file in its["cutouts"]) for name, its in entries if "cutouts" in its}
    if not found:
        raise UserError(f"{folder} has no {NAMES[0]} with cut-outs; write it with menagerie photos {folder}")
    tested = {name: found[name] for name in sorted(found) if name in synthetic.animals}
    if len(tested) < FEWEST:
        raise UserError(
            f"{folder} has photographs of {len(tested)} animals of world {synthetic.name!r}; the study needs {FEWEST} "
            f"or more, such as {', '.join(synthetic.animals[:FEWEST])}"
        )
    return AnimalPhotographs(tested, {name: found[name] for name in sorted(found) if name not in tested})


def held_out_file(files: Sequence[Path], seed: int) -> tuple[Path, ...]:
    """Return the one photograph of an animal that is tested with a seed."""
    return (files[seed % len(files)],)


def training_files(files: Sequence[Path], seed: int, count: int) -> tuple[Path, ...]:
    """Return `count` photographs of an animal, or fewer, without the held-out one; more contain fewer."""
    place = seed % len(files)
    return tuple([*files[place + 1 :], *files[:place]][:count])


def draw_pictures(world: World, folder: Path) -> Path:
    """Write cut-outs of rendered animals, the world's and a few further ones, in place of photographs."""
    from menagerie.envs.render.renderer import Renderer
    from menagerie.envs.scene import Object, Scene

    animals = tuple(dict.fromkeys((*world.animals, *FURTHER)))
    scenes = [Scene("desert", (Object(name, "white", "center"),), VIEW + k) for name in animals for k in range(EACH)]
    drawn = replace(PUG, textures=("white",), backgrounds=("desert",))  # a renderer draws its whole world
    images, masks = Renderer(drawn, SIDE).render(scenes)
    for number, (image, mask) in enumerate(zip(images, masks, strict=True)):
        rows, columns = (np.flatnonzero((mask > 0).any(axis)) for axis in (1, 0))
        box = tuple(slice(max(covered[0] - MARGIN, 0), covered[-1] + 1 + MARGIN) for covered in (rows, columns))
        name = f"{animals[number // EACH].replace(' ', '_')}-{number % EACH + 1}.png"
        write_pixels(folder / name, np.dstack([image, np.where(mask > 0, 255, 0).astype(np.uint8)])[box])
    return folder


def write_pixels(path: Path, pixels: np.ndarray) -> None:
    """Write an image of bytes (height, width, channels)."""
    from PIL import Image

    with whole_file(path) as temporary:
        Image.fromarray(pixels).save(temporary, "PNG")


def write_world(path: Path, name: str, lines: Iterable[str]) -> None:
    write_text(path, "\n".join([f"name = {json.dumps(name)}", *lines]) + "\n")


def write_cutout_world(path: Path, extends: str, photographs: Files, natural: bool) -> None:
    """Write a world of photographs with copies of its pictures, in the animals' own colours if `natural`. World and
    pictures are named by their content, so that worlds of several seeds with the same photographs share one atlas."""
    lines = [f"extends = {json.dumps(extends)}", f"animals = {json.dumps(sorted(photographs))}"]
    for animal, files in sorted(photographs.items()):
        copies = copy_by_hash(files, path.parent, "cutouts")
        lines += ["", f"[animal.{json.dumps(animal)}]", f"cutouts = {json.dumps(copies)}"]
        lines += ['texture = "own"'] if natural else []
    start, _, seed = path.stem.rpartition("-")
    write_world(path, f"{start if seed.isdigit() else path.stem}-{digest(lines)}", lines)


def copy_by_hash(files: Iterable[Path], folder: Path, below: str) -> list[str]:
    """Copy files to `folder/below` under names with their hashes; returns these paths below `folder`."""
    places = {f"{below}/{file.stem}-{sha256(file).hex()[:12]}{file.suffix.lower()}": file for file in files}
    for place, file in places.items():
        if not (folder / place).exists():
            copy_file(file, folder / place)
    return list(places)


def write_rendered_worlds(folder: Path, extends: str, animals: Sequence[str], backgrounds: Path | None) -> None:
    """Write the rendered worlds: the plain one, and those with more textures (plain colours), more backgrounds (the
    photographs in a folder) and all animals."""
    from menagerie.envs.custom.photos import background_pictures

    start = f"extends = {json.dumps(extends)}"
    plain = [start, f"animals = {json.dumps(list(animals))}"]
    textures = [f"textures = {json.dumps([*WORLDS[extends].textures, *COLORS])}"]
    for name, color in COLORS.items():
        write_pixels(folder / f"{name}.png", np.full((PATCH, PATCH, 3), color, np.uint8))
        textures += [f"[texture.{json.dumps(name)}]", f'image = "{name}.png"']
    scenery = background_pictures(backgrounds) if backgrounds else {}
    more = [f"backgrounds = {json.dumps([*WORLDS[extends].backgrounds, *scenery])}"]
    for name, pictures in scenery.items():
        places = copy_by_hash(pictures, folder, "backgrounds")
        more += [f"[background.{json.dumps(name)}]", f"image = {json.dumps(places)}"]
    write_world(folder / f"{SYNTHETIC}.toml", SYNTHETIC, plain)
    for factor, lines in zip(VARIED, ([*plain, *textures], [*plain, *more], [start]), strict=True):
        write_world(folder / f"{SYNTHETIC}-{factor}.toml", f"{SYNTHETIC}-{factor}", lines)


def check_no_shared_files(training: Path, test: Path) -> None:
    """Compare the photographs of a training world and a test world by SHA-256. Raises if one is in both, even under
    different names."""
    trained, tested = cutouts_in(training), cutouts_in(test)
    if both := trained.keys() & tested.keys():
        raise UserError(
            f"{trained[min(both)]} of training world {training.stem!r} and {tested[min(both)]} of test world "
            f"{test.stem!r} are the same photograph (SHA-256); remove one of them from the folder of --photos"
        )


def cutouts_in(path: Path) -> dict[bytes, Path]:
    """Return the photographs that a world file names, by SHA-256."""
    entries = read_table(path).animal.values()
    files = [path.parent / name for entry in entries for name in entry.get("cutouts", ())]
    return {sha256(file): file for file in files}
