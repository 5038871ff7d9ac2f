"""Visual Genome: descriptions of regions, and relations of objects (Krishna et al. 2017, "Visual Genome"). And GQA:
scene graphs of its photographs (Hudson and Manning 2019, "GQA").

The forms of `region_descriptions.json` and `image_data.json` are confirmed. Those of the relation files are from
memory, so variants are accepted: an object has a "name" or "names", a relation has its objects or their ids. GQA's file
is one object that maps an image's number to its objects, with their names, attributes and relations.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from menagerie.generators.sources.annotated import (
    AnnotatedPhotographs,
    Annotations,
    Recipe,
    RefusalCounts,
    relation_or_objects,
    two_regions,
)
from menagerie.generators.sources.folders import SearchedFolders
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.kept_out import COCO, FLICKR, VISUAL_GENOME, PhotographId
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import SourceSpec
from menagerie.generators.sources.rows import LARGEST, FileRow, read_entries

IMAGE_DATA, FOLDERS = "vg/image_data.json", ("vg/VG_100K", "vg/VG_100K_2")
UNKNOWN = "not in image_data.json, so that nobody knows whether COCO has it"
COLLECTIONS = {"coco_id": COCO, "flickr_id": FLICKR}

Read = Callable[[FileRow, RefusalCounts], Annotations]
Numbers = tuple[PhotographId, ...]
"""A photograph's numbers: Visual Genome's first, then known numbers in other collections."""


def genome_photographs(
    name: str,
    place: Place,
    entries: Iterable[tuple[str, FileRow]],
    read: Read,
    recipe: Recipe,
    empty: str,
    folders: Sequence[str] = FOLDERS,
) -> AnnotatedPhotographs:
    """Photographs of Visual Genome whose other numbers are known and that `place` doesn't keep out; others are counted.

    Each of `entries` has a photograph's number as text. `empty` is the reason for leaving out a photograph without
    phrases. An image is taken from the first of `folders` that has it; raises for missing images.
    """
    place.kept_out.require(VISUAL_GENOME)
    every = {str(number): numbers for number, numbers in image_numbers(place.path(IMAGE_DATA)).items()}
    left_out, refused, files = Counter[str](), RefusalCounts(), list[str]()

    def known() -> Iterator[tuple[str, Annotations]]:
        for number, entry in entries:
            annotations = read(entry, refused) if number in every else Annotations(())
            reason = place.kept_out.reason(every[number]) if number in every else UNKNOWN
            if reason := reason or ("" if annotations.phrases else empty):
                left_out[reason] += 1
            else:
                files.append(f"{number}.jpg")
                coco = (own for own in every[number] if own.collection == COCO)
                yield str(next(coco, every[number][0])), annotations  # a name shared by all sources

    made = AnnotatedPhotographs(name, known(), recipe, left_out, refused)
    paths = tuple(place.path(folder) for folder in folders)
    made.files = ImageFiles(SearchedFolders(paths[0], given={".": paths}, alike=False), files, place.resolution)
    return made


def image_numbers(path: Path) -> dict[int, Numbers]:
    """The numbers of all photographs, by Visual Genome's number, from its `image_data.json`."""
    every: dict[int, Numbers] = {}
    for entry in read_entries(path, list):
        here = number_under(entry, id_key(entry))
        others = [number_under(entry, key) for key in ("coco_id", "flickr_id") if key in entry.content]
        if here is None or here.number in every:
            raise entry.error("has the 'image_id' of an entry before it, or null")
        every[here.number] = (here, *filter(None, others))
    return every


def id_key(entry: FileRow) -> str:
    return "image_id" if "image_id" in entry.content else "id"  # older files say "id"


def number_under(entry: FileRow, key: str) -> PhotographId | None:
    """The number under `key`; None if it is null."""
    number = entry.field(key, int, type(None))
    if number is not None and not 0 <= number < LARGEST**2:
        raise entry.error(f"has a {key!r} that is no number of an image")
    return None if number is None else PhotographId(COLLECTIONS.get(key, VISUAL_GENOME), number)


