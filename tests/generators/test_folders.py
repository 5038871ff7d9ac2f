"""Files below a folder, whatever names are asked for: found by listing, and never outside of it."""

import os

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.sources.folders import existing, files_in


@pytest.fixture
def root(tmp_path):
    """Files, links to files and folders, and what lies outside."""
    root = tmp_path / "root"
    (root / "a/b").mkdir(parents=True)
    for name in ("1.jpg", "a/2.jpg", "a/b/3.jpg", "../secret.jpg", "._1.jpg", ".DS_Store"):
        (root / name).touch()
    (root / "link.jpg").symlink_to(root / "a/2.jpg")
    (root / "dangling.jpg").symlink_to(root / "nothing.jpg")
    (root / "folder").symlink_to(root / "a/b")
    return root.resolve()


def test_files_are_there_or_not(root):
    there = {"1.jpg", "a/2.jpg", "a/b/3.jpg", "link.jpg", "folder/3.jpg", "./1.jpg", "a//2.jpg"}
    absent = {"4.jpg", "a", "a/3.jpg", "nowhere/1.jpg", "1.jpg/2.jpg", "dangling.jpg", "folder/2.jpg"}
    assert existing(root, there | absent) == there
    assert files_in(root) == {"1.jpg", "link.jpg"}
    assert files_in(root / "nowhere") == frozenset()


LEADING_OUT = ("../secret.jpg", "a/../../secret.jpg", "a/../1.jpg", "..", "/etc/passwd", "out.jpg", "away/secret.jpg")


@pytest.mark.parametrize("name", [*LEADING_OUT, "back/1.jpg", "a\0b.jpg"])
@pytest.mark.parametrize("beside", [(), ("1.jpg", "a/2.jpg"), ("away/in.jpg", "back/link.jpg")])
def test_a_name_that_leads_out_raises_whatever_stands_beside_it(root, name, beside):
    (root / "out.jpg").symlink_to(root.parent / "secret.jpg")
    (root / "away").symlink_to(root.parent)
    (root.parent / "in.jpg").symlink_to(root / "1.jpg")  # by itself it leads back in
    (root / "back").symlink_to(os.devnull)
    with pytest.raises(UserError, match="leads out of the image folder") as error:
        existing(root, [*beside, name])
    assert len(str(error.value).splitlines()) == 1


def test_a_folder_is_listed_once(root, monkeypatch):
    names = [f"a/{k}.jpg" for k in range(500)]
    for name in names:
        (root / name).touch()
    listed, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: listed.append(folder) or scandir(folder))
    monkeypatch.setattr(os.path, "isfile", lambda path: pytest.fail(f"{path} is looked at by itself"))
    assert existing(root, names) == set(names)
    assert listed == [root / "a"]
