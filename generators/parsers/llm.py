"""Parses captions with a language model on any server of the OpenAI protocol (OC-CLIP, A.3 and A.6).

The file begins with the prompt and the strict reading of answers.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable, parse_json
from menagerie.envs.core.validation import POSITIVE, Range
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.chat_server import ChatServer, NoAnswer, key_in
from menagerie.generators.parsers.graph_json import NotAGraph, make_graph, plain_graph
from menagerie.generators.parsers.parallel_requests import ParallelRequests
from menagerie.generators.parsers.parser import Parsed
from menagerie.generators.parsers.registry import ParserSpec
from menagerie.generators.parsers.reply import read_reply

OPEN, CLOSE = "[ANS]", "[/ANS]"
LONGEST = 50_000  # characters of an answer
MOST_REPEATED = 4000  # characters of an answer that is sent back
KEYS = {"relationship", "subject", "object"}
EXAMPLES = (
    (
        "A brown dog sleeps on a red couch next to a small white lamp",
        {
            "entities": ["brown dog", "red couch", "small white lamp"],
            "relationships": [
                {"relationship": "sleeps on", "subject": 0, "object": 1},
                {"relationship": "next to", "subject": 1, "object": 2},
            ],
        },
    ),
    (
        "Two girls in yellow raincoats, and a boy with an umbrella",
        {
            "entities": ["two girls in yellow raincoats", "boy", "umbrella"],
            "relationships": [{"relationship": "with", "subject": 1, "object": 2}],
        },
    ),
    ("There is no cat in the kitchen.", {"entities": ["no cat", "kitchen"], "relationships": []}),
)
RULES = f"""You turn captions of images into scene graphs.

"entities" lists the objects that the caption mentions, each once, in the order of mention. An entity is a noun phrase
in the caption's own words: with its adjectives, its number, its material and what it wears, without the article before
it. Name the same object once, also where the caption comes back to it with a pronoun. List two objects of one kind
twice only where the caption tells them apart. Where the caption says that there is no cat, "no cat" is an entity
without relationships.

"relationships" lists every relation that the caption states between two different entities: where one is to the other,
what one does to the other, what one has or is part of. "relationship" has the caption's words for it, verb and
preposition together ("lying on", "to the left of"). "subject" and "object" are places in the list of entities, counted
from 0, and differ: the sentence "SUBJECT relationship OBJECT" must say what the caption says. "and" is no
relationship, and neither is what objects do to each other within one entity.

Answer with one JSON object between {OPEN} and {CLOSE}, once, and with nothing else between these marks."""
AGAIN = f"That answer can't be used: {{problem}}. Answer again for the same caption, between {OPEN} and {CLOSE}."


def prompt() -> list[dict[str, str]]:
    """The messages before the caption: rules and examples."""
    messages = [{"role": "system", "content": RULES}]
    for caption, answer in EXAMPLES:
        messages.append(caption_message(caption))
        messages.append({"role": "assistant", "content": f"{OPEN}{json.dumps(answer)}{CLOSE}"})
    return messages


def caption_message(caption: str) -> dict[str, str]:
    """Make the message with a caption. It marks the caption as data, whatever the caption says."""
    return {"role": "user", "content": f"Caption: {caption}"}


def read_graph(text: str) -> SceneGraph:
    """The graph in an answer. Raises `NotAGraph` unless one JSON object of the prompt's form is between the marks."""
    if len(text) > LONGEST:
        raise NotAGraph(f"too large: an answer of {len(text)} characters")
    inside, closed, _ = text.partition(OPEN)[2].partition(CLOSE)
    if not closed or text.count(OPEN) != 1 or text.count(CLOSE) != 1:
        found = f"{text.count(OPEN)} {OPEN} and {text.count(CLOSE)} {CLOSE}"
        raise NotAGraph(f"marks: {found}, there must be one of the first and then one of the second")
    try:
        content = parse_json(inside, "an answer")
    except Unreadable as error:
        raise NotAGraph(f"no JSON: {error}") from error
    return graph_of_answer(content)


