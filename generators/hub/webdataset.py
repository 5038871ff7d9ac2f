"""Makes CLIP_benchmark's webdatasets folders of images by class, which `zero-shot` reads, or to retrieval's files.

These are the `wds_` sets of huggingface.co/clip-benchmark. A set has `classnames.txt`, with one name a line, and
`zeroshot_classification_templates.txt`, with {c} for the class. Each split is a folder of tar files, with their number
in `nshards.txt`. A sample is an image and, in KEY.cls, the number of its class, from 0, or, in KEY.txt, its captions, a
line each, if `dataset_type.txt` says "retrieval".
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import decode_text, open_file
from menagerie.generators.benchmarks.class_folders import read_list
from menagerie.generators.benchmarks.zero_shot import read_templates
from menagerie.generators.hub.classes import IMAGE, write_classes
from menagerie.generators.hub.forms import HubForm
from menagerie.generators.hub.pictures import PictureFolder
from menagerie.generators.hub.put import ImportSummary, Unread, own_name, put_below, scratch_below, write_annotations
from menagerie.generators.sources.rows import FileRow, read_foreign_text
from menagerie.generators.sources.shard import IMAGES, group_by_sample, list_members

CLASSES, TEMPLATES = "classnames.txt", "zeroshot_classification_templates.txt"
TYPE, NUMBER = "dataset_type.txt", "nshards.txt"
RETRIEVAL, MULTILABEL = "retrieval", "multilabel"  # CLIP_benchmark treats all other types as classification
# Benchmarks by the names of sets for retrieval.
RETRIEVALS = {"flickr30k": "retrieval-flickr30k", "mscoco_captions": "retrieval-coco"}
LONGEST = 20  # bytes of a class number


def is_webdataset(folder: Path) -> bool:
    """Whether a folder is a webdataset of CLIP_benchmark, with classes or with captions."""
    return any((folder / file).is_file() for file in (CLASSES, TYPE)) and any(folder.glob("*/*.tar"))


def import_webdataset(folder: Path, root: Path, split: str, benchmark: str = "") -> ImportSummary:
    """Write the images of a split below the data root `root`: by class, or with captions for a `benchmark` of
    retrieval, by default the one that the set's name tells."""
    kind = read_foreign_text(folder / TYPE).strip().lower() if (folder / TYPE).is_file() else ""
    name, refused = own_name(folder).removeprefix("wds_"), Counter[str]()
    right = ("zero-shot",) if kind != RETRIEVAL else tuple(dict.fromkeys(RETRIEVALS.values()))
    if kind == MULTILABEL:
        raise UserError(
            f"{folder} is a webdataset for {kind}, which no benchmark here uses; give one of images by class"
        )
    if benchmark not in ("", *right):
        raise UserError(f"{folder} is a webdataset of {', '.join(right)}; leave --benchmark out, or name one of these")
    ending = "txt" if kind == RETRIEVAL else "cls"
    rows = (row for shard in shards(folder / split) for row in read_samples(shard, refused, ending))
    if kind == RETRIEVAL:
        made = import_captions(folder, root, benchmark or RETRIEVALS.get(name, ""), rows)
    else:
        names = read_list(folder / CLASSES)
        templates = read_templates(folder / TEMPLATES) if (folder / TEMPLATES).is_file() else []
        images = rows, lambda row: class_of(row, names), Unread(False)
        made = write_classes(folder, root, name, images, names, templates)
    left_out = [f"{why} ({number})" for why, number in refused.items()]
    left_out += sorted({path.parent.name for path in folder.glob("*/*.tar")} - {split})
    return made._replace(read=[split], left_out=left_out)


def import_captions(folder: Path, root: Path, benchmark: str, rows: Iterable[FileRow]) -> ImportSummary:
    """Write images and their captions, a line each, as a benchmark of retrieval reads them."""
    if not benchmark:
        known = ", ".join(dict.fromkeys(RETRIEVALS.values()))
        raise UserError(f"{folder} may be of any retrieval; name one with --benchmark: {known}")
    form = HubForm(benchmark, "clip-benchmark/wds_…", (), lambda row, keep: None)
    place = form.spec.images[0]
    with scratch_below(root) as scratch:
        pictures, records = PictureFolder(folder, scratch / place), []
        for row in rows:
            try:
                captions = list(filter(None, map(str.strip, decode_text(row.content["txt"]).splitlines())))
            except UnicodeError as error:
                raise row.error(f"has captions that aren't UTF-8 ({error})") from error
            records.append({"image": pictures.keep(row, IMAGE), "caption": captions})
        if not records:
            raise UserError(f"{folder} has no images with captions; get it again")
        warning = write_annotations(scratch, form, {"": records})
        count = sum(1 for _ in pictures.out.glob("*"))
        put_below(root, scratch, place)
    return ImportSummary(benchmark, place, {"": len(records)}, count, [], [], warning=warning)


def shards(folder: Path) -> list[Path]:
    """The tar files of a split; raises if some are missing."""
    found = sorted(folder.glob("*.tar"), key=lambda path: (len(path.stem), path.stem))
    number = read_foreign_text(folder / NUMBER).strip() if (folder / NUMBER).is_file() else str(len(found))
    if not found or number != str(len(found)):
        raise UserError(f"{folder} has {len(found)} of {number} tar files; get the others, or name another --split")
    return found


def read_samples(shard: Path, refused: Counter[str], kind: str) -> Iterator[FileRow]:
    """Yield the images in a tar file, each with its file of a `kind`, cls or txt; count refused samples by reason."""
    with open_file(shard) as file:
        for key, files in group_by_sample(list_members(shard, refused), refused).items():
            ending = next((ending for ending in IMAGES if ending in files), "")
            if not ending or kind not in files:
                refused["a sample without " + (f"a .{kind}" if ending else "an image")] += 1
                continue
            content = {}
            for key_of, (offset, size) in ((kind, files[kind]), (IMAGE, files[ending])):
                file.seek(offset)
                content[key_of] = file.read(size)
            yield FileRow(shard, key, content)


def class_of(row: FileRow, names: list[str]) -> int:
    text = row.content["cls"][:LONGEST].decode(errors="replace").strip()
    if not (text.isascii() and text.isdecimal() and int(text) < len(names)):
        raise row.error(f"has a class that is no number below {len(names)}: {text!r}")
    return int(text)
