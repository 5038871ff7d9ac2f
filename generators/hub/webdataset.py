"""Converts CLIP_benchmark's webdatasets to folders of images by class, which `zero-shot` reads.

These are the `wds_` sets of huggingface.co/clip-benchmark. A set has `classnames.txt`, with one name a line, and
`zeroshot_classification_templates.txt`, with {c} for the class. Each split is a folder of tar files, with their number
in `nshards.txt`. A sample is an image and, in KEY.cls, the number of its class, from 0.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as shown

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import open_file
from menagerie.generators.benchmarks.class_folders import read_list
from menagerie.generators.benchmarks.zero_shot import BENCHMARK, FOLDER, read_templates
from menagerie.generators.hub.pictures import PictureFolder
from menagerie.generators.hub.put import ImportSummary, own_name, put_below, scratch_below
from menagerie.generators.sources.rows import FileRow, read_foreign_text
from menagerie.generators.sources.shard import IMAGES, group_by_sample, list_members

CLASSES, TEMPLATES = "classnames.txt", "zeroshot_classification_templates.txt"
TYPE, NUMBER = "dataset_type.txt", "nshards.txt"
OTHER_TYPES = ("retrieval", "multilabel")  # CLIP_benchmark treats all other types as classification
LONGEST = 20  # bytes of a class number


def is_webdataset(folder: Path) -> bool:
    """Whether a folder is a webdataset of CLIP_benchmark with classes."""
    return (folder / CLASSES).is_file() and any(folder.glob("*/*.tar"))


def import_webdataset(folder: Path, root: Path, split: str) -> ImportSummary:
    """Write the images of a split below the data root `root`, in a folder for each class, with class names and, if the
    set has them, templates beside the folders. Raises if the set is there already."""
    kind = read_foreign_text(folder / TYPE).strip() if (folder / TYPE).is_file() else ""
    if kind in OTHER_TYPES:
        raise UserError(
            f"{folder} is a webdataset for {kind}, which no benchmark here uses; give one of images by class"
        )
    names, refused = read_list(folder / CLASSES), Counter[str]()
    templates = read_templates(folder / TEMPLATES) if (folder / TEMPLATES).is_file() else []
    name = own_name(folder).removeprefix("wds_")
    place = f"{FOLDER}/{name}"
    if (root / place).exists():
        raise UserError(f"{root / place} is there already; take it away, or name another --data-root")
    with scratch_below(root) as scratch:
        images = Counter[int]()
        for row in (row for shard in shards(folder / split) for row in read_samples(shard, refused)):
            number = class_of(row, names)
            pictures = PictureFolder(folder, scratch / place / str(number))
            pictures.keep(row, "image", f"{images.total():07}.{row.content['ending']}")
            images[number] += 1
        if bare := [name for number, name in enumerate(names) if not images[number]]:
            raise UserError(f"{folder / split} has no images of {shown(bare)}; get it again, or name another --split")
        if len(names) < 2:
            raise UserError(f"{folder / CLASSES} has one class, and choosing needs at least 2")
        classes = [f"{k}\t{name}" for k, name in enumerate(names)]
        for file, texts in {"classes": classes, "templates": templates}.items():
            if texts:
                (scratch / place / f"{file}.txt").write_text("\n".join((*texts, "")), encoding="utf-8")
        put_below(root, scratch)
    left_out = [f"{why} ({number})" for why, number in refused.items()]
    left_out += sorted({path.parent.name for path in folder.glob("*/*.tar")} - {split})
    count = images.total()
    return ImportSummary(BENCHMARK.name, place, {name: count}, count, [split], left_out)


def shards(folder: Path) -> list[Path]:
    """The tar files of a split; raises if some are missing."""
    found = sorted(folder.glob("*.tar"), key=lambda path: (len(path.stem), path.stem))
    number = read_foreign_text(folder / NUMBER).strip() if (folder / NUMBER).is_file() else str(len(found))
    if not found or number != str(len(found)):
        raise UserError(f"{folder} has {len(found)} of {number} tar files; get the others, or name another --split")
    return found


def read_samples(shard: Path, refused: Counter[str]) -> Iterator[FileRow]:
    """Yield the images in a tar file, each with the text in its .cls file; count refused samples by reason."""
    with open_file(shard) as file:
        for key, files in group_by_sample(list_members(shard, refused), refused).items():
            ending = next((ending for ending in IMAGES if ending in files), "")
            if not ending or "cls" not in files:
                refused["a sample without " + ("a class" if ending else "an image")] += 1
                continue
            content = {"ending": ending}
            for kind, (offset, size) in (("cls", files["cls"]), ("image", files[ending])):
                file.seek(offset)
                content[kind] = file.read(size)
            yield FileRow(shard, key, content)


def class_of(row: FileRow, names: list[str]) -> int:
    text = row.content["cls"][:LONGEST].decode(errors="replace").strip()
    if not (text.isascii() and text.isdecimal() and int(text) < len(names)):
        raise row.error(f"has a class that is no number below {len(names)}: {text!r}")
    return int(text)
