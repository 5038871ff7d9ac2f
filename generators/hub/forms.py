"""Forms of benchmarks on the Hugging Face hub: which columns a table has, and what a row becomes in the official file.

Columns are known from data cards and from code that loads the sets. Not confirmed: `attributes` of VG-Attribution, and
that the pictures of both ARO sets are whole images (their sizes suggest it), to be cut by `bbox` as in the authors'
files.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.plugins import own_module
from menagerie.generators.benchmarks import four_way
from menagerie.generators.benchmarks.caption_pairs import SIDES
from menagerie.generators.benchmarks.registry import BenchmarkSpec, load_benchmark
from menagerie.generators.benchmarks.retrieval import SPLIT
from menagerie.generators.sources.rows import FileRow

# Writes the picture in a column of a row, perhaps under a given name; returns the name of its file.
Keep = Callable[..., str]


@dataclass(frozen=True)
class HubForm:
    """The columns of a benchmark's table on the hub, and what is made of its rows."""

    benchmark: str
    """Its name, or file.py:NAME of your own."""
    source: str
    """Name of a data set on the hub in this form."""
    columns: tuple[str, ...]
    """Columns by which the form is recognised."""
    record: Callable[[FileRow, Keep], Any]
    """Makes the entry of the annotation file from a row; None leaves the row out."""
    more: tuple[str, ...] = ()
    """Further columns, read if the table has them."""
    part_column: str = ""
    """Column that tells a row's part of the benchmark; else `--part` or names of table and folder tell."""
    keyed: bool = False
    """Whether the file is an object with numbers as keys; otherwise it is a list, or has one record a line (.jsonl)."""
    note: str = ""
    """Text that says what else the benchmark needs."""
    images_only: bool = False
    """Whether only images are made, and no annotation file."""
    trains: bool = False
    """Whether the set has a split to train on, so that a lone `train` isn't taken for the test."""

    @cached_property
    def spec(self) -> BenchmarkSpec:
        """The benchmark's spec, which says where its images and annotation files are."""
        return load_benchmark(self.benchmark)

    @cached_property
    def files(self) -> dict[str, str]:
        """The annotation file of each part of the benchmark, below the data root; of "" if there is only one file."""
        files = () if self.images_only else self.spec.files or self.spec.one_of[-1:]
        return {Path(file).stem if len(files) > 1 else "": file for file in files}

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The benchmark's parts, if it has a file for each."""
        return tuple(filter(None, self.files))


SPELLINGS = {r"attribute|atribute": "att", r"object": "obj", r"relation": "rel", r"[^a-z]+": "_"}


def part_in(form: HubForm, text: str) -> str:
    """The part of a benchmark whose name, perhaps spelled out, occurs in `text`; empty if none does."""
    for pattern, short in SPELLINGS.items():
        text = re.sub(pattern, short, text.lower())
    return next((part for part in form.parts if part in text), "")


def texts_under(row: FileRow, *keys: str) -> dict[str, str]:
    return {key: row.text(key) for key in keys}


def sugarcrepe_record(row: FileRow, keep: Keep, image: str = "image") -> dict[str, Any]:
    """A true and a false caption, and an image that may have a name."""
    captions = texts_under(row, *SWAPS)
    name = row.text("filename") if row.content.get("filename") else ""
    return {"filename": keep(image, name.rpartition("/")[2]), **captions}


def labelled_record(row: FileRow, keep: Keep) -> dict[str, Any]:
    """Both captions, and a label that repeats the true one."""
    both, true = row.texts("tested_labels", 2), " ".join(str(row.content["true_label"]).split())
    if true not in both:
        raise row.error(f"has a 'true_label' that is none of its 'tested_labels': {true[:80]!r}")
    return {"filename": keep("image"), "caption": true, "negative_caption": both[1 - both.index(true)]}


def sugarcrepe_pp_record(row: FileRow, keep: Keep) -> dict[str, Any]:
    """Two true captions and a false one; the hub has no images for it."""
    return {"id": row.field("id", int), **texts_under(row, "filename", "caption", "caption2", "negative_caption")}


def winoground_record(row: FileRow, keep: Keep) -> dict[str, Any]:
    """Both images get the authors' names, which the record has without their ending."""
    number = row.field("id", int)
    names = {f"image_{k}": keep(f"image_{k}", f"ex_{number}_img_{k}.png").removesuffix(".png") for k in range(2)}
    tags = {key: row.field(key, str) for key in TAGS if row.content.get(key) is not None}
    return {"id": number, **names, **texts_under(row, "caption_0", "caption_1"), **tags}


def aro_record(row: FileRow, keep: Keep) -> dict[str, Any]:
    """An image, its box, both captions and the task of the record."""
    box, paired = row.content.get("bbox"), "attributes" in row.content
    named = {f"bbox_{key}": value for key, value in box.items()} if isinstance(box, dict) else row.content
    sides = {side: row._replace(content=named).number(side) for side in SIDES}
    task = {"attributes": row.texts("attributes", 2)} if paired else texts_under(row, "relation_name")
    return {"image_path": keep("image"), **sides, **texts_under(row, *CAPTIONS), **task}


def colorswap_record(row: FileRow, keep: Keep) -> dict[str, Any]:
    number = row.field("id", int)
    names = {f"image_{k}": f"images/{keep(f'image_{k}', f'img_{number}_{k}.png')}" for k in (1, 2)}
    return {"id": number, **texts_under(row, "caption_1", "caption_2"), **names}


