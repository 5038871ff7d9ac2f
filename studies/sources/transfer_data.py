"""What runs of `studies/photo_transfer.py` are trained and tested on: cut-outs as `menagerie photos` writes them, the
files of worlds that are made of them, and splits with tests in other worlds."""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import copy_file, whole_file, write_text
from menagerie.envs.core.identity import digest, generator
from menagerie.envs.core.records import sha256
from menagerie.envs.custom.world_file import read_table
from menagerie.envs.world import PUG, WORLDS, World
from menagerie.envs.worlds import load_world
from menagerie.generators.trained_on import chosen_images
from menagerie.studies.runs.data import Material, SplitData, split_texts

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.split_tests import SplitTests

Files = Mapping[str, Sequence[Path]]
"""The files of photographs, by what they show."""
FEWEST = 3  # animals: fewer make no pairs for training, validation and test
NAMES = ("photos.toml", "photos-wide.toml")
SYNTHETIC = "synthetic"
VARIED = ("textures", "backgrounds", "vocabulary")  # what the rendered worlds have more of than the plain one
PACKAGE_SIDE = 224  # pixels: the largest scenes for which the package's photographs are large enough
SIDE, MARGIN = 160, 2  # pixels, of pictures that take the place of photographs in a rehearsal
EACH, VIEW = 2, 1000  # number of such pictures of each animal, and the first view, which no scene of the study has
FURTHER = ("lion", "pig", "zebra", "camel")  # animals that the world of the rehearsal lacks
# The textures that the factor `textures` adds: plain colours, as red, green and blue.
COLORS = {"blue": (40, 70, 190), "yellow": (220, 190, 40), "purple": (130, 50, 150), "black": (25, 25, 25)}
PATCH = 8  # side of their pictures, in pixels
ASKED = ("swap", "replace animal", "replace relation")  # tasks of captions without textures


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

    def held_out(self, seed: int) -> Files:
        """Return the one photograph of each tested animal that is tested with a seed."""
        return {name: held_out_file(files, seed) for name, files in self.several.items()}

    def own(self, seed: int, count: int) -> Files:
        """Return `count` photographs of each tested animal, or fewer, for training."""
        return {name: training_files(files, seed, count) for name, files in self.several.items()}

    def drawn(self, seed: int, count: int) -> Files:
        """Return the photographs of up to `count` other animals. A larger choice contains the smaller ones."""
        names = sorted(self.others)
        chosen = generator(seed, "other animals").permutation(len(names))[:count]
        return {name: self.others[name] for name in sorted(names[k] for k in chosen)}


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


def read_photographs(study: Any, folder: Path) -> AnimalPhotographs:
    """Read the photographs of `--photos`; without it, first write the package's or a rehearsal's to `folder`."""
    from menagerie.envs.custom import photos

    synthetic = load_world(study.world)
    if study.rehearsed:
        pictures = draw_pictures(synthetic, folder / "pictures")
        photos.run(photos.Config(folder, cutouts=pictures, resolution=study.resolution))
    elif not study.photos:
        photos.run(photos.Config(folder, study.package, resolution=max(study.resolution, PACKAGE_SIDE)))
    return read_cutouts(study.photos or folder, synthetic)


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
    """Write the plain rendered world, and those with more textures, more backgrounds, and all animals."""
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
    """Raise if a photograph is in both a training and a test world, by SHA-256, even under different names."""
    trained, tested = cutouts_in(training), cutouts_in(test)
    if both := trained.keys() & tested.keys():
        raise UserError(
            f"{trained[min(both)]} of training world {training.stem!r} and {tested[min(both)]} of test world "
            f"{test.stem!r} are the same photograph (SHA-256); remove one of them from the folder of --photos"
        )


def cutouts_in(path: Path) -> dict[bytes, Path]:
    entries = read_table(path).animal.values()
    files = [path.parent / name for entry in entries for name in entry.get("cutouts", ())]
    return {sha256(file): file for file in files}


