"""Forms of benchmarks on the Hugging Face hub: which columns a table has, and which official file is made of it.

Columns are known from data cards and from code that loads the sets. Not confirmed: `attributes` of VG-Attribution, and
that the pictures of both ARO sets are whole images (their sizes suggest it), to be cut by `bbox` as in the authors'
files.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from menagerie.generators.benchmarks import (
    aro,
    bivlc,
    colorswap,
    sugarcrepe,
    sugarcrepe_pp,
    valse,
    winoground,
)
from menagerie.generators.benchmarks.aro import IMAGES as ARO_IMAGES
from menagerie.generators.benchmarks.aro import SIDES
from menagerie.generators.sources.rows import Row

# Writes the picture in a column of a row, perhaps under a given name; returns the name of its file.
Keep = Callable[..., str]


@dataclass(frozen=True)
class Form:
    """The columns of a benchmark's table on the hub, and the official file that is made of it."""

    benchmark: str
    source: str
    """Name of a data set on the hub in this form."""
    columns: tuple[str, ...]
    """Columns by which the form is recognised."""
    images: str
    """Folder of images below the data root."""
    file: str
    """Annotation file below the data root, with {part} if the benchmark has several parts; empty if only the images are
    needed."""
    record: Callable[[Row, Keep], Any]
    """Makes the entry of the annotation file from a row."""
    more: tuple[str, ...] = ()
    """Further columns, read if the table has them."""
    parts: tuple[str, ...] = ()
    """The benchmark's parts, if it has a file for each. A column, `--part` or names of table and folder tell which."""
    part_column: str = ""
    keyed: bool = False
    """Whether the file is an object with numbers as keys; otherwise it is a list, or has one record a line (.jsonl)."""
    note: str = ""
    """Text that says what else the benchmark needs."""


SPELLINGS = {r"attribute|atribute": "att", r"object": "obj", r"relation": "rel", r"[^a-z]+": "_"}


def part_in(form: Form, text: str) -> str:
    """The part of a benchmark whose name, perhaps spelled out, occurs in `text`; empty if none does."""
    for pattern, short in SPELLINGS.items():
        text = re.sub(pattern, short, text.lower())
    return next((part for part in form.parts if part in text), "")


def sugarcrepe_record(row: Row, keep: Keep, image: str = "image") -> dict[str, Any]:
    """Make a record with the true and the false caption."""
    texts = {key: row.text(key) for key in ("caption", "negative_caption")}
    name = row.text("filename") if row.content.get("filename") else ""
    return {"filename": keep(image, name.rpartition("/")[2]), **texts}


def labelled_record(row: Row, keep: Keep) -> dict[str, Any]:
    """Make a record from both captions and a label, which repeats the true one."""
    texts, true = row.texts("tested_labels", 2), " ".join(str(row.content["true_label"]).split())
    if true not in texts:
        raise row.error(f"has a 'true_label' that is none of its 'tested_labels': {true[:80]!r}")
    false = texts[1 - texts.index(true)]
    return {"filename": keep("image"), "caption": true, "negative_caption": false}


def sugarcrepe_pp_record(row: Row, keep: Keep) -> dict[str, Any]:
    """Make a record with two true captions and a false one; the hub has no images for it."""
    texts = {key: row.text(key) for key in ("caption", "caption2", "negative_caption")}
    return {"id": row.field("id", int), "filename": row.text("filename"), **texts}


def winoground_record(row: Row, keep: Keep) -> dict[str, Any]:
    """Make a record of Winoground, and save both images under the authors' names. The record has these names without
    their ending."""
    number = row.field("id", int)
    names = {f"image_{k}": f"ex_{number}_img_{k}" for k in range(2)}
    for column, name in names.items():
        keep(column, f"{name}.png")
    texts = {key: row.text(key) for key in ("caption_0", "caption_1")}
    tags = {key: row.field(key, str) for key in TAGS if row.content.get(key) is not None}
    return {"id": number, **names, **texts, **tags}


def aro_record(row: Row, keep: Keep) -> dict[str, Any]:
    """Make a record with an image, its box, both captions and the group of the record."""
    box = row.content.get("bbox")
    named = {f"bbox_{key}": value for key, value in box.items()} if isinstance(box, dict) else row.content
    sides = row._replace(content=named)
    texts = {key: row.text(key) for key in ("true_caption", "false_caption")}
    box = {side: sides.number(side) for side in SIDES}
    paired = "attributes" in row.content
    group = {"attributes": row.texts("attributes", 2)} if paired else {"relation_name": row.text("relation_name")}
    return {"image_path": keep("image"), **box, **texts, **group}


