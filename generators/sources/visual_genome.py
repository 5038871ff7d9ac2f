"""Visual Genome: descriptions of regions, and relations of things (Krishna et al. 2017, "Visual Genome").

The forms of `region_descriptions.json` and `image_data.json` are confirmed. Those of the relation files are from
memory, so variants are accepted: a thing has a "name" or "names", a relation has its things or their ids. `gqa` also
uses `image_numbers` and `Selection`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.sources.annotated import (
    UNKNOWN_THING,
    AnnotatedPhotographs,
    Annotations,
    Refused,
    Relation,
    relation_or_objects,
    two_regions,
)
from menagerie.generators.sources.folders import SearchedFolders
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.kept_out import COCO, FLICKR, VISUAL_GENOME, KeptOut, PhotographId
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import SourceSpec
from menagerie.generators.sources.rows import LARGEST, Row, stream_json

IMAGE_DATA, FOLDERS = "vg/image_data.json", ("vg/VG_100K", "vg/VG_100K_2")
UNKNOWN = "not in image_data.json, so that nobody knows whether COCO has it"
COLLECTIONS = {"coco_id": COCO, "flickr_id": FLICKR}


class Numbers(NamedTuple):
    """A photograph's numbers: Visual Genome's first, then known numbers in other collections."""

    all: tuple[PhotographId, ...]

    @property
    def name(self) -> str:
        """A name shared by all sources: COCO's number if there is one, else Visual Genome's."""
        return str(next((number for number in self.all if number.collection == COCO), self.all[0]))


class Selection:
    """Selects the photographs to use, and counts the others."""

    def __init__(self, kept_out: KeptOut, empty: str) -> None:
        """`empty` is the reason given for photographs from which no caption can be made."""
        self.kept_out, self.empty = kept_out, empty
        self.left_out: Counter[str] = Counter()
        self.files: list[str] = []
        """Files of the photographs that `take` has yielded so far."""

    def take(self, every: Iterator[tuple[str, Numbers, Annotations]]) -> Iterator[tuple[str, Annotations]]:
        """Yield names and annotations of the photographs to use, in order; count the others in `left_out`."""
        for file, numbers, annotations in every:
            reason = self.kept_out.reason(numbers.all) or ("" if annotations.phrases else self.empty)
            if reason:
                self.left_out[reason] += 1
            else:
                self.files.append(file)
                yield numbers.name, annotations


def image_numbers(path: Path) -> dict[int, Numbers]:
    """The numbers of all photographs, by Visual Genome's number, from its `image_data.json`."""
    every: dict[int, Numbers] = {}
    for entry in stream_json(path, list):
        here = number_in(entry, "image_id" if "image_id" in entry.content else "id")  # older files say "id"
        others = [number_in(entry, key) for key in ("coco_id", "flickr_id") if key in entry.content]
        if here is None or here.number in every:
            raise entry.error("has the 'image_id' of an entry before it, or null")
        every[here.number] = Numbers((here, *filter(None, others)))
    return every


def number_in(entry: Row, key: str) -> PhotographId | None:
    """The number under `key`; None if it is null."""
    number = entry.field(key, int, type(None))
    if number is not None and not 0 <= number < LARGEST**2:
        raise entry.error(f"has a {key!r} that is no number of an image")
    return None if number is None else PhotographId(COLLECTIONS.get(key, VISUAL_GENOME), number)


REGIONS = "vg/region_descriptions.json"
RELATIONS = ("vg/relationships.json", "vg/scene_graphs.json")

Read = Callable[[Row, Refused], Annotations]


class VisualGenome(AnnotatedPhotographs):
    """Photographs with captions of two regions, or of one relation or some things, as `Place.caption` says."""

    def __init__(self, place: Place) -> None:
        """Read the files; raises for missing images and for entries in another form."""
        place.kept_out.require(VISUAL_GENOME)
        recipe, file, read = chosen(place)
        every = image_numbers(place.path(IMAGE_DATA))
        chosen_images = Selection(place.kept_out, f"nothing in {file.name}")
        images = annotations_of(file, every, read, chosen_images, refused := Refused())
        taken = chosen_images.take(images)
        super().__init__(f"Visual Genome {recipe}", taken, MADE[recipe], chosen_images.left_out, refused)
        folders = SearchedFolders.of([place.path(folder) for folder in FOLDERS])
        self.files = ImageFiles(folders, chosen_images.files, place.resolution)


