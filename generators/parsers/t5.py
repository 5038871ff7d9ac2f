"""Parses captions with a T5 that was trained to parse (Li et al. 2023, "FACTUAL"; OC-CLIP, A.3)."""

import contextlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import silence_loggers
from menagerie.envs.core.validation import COUNT
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_json import NotAGraph, make_graph, plain_graph
from menagerie.generators.parsers.parser import Parsed, Parser, try_parse
from menagerie.generators.parsers.registry import ParserSpec

VERSION = 1  # of the way in which facts are read
FACT = re.compile(r"\(([^()]*)\)")
BEHIND = {"in", "on", "with", "of", "at", "made", "covered", "full"}  # attributes that begin with these follow the noun


@dataclass(frozen=True)
class T5Options:
    """The options of the T5 parser."""

    model: str = "lizhuang144/flan-t5-base-VG-factual-sg"
    """A model on the Hugging Face hub, or its folder."""
    device: str = "cpu"
    """Device: cpu or cuda."""
    batch: Annotated[int, COUNT] = 32
    """Number of captions parsed together."""
    beams: Annotated[int, COUNT] = 5
    """Number of beams of the search."""


class FactualT5(Parser):
    """Makes graphs of the facts that the model writes."""

    def __init__(self, options: T5Options, model: Any) -> None:
        """`model` is a `factual_scene_graph.parser.scene_graph_parser.SceneGraphParser`, or has its interface."""
        self.options, self.model = options, model

    def identity(self) -> Mapping[str, Any]:
        return {"parser": "t5", "version": VERSION, "model": self.options.model, "beams": self.options.beams}

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        for start in range(0, len(captions), self.options.batch):
            batch = list(captions[start : start + self.options.batch])
            for caption, facts in zip(batch, self._facts(batch), strict=True):
                yield try_parse(caption, graph_of_facts, facts)

    def _facts(self, captions: Sequence[str]) -> list[str]:
        settings = {"beam_size": self.options.beams, "max_input_len": 128, "max_output_len": 256}
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # hide a progress bar for each batch
                return self.model.parse(captions, return_text=True, **settings)
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            raise UserError(
                f"FactualSceneGraph fails ({shorten_error(error)}); it needs transformers below 5"
            ) from error


def graph_of_facts(text: str) -> SceneGraph:
    """Make the graph of facts: nodes are objects with their attributes, edges are relations. Raises `NotAGraph` if the
    text has something other than facts, or none.

    The model doesn't number objects, so two objects of one name become one node.
    """
    facts = [[part.strip() for part in fact.split(",")] for fact in FACT.findall(text)]
    if FACT.sub("", text).strip(" ,") or any(len(fact) not in (1, 3) or not all(fact) for fact in facts):
        raise NotAGraph(f"no facts: {text[:60]!r}")
    attributes: dict[str, list[str]] = {}
    edges: dict[tuple[str, str, str], None] = {}
    for subject, *rest in facts:
        words = attributes.setdefault(subject, [])
        if rest and rest[0] == "is":
            words.append(rest[1])
        elif rest:
            attributes.setdefault(rest[1], [])
            edges[rest[0], subject, rest[1]] = None
    places = {name: place for place, name in enumerate(attributes)}
    ends = [(predicate, places[one], places[other]) for predicate, one, other in edges if one != other]
    return plain_graph(make_graph([describe_object(name, words) for name, words in attributes.items()], ends))


def describe_object(name: str, attributes: Sequence[str]) -> str:
    """Return the phrase of an object with its attributes: "2 brown cats", "woman in red"."""
    numbers = [one for one in attributes if one.isdigit()]
    behind = [one for one in attributes if one.split()[0] in BEHIND]
    before = [one for one in attributes if one not in (*numbers, *behind)]
    return " ".join([*numbers, *before, name, *behind])


def shorten_error(error: Exception) -> str:
    """The beginning of an error's text, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"


@silence_loggers()
def build(options: T5Options) -> FactualT5:
    try:
        from factual_scene_graph.parser.scene_graph_parser import SceneGraphParser
    except ImportError as error:
        way_out = "pip install 'binding-menagerie[factual]'"
        raise UserError(f"the parser t5 needs FactualSceneGraph ({shorten_error(error)}): {way_out}") from error
    try:
        model = SceneGraphParser(options.model, device=options.device)
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(
            f"the parser t5 can't load {options.model!r} ({shorten_error(error)}); give t5:model=FOLDER"
        ) from error
    return FactualT5(options, model)


PARSER = ParserSpec("t5", "a T5 trained on FACTUAL's scene graphs", build, T5Options)
