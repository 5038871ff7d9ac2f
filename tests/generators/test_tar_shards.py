"""Tar shards of strangers: read where they lie, refused or counted where they can't be trusted or trained on."""

import json
import os
import tarfile
from pathlib import Path

import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import write_record
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.sources import shard_index
from menagerie.generators.sources.kept_out import FLICKR, KeptOut, PhotographId
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.shard import ODD, TWICE
from menagerie.generators.sources.tar_shards import TarShards
from tests.helpers.source_files import make_shards, picture, png_header, write_shard

SIDE = 16


@pytest.fixture
def root(tmp_path) -> Path:
    make_shards(tmp_path)
    return tmp_path


def opened(root: Path, **place: object) -> TarShards:
    return TarShards(Place(root, SIDE, **place))


def refusal(root: Path) -> str:
    """The one line that shards are refused with."""
    with pytest.raises(UserError) as error:
        opened(root)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def with_members(root: Path, **members: bytes | tarfile.TarInfo) -> TarShards:
    """A shard with one sample, "good", and others; endings follow a double underscore."""
    good = {"good.jpg": picture("good"), "good.txt": b"a good cat"}
    others = {name.replace("__", "."): content for name, content in members.items()}
    write_shard(root / "shards/0.tar", others | good)
    return opened(root)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, size
    return info


def test_samples_of_all_forms(root):
    data = opened(root)
    names = ["00000.tar/00000", "00000.tar/00001", "00000.tar/00002", "00001.tar/more/b", "00001.tar/c"]
    assert list(data.names_of_images) == names
    assert data.counts() == {"images": 5, "captions": 5, "shards": 2}
    assert data.left_out == {}
    captions = data.captions(range(5), [3] * 5)
    assert [caption.text for caption in captions] == [
        *(f"A cat on {k} mats" for k in range(3)),
        "A dog, a mat & é",
        "mats",
    ]
    assert captions[4].graph == SceneGraph(("mats",))
    assert opened(root, parse=lambda text: SceneGraph(("mat",))).captions([4], [0])[0].graph == SceneGraph(("mat",))


def test_nothing_is_unpacked_and_the_index_is_kept(root, monkeypatch):
    before = opened(root)
    assert {path.name for path in (root / "shards").iterdir()} == {"00000.tar", "00001.tar", ".index"}
    monkeypatch.setattr(shard_index, "read_shard", None)  # not read again
    after = opened(root)
    assert after.identity == before.identity
    assert torch.equal(after.images(range(5)), before.images(range(5)))


def test_a_shard_that_changed_is_read_again(root):
    before = opened(root)
    write_shard(root / "shards/00001.tar", {"d.jpg": picture("d"), "d.txt": b"another"})
    after = opened(root)
    assert [caption.text for caption in after.captions([3], [0])] == ["another"]
    assert after.identity != before.identity


