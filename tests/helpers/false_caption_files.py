"""Small files of published false captions in their authors' forms."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.helpers.benchmark_files import write_json
from tests.helpers.source_files import picture, write_shard


class Row(NamedTuple):
    """A caption of a photograph of COCO, and false ones."""

    number: int
    caption: str
    swapped: str
    replaced: str
    entity: tuple[str, str] = ("cat", "dog")
    """A part of the caption, and its false version."""


def write_negclip(root: Path, rows: Iterable[Row]) -> None:
    """With an index, a space behind captions and row numbers of hard images, as pandas writes them."""
    path = root / "negclip/train_neg_clip.tsv"
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["", "title", "filepath", "neg_caption", "neg_image"])
        for k, row in enumerate(rows):
            name = f"coco/val2014/COCO_val2014_{row.number:012d}.jpg"
            table.writerow([k, f"{row.caption} ", name, repr([row.swapped, row.caption]), repr([0, 1, 2])])
        table.writerow([k + 1, row.caption, name, "[]", "[0]"])


def write_ce_clip(root: Path, rows: Iterable[Row]) -> None:
    """Two files; no verb has another, and an adjective that isn't there gives a text of one word."""
    (root / "ce-clip").mkdir(parents=True)
    entries = [
        {"image_id": row.number, "id": k, "caption": row.caption}
        | {"relation_aug_caption": row.swapped, "adj_aug_caption": "Advertisement", "noun_aug_caption": row.replaced}
        | {"verb_aug_caption": "###", "valid_caption": [1, 1, 1, 1, 0]}
        for k, row in enumerate(rows)
    ]
    for k, part in enumerate((entries[::2], entries[1::2])):
        np.save(root / f"ce-clip/processed_dataset{k}.npy", np.array(part, object), allow_pickle=True)


def write_cs_clip(root: Path, rows: Iterable[Row], older: bool = False) -> None:
    """Entities and relations with false versions; `older` has the keys of the repository's first form."""
    entities, negative = ("positive_components", "negative_components") if older else ("entities", "negative_entities")
    write_json(
        root / "cs-clip/part_0.json",
        [
            {
                "sample_id": f"{row.number}",
                "original_caption": row.caption,
                entities: [row.entity[0], "room"],
                negative: {row.entity[0]: [{"negative": row.entity[1], "change_type": "object_change"}]},
                "relations": [
                    {"subject": row.entity[0], "relation_type": "in", "object": "room"}
                    | {"negatives": [{"relation_type": "out_of", "change_type": "antonym"}]}
                ],
                "swap_negatives": [{"negative": row.swapped}],
                "image_path": f"datasets/COCO/train2014/COCO_train2014_{row.number:012d}.jpg",
            }
            for row in rows
        ],
    )


def write_triplet_clip(root: Path, rows: Iterable[Row]) -> None:
    """A shard with images, captions, and their negatives."""
    members = {}
    for row in rows:
        key = f"{row.number:08d}"
        members |= {f"{key}.image": picture(key), f"{key}.neg_image": picture(f"not {key}")}
        members |= {f"{key}.caption": row.caption.encode(), f"{key}.neg_caption": row.replaced.encode()}
    write_shard(root / "shards/shard-0.tar", members)
