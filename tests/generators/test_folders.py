"""Files below a folder, whatever names are asked for: found by listing, and never outside of it."""

import os
from unicodedata import normalize

import pytest
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.class_folders import folder_classes
from menagerie.generators.hub.pictures import PictureFolder
from menagerie.generators.sources.folders import SearchedFolders, files_in, find_files
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.rows import FileRow


@pytest.fixture
def root(tmp_path):
    """Files, links to files and folders, and what lies outside."""
    root = tmp_path / "root"
    (root / "a/b").mkdir(parents=True)
    for name in ("1.jpg", "a/2.jpg", "a/b/3.jpg", "../secret.jpg", "._1.jpg", ".DS_Store"):
        (root / name).touch()
    (root / "link.jpg").symlink_to(root / "a/2.jpg")
    (root / "dangling.jpg").symlink_to(root / "nothing.jpg")
    (root / "circle.jpg").symlink_to("circle.jpg")
    (root / "folder").symlink_to(root / "a/b")
    return root.resolve()


def test_existence_of_files_is_seen(root):
    there = {"1.jpg", "a/2.jpg", "a/b/3.jpg", "link.jpg", "folder/3.jpg", "./1.jpg", "a//2.jpg"}
    absent = {"4.jpg", "a", "a/3.jpg", "nowhere/1.jpg", "1.jpg/2.jpg", "dangling.jpg", "circle.jpg", "folder/2.jpg"}
    assert set(find_files(root, there | absent)) == there
    assert files_in(root) == {"1.jpg", "link.jpg"}
    assert files_in(root / "nowhere") == frozenset()


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
@pytest.mark.parametrize("given", [(), ("été",)])
def test_names_are_found_in_each_normal_form(root, forms, given):
    """Archives of macOS write "é" as two characters, the lists of names beside them as one."""
    there, asked = (normalize(form, "été/café.png") for form in forms)
    (root / there).parent.mkdir()
    Image.new("RGB", (4, 4), "red").save(root / there)
    folders = {normalize(forms[1], name): ((root / there).parent,) for name in given}
    files = ImageFiles(SearchedFolders(root, given=folders), [asked], 4)
    assert files.read([0])[0, 0].min() == 255
    assert files.names == [asked]
    (image, _) = PictureFolder(root, root).read(FileRow(root, "", {"image": asked}), "image")
    assert image == (root / there).read_bytes()


def test_classes_are_found_in_each_normal_form(root):
    for name in (normalize("NFD", "café"), "tea"):
        (root / "set" / name).mkdir(parents=True)
    names = {normalize("NFD", "café"): "café", "tea": "tea"}
    assert folder_classes(root / "set") == names
    lines = [f"{normalize('NFC', folder)}\t{name}" for folder, name in names.items()]
    (root / "set/classes.txt").write_text("\n".join(lines))
    assert folder_classes(root / "set") == names


@pytest.mark.parametrize("name", ["../secret.jpg", "a/../../secret.jpg", "a/../1.jpg", "..", "/etc/passwd", "a\0b.jpg"])
def test_a_name_that_climbs_raises_whatever_stands_beside_it(root, name):
    with pytest.raises(UserError, match=r"leads out of the folder .* do not trust") as error:
        find_files(root, ["1.jpg", "a/2.jpg", name])
    assert len(str(error.value).splitlines()) == 1


def test_a_folder_is_listed_once(root, monkeypatch):
    names = [f"a/{k}.jpg" for k in range(500)]
    for name in names:
        (root / name).touch()
    listed, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: listed.append(folder) or scandir(folder))
    monkeypatch.setattr(os.path, "isfile", lambda path: pytest.fail(f"{path} is looked at by itself"))
    assert set(find_files(root, names)) == set(names)
    assert listed == [root / "a"]
