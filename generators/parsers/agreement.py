"""How far two parsers agree: things, attributes and relations of the captions that both parse."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_json import plain_phrase

COMPARED = ("nodes", "attributes", "edges")
# What follows one of these describes the noun before it: "woman in red", "cup of coffee".
BEHIND = ("in", "of", "with", "on", "at", "from", "for")


class Agreement(NamedTuple):
    """Of one kind, over all captions."""

    precision: float | None
    """Share of what the first parser gives that the second gives too; None where the first gives nothing."""
    recall: float | None
    """Share of what the second gives that the first gives too; None where the second gives nothing."""
    f1: float | None
    """None where neither gives anything."""


def agreement(pairs: Iterable[tuple[SceneGraph, SceneGraph]]) -> Mapping[str, Agreement]:
    """By kind: "nodes", "attributes" and "edges", and "graphs", of which all of it is the same.

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
