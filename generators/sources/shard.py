"""Reads the images and captions in a tar shard in place: members are listed once and never unpacked.

A sample consists of the files whose names are equal up to the first dot, as in webdataset: "00012.jpg" with
"00012.txt", or with "00012.json" that has a "caption"; TripletCLIP's are "00012.image" and "00012.caption". Samples
that can't be trained on are refused and counted by reason.
"""

import contextlib
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.pictures import LARGEST_FILE, open_picture
from menagerie.envs.core.reading import Unreadable, decode_text, is_system_file, open_file, parse_json
from menagerie.generators.sources.kept_out import flickr_number
from menagerie.generators.sources.rows import writable
from menagerie.generators.sources.texts import refusal

IMAGES, TEXTS = ("jpg", "jpeg", "png", "webp", "image"), ("txt", "json", "caption")
LARGEST_TEXT = 1 << 20  # bytes of a .txt or .json
LONGEST = 2000  # characters of a caption
JPEG_END = b"\xff\xd9"
ODD = "a link or a device"
TWICE = "a name that was there before"  # perhaps but for capitals or ./


class Sample(NamedTuple):
    """An image in a shard, with its caption."""

    key: str
    offset: int
    """Position of the image's first byte in the shard."""
    size: int
    text: str
    flickr: int
    """Flickr's number of the image; 0 if unknown."""


class Member(NamedTuple):
    """The position and size of a file in a shard."""

    offset: int
    size: int


class Refusal(ValueError):
    """Reason for refusing a sample."""


def read_shard(path: Path) -> tuple[list[Sample], Counter[str]]:
    """The samples of a shard in order, and the number refused by reason; raises if the shard is cut short."""
    refused: Counter[str] = Counter()
    samples = []
    with open_file(path) as file:
        for key, files in group_by_sample(list_members(path, refused), refused).items():
            try:
                samples.append(read_sample(file, key, files))
            except Refusal as problem:
                refused[str(problem)] += 1
    return samples, refused


def list_members(path: Path, refused: Counter[str]) -> dict[str, Member]:
    """The files of a shard by name. Links, devices and files with repeated names are counted as refused."""
    members: dict[str, Member] = {}
    try:
        with tarfile.open(path, "r:", errorlevel=1) as tar:
            last = -1
            for info in tar:
                if info.offset <= last:  # a crafted negative size would cause an endless loop
                    raise ValueError(f"its members overlap at byte {info.offset}")
                last = info.offset
                if info.isdir() or is_system_file(info.name):
                    continue
                if not info.isreg() or info.issparse() or not writable(info.name):
                    refused[ODD] += 1
                elif info.name in members:
                    refused[TWICE] += 1
                else:
                    members[info.name] = Member(info.offset_data, info.size)
            tar.fileobj.seek(tar.offset)
            if tar.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # without this `tarfile` just stops
                raise ValueError(f"it has no end mark at byte {tar.offset}: damaged or half-copied")
    except Exception as error:  # tarfile raises exceptions of many types for crafted bytes
        raise UserError(f"{path} is no whole, uncompressed tar file ({error!s:.200}); get it again") from error
    return members


def group_by_sample(members: dict[str, Member], refused: Counter[str]) -> dict[str, dict[str, Member]]:
    """The files of each sample by lower-case ending; of two with one ending the second is counted as refused."""
    samples: dict[str, dict[str, Member]] = {}
    for name, member in members.items():
        folder, slash, file = name.removeprefix("./").rpartition("/")
        key, dot, ending = file.partition(".")
        if dot and samples.setdefault(folder + slash + key, {}).setdefault(ending.lower(), member) is not member:
            refused[TWICE] += 1
    return samples


def read_sample(file: Any, key: str, files: dict[str, Member]) -> Sample:
    """Read a sample and check its image without decoding it; raises `Refusal`."""
    image = next((files[ending] for ending in IMAGES if ending in files), None)
    if image is None:
        raise Refusal("no image")
    about, described = (
        None,
        {ending: read_member_text(file, files[ending]) for ending in TEXTS if ending in files},
    )
    with contextlib.suppress(Unreadable):
        about = parse_json(described.get("json", "{}"), "a .json")
    if not isinstance(about, dict):
        raise Refusal("a .json that is no JSON object")
    text = described.get("txt", about.get("caption", described.get("caption")))
    check_image(file, image)
    if not isinstance(text, str):
        raise Refusal("no caption")
    caption, number = " ".join(text.split()), flickr_number(about.get("url"))
    if problem := refusal(caption) or "a text that is too long" * (len(caption) > LONGEST):
        raise Refusal(problem)
    return Sample(key, *image, caption, number.number if number else 0)


def read_member_text(file: Any, member: Member) -> str:
    """Read a text in UTF-8; raises `Refusal`."""
    if member.size > LARGEST_TEXT:
        raise Refusal("a text that is too long")
    file.seek(member.offset)
    try:
        return decode_text(file.read(member.size))
    except ValueError:
        raise Refusal("a text that isn't UTF-8") from None


def check_image(file: Any, member: Member) -> None:
    """Raise `Refusal` for an image of another format or too large, and for a JPEG cut short or with much behind it."""
    if member.size > LARGEST_FILE:
        raise Refusal("an image that is too large")
    file.seek(member.offset)
    content = file.read(member.size)
    try:
        with open_picture(content) as picture:
            form = picture.format
    except Exception:  # decoders raise exceptions of many types
        raise Refusal("an image that is foreign, damaged, too large or too long") from None
    if form == "JPEG" and JPEG_END not in content[-1024:]:
        raise Refusal("an image that is torn off, or has much behind its end")
