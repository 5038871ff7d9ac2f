"""What a language model is asked for a caption, and the strict reading of what it answers."""

import json
from typing import Any

from menagerie.envs.core.reading import Unreadable, parse_json
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_json import NotAGraph, checked, plain_graph

OPEN, CLOSE = "[ANS]", "[/ANS]"
LONGEST = 50_000  # characters of an answer
MOST_REPEATED = 4000  # characters of one that is sent back
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

"entities" lists the things that the caption mentions, each once, in the order of mention. An entity is a noun phrase in
the caption's own words: with its adjectives, its number, its material and what it wears, without the article before
it. Name the same thing once, also where the caption comes back to it with a pronoun. List two things of one kind twice
only where the caption tells them apart. Where the caption says that there is no cat, "no cat" is an entity without
relationships.

"relationships" lists every relation that the caption states between two different entities: where one is to the other,
what one does to the other, what one has or is part of. "relationship" has the caption's words for it, verb and
preposition together ("lying on", "to the left of"). "subject" and "object" are places in the list of entities, counted
from 0, and differ: the sentence "SUBJECT relationship OBJECT" must say what the caption says. "and" is no
relationship, and neither is what things do to each other within one entity.

Answer with one JSON object between {OPEN} and {CLOSE}, once, and with nothing else between these marks."""
AGAIN = f"That answer can't be used: {{problem}}. Answer again for the same caption, between {OPEN} and {CLOSE}."


def prompt() -> list[dict[str, str]]:
    """The messages before the caption: rules and examples."""
    messages = [{"role": "system", "content": RULES}]
    for caption, answer in EXAMPLES:
        messages.append(question(caption))
        messages.append({"role": "assistant", "content": f"{OPEN}{json.dumps(answer)}{CLOSE}"})
    return messages


def question(caption: str) -> dict[str, str]:
    """The message with a caption; whatever the caption says is data, behind its mark."""
    return {"role": "user", "content": f"Caption: {caption}"}


def correction(answer: str, problem: str) -> list[dict[str, str]]:
    """The messages after an answer that can't be used; of a long one its beginning."""
    return [
        {"role": "assistant", "content": answer[:MOST_REPEATED]},
        {"role": "user", "content": AGAIN.format(problem=problem)},
    ]


def read_answer(text: str) -> SceneGraph:
    """The graph in an answer; raises `NotAGraph` for anything but one JSON object of the described form."""
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
    return graph_of(content)


def graph_of(content: Any) -> SceneGraph:
    """The graph that an answer's JSON states."""
    if not isinstance(content, dict) or content.keys() != {"entities", "relationships"}:
        raise NotAGraph("keys: it isn't one object with 'entities' and 'relationships' alone")
    entities, relationships = content["entities"], content["relationships"]
    if not isinstance(entities, list) or not isinstance(relationships, list):
        raise NotAGraph("lists: 'entities' or 'relationships' is none")
    if not all(isinstance(relation, dict) and relation.keys() == KEYS for relation in relationships):
        raise NotAGraph("keys: a relationship has others than 'relationship', 'subject' and 'object'")
    edges = [(relation["relationship"], relation["subject"], relation["object"]) for relation in relationships]
    return plain_graph(checked(entities, edges))
