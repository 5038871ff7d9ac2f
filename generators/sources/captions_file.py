"""Parses files of captions, and measures how well two parsers agree on them."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import is_writable, write_text
from menagerie.envs.core.progress import progress_bars
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_json import as_json, plain_phrase
from menagerie.generators.parsers.parser import CaptionParser, Unanswered
from menagerie.generators.parsers.registry import names, open_parser
from menagerie.generators.sources.rows import read_text

KINDS = ("nodes", "attributes", "edges", "graphs")
# Words that begin a description after its noun: "woman in red", "cup of coffee".
BEHIND = ("in", "of", "with", "on", "at", "from", "for")


class Agreement(NamedTuple):
    """Agreement of two parsers on one kind of graph part, over all captions."""

    precision: float | None
    """Share of the first parser's parts that the second parser gives too; None if the first gives none."""
    recall: float | None
    """Share of the second parser's parts that the first parser gives too; None if the second gives none."""
    f1: float | None
    """Harmonic mean of precision and recall; None if neither parser gives any part."""


def agreement(pairs: Iterable[tuple[SceneGraph, SceneGraph]]) -> Mapping[str, Agreement]:
    """The agreement of two parsers by kind: "nodes", "attributes", "edges", and "graphs", which agree if all their
    parts do.

    Parts are as in SPICE (Anderson et al. 2016): a node is the noun of a phrase, an attribute a noun with its
    description, an edge its predicate with the nouns at both ends. Words must match exactly; repeated parts count
    repeatedly.
    """
    totals = {kind: [0, 0, 0] for kind in KINDS}  # common parts, those of the first graphs, those of the second
    for one, other in pairs:
        first, second = parts(one), parts(other)
        for kind, total in totals.items():
            counts = (first[kind] & second[kind], first[kind], second[kind])
            totals[kind] = [number + count.total() for number, count in zip(total, counts, strict=True)]
    return {
        kind: Agreement(ratio(both, first), ratio(both, second), ratio(2 * both, first + second))
        for kind, (both, first, second) in totals.items()
    }


def ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def parts(graph: SceneGraph) -> Mapping[str, Counter]:
    """The nouns, attributes and edges of a graph, with the number of times each occurs, and all of them as one part."""
    split = [list(taken_apart(node)) for node in graph.nodes]
    nouns = [words[0] for words in split]
    found = (
        Counter(nouns),
        Counter((words[0], word) for words in split for word in words[1:]),
        Counter((nouns[edge.subject], edge.predicate, nouns[edge.object]) for edge in graph.edges),
    )
    whole = Counter([tuple(frozenset(counts.items()) for counts in found)])
    return dict(zip(KINDS, (*found, whole), strict=True))


def taken_apart(phrase: str) -> Iterator[str]:
    """Split a phrase into noun and descriptions: "small brown cat" -> "cat", "small", "brown"; "woman in red" ->
    "woman", "in red"."""
    words = plain_phrase(phrase).split()
    end = next((k for k, word in enumerate(words) if k and word in BEHIND), len(words))
    yield words[end - 1] if words else ""
    yield from words[: end - 1]
    if words[end:]:
        yield " ".join(words[end:])


LONGEST = 2000  # characters of a caption


def parse_file(file: Path, parsers: Sequence[str], out: Path, parses: Path, allow_unanswered: bool) -> None:
    """Parse the captions in a file by one or two parsers, print the results, and write the graphs to `out`.

    Slow parsers cache graphs in the folder `parses`. Raises `UserError` before parsing if `out` exists, it or `parses`
    can't be written, the captions can't be read or a parser can't run; later if parsing or writing fails, and, unless
    `allow_unanswered`, after a parser's last caption if it gave no answer to some.
    """
    if not 0 < len(parsers) <= 2 or len(set(parsers)) < len(parsers):
        raise UserError(f"give --parser once, or twice with two different ones; there are {', '.join(names())}")
    if out.exists():
        raise UserError(f"{out} is there already; choose another --out")
    if not is_writable(out.parent):
        raise UserError(f"{out} can't be written; choose another --out")
    captions = read_captions(file)
    opened = [open_parser(text, parses, allow_unanswered) for text in parsers]
    for parser in opened:
        try:
            parse_all(parser, captions)
        except Unanswered as error:
            raise UserError(f"{error}, or take them as one node with --allow-unanswered") from error
    if len(opened) == 2:
        print_agreement(*compared(opened, captions))
    content = {"parsers": [section(parser, captions) for parser in opened]}
    write_text(out, json.dumps(content, indent=1) + "\n")


def read_captions(path: Path) -> list[str]:
    """The distinct captions of a file, in order (`texts_in`)."""
    return list(dict.fromkeys(texts_in(path)))


def texts_in(path: Path) -> list[str]:
    """All captions of a COCO file (.json), or of a text file with one per line, in order.

    White space is normalised, as in training data, and empty lines are skipped. Raises `UserError` for a file without
    captions, and for a caption that is too long.
    """
    if path.suffix.lower() == ".json":
        from menagerie.generators.sources.coco import read_photographs  # late, because it imports torch

        texts = [text for photograph in read_photographs(path) for text in photograph.texts]
    else:
        texts = [" ".join(line.split()) for line in read_text(path).split("\n")]
    captions = list(filter(None, texts))
    if not captions:
        raise UserError(f"{path} has no captions; write one a line, or give a COCO file")
    long = next((text for text in captions if len(text) > LONGEST), None)
    if long is not None:
        raise UserError(f"{path}: a caption has {len(long)} characters, {long[:40]!r}…; write one caption a line")
    return captions


def parse_all(parser: CaptionParser, captions: Sequence[str]) -> None:
    """Parse captions with a progress bar, and print the results and the cost, even if parsing raises."""
    try:
        with progress_bars(parser.name) as progress:
            parser.parse(captions, partial(progress, parser.name))
    finally:
        spent = [f"{number} {what.replace('_', ' ')}" for what, number in parser.parser.spent().items()]
        print("; ".join([f"{parser.name}: {parser.counts().text}", *([", ".join(spent)] if spent else [])]), flush=True)


def compared(parsers: Sequence[CaptionParser], captions: Sequence[str]) -> tuple[int, Mapping[str, Agreement]]:
    """The number of captions that both parsers parse, and the parsers' agreement on these."""
    both = [caption for caption in captions if not any(parser.fell_back(caption) for parser in parsers)]
    one, other = parsers
    return len(both), agreement((one.graph(caption), other.graph(caption)) for caption in both)


def print_agreement(captions: int, kinds: Mapping[str, Agreement]) -> None:
    """Print a table of the first parser's parts compared with the second parser's."""
    print(f"agreement of the first with the second, on {captions} captions that both parse:")
    print(f"{'':<12}{'precision':>10}{'recall':>10}{'F1':>10}")
    for kind, values in kinds.items():
        print(f"{kind:<12}" + "".join(f"{'-' if value is None else format(value, '.3f'):>10}" for value in values))


def section(parser: CaptionParser, captions: Sequence[str]) -> dict[str, Any]:
    """The part of the output file about one parser: its graphs, identity and counts."""
    counts = parser.counts()
    return {
        "parser": parser.name,
        "identity": parser.identity(),
        "counts": {"captions": counts.captions, "parsed": counts.parsed, "fell_back": dict(counts.fell_back)},
        "graphs": [
            {"caption": caption, **as_json(parser.graph(caption)), "fell_back": parser.fell_back(caption)}
            for caption in captions
        ],
    }
