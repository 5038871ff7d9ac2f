"""The worlds of a study: which animals and photographs are trained on and which are tested, and the files that say so.

A photograph of a test is trained on by no run: `check_apart` proves it from the files.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.identity import digest, generator
from menagerie.envs.core.records import sha256
from menagerie.envs.custom.world_file import read_table
from menagerie.envs.world import WORLDS
from menagerie.studies.photographs.collection import FEWEST, Photographs
from menagerie.studies.photographs.trainings import FACTORS, OTHERS, OWN, SYNTHETIC, Material, Training, all_trainings

Worlds = Mapping[str, Path]  # the files of worlds by their names
PHOTOGRAPHS, NATURAL, HELD_OUT = "photographs", "natural", "held-out"  # worlds of tests
VARIED = ("textures", "backgrounds", "vocabulary")  # factors that are worlds of their own


def world_name(training: Training) -> str:
    """The world that a run is trained on."""
    if training.world == SYNTHETIC:
        return f"{SYNTHETIC}-{training.factor}" if training.factor in VARIED else SYNTHETIC
    return f"{training.world}-{training.count}-{training.seed}"


def worlds_tested(training: Training) -> tuple[str, ...]:
    """The worlds of photographs that a run is tested on, of binding."""
    held_out = f"{HELD_OUT}-{training.seed}"
    if training.world == OWN:
        return (held_out,)
    return (PHOTOGRAPHS, held_out)


def material_of(config: Any, photographs: Photographs) -> Material:
    """Count the photographs that there are to train on."""
    possible = [name for name in FACTORS if name != "backgrounds" or config.backgrounds]
    wider = set(WORLDS[config.world].animals) > photographs.tested.keys()
    possible = [name for name in possible if name != "vocabulary" or wider]
    most = max(map(len, photographs.several.values()), default=1) - 1
    others = len(photographs.others)
    return Material(most, others if others >= FEWEST else 0, tuple(possible))


def worlds_of(config: Any, photographs: Photographs) -> Iterator[tuple[str, tuple[Mapping[str, Sequence[Path]], bool]]]:
    """The worlds of photographs: their files by animal, and whether these have their own colours."""
    material = material_of(config, photographs)
    yield PHOTOGRAPHS, (photographs.tested, False)
    yield NATURAL, (photographs.tested, True)
    for seed in range(config.seeds) if photographs.several else ():
        tested = {name: held_out(files, seed) for name, files in photographs.several.items()}
        yield f"{HELD_OUT}-{seed}", (tested, False)
    runs = (run._replace(model="", images=0, tuned=False) for run in all_trainings(config, material))
    for training in dict.fromkeys(runs):
        if training.world == OWN:
            files = {
                name: kept(pictures, training.seed, training.count) for name, pictures in photographs.several.items()
            }
        elif training.world == OTHERS:
            files = {name: photographs.others[name] for name in drawn(photographs, training.seed, training.count)}
        else:
            continue
        yield world_name(training), (files, False)


def held_out(files: Sequence[Path], seed: int) -> tuple[Path, ...]:
    """The one photograph of an animal that is tested with a seed."""
    return (files[seed % len(files)],)


def kept(files: Sequence[Path], seed: int, count: int) -> tuple[Path, ...]:
    """Choose up to `count` other photographs of an animal; a larger choice contains the smaller ones."""
    place = seed % len(files)
    return tuple([*files[place + 1 :], *files[:place]][:count])


def drawn(photographs: Photographs, seed: int, count: int) -> list[str]:
    """Some of the other animals, drawn with a seed; more of them have the fewer ones among them."""
    names = sorted(photographs.others)
    return sorted(names[k] for k in generator(seed, "other animals").permutation(len(names))[:count])


CUTOUTS, BACKGROUNDS = "cutouts", "backgrounds"  # folders beside the world files
# Further textures of the factor of this name: plain colours, in red, green and blue.
COLORS = {"blue": (40, 70, 190), "yellow": (220, 190, 40), "purple": (130, 50, 150), "black": (25, 25, 25)}
PATCH = 8  # pixels along the side of their pictures


def write_worlds(config: Any, photographs: Photographs, folder: Path) -> dict[str, Path]:
    """Write every world that the study needs; returns their files by name."""
    chosen = dict(worlds_of(config, photographs))
    rendered = [SYNTHETIC, *(f"{SYNTHETIC}-{factor}" for factor in VARIED)]
    files = {name: folder / f"{name}.toml" for name in (*chosen, *rendered)}
    for name, content in chosen.items():
        write_world(files[name], config.world, *content)
    write_synthetic(files, config, sorted(photographs.tested))
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


def write_synthetic(files: Worlds, config: Any, animals: Sequence[str]) -> None:
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


class Shared(NamedTuple):
    """How many photographs a world of training and one of a test have, and how many of them are in both."""

    training: str
    trained: int
    test: str
    tested: int
    both: int


def shared_photographs(config: Any, material: Material, files: Worlds) -> list[Shared]:
    """Each world of photographs that is trained on beside each that its runs are tested on, as the files have them.

    Raises for a photograph that is in both, whatever it is called.
    """
    rows = []
    for training in all_trainings(config, material):
        for test in worlds_tested(training) if training.world != SYNTHETIC else ():
            if test in files:
                trained, tested = cutouts_in(files[world_name(training)]), cutouts_in(files[test])
                both = trained.keys() & tested.keys()
                if both:
                    raise UserError(
                        f"{trained[min(both)]} of training world {world_name(training)!r} and {tested[min(both)]} of "
                        f"test world {test!r} are the same photograph (SHA-256); remove one of them from the folder of "
                        "--photos or --cutouts"
                    )
                rows.append(Shared(world_name(training), len(trained), test, len(tested), len(both)))
    return list(dict.fromkeys(rows))


def cutouts_in(path: Path) -> dict[bytes, Path]:
    """The photographs that a world file names, by SHA-256."""
    entries = read_table(path).animal.values()
    files = [path.parent / name for entry in entries for name in entry.get("cutouts", ())]
    return {sha256(file): file for file in files}
