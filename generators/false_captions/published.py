"""False captions that others published, from their own files below a data root. Nothing in these files is run.

The forms are those of the authors' code: NegCLIP's table (vinid/neg_clip), CE-CLIP's lists
(lezhang7/Enhance-FineGrained, data/dataset.py), CS-CLIP's units (kargibora/CS-CLIP, README; its older names of keys are
read too) and TripletCLIP's shards (tripletclip/TripletCLIP, src/openclip/src/data.py). Images of which false captions
are true aren't read ("neg_image" of NegCLIP and TripletCLIP).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import open_file
from menagerie.generators.false_captions.located import plain_words
from menagerie.generators.false_captions.made import Made
from menagerie.generators.false_captions.pickled_lists import read_pickled_list
from menagerie.generators.false_captions.record import PART, FalseCaption
from menagerie.generators.sources.kept_out import COCO, PhotographId, coco_number
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, check_object, read_csv, read_entries
from menagerie.generators.sources.shard import group_by_sample, list_members, read_member_text

AUGMENTED = {"relation": "swap", "adj": "replace", "noun": "replace", "verb": "replace"}  # CE-CLIP's, in its order
NONE = "###"


class Published(NamedTuple):
    """Files of false captions."""

    files: str
    """Pattern of their names below the data root."""
    read: Callable[[Path], Iterator[FalseCaption]]
    get: str
    """Where they are to be had."""


def read_published(name: str, place: Place) -> Made:
    """Read all false captions of `PUBLISHED[name]`. Texts that say what their captions say, and entries without a
    caption or a false one, are counted as refused.
    Raises `UserError` if there is no file, or one can't be read."""
    files = published_files(name, place)
    if not files:
        where = place.root / PUBLISHED[name].files
        raise UserError(f"there is no file {where} with the false captions of {name}; get: {PUBLISHED[name].get}")
    found, refused, captions = dict[FalseCaption, None](), Counter[tuple[str, str]](), set[tuple[str, str]]()
    for one in (one for file in files for one in PUBLISHED[name].read(file)):
        said = plain_words(one.text)
        if not (said and one.caption):
            refused[one.how, "no caption, or no false one"] += 1
            continue
        captions.add((one.image, one.caption))
        if said == plain_words(one.caption):
            refused[one.how, "the same words as the caption"] += 1
        elif not {*said.split()} & {*plain_words(one.caption).split()} and not one.how.startswith(PART):
            refused[one.how, "no word of the caption"] += 1
        else:
            found[one] = None
    return Made(list(found), refused, len(captions))


def published_files(name: str, place: Place) -> list[Path]:
    """The files of `PUBLISHED[name]` that are there."""
    folder, _, pattern = PUBLISHED[name].files.rpartition("/")
    return sorted(place.path(folder).glob(pattern))


def image_name(file: str) -> str:
    """The name by which all sources know an image: "COCO 42" for a file of COCO, else the file's name."""
    name = file.rpartition("/")[2]
    return str(coco_number(name) or name)


def read_negclip(path: Path) -> Iterator[FalseCaption]:
    """Yield those of NegCLIP's tab-separated table, whose cells have lists as Python writes them."""
    for row in read_csv(path, ("title", "filepath", "neg_caption"), delimiter="\t"):
        for text in row.texts("neg_caption") if row.text("neg_caption") != "[]" else ():
            yield FalseCaption(image_name(row.text("filepath")), row.text("title"), "swap", "negclip", text)


def read_ce_clip(path: Path) -> Iterator[FalseCaption]:
    """Yield those of a list of CE-CLIP, as numpy saves it. Its file says which are there."""
    for number, content in enumerate(read_pickled_list(path)):
        row = check_object(FileRow(path, f"[{number}]", content))
        flags = row.field("valid_caption", list)[1:]  # the first is the caption's own
        image = str(PhotographId(COCO, row.whole_number("image_id")))
        for (name, kind), valid in zip(AUGMENTED.items(), flags, strict=False):
            text = row.field(f"{name}_aug_caption", str)
            if valid and text.strip() and text != NONE:
                text = row.text(f"{name}_aug_caption")
                yield FalseCaption(image, row.text("caption"), kind, f"ce-clip {name}", text)


def read_cs_clip(path: Path) -> Iterator[FalseCaption]:
    """Yield those of CS-CLIP's captions ("swap_negatives"), and of their parts: entities and relations."""
    for row in read_entries(path, list):
        image, caption = image_name(row.text("image_path")), row.text("original_caption")
        for text in negatives_in(row.content.get("swap_negatives")):
            yield FalseCaption(image, caption, "swap", "cs-clip", text)
        wrong = row.content.get("negative_entities", row.content.get("negative_components")) or {}
        if not isinstance(wrong, dict):
            raise row.error("has 'negative_entities' that are no object")
        for entity, others in wrong.items():
            for text in negatives_in(others):
                yield FalseCaption(image, " ".join(entity.split()), "replace", f"{PART}cs-clip entity", text)
        for relation in row.rows("relations") if row.content.get("relations") else ():
            true = relation_text(relation)
            for other in relation.rows("negatives") if relation.content.get("negatives") else ():
                text = relation_text(other._replace(content=relation.content | other.content))
                yield FalseCaption(image, true, "replace", f"{PART}cs-clip relation", text)


def relation_text(row: FileRow) -> str:
    """The words of a relation."""
    return " ".join(row.text(key).replace("_", " ") for key in ("subject", "relation_type", "object"))


def negatives_in(content: Any) -> Iterator[str]:
    """Yield the texts of a list of texts, or of objects with a "negative"; "" for other entries."""
    for entry in content if isinstance(content, list) else ():
        text = entry.get("negative") if isinstance(entry, dict) else entry
        yield " ".join(text.split()) if isinstance(text, str) else ""


def read_triplet_clip(path: Path) -> Iterator[FalseCaption]:
    """Yield those of a shard of TripletCLIP: KEY.caption and KEY.neg_caption beside KEY.image."""
    refused = Counter[str]()
    with open_file(path) as file:
        for key, files in group_by_sample(list_members(path, refused), refused).items():
            its = (read_member_text(file, files[n]) if n in files else "" for n in ("caption", "neg_caption"))
            caption, text = (" ".join(one.split()) for one in its)
            yield FalseCaption(f"{path.name}/{key}", caption, "replace", "triplet-clip", text)


PUBLISHED: Mapping[str, Published] = {
    "negclip": Published(
        "negclip/train_neg_clip.tsv", read_negclip, "temp_data of github.com/mertyg/vision-language-models-are-bows"
    ),
    "ce-clip": Published(
        "ce-clip/*.npy", read_ce_clip, "made by data/prepare_dataset.sh of github.com/lezhang7/Enhance-FineGrained"
    ),
    "cs-clip": Published("cs-clip/*.json", read_cs_clip, "the link in the README of github.com/kargibora/CS-CLIP"),
    "triplet-clip": Published("shards/*.tar", read_triplet_clip, "huggingface.co/TripletCLIP, with its images"),
}
