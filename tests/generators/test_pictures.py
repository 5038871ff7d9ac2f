"""What a picture's file holds beside its pixels: how it is turned, texts, colour profiles."""

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from menagerie.envs.drawing.picture_file import read_picture, read_pixels
from menagerie.generators.hub.pictures import suffix_of
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.rows import FileRow
from menagerie.generators.sources.shard import Member, check_image

SIDE = 16
NOISE = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), np.uint8)


def test_photographs_are_turned_upright(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was turned: its top row is shown on the right
    Image.fromarray(NOISE).save(tmp_path / "turned.png", exif=turned)
    (image,) = ImageFiles(tmp_path, ["turned.png"], SIDE).read([0])
    assert np.array_equal(image.permute(1, 2, 0), np.rot90(NOISE, -1))


def long_text() -> PngInfo:
    """Two megabytes of text, compressed, as painting programs write them."""
    texts = PngInfo()
    texts.add_text("history", "layer " * 350_000, zip=True)
    return texts


@pytest.mark.parametrize("beside", [{"exif": b"no TIFF"}, {"pnginfo": long_text()}, {"icc_profile": bytes(2 << 20)}])
def test_pictures_with_damaged_or_large_metadata_are_read(beside, tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(NOISE).convert("RGBA").save(path, **beside)
    (image,) = ImageFiles(tmp_path, ["a.png"], SIDE).read([0])
    assert np.array_equal(image.permute(1, 2, 0), NOISE)
    assert suffix_of(FileRow(path, "", {}), "image", path.read_bytes()) == ".png"
    with path.open("rb") as file:
        check_image(file, Member(0, path.stat().st_size))
    assert np.allclose(read_picture(path), (NOISE / 255) ** 2.2, atol=1e-5)
    assert np.array_equal(read_pixels(path, path.read_bytes(), "RGBA")[..., :3], NOISE)
