"""Croissant metadata of an export: MLCommons' JSON-LD for data sets, version 1.0, with its vocabulary for responsible
AI (RAI 1.0). It names the files with their digests, and says how records are read from them.

Each subset has two record sets: its own with captions, and `SUBSET-images` with each image and its caption. They are
declared so that mlcroissant reads them: it joins two sources of a record set, and only from images to captions.
"""

import json
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from menagerie.envs.core.files import file_name
from menagerie.envs.world import WORLDS
from menagerie.generators.export.formats import File
from menagerie.generators.frozen.benchmark import Frozen
from menagerie.generators.storage.split_file import Split

Node = dict[str, Any]  # a node of JSON-LD

TERMS = (
    "citeAs column equivalentProperty extract field fileProperty fileObject fileSet format includes isLiveDataset "
    "jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source "
    "subField transform"
)
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in TERMS.split()},
}
RAI = {
    "rai:dataCollection": "Nothing was collected. Scenes are drawn at random from the recipe's seed and rendered by a "
    "program; captions, hard negatives and scene graphs are written by templates from the scenes.",
    "rai:dataUseCases": "Training and testing of vision-language models on the binding problem: which attribute or "
    "place belongs to which object.",
    "rai:dataLimitations": "Scenes are plain renderings with a small vocabulary. A result holds for such scenes until "
    "it is checked on photographs.",
    "rai:dataBiases": "What the recipe keeps out of training is kept out on purpose, so training and test subsets "
    "differ in their combinations. Captions are English sentences of a few templates.",
    "rai:personalSensitiveInformation": "None: no person is shown or described, and no photograph is used.",
}
OWN_WORLD = {
    "rai:personalSensitiveInformation": "Unknown: the world's meshes and pictures are its user's. They may show "
    "persons, and may have licences of their own.",
}
# By format: for each record set of a subset's JSON file its ending, and the JSONPath of each field.
PATHS: dict[str, dict[str, dict[str, str]]] = {
    "coco": {
        "": {
            "file_name": "$.images[*].file_name",
            "caption": "$.annotations[*].caption",
            "negative": "$.annotations[*].negative",
        }
    },
    "coco_instances": {
        "": {"file_name": "$.images[*].file_name", "image_id": "$.images[*].id"},
        "-objects": {name: f"$.annotations[*].{name}" for name in ("image_id", "category_id", "texture", "bbox")},
    },
    "sugarcrepe": {"": {"file_name": "$.*.filename", "caption": "$.*.caption", "negative": "$.*.negative_caption"}},
}
# Of a sample in tar files: field, suffix, media type, ending of the record set.
TAR_FILES = (
    ("caption", "txt", "text/plain", ""),
    ("facts", "json", "application/json", "-facts"),
    ("image", "png", "image/png", "-images"),
)
NUMBERS = dict.fromkeys(("image_id", "category_id"), "sc:Integer")
TYPES = {"image": "sc:ImageObject", "bbox": "cr:BoundingBox", **NUMBERS}  # of fields; all others are texts


def croissant(split: Split, form: str, files: Sequence[File], sums: Mapping[str, str], benchmark: Frozen | None) -> str:
    """The metadata of an export, as JSON. `sums` are the SHA-256 of the files by their paths, `benchmark` is the frozen
    benchmark that the split has."""
    name = benchmark.name if benchmark else split.path.stem
    frozen = f" Its tests are those of the frozen benchmark {name}, digest {benchmark.digest}." if benchmark else ""
    nodes = [file_object(path, sums) for path in sums if not path.endswith(".png")] + list(tables(form, files, sums))
    facts = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": name,
        "version": f"{benchmark.version}.0.0" if benchmark else split.recipe_version,
        "identifier": benchmark.digest if benchmark else split.digest,
        "description": f"{name} in the format {form}: rendered scenes of textured animals, made by Menagerie to "
        f"test whether vision-language models bind attributes to objects.{frozen} README.md has the recipe, SHA256SUMS "
        "the digests of all files.",
        "license": "https://www.apache.org/licenses/LICENSE-2.0",
        "creator": {"@type": "sc:Organization", "name": "The Menagerie authors"},
        "citeAs": f"Menagerie: synthetic environments, splits and studies for the binding problem in vision-language "
        f"models (binding-menagerie {version('binding-menagerie')})",
        **RAI,
        **({} if split.recipe["world"] in WORLDS else OWN_WORLD),
        "distribution": [node for node in nodes if node["@type"] != "cr:RecordSet"],
        "recordSet": [node for node in nodes if node["@type"] == "cr:RecordSet"],
    }
    return json.dumps(facts, indent=1)


