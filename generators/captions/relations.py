"""The predicates that captions state, and what graphs imply."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, pairwise, product, takewhile

from menagerie.envs.relations import RELATIONS, relation_from
from menagerie.envs.world import World
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import plural
from menagerie.generators.vocabulary import Vocabulary


@cache
def converses() -> dict[str, str]:
    """Each predicate of `RELATIONS`, with that which says the same of the two objects in the opposite order."""
    return {one: other for its in RELATIONS.values() for one, other in (its.predicates, its.predicates[::-1])}


def canonical_edge(edge: Edge) -> Edge:
    """An edge in canonical form: "b to the right of a" becomes "a to the left of b"."""
    other = converses().get(edge.predicate, edge.predicate)
    return Edge(other, edge.object, edge.subject) if other < edge.predicate else edge


def compound_names(world: World | Vocabulary) -> frozenset[str]:
    """Return the animals, plurals and backgrounds of a world that have several words. Phrases can't shorten them: a sea
    lion is no lion."""
    nouns = (*world.animals, *map(plural, world.animals), *world.backgrounds)
    return frozenset(noun for noun in nouns if " " in noun)


def claims(graph: SceneGraph, names: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return all statements that `graph` implies, as texts in a canonical form.

    They are its nodes, and its edges with phrases in place of indices: "b to the right of a" becomes "a to the left of
    b". A phrase implies its shorter forms: a small red cat is a small cat, a red cat and a cat. Every word but the last
    may be dropped, except within `names` (`compound_names`). Use it only for captions of
    worlds, whose words are known; phrases of other captions are compared whole. Graphs of worlds have no phrase twice.
    """
    claimed = {less for node in graph.nodes for less in shorter_forms(node, names)}
    for predicate, *ends in map(canonical_edge, graph.edges):
        both = product(*(shorter_forms(graph.nodes[end], names) for end in ends))
        claimed.update(f"{one} {predicate} {other}" for one, other in both)
    return frozenset(claimed)


@cache
def shorter_forms(text: str, names: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return a phrase and its shorter forms: "red cat" gives "red cat" and "cat".

    Any of the words before the last one, or before the one of `names` at the end, may be missing. A negation ("no red
    cat") can't be shortened.
    """
    if text.startswith("no "):
        return frozenset({text})
    words = text.split()
    start = next((k for k in range(len(words)) if " ".join(words[k:]) in names), len(words) - 1)
    kept = (some for number in range(start + 1) for some in combinations(words[:start], number))
    return frozenset(" ".join((*some, *words[start:])) for some in kept)


def chain(slots: Sequence[str], relations: int) -> tuple[str, ...]:
    """Return the predicates that a caption of objects in these slots states, at most `relations`, each between an
    object and the next. It ends before two slots that have no relation."""
    both = pairwise(slots[: min(relations, len(slots) - 1) + 1])
    return tuple(takewhile(bool, (predicate(*slots) for slots in both)))


def predicate(subject: str, other: str) -> str:
    """Return the predicate that relates an object in slot `subject` to one in slot `other`; "" if there is none."""
    if name := relation_from(subject, other):
        return RELATIONS[name].predicates[0]
    return RELATIONS[name].predicates[1] if (name := relation_from(other, subject)) else ""
