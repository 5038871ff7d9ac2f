"""The formats of exports.

A format is a function that takes the subsets and yields the files that `export` then writes, in that order.
Its docstring becomes part of the data sheet, where it describes the files.
"""

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool
from PIL import Image

from menagerie.envs.core.files import file_name
from menagerie.envs.scene import Object
from menagerie.envs.slots import LAYOUT_SLOTS
from menagerie.generators.parsers.graph_json import as_json
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import Records

SHARD_SAMPLES = 1000  # samples in one tar file


class File(NamedTuple):
    """One file of an export: path in the folder, subset and number of its samples, and the function that writes it."""

    path: str
    subset: str
    samples: int
    write: Callable[[Path], object]


@dataclass(frozen=True)
class ExportPart:
    """One subset of an export."""

    name: str
    records: Records
    pixels: SplitPictures

    @property
    def stem(self) -> str:
        """The start of the subset's file names: its name, with "-" for the space that tests of single rules have."""
        return file_name(self.name)

    def png(self, index: int) -> bytes:
        """The image of a record as a PNG file."""
        buffer = io.BytesIO()
        Image.fromarray(self.pixels.images(self.name, [index])[0]).save(buffer, "PNG")
        return buffer.getvalue()

    def facts(self, index: int) -> dict[str, Any]:
        """A sample's key, hard negative, scene graphs and scene, as a JSON object."""
        r = self.records
        return {
            "key": r.scenes[index].key,
            "negative": r.negatives[index],
            "graph": as_json(r.graphs[index]),
            "negative_graph": as_json(r.negative_graphs[index]),
            "scene": {**asdict(r.scenes[index]), "objects": list(map(object_facts, r.scenes[index].objects))},
        }


def object_facts(obj: Object) -> dict[str, str]:
    """An object as a JSON object; it has a size only in worlds with sizes."""
    return {name: value for name, value in obj._asdict().items() if name != "size" or value}


def json_file(path: str, subset: str, content: Callable[[], object]) -> File:
    """A JSON file of an export; `content` is called when the file is written."""
    return File(path, subset, 0, lambda temporary: temporary.write_text(json.dumps(content(), indent=1), "utf-8"))


def picture_name(part: ExportPart, index: int) -> str:
    """The path of a record's picture below `images`."""
    return f"{part.stem}/{index:09d}.png"


def with_pictures(part: ExportPart, indices: Iterable[int], content: Callable[[ExportPart], object]) -> Iterator[File]:
    """Yield the pictures of some records as single files, and the JSON file of their subset."""
    for i in indices:
        yield File(f"images/{picture_name(part, i)}", part.name, 1, lambda path, i=i: path.write_bytes(part.png(i)))
    yield json_file(f"{part.stem}.json", part.name, partial(content, part))


def webdataset(parts: Sequence[ExportPart]) -> Iterator[File]:
    """`SUBSET-000000.tar`, `SUBSET-000001.tar` … hold at most 1000 samples each (WebDataset).

    A sample is `N.png`, `N.txt` (its caption) and `N.json` (its key, its hard negative, the scene graphs of both, the
    factors of its scene). `sizes.json` counts the samples of every tar file, as open_clip's trainer needs them:
    `python -m open_clip_train.main --dataset-type webdataset --train-data 'FOLDER/train-{000000..000009}.tar' …`.
    """
    sizes = {}
    for part in parts:
        for start in range(0, len(part.records), SHARD_SAMPLES):
            indices = range(start, min(start + SHARD_SAMPLES, len(part.records)))
            path = f"{part.stem}-{start // SHARD_SAMPLES:06d}.tar"
            sizes[path] = len(indices)
            yield File(path, part.name, len(indices), partial(write_tar, part, indices))
    yield json_file("sizes.json", "", lambda: sizes)


