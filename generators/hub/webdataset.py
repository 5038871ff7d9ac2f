"""CLIP_benchmark's webdatasets of classes as folders of images: what `zero-shot` reads.

`classnames.txt`, a name a line; `zeroshot_classification_templates.txt`, with {c} for the class; and for each split a
folder of tar files, their number in `nshards.txt`: an image, and its class's number from 0 in KEY.cls (the `wds_` sets
of huggingface.co/clip-benchmark).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from envs.common.errors import UserError
from envs.common.reading import open_file
from generators.hub.pictures import PictureFolder
from generators.hub.put import Made, put_below, scratch_below
from generators.sources.json_file import Entry, read_text
from generators.sources.shard import IMAGES, Member, further_images, grouped, list_members

CLASSES, TEMPLATES, TYPE, NUMBER = (
    "classnames.txt",
    "zeroshot_classification_templates.txt",
    "dataset_type.txt",
    "nshards.txt",
)
FOLDER = "zero_shot"
LONGEST = 20  # bytes of a number


def is_webdataset(folder: Path) -> bool:
    """Whether a folder is one of CLIP_benchmark's."""
    return (folder / CLASSES).is_file() and any(folder.glob("*/*.tar"))


def import_webdataset(folder: Path, root: Path, split: str) -> Made:
    """Write the images of a split by class below the data root `root`, with names and templates beside them."""
    kind = read_text(folder / TYPE).strip() if (folder / TYPE).is_file() else ""
    if kind not in ("", "zeroshot_classification"):
        raise UserError(f"{folder} is a webdataset for {kind}, of which no benchmark here is; name one of classes")
    names, refused = lines(folder / CLASSES), Counter[str]()
    name = folder.resolve().name.removeprefix("wds_")
    place = f"{FOLDER}/{name}"
    if (root / place).exists():
        raise UserError(f"{root / place} is there already; take it away, or name another --data-root")
    with scratch_below(root) as scratch:
        count = 0
        for row in (row for shard in shards(folder / split) for row in samples(shard, refused)):
            pictures = PictureFolder(folder, scratch / place / str(class_of(row, names)))
            pictures.keep(row, "image", f"{count:07}.{row.content['ending']}")
            count += 1
        if not count:
            raise UserError(f"{folder / split} has no images with classes; get it again")
        (scratch / place / "classes.txt").write_text("".join(f"{its}\n" for its in names), encoding="utf-8")
        if (folder / TEMPLATES).is_file():
            text = "".join(f"{its}\n" for its in lines(folder / TEMPLATES))
            (scratch / place / "templates.txt").write_text(text, encoding="utf-8")
        put_below(root, scratch)
    left_out = [f"{why} ({number})" for why, number in refused.items()]
    return Made("zero-shot", place, {name: count}, count, left_out, "")


def lines(path: Path) -> list[str]:
    """The lines of a text file but for empty ones at its end."""
    return [line.strip(" \t\r") for line in read_text(path).rstrip("\n\r").split("\n")]


def shards(folder: Path) -> list[Path]:
    """The tar files of a split; raises where some are missing."""
    found = sorted(folder.glob("*.tar"), key=lambda path: (len(path.stem), path.stem))
    number = read_text(folder / NUMBER).strip() if (folder / NUMBER).is_file() else str(len(found))
    if not found or number != str(len(found)):
        raise UserError(f"{folder} has {len(found)} of {number} tar files; get the others, or name another --split")
    return found


def samples(shard: Path, refused: Counter[str]) -> Iterator[Entry]:
    """The images of a tar file, each with the text of its class."""
    with open_file(shard) as file:
        for key, files in grouped(list_members(shard, refused), refused).items():
            refused.update(further_images(files))
            ending = next((ending for ending in IMAGES if ending in files), "")
            if not ending or "cls" not in files:
                refused["a sample without " + ("a class" if ending else "an image")] += 1
                continue
            label, image = (read_member(file, files[kind]) for kind in ("cls", ending))
            yield Entry(shard, key, {"image": image, "ending": ending, "cls": label[:LONGEST].decode(errors="replace")})


def read_member(file: BinaryIO, member: Member) -> bytes:
    """A file in a tar file."""
    file.seek(member.offset)
    return file.read(member.size)


def class_of(row: Entry, names: list[str]) -> int:
    """The number of a sample's class."""
    text = row.content["cls"].strip()
    if not (text.isascii() and text.isdecimal() and int(text) < len(names)):
        raise row.error(f"has a class that is no number below {len(names)}: {text!r}")
    return int(text)
