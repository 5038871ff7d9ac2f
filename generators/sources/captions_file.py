"""Files of captions alone: their graphs as one file, and how far two parsers agree on them."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text
from menagerie.envs.core.progress import progress_bars
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_json import as_json, plain_phrase
from menagerie.generators.parsers.parser import CaptionParser, Unanswered
from menagerie.generators.parsers.registry import names, open_parser
from menagerie.generators.sources.json_file import read_text

COMPARED = ("nodes", "attributes", "edges")
# What follows one of these describes the noun before it: "woman in red", "cup of coffee".
BEHIND = ("in", "of", "with", "on", "at", "from", "for")


class Agreement(NamedTuple):
    """How far two parsers agree on one kind of graph part, over all captions."""

    precision: float | None
    """Share of what the first parser gives that the second gives too; None where the first gives nothing."""
    recall: float | None
    """Share of what the second gives that the first gives too; None where the second gives nothing."""
    f1: float | None
    """The harmonic mean of both; None where neither parser gives anything."""


def agreement(pairs: Iterable[tuple[SceneGraph, SceneGraph]]) -> Mapping[str, Agreement]:
    """The agreement of two parsers by kind: "nodes", "attributes", "edges", and "graphs", which agree if all their
    parts do.

    As SPICE takes graphs apart (Anderson et al. 2016): a node is the noun of a phrase, an attribute a noun with what
    describes it, an edge its predicate with the nouns at both ends. All words must be equal; what stands twice in a
    graph is counted twice.
    """
    totals = {kind: [0, 0, 0] for kind in (*COMPARED, "graphs")}
    for one, other in pairs:
        first, second = parts(one), parts(other)
        for kind in COMPARED:
            add(totals[kind], first[kind], second[kind])
        add(totals["graphs"], *(Counter([whole(kinds)]) for kinds in (first, second)))
    return {kind: scored(*counts) for kind, counts in totals.items()}


def whole(kinds: Mapping[str, Counter]) -> tuple[frozenset, ...]:
    """All of a graph, to be compared at once."""
    return tuple(frozenset(kinds[kind].items()) for kind in COMPARED)


def add(totals: list[int], first: Counter, second: Counter) -> None:
    """Add what both have, what the first has, and what the second has."""
    for k, counts in enumerate((first & second, first, second)):
        totals[k] += counts.total()


def scored(both: int, first: int, second: int) -> Agreement:
    """Fractions of numbers."""
    return Agreement(
        both / first if first else None,
        both / second if second else None,
        2 * both / (first + second) if first + second else None,
    )


def parts(graph: SceneGraph) -> Mapping[str, Counter]:
    """The nouns, attributes and edges of a graph, with how often it has each."""
    split = [list(taken_apart(node)) for node in graph.nodes]
    nouns = [words[0] for words in split]
    return {
        "nodes": Counter(nouns),
        "attributes": Counter((words[0], word) for words in split for word in words[1:]),
        "edges": Counter((nouns[edge.subject], edge.predicate, nouns[edge.object]) for edge in graph.edges),
    }


def taken_apart(phrase: str) -> Iterator[str]:
    """ "small brown cat" -> "cat", "small", "brown"; "woman in red" -> "woman", "in red"."""
    words = plain_phrase(phrase).split()
    end = next((k for k, word in enumerate(words) if k and word in BEHIND), len(words))
    yield words[end - 1] if words else ""
    yield from words[: end - 1]
    if words[end:]:
        yield " ".join(words[end:])


LONGEST = 2000  # characters of a caption


def parse_file(file: Path, parsers: Sequence[str], out: Path, parses: Path, allow_unanswered: bool) -> None:
    """Parse the captions of a file by one parser or two, print how that went, and write the graphs to `out`.

    Graphs are kept in the folder `parses`, for the next time. Raises `UserError` for whatever can't be parsed with or
    written to, before anything is parsed; for captions without an answer, after all others are parsed.
    """
    if not 0 < len(parsers) <= 2 or len(set(parsers)) < len(parsers):
        raise UserError(f"give --parser once, or twice with two different ones; there are {', '.join(names())}")
    if out.exists():
        raise UserError(f"{out} is there already; choose another --out")
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
    """The distinct captions of a file in its order: of a COCO file (.json), else one a line.

    White space is normalised, as training data normalises it; empty lines are none. Raises `UserError` for a file
    without captions, or with one too long to be one.
    """
    if path.suffix.lower() == ".json":
        from menagerie.generators.sources.coco import read_photographs  # which imports torch

        texts = [text for photograph in read_photographs(path) for text in photograph.texts]
    else:
        texts = [" ".join(line.split()) for line in read_text(path).split("\n")]
    captions = list(dict.fromkeys(filter(None, texts)))
    if not captions:
        raise UserError(f"{path} has no captions; write one a line, or give a COCO file")
    long = next((text for text in captions if len(text) > LONGEST), None)
    if long is not None:
        raise UserError(f"{path}: a caption has {len(long)} characters, {long[:40]!r}…; write one caption a line")
    return captions


def parse_all(parser: CaptionParser, captions: Sequence[str]) -> None:
    """Parse captions with a bar, and print how many could be and what it took, also where some could not."""
    try:
        with progress_bars(parser.name) as progress:
            parser.parse(captions, partial(progress, parser.name))
    finally:
        spent = [f"{number} {what.replace('_', ' ')}" for what, number in parser.parser.spent().items()]
        print("; ".join([f"{parser.name}: {parser.counts().text}", *([", ".join(spent)] if spent else [])]), flush=True)


def compared(parsers: Sequence[CaptionParser], captions: Sequence[str]) -> tuple[int, Mapping[str, Agreement]]:
    """How many captions both of two parsers parse, and how far they agree on these."""
    both = [caption for caption in captions if not any(parser.fell_back(caption) for parser in parsers)]
    one, other = parsers
    return len(both), agreement((one.graph(caption), other.graph(caption)) for caption in both)


def print_agreement(captions: int, kinds: Mapping[str, Agreement]) -> None:
    """A table: what the first parser gives, measured against what the second gives."""
    print(f"agreement of the first with the second, on {captions} captions that both parse:")
    print(f"{'':<12}{'precision':>10}{'recall':>10}{'F1':>10}")
    for kind, values in kinds.items():
        print(f"{kind:<12}" + "".join(f"{'-' if value is None else format(value, '.3f'):>10}" for value in values))


def section(parser: CaptionParser, captions: Sequence[str]) -> dict[str, Any]:
    """The graphs of one parser, with its identity and counts."""
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