def write_tar(part: ExportPart, indices: Iterable[int], path: Path) -> None:
    """Write samples as a tar file without times and owners, so that its bytes depend on the samples only."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i in indices:
            texts = {"txt": part.records.captions[i], "json": json.dumps(part.facts(i))}
            contents = {"png": part.png(i)} | {suffix: text.encode() for suffix, text in texts.items()}
            for suffix, content in contents.items():
                member = tarfile.TarInfo(f"{i:09d}.{suffix}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def coco(parts: Sequence[ExportPart]) -> Iterator[File]:
    """`SUBSET.json` has the captions of a subset (COCO captions); the pictures lie below `images`.

    Every picture has one annotation. Besides `caption` it has `negative` (the hard negative, empty if there is none),
    `graph`, `negative_graph`, `scene` and `key`.
    """
    return (file for part in parts for file in with_pictures(part, range(len(part.records)), coco_captions))


def coco_captions(part: ExportPart) -> dict[str, Any]:
    """The captions of a subset in COCO's structure; ids start at 1."""
    r, images, annotations = part.records, [], []
    height = width = part.pixels.side
    for i, caption in enumerate(r.captions):
        name = picture_name(part, i)
        images.append({"id": i + 1, "file_name": name, "width": width, "height": height, "license": 1})
        annotations.append({"id": i + 1, "image_id": i + 1, "caption": caption, **part.facts(i)})
    licenses = [{"id": 1, "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}]
    info = {"description": f"{part.name}, a subset of a Menagerie split"}
    return {"info": info, "licenses": licenses, "images": images, "annotations": annotations}


def coco_instances(parts: Sequence[ExportPart]) -> Iterator[File]:
    """`SUBSET.json` has the objects in the pictures of a subset (COCO instances); the pictures lie below `images`.

    Every object that shows has an annotation: `category_id` (its animal), `bbox` (x, y, width, height), `area` and
    `segmentation` (run lengths, column by column) of what others leave visible, `texture`, `slot`, `size` in worlds
    that have sizes, and in scenes of many objects `hidden`, the share that others hide.
    """
    return (file for part in parts for file in with_pictures(part, range(len(part.records)), coco_objects))


def coco_objects(part: ExportPart) -> dict[str, Any]:
    """The objects of a subset that have a visible pixel, in COCO's structure. Ids start at 1; categories have the order
    of the world's animals."""
    captions, annotations = coco_captions(part), []
    animals = part.records.vocabulary.animals
    for i, scene in enumerate(part.records.scenes):
        mask, hidden = part.pixels.masks(part.name, [i])[0], part.pixels.hidden(part.name, [i])[0]
        for k, obj in enumerate(scene.objects):
            if (mask == k + 1).any():
                facts = {"id": len(annotations) + 1, "image_id": i + 1, "iscrowd": 0, **outline(mask == k + 1)}
                share = {"hidden": round(float(hidden[k]), 4)} if obj.slot in LAYOUT_SLOTS else {}
                named = {name: value for name, value in object_facts(obj).items() if name != "animal"}
                annotations.append(facts | {"category_id": animals.index(obj.animal) + 1} | named | share)
    categories = [{"id": n, "name": animal, "supercategory": "animal"} for n, animal in enumerate(animals, 1)]
    return captions | {"annotations": annotations, "categories": categories}


def outline(mask: Bool[np.ndarray, "h w"]) -> dict[str, Any]:
    """An object's box, area and run lengths as COCO counts: pixels outside and inside it in turn, down each column."""
    flat = mask.ravel(order="F")
    turns = np.flatnonzero(np.diff(flat)) + 1
    counts = np.diff([0, *turns, len(flat)]).tolist()
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    box = [columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1]
    return {
        "bbox": [int(side) for side in box],
        "area": int(mask.sum()),
        "segmentation": {"size": list(mask.shape), "counts": [0, *counts] if flat[0] else counts},
    }


def sugarcrepe(parts: Sequence[ExportPart]) -> Iterator[File]:
    """`SUBSET.json` has the captions and hard negatives of a subset (SugarCrepe); the pictures lie below `images`.

    Train is left out, and so are records without a hard negative.
    """
    for part in parts:
        indices = [i for i, negative in enumerate(part.records.negatives) if negative and part.name != "train"]
        if indices:
            yield from with_pictures(part, indices, partial(sugarcrepe_pairs, indices=indices))


def sugarcrepe_pairs(part: ExportPart, indices: Iterable[int]) -> dict[str, dict[str, str]]:
    """Records in SugarCrepe's structure, under "0", "1" …"""
    r = part.records
    return {
        str(n): {"filename": picture_name(part, i), "caption": r.captions[i], "negative_caption": r.negatives[i]}
        for n, i in enumerate(indices)
    }


FORMATS: dict[str, Callable[[Sequence[ExportPart]], Iterator[File]]] = {
    "webdataset": webdataset,
    "coco": coco,
    "coco_instances": coco_instances,
    "sugarcrepe": sugarcrepe,
}
