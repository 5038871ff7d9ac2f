"""Cut-outs that are refused: each with one line that names the file and the way out."""

import io
import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.render import image_identity
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.worlds import load_world
from tests.helpers.cutout_files import draw, world_of

GOOD = '[animal.lion]\ncutouts = ["lion.png"]\n'


def png(width: int, height: int, rows: bytes) -> bytes:
    """A PNG of 8 bits RGBA with the given compressed rows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def saved(image: Image.Image, orientation: int = 1) -> bytes:
    buffer, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    image.save(buffer, "PNG", exif=exif)
    return buffer.getvalue()


def block(rows: slice, columns: slice, side: int = 100, color: int = 200) -> bytes:
    """A picture that is solid in a box."""
    pixels = np.zeros((side, side, 4), np.uint8)
    pixels[rows, columns] = (color, color, color, 255)
    return saved(Image.fromarray(pixels))


REFUSED = {
    "no alpha": (lambda: saved(Image.new("RGB", (90, 90), "brown")), "no transparent pixels"),
    "empty": (lambda: saved(Image.new("RGBA", (90, 90))), "is empty"),
    "full": (lambda: saved(Image.new("RGBA", (90, 90), "brown")), "no transparent pixels"),
    "border": (lambda: block(slice(20, 80), slice(0, 60)), "touches its border along 60% of the left edge"),
    "small": (lambda: block(slice(40, 60), slice(40, 60)), "must have at least 24"),
    "turned": (lambda: saved(Image.open(io.BytesIO(draw_bytes())), 3), "EXIF orientation 3"),
    "16 bits": (lambda: saved(Image.fromarray(np.zeros((90, 90), np.uint16))), "more than 8 bits"),
}


def draw_bytes() -> bytes:
    random = np.random.default_rng(0).integers(0, 255, (90, 90, 4), np.uint8)
    return saved(Image.fromarray(random))


@pytest.mark.parametrize("name", REFUSED)
def test_a_picture_that_is_refused(tmp_path, name):
    content, message = REFUSED[name]
    (tmp_path / "lion.png").write_bytes(content())
    with pytest.raises(UserError, match=message) as error:
        load_world(world_of(tmp_path, GOOD, '["lion", "penguin"]'))
    assert "lion.png" in str(error.value)
    assert "\n" not in str(error.value)


ENTRIES = {
    'cutouts = ["none.png"]': "which is not there",
    'cutouts = ["lion.png"]\nsize = 2.9': "smaller size",
    'cutouts = ["lion.png"]\ntexture = "own"': "'penguin' must be a cut-out with texture = \"own\"",
    'cutout = ["lion.png"]': "did you mean 'cutouts'",
    'mesh = "lion.png"': "is built in",
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_that_is_refused(tmp_path, entry):
    folder = tmp_path / "world"
    draw(folder / "lion.png")
    draw(tmp_path / "lion.png")
    os.symlink(tmp_path / "lion.png", folder / "link.png")
    with pytest.raises(UserError, match=ENTRIES[entry]):
        load_world(world_of(folder, f"[animal.lion]\n{entry}\n", '["lion", "penguin"]'))


def test_too_small_for_a_resolution(tmp_path):
    draw(tmp_path / "lion.png", width=45, height=40)
    world = load_world(world_of(tmp_path, GOOD, '["lion", "penguin"]'))
    Renderer(world, 64)
    with pytest.raises(UserError, match="pixels along its longest side, too few for scenes of 224; it needs 4"):
        Renderer(world, 224)


def test_the_pictures_decide_the_identity(tmp_path):
    """Another picture is another world, in the same process too, and a moved folder is the same one."""
    draw(tmp_path / "a" / "lion.png")
    draw(tmp_path / "b" / "lion.png")
    first, second = (load_world(world_of(tmp_path / name, GOOD, '["lion", "penguin"]')) for name in "ab")
    assert (first, image_identity(first, 64)) == (second, image_identity(second, 64))
    draw(tmp_path / "b" / "lion.png", "blue")
    changed = load_world(world_of(tmp_path / "b", GOOD, '["lion", "penguin"]'))
    assert changed.own != first.own
    again = load_world(world_of(tmp_path / "b", GOOD + "mirrored = false\n", '["lion", "penguin"]'))
    assert again.own != changed.own