def graph_of_answer(content: Any) -> SceneGraph:
    """Make the graph that an answer's JSON states. Raises `NotAGraph` for another form."""
    if not isinstance(content, dict) or content.keys() != {"entities", "relationships"}:
        raise NotAGraph("keys: it isn't one object with 'entities' and 'relationships' alone")
    entities, relationships = content["entities"], content["relationships"]
    if not isinstance(entities, list) or not isinstance(relationships, list):
        raise NotAGraph("lists: 'entities' or 'relationships' is none")
    if not all(isinstance(relation, dict) and relation.keys() == KEYS for relation in relationships):
        raise NotAGraph("keys: a relationship has others than 'relationship', 'subject' and 'object'")
    edges = [(relation["relationship"], relation["subject"], relation["object"]) for relation in relationships]
    return plain_graph(make_graph(entities, edges))


VERSION = 2  # of the way in which answers are read


@dataclass(frozen=True)
class LLMOptions:
    """The options of a language model."""

    model: str = ""
    """Name of the model on the server; required."""
    url: str = "http://localhost:8000/v1"
    """Address of the server."""
    key: str = ""
    """Name of the environment variable that holds the server's key, such as OPENAI_API_KEY."""
    concurrency: Annotated[int, POSITIVE] = 16
    """Number of requests sent at the same time."""
    timeout: Annotated[float, Range(0.1, 10**6)] = 60.0
    """Seconds for one request."""
    attempts: Annotated[int, POSITIVE] = 5
    """Number of times a request is sent before it fails."""
    answers: Annotated[int, POSITIVE] = 3
    """Number of answers that the model may give for a caption until one is usable."""
    tokens: Annotated[int, POSITIVE] = 1024
    """Length of the longest answer, in tokens."""


class LanguageModel:
    """Asks a model for the graph of each caption, several at a time, at temperature 0. An unusable answer is sent back
    with its problem. After `concurrency` captions in a row without an answer no more requests are sent."""

    def __init__(self, options: LLMOptions, server: ChatServer) -> None:
        self.options, self.server = options, server

    def identity(self) -> Mapping[str, Any]:
        """The model, `answers`, `tokens`, the messages before the caption and the version of reading; no address."""
        options = {"model": self.options.model, "answers": self.options.answers, "tokens": self.options.tokens}
        return {"parser": "llm", "version": VERSION, **options, "prompt": prompt()}

    def spent(self) -> Mapping[str, int]:
        """Numbers of requests, of repeated requests, and of tokens as the server counts them."""
        return dict(self.server.counts)

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        """Yield the result for each caption as soon as it is answered or given up."""
        requests = ParallelRequests(self.options.concurrency)
        return requests.each(lambda caption: self._parsed(caption, requests), captions)

    def _parsed(self, caption: str, requests: ParallelRequests) -> Parsed:
        messages, problem = [*prompt(), caption_message(caption)], ""
        settings = {"model": self.options.model, "temperature": 0, "max_tokens": self.options.tokens}
        for _ in range(self.options.answers):
            try:
                reply = self.server.chat({**settings, "messages": messages}, requests.stopped, read_reply)
            except NoAnswer as error:
                requests.note(answered=False)
                return Parsed(caption, None, str(error), answered=False)
            requests.note(answered=True)
            try:
                return Parsed(caption, read_graph(reply.text))
            except NotAGraph as error:
                problem = f"cut off: it hasn't ended after {self.options.tokens} tokens" if reply.cut else str(error)
                if not reply.text:  # nothing to send back
                    break
                messages.append({"role": "assistant", "content": reply.text[:MOST_REPEATED]})
                messages.append({"role": "user", "content": AGAIN.format(problem=problem)})
        return Parsed(caption, None, problem)


def build(options: LLMOptions) -> LanguageModel:
    """Check the options and make the parser. Sends no request."""
    if not options.model:
        raise UserError("the parser llm needs the name of a model: llm:model=NAME,url=http://HOST:PORT/v1")
    server = ChatServer(options.url, key_in(options.key), options.timeout, options.attempts)
    return LanguageModel(options, server)


PARSER = ParserSpec("llm", "a language model behind a server of the OpenAI protocol, such as vLLM", build, LLMOptions)