def open_genome(place: Place) -> AnnotatedPhotographs:
    """Photographs with captions of two regions, or of one relation or some objects, as `Place.caption` says."""
    recipe = place.recipe(tuple(RECIPES))
    names, read, make = RECIPES[recipe]
    files = [place.path(name) for name in names]
    file = next((file for file in files if file.is_file()), files[0])
    entries = ((str(entry.field(id_key(entry), int)), entry) for entry in read_entries(file, list))
    return genome_photographs(f"Visual Genome {recipe}", place, entries, read, make, f"nothing in {file.name}")


def read_regions(entry: FileRow, refused: RefusalCounts) -> Annotations:
    """The distinct phrases of an image's regions."""
    phrases = (refused.clean(region.field("phrase", str)) for region in entry.rows("regions"))
    return Annotations(tuple(dict.fromkeys(filter(None, phrases))))


def read_relations(entry: FileRow, refused: RefusalCounts) -> Annotations:
    """The objects of an image and their relations."""
    objects: dict[int, str] = {}
    if "objects" in entry.content:
        objects = {obj.field("object_id", int): refused.phrase(obj) for obj in entry.rows("objects")}
    related = []
    for relation in entry.rows("relationships"):
        subject, target = (end_of(relation, key, objects, refused) for key in ("subject", "object"))
        related.append((subject, refused.clean(relation.field("predicate", str)).lower(), target))
    return refused.annotations(objects, related)


def end_of(relation: FileRow, key: str, objects: dict[int, str], refused: RefusalCounts) -> int:
    """The id of one of a relation's two objects; an object described inside the relation is added to `objects`."""
    if key not in relation.content:
        return relation.field(f"{key}_id", int)
    obj = relation.nested(key)
    number = obj.field("object_id", int)
    if number not in objects:
        objects[number] = refused.phrase(obj)
    return number


# For each recipe its files, of which one is read, what reads an entry, and what makes a caption.
RECIPES: dict[str, tuple[tuple[str, ...], Read, Recipe]] = {
    "regions": (("vg/region_descriptions.json",), read_regions, two_regions),
    "relations": (("vg/relationships.json", "vg/scene_graphs.json"), read_relations, relation_or_objects),
}
SOURCE = SourceSpec(
    name="visual genome",
    open=open_genome,
    files=(IMAGE_DATA,),
    images=("vg", *FOLDERS),
    image_folders=FOLDERS,
    recipes={name: files for name, (files, *_) in RECIPES.items()},
    get="homes.cs.washington.edu/~ranjay/visualgenome (images parts 1 and 2, image meta data, region descriptions, "
    "relationships or scene graphs)",
    licence="CC BY 4.0; images: Flickr's terms, see Visual Genome",
)


GQA_GRAPHS, GQA_IMAGES = "gqa/train_sceneGraphs.json", "gqa/images"


def open_gqa(place: Place) -> AnnotatedPhotographs:
    """Photographs with one relation per caption, or up to three objects of an image without relations. OC-CLIP's graphs
    have attributes in their nodes, so a phrase has them too; the recipe "names" leaves them out."""
    read = partial(gqa_annotations, attributes=place.recipe(tuple(SOURCE_GQA.recipes)) == "attributes")
    entries = ((entry.place, entry) for entry in read_entries(place.path(GQA_GRAPHS), dict))
    return genome_photographs("GQA", place, entries, read, relation_or_objects, "no objects", (GQA_IMAGES, *FOLDERS))


def gqa_annotations(entry: FileRow, refused: RefusalCounts, attributes: bool) -> Annotations:
    """The objects of an image and their relations."""
    listed = entry.nested("objects")
    objects = {key: listed.nested(key) for key in listed.content}
    phrases = {key: refused.phrase(obj, attributes) for key, obj in objects.items()}
    related = [
        (key, refused.clean(relation.field("name", str)), relation.field("object", str))
        for key, obj in objects.items()
        for relation in obj.rows("relations")
    ]
    return refused.annotations(phrases, related)


SOURCE_GQA = SourceSpec(
    name="gqa",
    open=open_gqa,
    files=(GQA_GRAPHS, IMAGE_DATA),
    images=("gqa", GQA_IMAGES, "vg", *FOLDERS),
    image_folders=(GQA_IMAGES, *FOLDERS),
    recipes={"attributes": (), "names": ()},
    get="cs.stanford.edu/people/dorarad/gqa (scene graphs, images), and image_data.json of Visual Genome",
    licence="CC BY 4.0; images: Flickr's terms, see Visual Genome",
)
