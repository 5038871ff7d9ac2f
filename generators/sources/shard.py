"""One tar shard of images and captions, read where it lies: its members are listed once and never unpacked.

A sample is the files of one name, which ends at its first dot, as webdataset reads it: "00012.jpg" with "00012.txt", or
with "00012.json" that has a "caption". What can't be trained on is refused and counted by why.
"""

import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable, is_litter, open_file, parse_json
from menagerie.generators.sources.json_file import writable
from menagerie.generators.sources.kept_out import flickr_number
from menagerie.generators.sources.pictures import FORMATS, LARGEST_FILE, check_picture
from menagerie.generators.sources.texts import refusal

IMAGES = ("jpg", "jpeg", "png", "webp")
TEXTS = ("txt", "json")
LARGEST_TEXT = 1 << 20  # bytes of a .txt or .json
LONGEST = 2000  # characters of a caption
JPEG_END = b"\xff\xd9"
HOSTILE = "a path that leads out, a link or a device"
TWICE = "a name that was there before"
ALIKE = "a name that was there before but for capitals or ./"
SECOND = "a second image of a sample"
DOTTED = "a name with another dot before its ending"
BEHIND = "an image with other bytes behind its end"


class Sample(NamedTuple):
    """An image with its caption."""

    key: str
    offset: int
    """Where the image starts in the shard, in bytes."""
    size: int
    text: str
    flickr: int
    """Flickr's number of the image, 0 where it isn't known."""


class Member(NamedTuple):
    """A file in a shard."""

    offset: int
    size: int


class Refusal(ValueError):
    """Why a sample isn't taken."""


def read_shard(path: Path) -> tuple[list[Sample], Counter[str]]:
    """The samples of a shard in its order, and how many aren't taken by why; raises for one that isn't whole."""
    refused: Counter[str] = Counter()
    samples = []
    with open_file(path) as file:
        for key, files in grouped(list_members(path, refused), refused).items():
            try:
                samples.append(read_sample(file, key, files))
            except Refusal as problem:
                refused[str(problem)] += 1
            refused.update(further_images(files))
    return samples, refused


def list_members(path: Path, refused: Counter[str]) -> dict[str, Member]:
    """The files of a shard by their names; those with hostile ones are counted."""
    members: dict[str, Member] = {}
    try:
        with tarfile.open(path, "r:", errorlevel=1) as tar:
            last = -1
            for info in tar:
                if info.offset <= last:  # as hostile sizes below zero would have it, for ever
                    raise ValueError(f"its members overlap at byte {info.offset}")
                last = info.offset
                if info.isdir() or is_litter(info.name):
                    continue
                if is_hostile(info):
                    refused[HOSTILE] += 1
                elif info.name in members:
                    refused[TWICE] += 1
                else:
                    members[info.name] = Member(info.offset_data, info.size)
            check_end(path, tar.offset)
    except Exception as error:  # tarfile and what it calls raise all kinds for bytes from strangers
        raise UserError(f"{path} is no whole, uncompressed tar file ({error!s:.200}); get it again") from error
    return members


def is_hostile(info: tarfile.TarInfo) -> bool:
    """Whether a member isn't a plain file below the folder that the shard would be unpacked to."""
    parts = info.name.replace("\\", "/").split("/")
    plain = info.isreg() and not info.issparse() and info.size >= 0
    return not plain or not parts[0] or ".." in parts or parts[0].endswith(":") or not writable(info.name)


def check_end(path: Path, offset: int) -> None:
    """Raise unless the mark of a tar's end stands behind its last member: where it is torn, `tarfile` just stops."""
    with open_file(path) as file:
        file.seek(offset)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise ValueError(f"it has no end mark at byte {offset}: damaged or half-copied")


def grouped(members: dict[str, Member], refused: Counter[str]) -> dict[str, dict[str, Member]]:
    """The files of each sample by their endings in small letters; of two with one ending the second is counted."""
    samples: dict[str, dict[str, Member]] = {}
    for name, member in members.items():
        folder, slash, file = name.removeprefix("./").rpartition("/")
        key, dot, ending = file.partition(".")
        if not dot:
            continue
        files = samples.setdefault(folder + slash + key, {})
        if files.setdefault(ending.lower(), member) is not member:
            refused[ALIKE] += 1
    return samples


def further_images(files: dict[str, Member]) -> Iterator[str]:
    """Why the images of a sample beside the first one aren't taken."""
    plain = [ending for ending in files if ending in IMAGES]
    dotted = [ending for ending in files if is_dotted(ending, IMAGES)]
    yield from [SECOND] * (len(plain) - 1)
    yield from [DOTTED] * (len(dotted) - (not plain))  # one of them is why a sample has no image


def is_dotted(ending: str, kinds: Sequence[str]) -> bool:
    """Whether an ending is one of `kinds` behind something else, as "input.jpg" is."""
    return "." in ending and ending.rpartition(".")[2] in kinds


def read_sample(file: Any, key: str, files: dict[str, Member]) -> Sample:
    """A sample, its image looked at but not decoded; raises `Refusal`."""
    image = next((files[ending] for ending in IMAGES if ending in files), None)
    if image is None:
        raise Refusal(DOTTED if any(is_dotted(ending, IMAGES) for ending in files) else "no image")
    described = {ending: read_text(file, files[ending]) for ending in TEXTS if ending in files}
    about = read_about(described["json"]) if "json" in described else {}
    text = described.get("txt", about.get("caption"))
    if text is None and any(is_dotted(ending, TEXTS) for ending in files):
        raise Refusal(DOTTED)
    check_image(file, image)
    number = flickr_number(about.get("url"))
    return Sample(key, *image, read_caption(text), number.number if number else 0)


def read_text(file: Any, member: Member) -> str:
    """A text in UTF-8."""
    if member.size > LARGEST_TEXT:
        raise Refusal("a text that is too long")
    file.seek(member.offset)
    try:
        return file.read(member.size).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal("a text that isn't UTF-8") from None


def read_about(text: str) -> dict[str, Any]:
    """The object of a .json file."""
    try:
        about = parse_json(text, "a .json")
    except Unreadable:
        about = None
    if not isinstance(about, dict):
        raise Refusal("a .json that is no JSON object")
    return about


def read_caption(text: object) -> str:
    """A caption, its white space normalised."""
    if not isinstance(text, str):
        raise Refusal("no caption")
    caption = " ".join(text.split())
    if problem := refusal(caption):
        raise Refusal(problem)
    if len(caption) > LONGEST:
        raise Refusal("a text that is too long")
    return caption


def check_image(file: Any, member: Member) -> None:
    """Raise `Refusal` for an image that is foreign, too large, plainly torn off, or not all that its file holds."""
    if member.size > LARGEST_FILE:
        raise Refusal("an image that is too large")
    file.seek(member.offset)
    content = file.read(member.size)
    try:
        with Image.open(BytesIO(content), formats=FORMATS) as picture:
            check_picture(picture)
            # Whatever is before the pixels may hold a small picture with an end of its own.
            pixels = picture.fp.tell() if picture.format == "JPEG" else 0
    except Exception:  # as many kinds as there are decoders
        raise Refusal("an image that is foreign, damaged, too large or too long") from None
    if picture.format == "JPEG" and JPEG_END not in content[-1024:]:
        raise Refusal(BEHIND if JPEG_END in content[pixels:] else "an image that is torn off")
