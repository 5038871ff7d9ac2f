"""Users' worlds: their ingredients are drawn, measured against limits, and decide the world's identity."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image

from menagerie.envs.checks.against_direct import Config, run
from menagerie.envs.core.errors import UserError
from menagerie.envs.custom.limits import IN_PAIRS
from menagerie.envs.drawing.mesh_file import read_mesh
from menagerie.envs.drawing.picture_file import read_picture
from menagerie.envs.render import entry_identity, image_identity
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from tests.helpers.cutout_files import draw, world_of
from tests.helpers.own_animals import LYNX

WORLD = """
extends = "tiny"
animals = ["BLOB", "more/snow_OWN.py", "penguin", "FOX"]
textures = ["red", "TILES", "LAVA"]
backgrounds = ["desert", "PARK"]

[animal."BLOB"]
mesh = "blob.ply"
size = 1.2

[animal."FOX"]
cutouts = ["fox.png"]

[texture."TILES"]
image = "tiles.png"
tile = 0.4

[texture."LAVA"]
function = "lava.py:glow"

[background."PARK"]
image = "park.png"
"""
EGG = """
from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Ellipsoid

ANIMAL = Animal((Ellipsoid((0, 0, 0.6), (RADII)),), size=SIZE)
"""


@pytest.fixture
def own(request):
    """A word for the test's own ingredients, because a process knows each name once."""
    return "".join(chr(97 + byte % 26) for byte in hashlib.sha256(request.node.name.encode()).digest()[:8])


@pytest.fixture
def world(tmp_path, own):
    """The path of a world with an animal of each kind, a cut-out, two textures and a background of its own."""
    ball, random = trimesh.creation.icosphere(3, 0.5), np.random.default_rng(0)
    trimesh.Trimesh(ball.vertices * (1.4, 0.8, 1), ball.faces).export(tmp_path / "blob.ply")
    Image.fromarray(random.integers(0, 255, (32, 32, 3), np.uint8)).save(tmp_path / "tiles.png")
    Image.fromarray(random.integers(90, 200, (64, 64, 3), np.uint8)).save(tmp_path / "park.png")
    draw(tmp_path / "fox.png")
    (tmp_path / "lava.py").write_text("def glow(noise):\n    return noise[:, :3].clip(0, 1)\n")
    (tmp_path / "more").mkdir()
    (tmp_path / f"more/snow_{own}.py").write_text(LYNX)
    text = WORLD.replace("OWN", own)
    for word in ("BLOB", "FOX", "TILES", "LAVA", "PARK"):
        text = text.replace(word, f"{word.lower()} {own}")
    (tmp_path / "mine.toml").write_text(text)
    return str(tmp_path / "mine.toml")


def with_egg(folder: Path, own: str, radii: str, size: float) -> str:
    """The path of a world with one animal of its own, an egg."""
    (folder / f"{own}.py").write_text(EGG.replace("(RADII)", f"({radii})").replace("SIZE", str(size)))
    (folder / "egg.toml").write_text(f'extends = "tiny"\nanimals = ["penguin", "{own}.py"]\n')
    return str(folder / "egg.toml")


def test_own_ingredients_are_drawn_the_same_by_any_number_of_workers(world, own, tmp_path):
    mine = load_world(world)
    assert mine.name == "mine"
    assert mine.animals == (f"blob {own}", f"snow {own}", "penguin", f"fox {own}")
    objects = Object(mine.animals[0], f"tiles {own}", "left"), Object(mine.animals[1], f"lava {own}", "right")
    scenes = [Scene(background, objects) for background in mine.backgrounds]
    scenes += [Scene("desert", (Object(f"fox {own}", "red", slot), objects[1])) for slot in ("left", "left outward")]
    images, masks = Renderer(mine, 48, tmp_path / "cache").render(scenes)
    assert all(set(np.unique(mask)) == {0, 1, 2} for mask in masks)
    assert not np.array_equal(images[0], images[1])
    assert images[0][masks[0] == 1].std() > 15, "the tiles show"
    parallel = Renderer(mine, 48, tmp_path / "other", workers=2)
    parallel.prepare(scenes)
    assert np.array_equal(parallel.render(scenes).images, images)


