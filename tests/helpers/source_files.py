"""Tiny files of every training source in its official format, with the peculiarities of the real ones."""

import io
import json
import struct
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from menagerie.generators.sources.kept_out import COCO, FLICKR, VISUAL_GENOME, PhotographId
from tests.helpers.benchmark_files import write_images, write_json

# The id of each image, in the order of a source's images.
Numbers = Sequence[PhotographId]

IMAGES = 4  # of COCO
FLICKR_URL = "http://farm{0}.staticflickr.com/{0}153/297077387{0}_164f0c0b83_z.jpg"


def make_coco(root: Path) -> Numbers:
    """Captions in another order than their images, with spare white space; numbers of images aren't contiguous."""
    numbers = [9 + 7 * k for k in range(IMAGES)]
    images = [
        {"id": n, "file_name": f"{n:012d}.jpg", "license": 3, "height": 24, "flickr_url": FLICKR_URL.format(k)}
        for k, n in enumerate(numbers)
    ]
    texts = [(n, text) for n in numbers for text in (f"A cat on {n} mats.", f"  {n} mats\n with a cat ")]
    annotations = [{"id": 5 * k, "image_id": n, "caption": text} for k, (n, text) in enumerate(reversed(texts))]
    content = {"info": {"year": 2017}, "licenses": [], "images": images, "annotations": annotations}
    write_json(root / "coco/annotations/captions_train2017.json", content)
    write_images(root / "coco/train2017", [image["file_name"] for image in images])
    return [PhotographId(COCO, n) for n in numbers]


GENOME = (1, 3, 2317, 2318, 5)  # numbers of images; the last has no annotations


def make_image_data(root: Path) -> None:
    """Numbers of COCO and Flickr may be null; images are in two folders."""
    coco = {3: 9, 2318: 7000}
    entries = [
        {
            **{"image_id": n, "url": f"https://cs.stanford.edu/people/rak248/VG_100K/{n}.jpg", "width": 36},
            **{"height": 24, "coco_id": coco.get(n), "flickr_id": 10**9 + n if n in coco else None},
        }
        for n in GENOME
    ]
    write_json(root / "vg/image_data.json", entries)
    write_images(root / "vg/VG_100K", [f"{n}.jpg" for n in GENOME[:3]])
    write_images(root / "vg/VG_100K_2", [f"{n}.jpg" for n in GENOME[3:]])


def make_visual_genome(root: Path) -> Numbers:
    """Phrases come twice, some with spare white space; an object has a "name" or "names", a relation capitals."""
    make_image_data(root)
    box = {"x": 1, "y": 2, "width": 3, "height": 4}
    regions = [
        {
            "id": n,
            "image_id": n,
            "regions": [
                {"region_id": 9 * n + k, "image_id": n, "phrase": phrase, **box}
                for k, phrase in enumerate((f"a red  cat {n}\n", f"the mat {n}", "Sky.", f"the mat {n}"))
            ],
        }
        for n in GENOME
    ]
    regions[0]["regions"] = regions[0]["regions"][:1]
    regions[-1]["regions"] = []
    write_json(root / "vg/region_descriptions.json", regions)
    relations = [{"image_id": n, "relationships": relations_of_genome(n)} for n in GENOME]
    relations[-1]["relationships"] = []
    write_json(root / "vg/relationships.json", relations)
    return [PhotographId(VISUAL_GENOME, n) for n in GENOME[:-1]]


def relations_of_genome(number: int) -> list[dict[str, Any]]:
    """Three relations of three objects, one without a text."""
    box = {"x": 1, "y": 2, "w": 3, "h": 4, "synsets": [], "merged_object_ids": []}
    cat = {"object_id": 10 * number, "names": [f"cat {number}", "kitten"], **box}
    mat = {"object_id": 10 * number + 1, "name": "mat", **box}
    cup = {"object_id": 10 * number + 2, "names": ["cup"], "attributes": ["blue", "small"], **box}
    triples = [("ON", cat, mat), ("next to", cup, cat), ("", mat, cup)]
    return [
        {"relationship_id": k, "predicate": text, "subject": subject, "object": target, "synsets": ["along.r.01"]}
        for k, (text, subject, target) in enumerate(triples)
    ]


