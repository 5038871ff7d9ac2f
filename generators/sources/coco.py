"""COCO captions: photographs with several captions each (Chen et al. 2015, "Microsoft COCO captions")."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.captioned import Indices, all_texts, pick
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.kept_out import COCO, KeptOut, PhotographId, coco_number, flickr_number
from menagerie.generators.sources.photographs import Photographs, check_some_left
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.sources.registry import SourceSpec
from menagerie.generators.sources.rows import FileRow, read_json_object
from menagerie.generators.sources.texts import MARKUP_REASON, graphs_of, refusal

FOLDER = "coco"
ANNOTATIONS, IMAGES = "coco/annotations/captions_train2017.json", "coco/train2017"


class CocoImage(NamedTuple):
    """One image of a COCO file."""

    identity: int | str
    file: str
    texts: list[str]
    numbers: tuple[PhotographId, ...] = ()
    """Numbers of the photograph in COCO and on Flickr, as far as its entry gives them."""

    @property
    def name(self) -> str:
        """A name shared by all sources: "COCO 42" if the file's name has COCO's number, else the file's name."""
        return str(self.numbers[0]) if self.numbers and coco_number(self.file) else self.file


class CocoCaptions(Photographs):
    """The images of a COCO file in its order: `CocoCaptions("captions_train2017.json", "train2017", 224)`.

    White space in captions is normalised, and captions with HTML are left out. `parse` makes captions' graphs; without
    it the whole caption is one node, and there are no edges. Structured scorers therefore need a parser.
    """

    def __init__(
        self,
        annotations: str | Path,
        images: str | Path,
        resolution: int,
        parse: Callable[[str], SceneGraph] = one_node,
        kept_out: KeptOut | None = None,
    ) -> None:
        """Parse all kept captions; raises if an image has no caption, or a kept image no file."""
        self.name = str(annotations)
        kept, left_out, refused = select_photographs(read_coco(Path(annotations)), kept_out or KeptOut())
        self.left_out, self.refused_texts = dict(left_out), {MARKUP_REASON: refused} if refused else {}
        check_some_left(self.name, len(kept), self.left_out)
        self.identities = [photograph.identity for photograph in kept]
        self.names_of_images = [photograph.name for photograph in kept]
        texts = list(dict.fromkeys(text for photograph in kept for text in photograph.texts))
        captions = {text: Caption(text, graph) for text, graph in zip(texts, graphs_of(texts, parse), strict=True)}
        self.options = [[captions[text] for text in photograph.texts] for photograph in kept]
        self.files = ImageFiles(images, [photograph.file for photograph in kept], resolution)

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        """Draw one of each image's captions, by the draw and the image's COCO id alone."""
        pairs = zip(indices, draws, strict=True)
        return [pick(self.options[index], draw, self.identities[index]) for index, draw in pairs]

    def texts_of(self, index: int) -> list[str]:
        return [caption.text for caption in self.options[index]]

    def texts(self) -> Iterator[str]:
        return all_texts(caption for options in self.options for caption in options)

    def counts(self) -> dict[str, int]:
        return {"images": len(self), "captions": sum(map(len, self.options))}

    def content(self) -> Iterator[str]:
        return (repr(part) for part in zip(self.identities, self.options, strict=True))


def select_photographs(
    photographs: Iterable[CocoImage], kept_out: KeptOut
) -> tuple[list[CocoImage], Counter[str], int]:
    """The photographs to use, without captions with HTML; numbers left out by reason; number of removed captions."""
    kept, left_out, refused = [], Counter[str](), 0
    for photograph in photographs:
        texts = [text for text in photograph.texts if not refusal(text)]
        reason = kept_out.reason(photograph.numbers)
        refused += 0 if reason else len(photograph.texts) - len(texts)
        if reason := reason or ("" if texts else f"{MARKUP_REASON} of all captions"):
            left_out[reason] += 1
        else:
            kept.append(photograph._replace(texts=texts))
    return kept, left_out, refused


def read_coco(path: Path) -> list[CocoImage]:
    """The images of a COCO file with their captions, in its order; raises if an image has no caption."""
    file = read_json_object(path)
    photographs = read_images(file)
    if not photographs:
        raise UserError(f"{path} has no images; get it again")
    for entry in file.rows("annotations"):
        identity, text = entry.field("image_id", int, str), entry.text("caption")
        if identity not in photographs:
            raise entry.error(f"has an 'image_id' that no image has: {identity!r}")
        photographs[identity].texts.append(text)
    bare = [photograph.identity for photograph in photographs.values() if not photograph.texts]
    if bare:
        problem = f"has no captions for {len(bare)} of {len(photographs)} images, the first has the 'id' {bare[0]!r}"
        raise UserError(f"{path} {problem}; take them out of 'images'")
    return list(photographs.values())


def read_images(file: FileRow) -> dict[int | str, CocoImage]:
    """The images of a file by id, without captions yet; raises if two have one id."""
    images: dict[int | str, CocoImage] = {}
    for entry in file.rows("images"):
        identity, name = entry.field("id", int, str), entry.field("file_name", str)
        if identity in images:
            raise entry.error(f"has the 'id' of an entry before it: {identity!r}")
        images[identity] = CocoImage(identity, name, [], photograph_numbers(name, entry))
    return images


def photograph_numbers(name: str, entry: FileRow) -> tuple[PhotographId, ...]:
    """The numbers of a photograph in COCO and on Flickr, if known; COCO's number is part of the file's name."""
    found = (coco_number(name), flickr_number(entry.content.get("flickr_url")))
    return tuple(number for number in found if number)


def open_place(place: Place) -> CocoCaptions:
    """Open the images of the training set of 2017."""
    place.kept_out.require(COCO)
    place.recipe(tuple(SOURCE.recipes))
    return CocoCaptions(place.path(ANNOTATIONS), place.path(IMAGES), place.resolution, place.parse, place.kept_out)


SOURCE = SourceSpec(
    name="coco",
    open=open_place,
    files=(ANNOTATIONS,),
    images=(FOLDER, IMAGES),
    image_folders=(IMAGES,),
    get="cocodataset.org, 2017 Train images and 2017 Train/Val annotations",
    licence="captions CC BY 4.0; images: Flickr's terms, see COCO",
    counts=((IMAGES, 118_287),),
)
