"""Mistakes in users' worlds: each is refused in one line that names the file."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from tests.helpers.cutout_files import draw
from tests.helpers.own_animals import LYNX

BALL = trimesh.creation.icosphere(3, 0.5)
FUNCTIONS = (
    "def bright(noise): return 50 + abs(noise[:, :3])\n"
    "def raises(noise): return {}['cat']\n"
    "def shape(noise): return noise\n"
)
RED_RED = '[texture."red red"]\nimage = "good.png"'
Case = tuple[Callable[[Path], object], str, str]  # writes the file that is wrong; the world; what the error says


def table(text: str, message: str) -> Case:
    """A mistake in the world file itself."""
    return lambda folder: None, text, message


def python(source: str, message: str) -> Case:
    """A mistake in a Python file of an animal."""
    return lambda folder: (folder / "own.py").write_text(source), 'animals = ["penguin", "own.py"]', message


def mesh(spoil: Callable[[trimesh.Trimesh], trimesh.Trimesh], message: str) -> Case:
    """A mesh that can't be drawn."""
    return lambda folder: spoil(BALL).export(folder / "ball.ply"), '[animal.own]\nmesh = "ball.ply"\n', message


def cutout(content: bytes, message: str) -> Case:
    """A photograph that can't be a cut-out."""
    text = 'animals = ["lion", "penguin"]\n[animal.lion]\ncutouts = ["lion.png"]'
    return lambda folder: (folder / "lion.png").write_bytes(content), text, message


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def block(rows: slice, columns: slice) -> bytes:
    """A picture of 100 x 100 pixels that is solid in a box."""
    pixels = np.zeros((100, 100, 4), np.uint8)
    pixels[rows, columns] = (200, 200, 200, 255)
    return png(Image.fromarray(pixels))


def solid(vertices: np.ndarray, faces: np.ndarray) -> trimesh.Trimesh:
    """A mesh as it is given, without any repair."""
    return trimesh.Trimesh(vertices, faces, process=False)


