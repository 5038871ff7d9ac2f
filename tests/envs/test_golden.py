"""Every ingredient's pixels are those of tests/data/golden.png, or `RENDER_VERSION` has been raised.

    python -m tests.envs.test_golden     # adds new ingredients; writes all anew after the version was raised

Each picture shows one ingredient among plain ones that are made here, so that a test that fails names what changed.
"""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from menagerie.envs.catalog import names, register, shipped_ingredients
from menagerie.envs.drawing.background import Background, Rays, lay_ground
from menagerie.envs.drawing.camera import VIEWS, view_of
from menagerie.envs.drawing.cutout import Cutout, trim
from menagerie.envs.drawing.mesh_file import MeshAnimal
from menagerie.envs.drawing.picture_file import OWN_LIGHT, PictureTexture, by_view, picture_background
from menagerie.envs.relations import pair_slots
from menagerie.envs.render import RENDER_VERSION
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.mesh import animal_mesh
from menagerie.envs.shapes.sdf import Ellipsoid
from menagerie.envs.shapes.texture import Texture
from menagerie.envs.slots import LAYOUT_SLOTS, SIZES, SLOTS
from menagerie.envs.world import PATTERNS, World

SHEET = Path(__file__).parents[1] / "data" / "golden.png"
LIST = SHEET.with_suffix(".json")
SIDE, COLUMNS = 32, 10  # pixels of a picture; pictures in a row
# Processors round differently: numpy's powers with AVX-512 and without differ by one level in some values of a million.
LEVELS, SHARE = 1, 0.005
EGG, PLAIN, CUTOUT, NATURAL = "golden egg", "golden plain", "golden cutout", "golden natural"
MESH, PICTURE = "golden mesh", "golden picture"
OTHER_VIEW = next(n for n in range(100) if view_of(n).camera != VIEWS[0].camera and view_of(n).light != VIEWS[0].light)


def plain_ingredients() -> None:
    """Register what the pictures are made of besides the ingredients themselves; again is the same."""
    nose = Ellipsoid((0.5, 0, 0.6), (0.2, 0.2, 0.2), tag="nose")
    body = Animal((Ellipsoid((0, 0, 0.5), (0.7, 0.35, 0.5)), nose), size=1.2)
    grey = Texture(lambda noise: np.full((len(noise), 3), 0.4, np.float32), specular=0.1, gloss=20.0)
    register("animals", EGG, EGG, body)
    register("textures", PLAIN, PLAIN, grey)
    register("backgrounds", PLAIN, PLAIN, Background(OWN_LIGHT, plain_ground))
    chequered = np.indices((8, 8)).sum(0)[..., None] % 2 * np.float32((0.6, 0.5, 0.1)) + np.float32(0.1)
    egg = animal_mesh(body, 24)
    mesh = MeshAnimal((egg.vertices - egg.origin).astype(np.float32), egg.faces, egg.normals, size=1.2)
    register("animals", MESH, MESH, mesh)
    register("textures", PICTURE, PICTURE, PictureTexture(chequered, 0.4, 0.1, 10.0))
    pictures = [picture_background(np.roll(chequered, n, axis=2), 0.45) for n in range(2)]
    register("backgrounds", PICTURE, PICTURE, by_view(pictures))
    for name, natural in ((CUTOUT, False), (NATURAL, True)):
        cutout = Cutout((trim(arrow(), Path("arrow.png")),), size=1.2, natural=natural)
        register("cutouts", name, name, cutout)


def plain_ground(rays: Rays, light) -> object:
    """Grey ground below a grey sky."""
    grey = np.full((*rays.height.shape, 3), 0.3, np.float32)
    return lay_ground(grey, np.full_like(rays.height, 1e4), rays, light, grey)


def arrow() -> np.ndarray:
    """A photograph's pixels (h, w, 4): a triangle that points to the right, with a soft edge, brighter at its tip."""
    down, across = np.mgrid[-1:1:60j, 0:1:80j]
    alpha = np.clip((0.95 - across - np.abs(down)) * 20, 0, 1) * (across > 0.05)
    colors = np.stack([across, 0.5 + 0 * across, np.abs(down)], -1)
    return np.round(255 * np.concatenate([colors, alpha[..., None]], -1)).astype(np.uint8)


def alone(animal: str = EGG, texture: str = PLAIN, slot: str = "center", size: str = "", **where) -> Scene:
    """A scene of one object; `where`: its background and view."""
    return Scene(**{"background": PLAIN, "objects": (Object(animal, texture, slot, size),)} | where)