@pytest.mark.parametrize("fault", ["text", "torn", "flipped", "sealed anew", "a folder"])
def test_a_damaged_index_is_made_anew(root, fault):
    before = opened(root)
    for path in (root / "shards/.index").iterdir():
        content = path.read_bytes()
        if fault == "text":
            path.write_text("hello")
        elif fault == "torn":
            path.write_bytes(content[: len(content) // 2])
        elif fault == "flipped":
            path.write_bytes(bytes(byte ^ (k % 97 == 0) for k, byte in enumerate(content)))
        elif fault == "a folder":
            path.unlink()
            path.mkdir()
        else:
            write_record(path, json.loads(content) | {"samples": []})
    after = opened(root)
    assert after.identity == before.identity
    assert torch.equal(after.images(range(5)), before.images(range(5)))


def test_an_index_of_another_shard_is_made_anew(root):
    """Of the same size and time, as shards of one archive may have."""
    one, other = (root / f"shards/0000{k}.tar" for k in range(2))
    size = max(path.stat().st_size for path in (one, other))
    for path in (one, other):
        path.write_bytes(path.read_bytes().ljust(size, b"\0"))
        os.utime(path, ns=(10**18, 10**18))
    before = opened(root)
    (folder,) = root.glob("shards/.index")
    (folder / "00001.tar.json").write_bytes((folder / "00000.tar.json").read_bytes())
    assert opened(root).identity == before.identity


def test_an_index_that_cannot_be_kept_is_no_error(root):
    (root / "shards/.index").write_text("no folder")
    assert len(opened(root)) == 5


ODDITIES = {
    "a link": member("x.jpg", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": member("x.jpg", tarfile.LNKTYPE, "good.jpg"),
    "a device": member("x.jpg", tarfile.CHRTYPE),
    "a pipe": member("x.jpg", tarfile.FIFOTYPE),
    "half a character": member(os.fsdecode(b"\xff.jpg")),
}


@pytest.mark.parametrize("fault", ODDITIES)
def test_odd_members_are_counted_and_left_alone(tmp_path, fault):
    data = with_members(tmp_path, x__jpg=ODDITIES[fault], x__txt=b"a text")
    assert data.left_out == {ODD: 1, "no image": 1}
    assert list(data.names_of_images) == ["0.tar/good"]


REFUSED = {
    "no image": ({"x__txt": b"text"}, "no image"),
    "no caption": ({"x__jpg": picture("x")}, "no caption"),
    "a caption of null": ({"x__jpg": picture("x"), "x__json": b'{"caption": null}'}, "no caption"),
    "an empty caption": ({"x__jpg": picture("x"), "x__txt": b" \n"}, "no text"),
    "html": ({"x__jpg": picture("x"), "x__txt": b"<a href='http://x'>a cat</a>"}, "HTML in the text"),
    "a script": ({"x__jpg": picture("x"), "x__txt": b"cat <script>alert(1)</script>"}, "HTML in the text"),
    "latin-1": ({"x__jpg": picture("x"), "x__txt": b"caf\xe9"}, "a text that isn't UTF-8"),
    "half a character": (
        {"x__jpg": picture("x"), "x__json": b'{"caption": "\\ud800"}'},
        "half a character in the text",
    ),
    "no json": ({"x__jpg": picture("x"), "x__json": b"[" * 99999}, "a .json that is no JSON object"),
    "a long text": ({"x__jpg": picture("x"), "x__txt": b"cat " * 999}, "a text that is too long"),
    "a huge text": ({"x__jpg": picture("x"), "x__txt": b"cat " * (1 << 19)}, "a text that is too long"),
    "no picture": ({"x__jpg": b"<html>404</html>", "x__txt": b"cat"}, "an image that is foreign, damaged"),
    "100 megapixels": ({"x__png": png_header(10_000, 10_000), "x__txt": b"cat"}, "an image that is foreign, damaged"),
    "a bomb": ({"x__png": png_header(60_000, 60_000), "x__txt": b"cat"}, "an image that is foreign, damaged"),
    "a strip": ({"x__png": png_header(2, 9000), "x__txt": b"cat"}, "an image that is foreign, damaged"),
    "bytes behind the end": (
        {"x__jpg": picture("x") + b"more" * 500, "x__txt": b"cat"},
        "an image that is torn off, or has",
    ),
    "dots in a name": ({"img v2__0 cat__jpg": picture("x")}, "no image"),
    "dots in the caption's ending": ({"s0__jpg": picture("x"), "s0__outputs__txt": b"cat"}, "no caption"),
    "a torn picture": ({"x__jpg": picture("x")[:-40], "x__txt": b"cat"}, "an image that is torn off"),
}


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("fault", REFUSED)
def test_unusable_samples_are_left_out_and_counted(tmp_path, fault):
    members, reason = REFUSED[fault]
    data = with_members(tmp_path, **members)
    assert list(data.names_of_images) == ["0.tar/good"]
    ((why, count),) = data.left_out.items()
    assert why.startswith(reason)
    assert count == 1


@pytest.mark.parametrize("text", ["I <3 cats", "a < b > c", "cats & dogs", "5 <6"])
def test_angle_brackets_that_are_no_tags_are_kept(tmp_path, text):
    data = with_members(tmp_path, x__jpg=picture("x"), x__txt=text.encode())
    assert [caption.text for caption in data.captions([0], [0])] == [text]


def test_a_name_that_comes_twice_is_counted(tmp_path):
    path = tmp_path / "shards/0.tar"
    write_shard(path, {"a.jpg": picture("a"), "a.txt": b"first"})
    with tarfile.open(path, "a") as tar:
        info = member("a.txt")
        tar.addfile(info)
    data = opened(tmp_path)
    assert data.left_out == {"a name that was there before": 1}
    assert data.captions([0], [0])[0].text == "first"


def test_the_first_of_two_images_of_a_sample_is_taken(tmp_path):
    """Their names differ in capitals, in a folder or in the ending; others of one name and kind are counted."""
    names = {"a.jpg": "first", "a.JPG": "second", "./a.jpg": "third", "a.png": "fourth"}
    members = {name: picture(what, "png" if name == "a.png" else "jpeg") for name, what in names.items()}
    write_shard(tmp_path / "shards/0.tar", members | {"a.txt": b"a cat", "a.TXT": b"a dog"})
    data = opened(tmp_path)
    assert data.left_out == {TWICE: 3}
    assert data.captions([0], [0])[0].text == "a cat"
    write_shard(tmp_path / "shards/0.tar", {"a.jpg": picture("first"), "a.txt": b"a cat"})
    assert torch.equal(data.images([0]), opened(tmp_path).images([0]))


def test_torn_shards_are_refused_at_every_byte(root):
    path = root / "shards/00000.tar"
    content = path.read_bytes()
    end = len(content.rstrip(b"\0"))
    cuts = {0, 1, 511, 512, 513, *range(512, end + 512, 512), *range(600, end, 397)}
    for cut in sorted(cut for cut in cuts if cut <= end):
        path.write_bytes(content[:cut])
        assert "00000.tar is no whole, uncompressed tar file" in refusal(root)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz"])
def test_compressed_shards_are_refused(tmp_path, mode):
    (tmp_path / "shards").mkdir()
    with tarfile.open(tmp_path / "shards/0.tar", mode) as tar:
        tar.addfile(member("a.txt"))
    assert "uncompressed" in refusal(tmp_path)


def test_a_negative_size_in_a_header_is_refused(tmp_path):
    """Such a header leads `tarfile` back to itself, for ever."""
    write_shard(tmp_path / "shards/0.tar", {"a.jpg": picture("a"), "a.txt": b"cat"})
    path = tmp_path / "shards/0.tar"
    content = bytearray(path.read_bytes())
    content[124:136] = b"\xff" * 10 + b"\xfe\x00"  # minus 512, in base 256
    content[148:156] = b"%06o\0 " % (256 + sum(content[:148]) + sum(content[156:512]))
    path.write_bytes(content)
    assert "uncompressed tar" in refusal(tmp_path)


def test_a_folder_without_shards_is_refused(tmp_path):
    (tmp_path / "shards").mkdir()
    assert f"no .tar files in {tmp_path}/shards" in refusal(tmp_path)


def test_images_that_break_later_are_named_and_may_be_listed(root):
    path = root / "shards/00000.tar"
    content, data = path.read_bytes(), opened(root)
    path.write_bytes(b"")
    with pytest.raises(UserError, match=r"the image '00000.tar/00001' in .* can't be read .* left_out.txt") as error:
        data.images([1])
    assert len(str(error.value).splitlines()) == 1
    path.write_bytes(content)
    (root / "shards/left_out.txt").write_text("00000.tar/00001\n\n")
    data = opened(root)
    assert data.left_out == {"in left_out.txt": 1}
    assert "00000.tar/00001" not in data.names_of_images
    (root / "shards/left_out.txt").write_text("00000.tar/9\n")
    assert "'00000.tar/9', which no shard has" in refusal(root)


def test_photographs_of_tests_are_known_by_their_address(root):
    held = KeptOut({PhotographId(FLICKR, 2970773871): "in retrieval-flickr30k"})
    data = opened(root, kept_out=held)
    assert data.left_out == {"in retrieval-flickr30k": 1}
    assert len(data) == 4