MISTAKES = [
    table('animals = ["elephant", "pengin"]', "did you mean 'penguin'"),
    table('animals = ["penguin", "none.py"]', "animal 'none' needs .*none.py, which is not there"),
    table('animals = ["penguin", "../own.py"]', "leads out of"),
    table('animals = ["penguin", "cat.py"]', "animal 'cat' is built in"),
    table('animals = ["penguin", "giant_tortoise.py"]', "'giant tortoise' is built in"),
    table('animals = ["penguin", "Lynx2.py"]', "a name is lower-case words"),
    table('animals = ["penguin", "own.py", "own.py"]', "at least 2 different names"),
    table('animals = ["penguin", "own.py"]\n[animal.own]\nfile = "own.py"', "listed as a file and has a table"),
    table('[animal.own]\nfile = "own.py"\nsize = 1.2', "has its size, hover and direction in own.py"),
    table('[animal.own]\nfile = "own.py"\nmesh = "a.ply"', "needs one mesh or file"),
    table('[animals]\nown = "own.py"', "animals can't be {"),
    table("sets = 5", "sets can't be 5"),
    table('[sets]\nbirds = ["pengin"]', "set 'birds': unknown animal 'pengin'; did you mean 'penguin'"),
    table("[sets]\nbirds = []", "set 'birds' is empty"),
    table('[sets]\npenguin = ["rabbit"]', "set 'penguin' is named like an animal"),
    table('[sets]\nBirds = ["penguin"]', "set 'Birds': a name is lower-case words"),
    table('[sets]\nbirds = ["penguin", "penguin"]', "names an animal twice"),
    table('extends = "mine.toml"', "extends itself"),
    table('extends = "../other.toml"', "leads out of the folder"),
    table('[animal."Ball!"]\nmesh = "ball.ply"', "lower-case words"),
    table('[animal.own]\nmesh = "ball.ply"\nsize = 2.9', "smaller size"),
    table('[animal.own]\nmesh = "../ball.ply"', "leads out of the folder"),
    table('[animal.own]\nmesh = "ball.zip"', "is an archive"),
    table('[texture.own]\nimage = "deep.png"', "more than 8 bits"),
    table('[texture.own]\nfunction = "functions.py:raises"', "fails .KeyError"),
    table('[texture.own]\nfunction = "functions.py:bright"', "outside 0..1"),
    table('[texture.own]\nfunction = "functions.py:shape"', "colours of shape"),
    table('[animal.kin]\nfile = "own.py"\n[animal."red kin"]\nfile = "own.py"\n' + RED_RED, "'red red kin' is"),
    table('animals = ["lion", "penguin"]\n[animal.lion]\ncutouts = ["none.png"]', "which is not there"),
    table('animals = ["lion", "penguin"]\n[animal.lion]\ncutouts = ["good.png"]\nsize = 2.9', "smaller size"),
    table('[animal.lion]\ncutouts = ["good.png"]\ntexture = "own"', 'must be a cut-out with texture = "own"'),
    table('[animal.lion]\ncutout = ["good.png"]', "did you mean 'cutouts'"),
    table('[animal.lion]\nmesh = "good.png"', "is built in"),
    python("", "has no animal: it must set ANIMAL = Animal"),
    python("raise SystemExit", "can't be run .SystemExit"),
    python("ANIMAL = (", "can't be run .SyntaxError"),
    python(LYNX.replace("size=1.5", "size=9"), "size of the animal in .* must be at most 3, got 9"),
    python(LYNX.replace("BODY + HEAD", "()"), "can't be built"),
    python(LYNX.replace('tag="eye"', 'tag="eyes"'), "can't be built .ValueError"),
    python(LYNX.replace("return np.where", "return 2 + np.where"), "paint of the animal in .* one number from 0 to 1"),
    python(LYNX.replace("def spots(points):", "def spots(points):\n    return {}['cat']"), "can't be built .KeyError"),
    python(LYNX.replace("(0.32, 0.38, 0.32)", "(0.32, float('nan'), 0.32)"), "can't be built|is open"),
    mesh(lambda ball: solid(ball.vertices, np.vstack([ball.faces, [0, 1, 99_999]])), "refer to vertices|can't be read"),
    mesh(lambda ball: trimesh.Trimesh(ball.vertices, ball.faces[:-40]), "is open: .* close its holes"),
    mesh(lambda ball: trimesh.Trimesh(ball.vertices[:0], ball.faces[:0]), "no faces|can't be read"),
    mesh(lambda ball: trimesh.Trimesh(ball.vertices * 1e9, ball.faces), "move and scale it"),
    mesh(lambda ball: trimesh.creation.icosphere(7), "faces, more than"),
    mesh(lambda ball: solid(np.vstack([ball.vertices[:-1], [np.nan] * 3]), ball.faces), "not finite"),
    mesh(lambda ball: solid(ball.vertices * (1, 1, 0), ball.faces), "is flat"),
    cutout(png(Image.new("RGB", (90, 90), "brown")), "no transparent pixels"),
    cutout(png(Image.new("RGBA", (90, 90))), "is empty"),
    cutout(block(slice(20, 80), slice(0, 60)), "touches its border along 60% of the left edge"),
    cutout(block(slice(40, 60), slice(40, 60)), "must have at least 24"),
    cutout(png(Image.fromarray(np.zeros((90, 90), np.uint16))), "more than 8 bits"),
    cutout(png(Image.new("RGBA", (5000, 8))), "it must have 1 to 4096 a side"),
]


@pytest.mark.parametrize(("write", "text", "message"), MISTAKES, ids=[message for _, _, message in MISTAKES])
def test_mistake_in_a_world_is_one_line_with_the_file(tmp_path, write, text, message):
    folder = tmp_path / "world"
    draw(folder / "good.png")
    BALL.export(folder / "ball.ply")
    (folder / "own.py").write_text(LYNX)
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "ball.zip").write_bytes(b"PK")
    (tmp_path / "other.toml").write_text('extends = "tiny"')
    Image.fromarray(np.zeros((32, 32), np.uint16)).save(folder / "deep.png")
    write(folder)
    world = folder / "mine.toml"
    world.write_text(text if text.startswith("extends") else f'extends = "tiny"\n{text}')
    with pytest.raises(UserError, match=message) as raised:
        load_world(str(world))
    assert str(folder) in str(raised.value) or "is built in" in message
    assert len(str(raised.value).splitlines()) == 1