def ingredients() -> Iterator[tuple[str, Scene]]:
    """Each ingredient with a scene that shows it."""
    yield from ((f"animal {name}", alone(name)) for name in (*names("animals"), MESH))
    # Every texture, and every pattern on some of them.
    yield from (
        (f"texture {name}", alone(texture=name))
        for name in (*sorted([*shipped_ingredients("textures").names(), *PATTERNS]), PICTURE)
    )
    for name, view in product((*names("backgrounds"), PICTURE), (0, OTHER_VIEW)):
        yield f"background {name} in view {view}", alone(background=name, view=view)
    yield from ((f"slot {slot}", alone(slot=slot)) for slot in SLOTS)
    yield from ((f"size {size}", alone(size=size)) for size in SIZES)
    numbers = {view_of(number): number for number in reversed(range(200))}
    yield from ((f"camera and sun {k}", alone(view=numbers[view])) for k, view in enumerate(VIEWS))
    for slots in pair_slots():
        scene = Scene(PLAIN, tuple(Object(EGG, PLAIN, slot) for slot in slots), OTHER_VIEW)
        yield f"shadows of {scene.relation}", scene
    yield "cut-out", alone(CUTOUT, slot="left")
    yield "cut-out that faces left", alone(CUTOUT, slot="right")
    yield "cut-out in its own colours", alone(NATURAL, slot="left")
    yield "cut-out before a body", Scene(PLAIN, (Object(CUTOUT, PLAIN, "under"), Object(EGG, PLAIN, "above")))


def drawn() -> dict[str, np.ndarray]:
    """Each ingredient's picture (h, w, 4): its colours, and 255 less the mask."""
    plain_ingredients()
    pictures = {}
    for name, scene in ingredients():
        animals, textures, _, sizes = (tuple(sorted(set(column))) for column in zip(*scene.objects, strict=True))
        cutouts = tuple((animal, animal) for animal in animals if animal in (CUTOUT, NATURAL))
        world = World("golden", animals, textures, (scene.background,), sizes if any(sizes) else (), cutouts=cutouts)
        (image,), (mask,) = Renderer(world, SIDE).render([scene])
        pictures[name] = np.concatenate([image, 255 - mask[..., None]], -1)
    return pictures


def golden() -> dict[str, np.ndarray]:
    """The pictures in the file."""
    sheet = np.asarray(Image.open(SHEET))
    rows = sheet.reshape(-1, SIDE, COLUMNS, SIDE, 4).swapaxes(1, 2).reshape(-1, SIDE, SIDE, 4)
    return dict(zip(json.loads(LIST.read_text())["ingredients"], rows, strict=False))


def changed(now: dict[str, np.ndarray], before: dict[str, np.ndarray]) -> list[str]:
    """The ingredients whose pixels differ by more than processors do, and those that only one side has."""
    apart = {name: np.abs(now[name].astype(int) - before[name]) for name in now.keys() & before.keys()}
    moved = {name for name, levels in apart.items() if levels.max() > LEVELS or (levels > 0).mean() > SHARE}
    return sorted(moved | now.keys() ^ before.keys())


@pytest.fixture(scope="module")
def now() -> dict[str, np.ndarray]:
    return drawn()


def test_pixels_are_those_of_their_version(now):
    assert json.loads(LIST.read_text())["version"] == RENDER_VERSION, f"run {WRITE}"
    moved = changed(now, golden())
    assert moved == [], f"raise RENDER_VERSION in envs/render/__init__.py, if any of these is not new, and run {WRITE}"


def test_change_of_one_pixel_is_noticed(now):
    spoiled = {name: picture.copy() for name, picture in now.items()}
    spoiled["animal cat"][9, 9, 1] ^= 2
    assert changed(spoiled, now) == ["animal cat"]


def test_every_picture_shows_its_ingredient(now):
    """No two are alike, so that no ingredient stands in for another."""
    assert len({picture.tobytes() for picture in now.values()}) == len(now) - len(SAME)
    for name, picture in now.items():
        assert (picture[..., 3] < 255).sum() > (10 if name.removeprefix("slot ") in LAYOUT_SLOTS else 20), name


# "big", the plain slot and the first view are one scene; a plain colour is that colour.
SAME = ("size big", "camera and sun 0", *(f"texture {name}" for name in PATTERNS if name.startswith("plain ")))
WRITE = "python -m tests.envs.test_golden"


def write() -> None:
    """Write all pictures anew; refused where some changed under the version that they were written for."""
    pictures = drawn()
    version = json.loads(LIST.read_text())["version"] if LIST.exists() else 0
    if version == RENDER_VERSION and (moved := set(changed(pictures, golden())) & golden().keys()):
        raise SystemExit(f"raise RENDER_VERSION first: {', '.join(sorted(moved))} changed")
    blank = np.zeros((-len(pictures) % COLUMNS, SIDE, SIDE, 4), np.uint8)
    rows = np.concatenate([np.stack(list(pictures.values())), blank]).reshape(-1, COLUMNS, SIDE, SIDE, 4)
    Image.fromarray(rows.swapaxes(1, 2).reshape(-1, COLUMNS * SIDE, 4)).save(SHEET, optimize=True)
    LIST.write_text(json.dumps({"version": RENDER_VERSION, "ingredients": list(pictures)}, indent=1) + "\n")


if __name__ == "__main__":
    write()