def make_scene_graphs(root: Path) -> None:
    """The same relations in the other file of Visual Genome, where relations have ids of objects."""
    graphs = []
    for number in GENOME:
        relations = relations_of_genome(number)
        objects = {end["object_id"]: end for relation in relations for end in (relation["subject"], relation["object"])}
        ids = [
            {
                **{"relationship_id": relation["relationship_id"], "predicate": relation["predicate"]},
                **{f"{key}_id": relation[key]["object_id"] for key in ("subject", "object")},
            }
            for relation in relations
        ]
        graphs.append({"image_id": number, "objects": list(objects.values()), "relationships": ids})
    graphs[-1] |= {"objects": [], "relationships": []}
    write_json(root / "vg/scene_graphs.json", graphs)


def obj(name: str, attributes: Sequence[str] = (), **relations: str) -> dict[str, Any]:
    """An object of GQA, with the targets of relations by their names, whose words underscores join."""
    listed = [{"name": relation.replace("_", " "), "object": target} for relation, target in relations.items()]
    return {"name": name, "x": 1, "y": 2, "w": 3, "h": 4, "attributes": list(attributes), "relations": listed}


def make_gqa(root: Path) -> Numbers:
    """Some objects have no relations, one has two; one image isn't in Visual Genome's data."""
    make_image_data(root)
    graphs = {
        "1": {
            "11": obj("banana", ["small", "yellow"], to_the_left_of="12"),
            "12": obj("man", to_the_right_of="11", holding="11"),
        },
        "3": {"31": obj("cat", ["wet"], on="32"), "32": obj("mat")},
        "2317": {f"4{k}": obj(name, ["red"] * k) for k, name in enumerate(("cup", "dog", "bus", "cup", "tree"))},
        "2318": {"51": obj("dog", ["big"], near="52"), "52": obj("bus")},
        "5": {},
        "n99": {"91": obj("car")},
    }
    content = {
        key: {"width": 36, "height": 24, "location": "park", "objects": objects} for key, objects in graphs.items()
    }
    write_json(root / "gqa/train_sceneGraphs.json", content)
    write_images(root / "gqa/images", ["1.jpg", "3.jpg"])  # others are where Visual Genome has them
    return [PhotographId(VISUAL_GENOME, n) for n in GENOME[:-1]]


def picture(name: str, form: str = "jpeg") -> bytes:
    """A small picture of noise."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (24, 36, 3), np.uint8)).save(out, form)
    return out.getvalue()


def write_shard(path: Path, members: Mapping[str, bytes | tarfile.TarInfo]) -> None:
    """A tar file; a member is its bytes, or its header alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)


def make_shards(root: Path) -> Numbers:
    """Shards as img2dataset writes them, with a .json beside the caption, and others without .json or .txt."""
    numbers, members = [], {}
    for k in range(3):
        about = {"caption": f"picture {k}", "url": FLICKR_URL.format(k), "status": "success", "sha256": None}
        members |= {
            f"0000{k}.jpg": picture(f"{k}"),
            f"0000{k}.txt": f" A cat\non {k} mats ".encode(),
            f"0000{k}.json": json.dumps(about).encode(),
        }
        numbers.append(PhotographId(FLICKR, 29707738700 // 10 + k))
    write_shard(root / "shards/00000.tar", members)
    folder = tarfile.TarInfo("./more")
    folder.type = tarfile.DIRTYPE
    other = json.dumps({"caption": "A dog, a mat & é", "url": FLICKR_URL.format(7)}).encode()
    write_shard(
        root / "shards/00001.tar",
        {"./more": folder, "./more/b.PNG": picture("b", "png"), "./more/b.json": other, "c.webp": picture("c", "webp")}
        | {"c.txt": "mats".encode("utf-8-sig")},
    )
    return [*numbers, PhotographId(FLICKR, 2970773877)]


MAKERS: dict[str, Callable[[Path], Numbers]] = {
    "coco": make_coco,
    "gqa": make_gqa,
    "tar shards": make_shards,
    "visual genome": make_visual_genome,
}


def png_header(width: int, height: int) -> bytes:
    """The beginning of a PNG file that claims a size."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"\0" * 100)
    chunks = [struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in (header, data, b"IEND")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
