"""GQA's scene graphs of photographs of Visual Genome (Hudson and Manning 2019, "GQA").

The file is one object that maps an image's number to its objects, with their names, attributes and relations.
"""

from functools import partial

from menagerie.generators.sources.annotated import AnnotatedPhotographs, Annotations, RefusalCounts, relation_or_objects
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import SourceSpec
from menagerie.generators.sources.rows import FileRow, read_entries
from menagerie.generators.sources.visual_genome import FOLDERS, IMAGE_DATA, genome_photographs

GRAPHS, IMAGES = "gqa/train_sceneGraphs.json", "gqa/images"


def open_gqa(place: Place) -> AnnotatedPhotographs:
    """Photographs with one relation per caption, or up to three objects of an image without relations.

    OC-CLIP's paper doesn't mention attributes in these captions, but its graphs have them in their nodes. So by default
    a phrase has attributes and name, "small yellow banana"; the recipe "names" leaves attributes out.
    """
    read = partial(gqa_annotations, attributes=place.recipe(tuple(SOURCE.recipes)) == "attributes")
    entries = ((entry.place, entry) for entry in read_entries(place.path(GRAPHS), dict))
    return genome_photographs("GQA", place, entries, read, relation_or_objects, "no objects", (IMAGES, *FOLDERS))


def gqa_annotations(entry: FileRow, refused: RefusalCounts, attributes: bool) -> Annotations:
    """The objects of an image and their relations."""
    listed = entry.inside("objects")
    objects = {key: listed.inside(key) for key in listed.content}
    phrases = {key: refused.phrase(obj, attributes) for key, obj in objects.items()}
    related = [
        (key, refused.clean(relation.field("name", str)), relation.field("object", str))
        for key, obj in objects.items()
        for relation in obj.rows("relations")
    ]
    return refused.annotations(phrases, related)


SOURCE = SourceSpec(
    name="gqa",
    open=open_gqa,
    files=(GRAPHS, IMAGE_DATA),
    images=("gqa", IMAGES, "vg", *FOLDERS),
    image_folders=(IMAGES, *FOLDERS),
    recipes={"attributes": (), "names": ()},
    get="cs.stanford.edu/people/dorarad/gqa (scene graphs, images), and image_data.json of Visual Genome",
    licence="CC BY 4.0; images: Flickr's terms, see Visual Genome",
)