def tables(form: str, files: Sequence[File], sums: Mapping[str, str]) -> Iterator[Node]:
    """Yield the record sets of all subsets that have samples, and the sets of files that they read; none for a format
    that isn't known here."""
    for subset in dict.fromkeys(file.subset for file in files if file.samples):
        stem, paths = file_name(subset), [file.path for file in files if file.subset == subset]
        if form == "webdataset":
            yield from tar_tables(stem, paths)
        elif form in PATHS:
            yield from json_tables(stem, PATHS[form], sums)


def json_tables(stem: str, sets: Mapping[str, Mapping[str, str]], sums: Mapping[str, str]) -> Iterator[Node]:
    """Yield what reads a subset's JSON file and its pictures. Fields of one file object must have equally many values,
    so a second record set has a file object of its own."""
    for ending, paths in sets.items():
        source = f"{stem}.json"
        if ending:
            yield file_object(source, sums, source := f"{stem}{ending}.json")
        fields = {name: {"fileObject": {"@id": source}, "extract": {"jsonPath": path}} for name, path in paths.items()}
        yield record_set(f"{stem}{ending}", fields, f"{stem}/image_id" if ending else "")
    yield node("FileSet", f"{stem}-png", encodingFormat="image/png", includes=f"images/{stem}/*.png")
    beside = {name: {"field": {"@id": f"{stem}/{name}"}} for name in sets[""] if name != "file_name"}
    name = file_property(f"{stem}-png", "fullpath", "(?:images/)?(.+)")
    fields = {"file_name": name, "image": file_property(f"{stem}-png", "content"), **beside}
    yield record_set(f"{stem}-images", fields, f"{stem}/file_name")


def tar_tables(stem: str, tars: Sequence[str]) -> Iterator[Node]:
    """Yield what reads a subset's tar files: captions, facts (JSON as text) and images, by the sample's key."""
    contained = [{"@id": tar} for tar in tars]
    for what, suffix, kind, ending in TAR_FILES:
        files = f"{stem}-{suffix}"
        yield node("FileSet", files, encodingFormat=kind, includes=f"*.{suffix}", containedIn=contained)
        fields = {"key": file_property(files, "filename", r"(\d+)"), what: file_property(files, "content")}
        beside = {"caption": {"field": {"@id": f"{stem}/caption"}}} if ending else {}
        yield record_set(f"{stem}{ending}", fields | beside, f"{stem}/key" if ending else "")


def file_object(path: str, sums: Mapping[str, str], name: str = "") -> Node:
    """A file of the export."""
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return node("FileObject", name or path, contentUrl=path, encodingFormat=kind, sha256=sums[path])


def file_property(files: str, name: str, regex: str = "") -> Node:
    """The source of a field: a property of each file of a set, or what the group of `regex` matches of it."""
    transform = {"transform": {"regex": regex}} if regex else {}
    return {"fileSet": {"@id": files}, "extract": {"fileProperty": name}, **transform}


def record_set(name: str, sources: Mapping[str, Node], equal: str = "") -> Node:
    """A record set of fields with their sources. The field that is called as the field `equal` of another record set is
    joined with that."""
    fields = []
    for what, source in sources.items():
        joined = {"references": {"field": {"@id": equal}}} if equal.endswith(f"/{what}") else {}
        fields.append(node("Field", f"{name}/{what}", dataType=TYPES.get(what, "sc:Text"), source=source, **joined))
    return node("RecordSet", name, field=fields)


def node(kind: str, name: str, **facts: Any) -> Node:
    """A node of a type of Croissant's; its id is its name."""
    return {"@type": f"cr:{kind}", "@id": name, "name": name, **facts}
