"""GQA's scene graphs of photographs of Visual Genome (Hudson and Manning 2019, "GQA").

The file is one object that maps an image's number to its things, with their names, attributes and relations.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from menagerie.generators.sources.annotated import (
    UNKNOWN_THING,
    AnnotatedPhotographs,
    Annotations,
    Refused,
    Relation,
    relation_or_objects,
)
from menagerie.generators.sources.folders import SearchedFolders
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.kept_out import VISUAL_GENOME
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import SourceSpec
from menagerie.generators.sources.rows import Row, stream_json
from menagerie.generators.sources.visual_genome import (
    FOLDERS,
    IMAGE_DATA,
    UNKNOWN,
    Numbers,
    Selection,
    image_numbers,
)

GRAPHS, IMAGES = "gqa/train_sceneGraphs.json", "gqa/images"


class GQA(AnnotatedPhotographs):
    """Photographs with captions from GQA: `GQA(place)` gives one relation per caption, or up to three things of an
    image without relations.

    OC-CLIP's paper doesn't mention attributes in these captions, but its graphs have them in their nodes. So by default
    a phrase has attributes and name, "small yellow banana"; the recipe "names" leaves attributes out.
    """

    def __init__(self, place: Place) -> None:
        """Read the file; raises for missing images and for entries in another form."""
        place.kept_out.require(VISUAL_GENOME)
        recipe, path = place.recipe(tuple(SOURCE.recipes)), place.path(GRAPHS)
        every = {str(number): numbers for number, numbers in image_numbers(place.path(IMAGE_DATA)).items()}
        selection = Selection(place.kept_out, "no things")
        images = annotations_of(path, every, recipe == "attributes", selection, refused := Refused())
        super().__init__("GQA", selection.take(images), relation_or_objects, selection.left_out, refused)
        folders = [place.path(folder) for folder in (IMAGES, *FOLDERS)]
        self.files = ImageFiles(SearchedFolders.of(folders), selection.files, place.resolution)


def annotations_of(
    path: Path, every: Mapping[str, Numbers], attributes: bool, selection: Selection, refused: Refused
) -> Iterator[tuple[str, Numbers, Annotations]]:
    """Yield files, numbers and annotations of the photographs whose numbers are known, and count the others."""
    for entry in stream_json(path, dict):
        if entry.place in every:
            yield f"{entry.place}.jpg", every[entry.place], read(entry, attributes, refused)
        else:
            selection.left_out[UNKNOWN] += 1


def read(entry: Row, attributes: bool, refused: Refused) -> Annotations:
    """The things of an image and their relations; leaves out things without a text, and relations without a text or
    one of their things."""
    objects = entry.inside("objects")
    things = {key: objects.inside(key) for key in objects.content}
    phrases = {key: phrase_of(thing, attributes, refused) for key, thing in things.items()}
    places = {key: place for place, key in enumerate(key for key, phrase in phrases.items() if phrase)}
    related = []
    for key, thing in things.items():
        for relation in relations_of(thing):
            target, text = relation.field("object", str), refused.clean(relation.field("name", str))
            if target not in things:
                refused[UNKNOWN_THING] += 1
            if text and key in places and target in places:
                related.append(Relation(places[key], text, places[target]))
    return Annotations(tuple(filter(None, phrases.values())), tuple(related))


def phrase_of(thing: Row, attributes: bool, refused: Refused) -> str:
    """The noun of a thing, preceded by its attributes if `attributes` is set."""
    words = thing.content.get("attributes") or [] if attributes else []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise thing.error("has 'attributes' that are no list of texts")
    name = thing.field("name", str)
    return refused.clean(" ".join((*words, name)) if name.strip() else "")


def relations_of(thing: Row) -> list[Row]:
    """The relations of a thing, given as a list, as an object of relations (as in the official example), or as a single
    one."""
    relations = thing.content.get("relations") or []
    if isinstance(relations, dict):
        relations = [relations] if isinstance(relations.get("name"), str) else list(relations.values())
    if not isinstance(relations, list) or not all(isinstance(relation, dict) for relation in relations):
        raise thing.error("has 'relations' that are no list of objects")
    return [Row(thing.file, f"{thing.place}.relations[{k}]", relation) for k, relation in enumerate(relations)]


SOURCE = SourceSpec(
    name="gqa",
    about="photographs with things, their attributes and their relations",
    build=GQA,
    open=GQA,
    files=(GRAPHS, IMAGE_DATA),
    images=("gqa", IMAGES, "vg", *FOLDERS),
    image_folders=(IMAGES, *FOLDERS),
    recipes={"attributes": (), "names": ()},
    get="cs.stanford.edu/people/dorarad/gqa (scene graphs, images), and image_data.json of Visual Genome",
    licence="CC BY 4.0; images: Flickr's terms, see Visual Genome",
)
