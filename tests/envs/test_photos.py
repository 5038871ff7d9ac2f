"""`menagerie photos`: worlds from a package laid out as Debian's, of small drawn cut-outs."""

import re
import shutil

import pytest
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.custom.photos import OF_PUG, stamps, stamps_folder
from menagerie.envs.custom.photos import Config as PhotosConfig
from menagerie.envs.custom.photos import run as main
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.worlds import load_world, random_scenes
from tests.helpers.cutout_files import GREY, ORANGE, PALE, draw

TEXTS = {
    "animals/mammals/cats/lion": "A lion.",
    "animals/mammals/cats/lion-2": "A lion.",
    "animals/mammals/cats/tiger_sumatran": "A Sumatran tiger.",
    "animals/mammals/cats/tiger": "A tiger.",
    "animals/mammals/aquatic/sea_lion": "A sea lion.",
    "animals/mammals/rhino_black": "A male black rhino.",
    "animals/birds/peacock": "A peacock (a male peafowl).",
    "animals/fish/lobster": "A spiny lobster, from the islands.",
    "animals/fish/groper": "George the blue groper.",
    "animals/birds/penguin": "A penguin.",
    "animals/insects/cartoon/ant": "An ant.",
    "animals/insects/bee": "A bee.",
    "animals/mammals/echidna": "An echidna.",
    "animals/birds/silent": "",
    "food/fruit/pear": "A yellow pear.",
}


@pytest.fixture
def package(tmp_path):
    """The package as dpkg-deb unpacks it."""
    root = tmp_path / "unpacked"
    folder = root / "usr/share/tuxpaint/stamps"
    for number, (place, text) in enumerate(TEXTS.items()):
        draw(folder / f"{place}.png", (ORANGE, PALE, GREY)[number % 3], width=150 + number)
        if text:
            (folder / f"{place}.txt").write_text(f"{text}\nfr.utf8=Autre chose.\n")
    (folder / "animals/insects/bee.svg").write_text("<svg/>")
    (folder / "animals/mammals/echidna.dat").write_text("colorable\n")
    draw(folder / "animals/birds/wren.png", width=40, height=30)
    (folder / "animals/birds/wren.txt").write_text("A wren.")
    Image.new("RGB", (90, 90)).save(folder / "animals/birds/square.png")
    (folder / "animals/birds/square.txt").write_text("A square bird.")
    return root


def names(folder):
    return {stamp.name for stamp in stamps(folder)}


def test_drawings_and_pictures_without_names_are_left_out(package):
    found = names(stamps_folder(package))
    animals = {"lion", "tiger", "sea lion", "rhinoceros", "peacock", "spiny lobster", "penguin", "wren", "square bird"}
    assert found == {*animals, "yellow pear"}


def test_worlds_are_written_with_pugs_animals_and_with_all(package, tmp_path, capsys):
    out = tmp_path / "out"
    main(PhotosConfig(out, package))
    printed = capsys.readouterr().out
    assert re.search(r"left out: wren \(.* has 3\d pixels along .*; it needs 47", printed)
    assert "left out: square bird" in printed
    assert "photos.toml: 3 objects, 4 photographs" in printed
    shutil.rmtree(package)
    shared = load_world(str(out / "photos.toml"))
    assert shared.animals == ("lion", "penguin", "rhinoceros")
    assert set(shared.animals) <= set(load_world("pug").animals)
    assert shared.textures == load_world("pug").textures
    wide = load_world(str(out / "photos-wide-natural.toml"))
    assert set(wide.animals) == {*shared.animals, "tiger", "sea lion", "peacock", "spiny lobster"}
    assert wide.textures == ("natural",)
    _, masks = Renderer(wide, 32).render(random_scenes(wide, 4, 0))
    assert masks.max() == 2


def test_objects_and_own_backgrounds_are_added(package, tmp_path, capsys):
    scenery = tmp_path / "scenery"
    for name in ("old wood/a.png", "old wood/b.jpg", "lake.png", "000123.jpg"):
        (scenery / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 48), "teal").save(scenery / name)
    main(PhotosConfig(tmp_path / "out", package, backgrounds=scenery, objects=True))
    wide = load_world(str(tmp_path / "out/photos-wide.toml"))
    assert "yellow pear" in wide.animals
    assert dict(wide.sets)["animals"] == tuple(name for name in wide.animals if name != "yellow pear")
    assert wide.backgrounds == ("lake", "old wood", "scenery")
    with pytest.raises(UserError, match="is no folder"):
        main(PhotosConfig(tmp_path / "out", package, backgrounds=tmp_path / "none"))


def test_installed_package_is_found(package, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_DIRS", f"{tmp_path}/none:{package}/usr/share")
    assert stamps_folder(None) == package / "usr/share/tuxpaint/stamps"
    monkeypatch.setenv("XDG_DATA_DIRS", f"{tmp_path}/none")
    with pytest.raises(UserError, match="apt-get install tuxpaint-stamps-default"):
        stamps_folder(None)
    with pytest.raises(UserError, match="has no pictures of"):
        stamps_folder(tmp_path)


def test_own_cutouts_take_the_place_of_the_package(tmp_path, capsys):
    pictures = tmp_path / "pictures"
    for place in ("lion.png", "lion-2.png", "snow_leopard.webp", "dodo/front view.png"):
        draw(pictures / place, GREY)
    main(PhotosConfig(tmp_path / "out", cutouts=pictures))
    assert "photos.toml: 3 objects, 4 photographs" in capsys.readouterr().out
    for name in ("photos", "photos-natural"):
        assert load_world(str(tmp_path / "out" / f"{name}.toml")).animals == ("dodo", "lion", "snow leopard")
        assert "GPL" not in (tmp_path / "out" / f"{name}.toml").read_text(), "that is the package's licence"


def test_debians_package_has_all_animals_of_pug():
    try:
        folder = stamps_folder(None)
    except UserError as error:
        pytest.skip(f"{error}")
    found = stamps(folder)
    assert set(OF_PUG) <= {stamp.name for stamp in found if stamp.is_animal}
    assert len({stamp.name for stamp in found if stamp.is_animal}) > 100