EDITS = {
    "blob.ply": lambda path: trimesh.creation.capsule(1.0, 0.4).export(path),
    "more/snow_OWN.py": lambda path: path.write_text(LYNX.replace("size=1.5", "size=1.45")),
    "tiles.png": lambda path: Image.new("RGB", (32, 32), "red").save(path),
    "lava.py": lambda path: path.write_text("def glow(noise):\n    return 0.5 * noise[:, :3].clip(0, 1)\n"),
    "park.png": lambda path: Image.new("RGB", (32, 32), "red").save(path),
}


@pytest.mark.parametrize("file", EDITS)
def test_edited_file_is_another_ingredient(file, world, own, tmp_path):
    """It has another hash, so that a process that knows the first one refuses it, and workers do too."""
    first = load_world(world)
    assert load_world(world) is first
    assert image_identity(replace(first, source="elsewhere.toml"), 64) == image_identity(first, 64)
    EDITS[file](tmp_path / file.replace("OWN", own))
    with pytest.raises(UserError, match="was read before and has changed since"):
        load_world(world)
    scene = Scene("desert", (Object(first.animals[0], "red", "left"), Object("penguin", "red", "right")))
    if file == "blob.ply":
        with pytest.raises(UserError, match="changed while it started"):
            Renderer(first, 32, tmp_path / "cache", workers=2).prepare([scene])


def test_photographs_decide_the_identity_also_within_a_process(tmp_path):
    lion = '[animal.lion]\ncutouts = ["lion.png"]\n'
    draw(tmp_path / "a" / "lion.png")
    draw(tmp_path / "b" / "lion.png")
    first, second = (load_world(world_of(tmp_path / name, lion, '["lion", "penguin"]')) for name in "ab")
    assert (first, image_identity(first, 64)) == (second, image_identity(second, 64))
    draw(tmp_path / "b" / "lion.png", "blue")
    changed = load_world(world_of(tmp_path / "b", lion, '["lion", "penguin"]'))
    mirrored = load_world(world_of(tmp_path / "b", lion + "mirrored = false\n", '["lion", "penguin"]'))
    assert len({first.own, changed.own, mirrored.own}) == 3


def test_sets_are_inherited_and_decide_no_image(tmp_path):
    plain, sets, less = (tmp_path / f"{name}.toml" for name in ("plain", "sets", "less"))
    plain.write_text('extends = "tiny"\nname = "one"\n')
    sets.write_text(
        'extends = "tiny"\nname = "one"\n[sets]\nflightless = ["penguin", "elephant"]\nlong = ["crocodile"]\n'
    )
    less.write_text('extends = "sets.toml"\nanimals = ["penguin", "rabbit"]\n[sets]\nlong = ["rabbit"]\n')
    one, other = load_world(str(plain)), load_world(str(sets))
    assert dict(other.sets) == {"flightless": ("penguin", "elephant"), "long": ("crocodile",)}
    assert dict(load_world(str(less)).sets) == {"flightless": ("penguin",), "long": ("rabbit",)}
    assert other != one, "rules of one are not those of the other"
    assert image_identity(other, 64) == image_identity(one, 64)
    assert entry_identity(64, other) == entry_identity(64, one)


def test_edit_of_the_extended_file_is_seen(tmp_path):
    base, mine = tmp_path / "base.toml", tmp_path / "mine.toml"
    mine.write_text('extends = "base.toml"\ntextures = ["red", "blue"]\n')
    for animals in (("penguin", "lion"), ("penguin", "lion", "cat")):
        base.write_text(f'extends = "tiny"\nanimals = {list(animals)}\n'.replace("'", '"'))
        assert load_world(str(mine)).animals == animals
        assert load_world(str(mine)).own == ""


