"""Parses files of captions."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import is_writable, write_text
from menagerie.envs.core.progress import progress_bars
from menagerie.generators.parsers.graph_json import as_json
from menagerie.generators.parsers.parser import CaptionParser, Unanswered
from menagerie.generators.parsers.registry import open_parser
from menagerie.generators.sources.rows import read_foreign_text

LONGEST = 2000  # characters of a caption


def parse_file(file: Path, parser: str, out: Path, parses: Path, allow_unanswered: bool) -> None:
    """Parse the captions in a file, print the results, and write the graphs to `out`.

    Slow parsers cache graphs in the folder `parses`. Raises `UserError` before parsing if `out` exists, it or `parses`
    can't be written, the captions can't be read or the parser can't run; later if parsing or writing fails, and, unless
    `allow_unanswered`, after the last caption if the parser gave no answer to some.
    """
    if out.exists():
        raise UserError(f"{out} is there already; choose another --out")
    if not is_writable(out.parent):
        raise UserError(f"{out} can't be written; choose another --out")
    captions = list(dict.fromkeys(captions_in_file(file)))
    opened = open_parser(parser, parses, allow_unanswered)
    try:
        parse_all(opened, captions)
    except Unanswered as error:
        raise UserError(f"{error}, or take them as one node with --allow-unanswered") from error
    counts = opened.counts()
    report = {
        "parser": opened.name,
        "identity": opened.identity(),
        "counts": {"captions": counts.captions, "parsed": counts.parsed, "fell_back": dict(counts.fell_back)},
        "graphs": [
            {"caption": caption, **as_json(opened.graph(caption)), "fell_back": opened.fell_back(caption)}
            for caption in captions
        ],
    }
    write_text(out, json.dumps({"parsers": [report]}, indent=1) + "\n")


def captions_in_file(path: Path) -> list[str]:
    """All captions of a COCO file (.json), or of a text file with one per line, in order. White space is normalised, as
    in training data. Raises `UserError` for a file without captions, and for a caption that is too long."""
    if path.suffix.lower() == ".json":
        from menagerie.generators.sources.coco import read_coco  # late, because it imports torch

        texts = [text for photograph in read_coco(path) for text in photograph.texts]
    else:
        texts = [" ".join(line.split()) for line in read_foreign_text(path).split("\n")]
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