def bivlc_record(row: FileRow, keep: Keep) -> dict[str, Any]:
    """A true and a false caption, each with its image."""
    images = {key: keep(key) for key in ("image", "negative_image")}
    return images | texts_under(row, *SWAPS, "type", "subtype")


def vismin_record(row: FileRow, keep: Keep) -> dict[str, Any]:
    """Two images, each with its text; the questions for models that write text are left out."""
    return {key: keep(key) for key in ("image_0", "image_1")} | texts_under(row, "text_0", "text_1", "category")


def retrieval_record(row: FileRow, keep: Keep, captions: str = "caption") -> dict[str, Any] | None:
    """An image with its captions, if it is in Karpathy's test split."""
    if row.content.get("split") not in (None, SPLIT):
        return None
    name = row.file_name("filename")
    return {"image": keep("image", name) if "image" in row.content else name, "caption": list(row.texts(captions))}


def word_order_record(row: FileRow, keep: Keep) -> dict[str, Any]:
    """An image, its caption and four orders of its words."""
    return {"image": keep("images"), "captions": list(texts_under(row, *ORDERS).values())}


ORDERS = ("correct_caption", *(f"hard_text_{k}" for k in range(1, 5)))
TAGS = (*four_way.TAGS, "tag")
CAPTIONS = ("true_caption", "false_caption")
SIDED = ("bbox", *SIDES)
SWAPS = ("caption", "negative_caption")
FORMS = (
    HubForm("sugarcrepe", "one table for each part", ("image", *SWAPS), sugarcrepe_record, ("filename",), keyed=True),
    HubForm(
        "sugarcrepe",
        "HuggingFaceM4/SugarCrepe_swap_obj and its like",
        ("image", "tested_labels", "true_label"),
        labelled_record,
        keyed=True,
    ),
    HubForm(
        "sugarcrepe",
        "yjkimstats/SUGARCREPE_fmt",
        ("images", *SWAPS, "Negative_type"),
        partial(sugarcrepe_record, image="images"),
        ("filename",),
        part_column="Negative_type",
        keyed=True,
    ),
    HubForm(
        "sugarcrepe-pp",
        "Aman-J/SugarCrepe_pp",
        ("id", "filename", "caption", "caption2", "negative_caption"),
        sugarcrepe_pp_record,
        note="images: cocodataset.org, 2017 Val images",
    ),
    HubForm(
        "winoground",
        "facebook/winoground",
        ("id", "image_0", "image_1", "caption_0", "caption_1"),
        winoground_record,
        TAGS,
    ),
    HubForm("vg-relation", "gowitheflow/ARO-Visual-Relation", ("image", *CAPTIONS, "relation_name"), aro_record, SIDED),
    HubForm(
        "vg-attribution", "gowitheflow/ARO-Visual-Attribution", ("image", *CAPTIONS, "attributes"), aro_record, SIDED
    ),
    HubForm(
        "colorswap",
        "stanfordnlp/colorswap",
        ("id", "image_1", "image_2", "caption_1", "caption_2"),
        colorswap_record,
        trains=True,
    ),
    HubForm(
        "retrieval-flickr30k",
        "nlphuji/flickr30k",
        ("image", "caption", "split", "filename", "img_id"),
        retrieval_record,
        trains=True,
    ),
    HubForm(
        "retrieval-coco",
        "nlphuji/mscoco_2014_5k_test_image_text_retrieval",
        ("image", "caption", "cocoid", "filename"),
        retrieval_record,
        ("split",),
        trains=True,
    ),
    HubForm(
        "retrieval-coco",
        "yerevann/coco-karpathy",
        ("filename", "split", "sentences", "cocoid"),
        partial(retrieval_record, captions="sentences"),
        note="images: cocodataset.org, 2014 Val images",
        trains=True,
    ),
    HubForm("coco-order", "gowitheflow/ARO-COCO-order", ("images", *ORDERS), word_order_record),
    HubForm("flickr-order", "gowitheflow/ARO-Flickr-Order", ("images", *ORDERS), word_order_record),
    HubForm("bivlc", "imirandam/BiVLC", ("image", "negative_image", *SWAPS, "type", "subtype"), bivlc_record),
    HubForm("vismin", "mair-lab/vismin-bench", ("image_0", "image_1", "text_0", "text_1", "category"), vismin_record),
    HubForm(
        "valse",
        "AsphyXIA/valse",
        ("images", "original_file_name", "linguistic_phenomena"),
        lambda row, keep: keep("images", row.text("original_file_name")),
        note="the hub's table lacks the annotators' votes, which choose the official records: put data/*.json of "
        "github.com/Heidelberg-NLP/VALSE into valse/data",
        images_only=True,
    ),
)


def own_form(name: str) -> HubForm:
    """The form file.py:NAME of a user's file, which is run."""
    path, _, attribute = name.rpartition(":")
    form = getattr(own_module(path), attribute, None) if Path(path).is_file() else None
    if not isinstance(form, HubForm):
        raise UserError(
            f"--form {name} is no file.py:NAME of a HubForm; `menagerie new mine.py --kind form` writes one"
        )
    if other := next((file for file in form.files.values() if not file.endswith((".json", ".jsonl"))), ""):
        raise UserError(f"--form {name}: {form.benchmark} reads {other}, and a form writes .json or .jsonl alone")
    return form
