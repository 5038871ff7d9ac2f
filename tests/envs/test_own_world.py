"""Worlds of the user's own: what works, and what each mistake says."""

import hashlib

import numpy as np
import pytest
import trimesh
from PIL import Image

from envs.errors import UserError
from envs.renderer import Renderer
from envs.scene import Scene, Thing
from envs.world import load_world

WORLD = """
extends = "tiny"
animals = ["BLOB", "penguin"]
textures = ["red", "TILES"]
backgrounds = ["desert", "PARK"]

[animal."BLOB"]
mesh = "blob.ply"
size = 1.2

[texture."TILES"]
image = "tiles.png"
tile = 0.4

[background."PARK"]
image = "park.png"
"""


@pytest.fixture
def folder(tmp_path):
    body, head = trimesh.creation.icosphere(3, 0.5), trimesh.creation.icosphere(3, 0.3)
    solid = trimesh.Trimesh(body.vertices * (1.4, 0.8, 1), body.faces)
    solid.export(tmp_path / "blob.ply")
    head.export(tmp_path / "head.ply")
    random = np.random.default_rng(0)
    Image.fromarray(random.integers(0, 255, (32, 32, 3), np.uint8)).save(tmp_path / "tiles.png")
    Image.fromarray(random.integers(90, 200, (64, 64, 3), np.uint8)).save(tmp_path / "park.png")
    return tmp_path


def write(folder, request, text=WORLD, **changes):
    """The world file; names carry the test's name, because a process knows each of them once."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    own = "".join(chr(97 + byte % 26) for byte in hashlib.sha256(request.node.name.encode()).digest()[:8])
    for word in ("BLOB", "TILES", "PARK"):
        text = text.replace(word, f"{word.lower()} {own}")
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path), own


def replaced(old, new):
    return WORLD.replace(old, new)


def test_own_mesh_texture_and_background_are_drawn(folder, request):
    path, own = write(folder, request)
    world = load_world(path)
    assert world.name == "mine"
    assert world.animals == (f"blob {own}", "penguin")
    things = (Thing(world.animals[0], world.textures[1], "left"), Thing("penguin", "red", "right"))
    scenes = [Scene(background, things) for background in world.backgrounds]
    images, masks = Renderer(world, 48, folder / "cache").render(scenes)
    assert all(set(np.unique(mask)) == {0, 1, 2} for mask in masks)
    assert not np.array_equal(images[0], images[1])
    assert images[0][masks[0] == 1].std() > 15, "the tiles show"
    parallel = Renderer(world, 48, folder / "other", workers=2)
    parallel.prepare(scenes)
    assert np.array_equal(parallel.render(scenes).images, images), "workers know the own animal too"


def test_its_files_decide_the_identity(folder, request):
    path, _ = write(folder, request)
    first = load_world(path)
    assert load_world(path) == first
    assert first.own != load_world("tiny").own
    assert str(folder) not in repr(first), "a moved folder is the same world"


def test_a_subset_needs_no_ingredients_of_its_own(folder, request):
    path, _ = write(folder, request, 'extends = "pug"\nanimals = ["cat", "pig"]\ntextures = ["red", "grass"]\n')
    world = load_world(path)
    assert world.animals == ("cat", "pig")
    assert world.backgrounds == load_world("pug").backgrounds
    assert world.own == ""


MISTAKES = [
    ('"penguin"]', '"pengin"]', "did you mean 'penguin'"),
    ('extends = "tiny"', 'extends = "tini"', "did you mean 'tiny'"),
    ('extends = "tiny"', 'extend = "tiny"', "did you mean 'extends'"),
    ("size = 1.2", "sise = 1.2", "did you mean 'size'"),
    ("size = 1.2", "size = 2.9", "smaller size"),
    ("size = 1.2", "size = -1", "size of .* must be a number from 0.1 to 3"),
    ("size = 1.2", "turn = [1, 2]", "three angles"),
    ('mesh = "blob.ply"', 'mesh = "none.ply"', "which is not there"),
    ('mesh = "blob.ply"', 'mesh = "../blob.ply"', "lies outside"),
    ('mesh = "blob.ply"', 'mesh = "tiles.png"', "can't be read as a mesh"),
    ('mesh = "blob.ply"', "size = 1.0", "can't be read as TOML"),
    ('image = "tiles.png"\n', "", "needs one image or function"),
    ('image = "tiles.png"', 'image = "blob.ply"', "can't be read as a picture"),
    ('image = "tiles.png"', 'function = "tiles.png:f"', "must be in a Python file"),
    ('[animal."BLOB"]', '[animal."Blob!"]', "lower-case words"),
    ('["red", "TILES"]', '["red", "red"]', "different names"),
    ('["red", "TILES"]', '["red"]', "at least two"),
    ('["BLOB", "penguin"]', "[", "can't be read as TOML"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES, ids=[new for _, new, _ in MISTAKES])
def test_a_mistake_names_itself(folder, request, old, new, message):
    path, _ = write(folder, request, replaced(old, new))
    with pytest.raises(UserError, match=message):
        load_world(path)


def test_a_built_in_name_is_not_free(folder, request):
    path, _ = write(folder, request, WORLD.replace("BLOB", "cat"))
    with pytest.raises(UserError, match="'cat' is built in"):
        load_world(path)


def open_mesh(mesh):
    return trimesh.Trimesh(mesh.vertices, mesh.faces[:-40])


def not_finite(mesh):
    vertices = mesh.vertices.copy()
    vertices[5] = np.nan
    return trimesh.Trimesh(vertices, mesh.faces, process=False)


BAD = {
    "open": (open_mesh, "is open: .* close its holes"),
    "empty": (lambda mesh: trimesh.Trimesh(mesh.vertices[:0], mesh.faces[:0]), "no faces|can't be read"),
    "enormous": (lambda mesh: trimesh.Trimesh(mesh.vertices * 1e9, mesh.faces), "move and scale it"),
    "many faces": (lambda mesh: trimesh.creation.icosphere(7), "faces, more than"),
    "NaN": (not_finite, "not finite"),
    "flat": (lambda mesh: trimesh.Trimesh(mesh.vertices * (1, 1, 0), mesh.faces, process=False), "is flat"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_mesh_names_its_fault(folder, request, fault):
    spoil, message = BAD[fault]
    spoil(trimesh.load(folder / "blob.ply")).export(folder / "blob.ply")
    path, _ = write(folder, request)
    with pytest.raises(UserError, match=message):
        load_world(path)


def test_a_function_of_ones_own_is_a_texture(folder, request):
    (folder / "lava.py").write_text("def glow(noise):\n    return noise[:, :3].clip(0, 1)\n")
    path, own = write(folder, request, replaced('image = "tiles.png"\ntile = 0.4', 'function = "lava.py:glow"'))
    world = load_world(path)
    scene = Scene("desert", (Thing("penguin", f"tiles {own}", "center"),))
    assert Renderer(world, 32).render([scene]).masks.any()