def test_built_in_ingredients_that_the_base_world_lacks_can_be_listed(tmp_path):
    (tmp_path / "more.toml").write_text(
        'extends = "tiny"\nanimals = ["lion", "penguin"]\ntextures = ["red", "asphalt"]\nbackgrounds = ["arena"]\n'
    )
    world = load_world(str(tmp_path / "more.toml"))
    scene = Scene("arena", (Object("lion", "asphalt", "left"), Object("penguin", "red", "right")))
    ours, pug = (Renderer(one, 32).render([scene]) for one in (world, load_world("pug")))
    assert np.array_equal(ours.images, pug.images)


@pytest.mark.parametrize(
    ("radii", "size", "limit", "remedy"),
    [
        ("1, 0.3, 0.3", 2.4, "distance to the frame", "smaller size, or reduce its length or width"),
        ("0.3, 1, 0.3", 2.9, "distance to the half beside", "smaller size, or reduce its length or width"),
        ("0.7, 0.7, 1", 1.9, "distance to the half above", "smaller size, or reduce its height"),
        ("1, 0.3, 0.5", 0.6, "width in a pair, least", "greater size"),
        ("1, 0.5, 0.5", 1.7, "width in a pair, greatest", "smaller size"),
    ],
)
def test_animal_that_misses_a_limit_is_reported_with_what_to_change(tmp_path, own, radii, size, limit, remedy, capsys):
    """A distance is required, so that the world is refused; a width isn't."""
    config = Config(scenes=1, resolution=32, world=with_egg(tmp_path, own, radii, size))
    if limit.startswith("distance"):
        with pytest.raises(UserError, match=f"{own!r} doesn't fit: its .* smaller size"):
            run(config)
    else:
        assert run(config) == 1
    printed = capsys.readouterr().out
    assert re.search(rf"{limit} .*MISSED\n    give it a {remedy}", printed)
    assert all(its.name in printed for its in IN_PAIRS), "all limits are reported, not the first that is missed"


def test_animal_that_keeps_its_limits_passes_the_check(world, own, capsys):
    assert run(Config(scenes=2, resolution=32, world=world)) == 0
    printed = capsys.readouterr().out
    assert f"snow {own}: length 1.44 m, width 0.82 m, height 1.50 m" in printed
    assert "MISSED" not in printed


BOX = trimesh.creation.box()
INSIDE_OUT = np.r_[BOX.faces[:, ::-1], BOX.faces + len(BOX.vertices)]  # the first of two
TOUCHING = {
    "along an edge": ((1, 1, 0), None),
    "along an edge, one of them inside out": ((1, 1, 0), INSIDE_OUT),
    "along a face": ((1, 0, 0), None),
    "in a corner": ((1, 1, 1), None),
}


@pytest.mark.parametrize("kind", TOUCHING)
def test_closed_bodies_of_a_mesh_may_touch(kind, tmp_path):
    other, faces = TOUCHING[kind]
    both = trimesh.util.concatenate([BOX, BOX.copy().apply_translation(other)])
    boxes = trimesh.Trimesh(both.vertices, both.faces if faces is None else faces, process=False)
    boxes.export(tmp_path / "a.ply")
    animal = read_mesh(tmp_path / "a.ply", 1.0, 0.0, (0, 0, 0))
    solid = trimesh.Trimesh(animal.vertices, animal.faces, process=False)
    assert solid.volume == pytest.approx(2)
    assert all(body.volume > 0 for body in solid.split(only_watertight=False) if body.is_watertight)


def test_picture_is_drawn_as_its_orientation_says(tmp_path):
    pixels, exif = np.random.default_rng(0).integers(0, 256, (16, 24, 3), np.uint8), Image.Exif()
    exif[0x0112] = 6  # the camera was turned: its top row is shown on the right
    Image.fromarray(pixels).save(tmp_path / "turned.png", exif=exif)
    Image.fromarray(np.rot90(pixels, -1)).save(tmp_path / "upright.png")
    assert np.array_equal(read_picture(tmp_path / "turned.png"), read_picture(tmp_path / "upright.png"))
