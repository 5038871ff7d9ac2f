"""The false captions of a source of photographs, as --false-captions names them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import digest
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.false_captions.files import read_false_captions, write_false_captions
from menagerie.generators.false_captions.loaded import LOADED
from menagerie.generators.false_captions.made import DEFAULTS, WAYS, Made, make_false_captions
from menagerie.generators.false_captions.photographs import FalselyCaptioned
from menagerie.generators.false_captions.published import PUBLISHED, read_published
from menagerie.generators.false_captions.record import PART, VERSION, FalseCaption
from menagerie.generators.parsers.registry import open_parser
from menagerie.generators.sources.photographs import Photographs
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.texts import graphs_of

MADE, PARTS, LINES = "made", "parts", ".jsonl"
PARSER = "spacy-rules"
PART_WAYS = ("replace attribute", "replace object", "replace relation")
Images = Sequence[tuple[str, Sequence[str]]]


class Given(NamedTuple):
    """What a text of --false-captions names: a file of lines, or a published one, or ways to make them."""

    file: Path | None = None
    published: str = ""
    ways: tuple[str, ...] = ()


def read_given(text: str) -> Given:
    """Read "made", "made:WAY,WAY", a name of `PUBLISHED`, or a path of JSON lines; raises `UserError` for others."""
    if text.endswith(LINES):
        return Given(file=Path(text))
    name, _, ways = text.partition(":")
    if name != MADE:
        return Given(published=choose("file of false captions", text, (*PUBLISHED, MADE)))
    known = (*WAYS, *LOADED, PARTS)
    return Given(
        ways=tuple(choose("way of false captions", way.strip(), known) for way in ways.split(",")) if ways else DEFAULTS
    )


def gather(
    whole: Photographs,
    given: Iterable[str],
    place: Place,
    parses: Path,
    report: Callable[[str, Made], None] | None = None,
) -> FalselyCaptioned:
    """Read or make the false captions of a source. Those made are kept below `parses`.

    `report` gets each text and what it gave; for its sake they are made again, which tells what was refused.
    """
    parsed, false, loaded = {text: read_given(text) for text in given}, list[FalseCaption](), list[str]()
    for text, its in parsed.items():
        if its.file:
            lines = read_false_captions(its.file)
            made = Made(lines, Counter(), len({line[:2] for line in lines}))
        elif its.published:
            made = read_published(its.published, place)
        else:
            loaded += [way for way in its.ways if way in LOADED]
            made = make_kept(whole, [way for way in its.ways if way not in LOADED], parses, report is not None)
        false += made.captions
        if report and (made.captions or made.refused):
            report(text, made)
    return FalselyCaptioned(whole, false, loaded)


def make_kept(whole: Photographs, ways: Sequence[str], parses: Path, anew: bool) -> Made:
    """Make false captions of a source's captions, or read those that were kept; none if captions are made anew in each
    step."""
    if not (ways and whole.listed):
        return Made([], Counter(), 0)
    images = [(name, list(whole.texts_of(k))) for k, name in enumerate(whole.names_of_images)]
    file = parses / "false-captions" / f"{digest({'images': images, 'ways': list(ways), 'version': VERSION})}{LINES}"
    if file.is_file() and not anew:
        return Made(read_false_captions(file), Counter(), sum(len(texts) for _, texts in images))
    parser = open_parser(PARSER, parses)
    made = make_false_captions(images, [way for way in ways if way != PARTS], parser)
    if PARTS in ways:
        parts = make_parts(images, parser)
        made = Made([*made.captions, *parts.captions], made.refused + parts.refused, made.considered)
    write_false_captions(file, made.captions)
    return made


def make_parts(images: Images, parse: Callable[[str], SceneGraph]) -> Made:
    """Make false versions of parts of captions: of the nodes of their graphs, and of two nodes with their relation. One
    is refused if a caption of the image or another part says so."""
    texts = list(dict.fromkeys(text for _, captions in images for text in captions))
    graphs = dict(zip(texts, graphs_of(texts, parse), strict=True))
    by_image = {image: dict(part for text in captions for part in parts_of(graphs[text])) for image, captions in images}
    # With a full stop, since a text that is the only node of its graph counts as one that wasn't parsed.
    known = {f"{part}.": graph for parts in by_image.values() for part, graph in parts.items()} | graphs
    both = [(image, [*(f"{part}." for part in by_image[image]), *captions]) for image, captions in images]
    made = make_false_captions(both, PART_WAYS, known.__getitem__)
    kept = [
        one._replace(caption=one.caption[:-1], how=PART + one.how, text=one.text[:-1])
        for one in made.captions
        if one.caption[:-1] in by_image[one.image] and one.caption not in graphs
    ]
    refused = Counter({(PART + way, reason): number for (way, reason), number in made.refused.items()})
    return Made(kept, refused, sum(map(len, by_image.values())))


def parts_of(graph: SceneGraph) -> Iterable[tuple[str, SceneGraph]]:
    """Yield the parts of a caption, each with its graph; none of a graph that is the whole caption."""
    if len(graph.nodes) < 2:
        return
    yield from ((node, SceneGraph((node,))) for node in graph.nodes)
    for edge in graph.edges:
        two = graph.nodes[edge.subject], graph.nodes[edge.object]
        yield f"{two[0]} {edge.predicate} {two[1]}", SceneGraph(two, (edge._replace(subject=0, object=1),))


def check_file_there(text: str) -> None:
    """Raise unless a text of --false-captions names something, and its file exists."""
    file = read_given(text).file
    if file and not file.is_file():
        raise UserError(f"--false-captions {text}: there is no such file; menagerie false-captions writes one")


def resolve_given(text: str) -> str:
    """Return the text with the absolute path of its file, if it is one."""
    file = read_given(text).file
    return str(file.resolve()) if file else text