def colorswap_record(row: Row, keep: Keep) -> dict[str, Any]:
    number = row.field("id", int)
    names = {f"image_{k}": f"images/{keep(f'image_{k}', f'img_{number}_{k}.png')}" for k in (1, 2)}
    return {"id": number, **{key: row.text(key) for key in ("caption_1", "caption_2")}, **names}


def bivlc_record(row: Row, keep: Keep) -> dict[str, Any]:
    """Make a record with the true and the false caption, each with its image."""
    images = {key: keep(key) for key in ("image", "negative_image")}
    return images | {key: row.text(key) for key in ("caption", "negative_caption", "type", "subtype")}


def valse_image(row: Row, keep: Keep) -> None:
    keep("images", row.text("original_file_name"))


TAGS = (*winoground.TAGS, "tag")
BOX = ("bbox", *SIDES)
CAPTIONS = ("true_caption", "false_caption")
SUGARCREPE = {
    "benchmark": "sugarcrepe",
    "images": sugarcrepe.IMAGES,
    "file": f"{sugarcrepe.FOLDER}/{{part}}.json",
    "parts": tuple(sugarcrepe.COUNTS),
    "keyed": True,
}
FORMS = (
    Form(
        source="one table for each part",
        columns=("image", "caption", "negative_caption"),
        more=("filename",),
        record=sugarcrepe_record,
        **SUGARCREPE,
    ),
    Form(
        source="HuggingFaceM4/SugarCrepe_swap_obj and its like",
        columns=("image", "tested_labels", "true_label"),
        record=labelled_record,
        **SUGARCREPE,
    ),
    Form(
        source="yjkimstats/SUGARCREPE_fmt",
        columns=("images", "caption", "negative_caption", "Negative_type"),
        more=("filename",),
        part_column="Negative_type",
        record=lambda row, keep: sugarcrepe_record(row, keep, "images"),
        **SUGARCREPE,
    ),
    Form(
        benchmark="sugarcrepe-pp",
        source="Aman-J/SugarCrepe_pp",
        columns=("id", "filename", "caption", "caption2", "negative_caption"),
        images=sugarcrepe.IMAGES,
        file=f"{sugarcrepe_pp.FOLDER}/{{part}}.json",
        parts=tuple(sugarcrepe_pp.COUNTS),
        record=sugarcrepe_pp_record,
        note="images: cocodataset.org, 2017 Val images",
    ),
    Form(
        benchmark="winoground",
        source="facebook/winoground",
        columns=("id", "image_0", "image_1", "caption_0", "caption_1"),
        more=TAGS,
        images=winoground.IMAGES,
        file=winoground.FILE,
        record=winoground_record,
    ),
    Form(
        benchmark="vg-relation",
        source="gowitheflow/ARO-Visual-Relation",
        columns=("image", *CAPTIONS, "relation_name"),
        more=BOX,
        images=ARO_IMAGES,
        file=aro.RELATION,
        record=aro_record,
    ),
    Form(
        benchmark="vg-attribution",
        source="gowitheflow/ARO-Visual-Attribution",
        columns=("image", *CAPTIONS, "attributes"),
        more=BOX,
        images=ARO_IMAGES,
        file=aro.ATTRIBUTION,
        record=aro_record,
    ),
    Form(
        benchmark="colorswap",
        source="stanfordnlp/colorswap",
        columns=("id", "image_1", "image_2", "caption_1", "caption_2"),
        images=colorswap.IMAGES,
        file=colorswap.LIST,
        record=colorswap_record,
    ),
    Form(
        benchmark="bivlc",
        source="imirandam/BiVLC",
        columns=("image", "caption", "negative_caption", "negative_image", "type", "subtype"),
        images=bivlc.IMAGES,
        file=bivlc.FILE,
        record=bivlc_record,
    ),
    Form(
        benchmark="valse",
        source="AsphyXIA/valse",
        columns=("images", "original_file_name", "linguistic_phenomena"),
        images=valse.IMAGES,
        file="",
        record=valse_image,
        note="the hub's table lacks the annotators' votes, which choose the official records: put data/*.json of "
        f"github.com/Heidelberg-NLP/VALSE into {valse.FOLDER}",
    ),
)