@dataclass(frozen=True)
class TestedSplit:
    """The tests of a split on what its training never shows."""

    label: str
    """The world of the tests' images, with which the names of the tests begin."""
    split: SplitData
    file: Path = field(compare=False)
    bare: bool = False
    """Whether the tests' captions don't mention textures: "a lion left of a bear"."""

    @property
    def subsets(self) -> dict[str, str]:
        return {f"{self.label}/{subset}": subset for subset in self.split.recipe.judged}

    @property
    def settings(self) -> dict[str, Any]:
        return {"label": self.label, **settings_of(self.split), **({"bare": True} if self.bare else {})}

    def open(self) -> "dict[str, SplitTests]":
        from menagerie.generators.benchmarks.split_tests import SplitTests
        from menagerie.generators.storage.dataset import SplitDataset
        from menagerie.generators.storage.split_file import check_recipe, read_split

        check_recipe(split := read_split(self.file), self.split.recipe, self.split.store)
        tests = {name: SplitTests(SplitDataset(split, subset, preload=False)) for name, subset in self.subsets.items()}
        return {name: without_textures(test) if self.bare else test for name, test in tests.items()}


@dataclass(frozen=True)
class TransferData:
    """A split to train on, or some of its images, with tests in any worlds."""

    train: SplitData
    world: str
    """The name of the training world in tables."""
    tested: tuple[TestedSplit, ...]
    images: int = 0
    """Number of distinct images, drawn by seed from all; 0: all."""
    factor: str = ""
    """The factor that is changed in the synthetic world, for tables; empty: none."""

    @property
    def axes(self) -> dict[str, Any]:
        place = {"kind": self.kind, "trained_on": self.world, "images": self.images, "factor": self.factor}
        return self.train.axes | place

    @property
    def name(self) -> str:
        images = f"{self.images} images" if self.images else ""
        return " ".join(filter(None, (self.kind, self.world, images, self.factor)))

    @property
    def kind(self) -> str:
        return self.train.kind

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(name for test in self.tested for name in test.subsets)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that decide the data. Paths of world files aren't among them."""
        parts = {"images": self.images} if self.images else {}
        return settings_of(self.train) | parts | {"tests": [test.settings for test in self.tested]}

    @property
    def splits(self) -> tuple[SplitData, ...]:
        return tuple(dict.fromkeys((self.train, *(test.split for test in self.tested))))

    def counts(self) -> dict[str, int]:
        return self.train.counts()

    def open(self, file: Path) -> Material:
        from menagerie.generators.sources.mixture import CaptionedSubset  # loads torch, which a plan doesn't need

        whole = self.train.open(file)
        tests, texts = {"validation": whole.tests["validation"]}, set(whole.texts)
        for benches in (test.open() for test in self.tested):
            tests |= benches
            for its in (text for bench in benches.values() for item in bench.items for text in item.texts):
                texts.update((its.text, *its.graph.nodes, *(edge.predicate for edge in its.graph.edges)))
            texts.update(split_texts(next(iter(benches.values())).data.split))
        train, content = whole.train, whole.content
        if self.images and self.images < len(train):
            chosen = chosen_images(self.train.recipe.seed, len(train), self.images)
            train, content = CaptionedSubset(train, chosen), (lambda k: whole.content(chosen[k]))
        return Material(train, tests, sorted(texts), content, words=whole.words)


def settings_of(split: SplitData) -> dict[str, Any]:
    """Return the settings that decide a split, but not the path of its world, whose content names images."""
    settings = split.settings
    return settings | {"split": {name: value for name, value in settings["split"].items() if name != "world"}}


def without_textures(test: "SplitTests") -> "SplitTests":
    """Return tests of a spatial split with captions that have no textures: "a lion left of a bear"."""
    from menagerie.generators.captions.hard_negatives.tasks import TASKS, applies, choices
    from menagerie.generators.captions.spec import CaptionSpec

    bare, data = copy(test), test.data
    spec, scenes = CaptionSpec(data.split.recipe, data.split.vocabulary), []
    for scene in data.records.scenes:
        scenes.append(replace(scene, objects=tuple(obj._replace(texture="") for obj in scene.objects)))
    bare.choices = {task: choices(task, scenes, spec) for task in ASKED if applies(TASKS[task], spec)}
    bare.items = [item for task in bare.choices for item in bare._task_items(task)] + bare._four_way()
    return bare
