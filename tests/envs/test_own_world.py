"""Users' worlds: what works, and the message of each mistake."""

import hashlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import trimesh
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.drawing.mesh_file import read_mesh
from menagerie.envs.render import image_identity
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world

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
    (tmp_path / "blob.zip").write_bytes(b"PK")
    (tmp_path.parent / "other.toml").write_text('extends = "tiny"')
    (tmp_path / "bad.py").write_text(
        "number = 5\ndef shape(noise): return noise\ndef bright(noise): return 50 + abs(noise[:, :3])\n"
        "def raises(noise): return {}['cat']\n"
    )
    (tmp_path / "leaves.py").write_text("raise SystemExit")
    Image.fromarray(np.zeros((32, 32), np.uint16)).save(tmp_path / "deep.png")
    Image.new("RGB", (5000, 8)).save(tmp_path / "wide.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (32, 32)).save(tmp_path / "turned.jpg", exif=exif)
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
    objects = (Object(world.animals[0], world.textures[1], "left"), Object("penguin", "red", "right"))
    scenes = [Scene(background, objects) for background in world.backgrounds]
    images, masks = Renderer(world, 48, folder / "cache").render(scenes)
    assert all(set(np.unique(mask)) == {0, 1, 2} for mask in masks)
    assert not np.array_equal(images[0], images[1])
    assert images[0][masks[0] == 1].std() > 15, "the tiles show"
    parallel = Renderer(world, 48, folder / "other", workers=2)
    parallel.prepare(scenes)
    assert np.array_equal(parallel.render(scenes).images, images), "workers know the own animal too"


def test_its_files_decide_the_identity(folder, request):
    """Each process knows one version; a changed file is another world, and raises within a process."""
    path, _ = write(folder, request)
    first = load_world(path)
    assert load_world(path) is first
    moved = replace(first, source="elsewhere.toml")
    assert image_identity(moved, 64) == image_identity(first, 64), "a moved folder is the same world"
    program = f"from menagerie.envs.worlds import load_world; print(load_world({path!r}).own)"
    trimesh.creation.capsule(1.0, 0.4).export(folder / "blob.ply")
    changed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert changed.stdout.strip() != first.own
    with pytest.raises(UserError, match="was read before and has changed since"):
        load_world(path)


def test_workers_refuse_files_that_changed(folder, request):
    path, own = write(folder, request)
    world = load_world(path)
    trimesh.creation.capsule(1.0, 0.4).export(folder / "blob.ply")
    objects = (Object(f"blob {own}", "red", "left"), Object("penguin", "red", "right"))
    with pytest.raises(UserError, match="changed while it started"):
        Renderer(world, 32, folder / "cache", workers=2).prepare([Scene("desert", objects)])


def test_captions_stay_unambiguous(folder, request):
    path, own = write(folder, request, WORLD.replace('"BLOB"', '"red blob"').replace("TILES", "TILES red"))
    text = (folder / "mine.toml").read_text().replace('["red blob", "penguin"]', '["red blob", "blob kin"]')
    text += '[animal."blob kin"]\nmesh = "blob.ply"\n'
    (folder / "mine.toml").write_text(text.replace(f'"tiles {own} red"', '"red red"').replace('"blob kin"', '"blob"'))
    with pytest.raises(UserError, match="'red red blob' is"):
        load_world(path)


def test_a_subset_needs_no_ingredients_of_its_own(folder, request):
    path, _ = write(folder, request, 'extends = "pug"\nanimals = ["cat", "pig"]\ntextures = ["red", "grass"]\n')
    world = load_world(path)
    assert world.animals == ("cat", "pig")
    assert world.backgrounds == load_world("pug").backgrounds
    assert world.own == ""


MISTAKES = [
    ('"penguin"]', '"pengin"]', "did you mean 'penguin'"),
    ("size = 1.2", "size = 2.9", "smaller size"),
    ('mesh = "blob.ply"', 'mesh = "none.ply"', "which is not there"),
    ('mesh = "blob.ply"', 'mesh = "../blob.ply"', "leads out of the folder"),
    ('mesh = "blob.ply"', 'mesh = "blob.zip"', "is an archive"),
    ('extends = "tiny"', 'extends = "mine.toml"', "extends itself"),
    ('extends = "tiny"', 'extends = "../other.toml"', "leads out of the folder"),
    ('image = "tiles.png"', 'image = "deep.png"', "more than 8 bits"),
    ('image = "park.png"', 'image = ["park.png", "turned.jpg"]', "EXIF orientation 6"),
    ('image = "tiles.png"', 'function = "bad.py:raises"', "fails .KeyError"),
    ('image = "tiles.png"', 'function = "bad.py:bright"', "outside 0..1"),
    ('[animal."BLOB"]', '[animal."Blob!"]', "lower-case words"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES, ids=[new for _, new, _ in MISTAKES])
def test_a_mistake_names_itself(folder, request, old, new, message):
    path, _ = write(folder, request, replaced(old, new))
    with pytest.raises(UserError, match=message):
        load_world(path)


def test_what_is_built_in_can_be_listed_though_the_base_world_lacks_it(tmp_path):
    """As an animal's file in `envs/animals` that no world of ours names."""
    (tmp_path / "more.toml").write_text(
        'extends = "tiny"\nanimals = ["lion", "penguin"]\ntextures = ["red", "asphalt"]\nbackgrounds = ["arena"]\n'
    )
    world = load_world(str(tmp_path / "more.toml"))
    scene = Scene("arena", (Object("lion", "asphalt", "left"), Object("penguin", "red", "right")))
    ours, pug = (Renderer(one, 32).render([scene]) for one in (world, load_world("pug")))
    assert np.array_equal(ours.images, pug.images)


def open_mesh(mesh):
    return trimesh.Trimesh(mesh.vertices, mesh.faces[:-40])


def not_finite(mesh):
    vertices = mesh.vertices.copy()
    vertices[5] = np.nan
    return trimesh.Trimesh(vertices, mesh.faces, process=False)


def bad_index(mesh):
    return trimesh.Trimesh(mesh.vertices, np.vstack([mesh.faces, [0, 1, 99_999]]), process=False)


BAD = {
    "index": (bad_index, "refer to vertices it doesn't have|can't be read"),
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


BOX = trimesh.creation.box()
INSIDE_OUT = np.r_[BOX.faces[:, ::-1], BOX.faces + len(BOX.vertices)]  # the first of two
TOUCHING = {
    "along an edge": ((1, 1, 0), None),
    "along an edge, one of them inside out": ((1, 1, 0), INSIDE_OUT),
    "along a face": ((1, 0, 0), None),
    "in a corner": ((1, 1, 1), None),
}


def boxes(other, faces=None):
    """Two cubes of side 1, with their middles at 0 and `other`."""
    both = trimesh.util.concatenate([BOX, BOX.copy().apply_translation(other)])
    return trimesh.Trimesh(both.vertices, both.faces if faces is None else faces, process=False)


@pytest.mark.parametrize("kind", TOUCHING)
def test_closed_bodies_may_touch(kind, tmp_path):
    boxes(*TOUCHING[kind]).export(tmp_path / "a.ply")
    animal = read_mesh(tmp_path / "a.ply", 1.0, 0.0, (0, 0, 0))
    solid = trimesh.Trimesh(animal.vertices, animal.faces, process=False)
    assert solid.volume == pytest.approx(2)
    assert all(body.volume > 0 for body in solid.split(only_watertight=False) if body.is_watertight)


def test_a_function_of_ones_own_is_a_texture(folder, request):
    (folder / "lava.py").write_text("def glow(noise):\n    return noise[:, :3].clip(0, 1)\n")
    path, own = write(folder, request, replaced('image = "tiles.png"\ntile = 0.4', 'function = "lava.py:glow"'))
    world = load_world(path)
    scene = Scene("desert", (Object("penguin", f"tiles {own}", "center"),))
    assert Renderer(world, 32).render([scene]).masks.any()


def test_an_edit_of_the_extended_file_is_seen(tmp_path):
    base, mine = tmp_path / "base.toml", tmp_path / "mine.toml"
    mine.write_text('extends = "base.toml"\ntextures = ["red", "blue"]\n')
    for animals in (("penguin", "lion"), ("penguin", "lion", "cat")):
        base.write_text(f'extends = "tiny"\nanimals = {list(animals)}\n'.replace("'", '"'))
        assert load_world(str(mine)).animals == animals