def annotations_of(
    path: Path, every: Mapping[int, Numbers], read: Read, selection: Selection, refused: Refused
) -> Iterator[tuple[str, Numbers, Annotations]]:
    """Yield files, numbers and annotations of the photographs whose numbers are known, and count the others."""
    seen = set()
    for entry in stream_json(path, list):
        key = "image_id" if "image_id" in entry.content else "id"  # older files say "id"
        number = entry.field(key, int)
        if number in seen:
            raise entry.error(f"has the {key!r} of an entry before it: {number}")
        seen.add(number)
        if number in every:
            yield f"{number}.jpg", every[number], read(entry, refused)
        else:
            selection.left_out[UNKNOWN] += 1


def read_regions(entry: Row, refused: Refused) -> Annotations:
    """The distinct phrases of an image's regions."""
    phrases = (refused.clean(region.field("phrase", str)) for region in entry.rows("regions"))
    return Annotations(tuple(dict.fromkeys(filter(None, phrases))))


def read_relations(entry: Row, refused: Refused) -> Annotations:
    """The things of an image and their relations; leaves out things without a text, and relations without a text or
    one of their things."""
    things: dict[int, str] = {}
    if "objects" in entry.content:
        things = {thing.field("object_id", int): phrase_of(thing, refused) for thing in entry.rows("objects")}
    related = []
    for relation in entry.rows("relationships"):
        ends = [end_of(relation, key, things, refused) for key in ("subject", "object")]
        related.append((ends[0], refused.clean(relation.field("predicate", str)).lower(), ends[1]))
    if unknown := sum(not things.keys() >= {a, b} for a, _, b in related):
        refused[UNKNOWN_THING] += unknown
    places = {number: place for place, number in enumerate(number for number, text in things.items() if text)}
    return Annotations(
        tuple(filter(None, things.values())),
        tuple(Relation(places[a], text, places[b]) for a, text, b in related if text and a in places and b in places),
    )


def end_of(relation: Row, key: str, things: dict[int, str], refused: Refused) -> int:
    """The id of one of a relation's two things; a thing described inside the relation is added to `things`."""
    if key not in relation.content:
        return relation.field(f"{key}_id", int)
    thing = relation.inside(key)
    number = thing.field("object_id", int)
    if number not in things:
        things[number] = phrase_of(thing, refused)
    return number


def phrase_of(thing: Row, refused: Refused) -> str:
    """A thing's attributes, followed by its name, or the first of several names; empty without a name."""
    key = "names" if "names" in thing.content else "name"
    names = thing.field(key, str, list)
    called = names[:1] if isinstance(names, list) else [names]
    attributes = thing.content.get("attributes") or []
    if not isinstance(attributes, list) or not all(isinstance(word, str) for word in (*attributes, *called)):
        raise thing.error(f"has a {key!r} or 'attributes' that aren't texts")
    return refused.clean(" ".join((*attributes, *called)) if any(called) else "")


def chosen(place: Place) -> tuple[str, Path, Read]:
    """The chosen recipe, the file for it, and the function that reads an entry."""
    recipe = place.recipe(tuple(READ))
    if recipe == "regions":
        return recipe, place.path(REGIONS), read_regions
    files = [place.path(file) for file in RELATIONS]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise UserError(f"there is neither {files[0]} nor {files[1]}; get one of them")
    return recipe, file, read_relations


READ = {"regions": (REGIONS,), "relations": RELATIONS}
MADE = {"regions": two_regions, "relations": relation_or_objects}
SOURCE = SourceSpec(
    name="visual genome",
    about="photographs with phrases of their regions, or with things and their relations",
    build=VisualGenome,
    open=VisualGenome,
    files=(IMAGE_DATA,),
    images=("vg", *FOLDERS),
    image_folders=FOLDERS,
    recipes=READ,
    get="homes.cs.washington.edu/~ranjay/visualgenome (images parts 1 and 2, image meta data, region descriptions, "
    "relationships or scene graphs)",
    licence="CC BY 4.0; images: Flickr's terms, see Visual Genome",
)
