"""Texts of benchmarks for scorers with a vocabulary of their own: unknown words are refused, or left out."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographSet
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import plain_word
from menagerie.generators.captions.templates import Caption

NAMED = 5  # unknown words that a message names


class Skipped(NamedTuple):
    """What was left out of a benchmark's texts; all 0 for a scorer that reads any word."""

    words: int = 0
    """Different words."""
    texts: int = 0
    """Texts that have any of them, or are longer than the scorer reads."""
    records: int = 0
    """Tests of which a text has no word left."""


def readable(
    bench: PhotographSet, words: Sequence[str], context: int, skip: bool, model: str
) -> tuple[PhotographSet, Skipped]:
    """A benchmark whose texts a scorer of these words reads, and what was left out for that.

    Without `skip` a word that it doesn't know raises, with how many there are. No words: it reads any.
    """
    if not words:
        return bench, Skipped()
    known = set(words)
    texts = bench.texts
    unknown = Counter(word for text in texts for word in set(words_in(text.text)) if word not in known)
    if unknown and not skip:
        affected = sum(any(word not in known for word in words_in(text.text)) for text in texts)
        some = ", ".join(repr(word) for word, _ in unknown.most_common(NAMED))
        raise UserError(
            f"{model} doesn't know {len(unknown)} of the words of {bench.name} ({some}, …), which {affected} of "
            f"{len(texts)} texts have; --unknown-words skip leaves them out, or choose a model that reads any text"
        )
    new = {text: shortened(text, known, context - 1) for text in texts}
    changed = sum(new[text].text.split() != words_in(text.text) for text in texts)
    made = bench.reworded(new)
    return made, Skipped(len(unknown), changed, tests_of(bench) - tests_of(made))


def tests_of(bench: PhotographSet) -> int:
    """The number of tests of a benchmark."""
    return bench.tests().total() if isinstance(bench, MatrixBenchmark) else len(bench.items)


def words_in(text: str) -> list[str]:
    """The words of a text, without capitals and punctuation."""
    return list(filter(None, map(plain_word, text.split())))


def shortened(text: Caption, known: set[str], most: int) -> Caption:
    """A text and its graph with the first `most` known words alone."""
    plain = " ".join([word for word in words_in(text.text) if word in known][:most])
    return Caption(plain, pruned(text.graph, known) or SceneGraph((plain,)))


def pruned(graph: SceneGraph, known: set[str]) -> SceneGraph | None:
    """A graph whose nodes and predicates have known words alone; None where no node is left."""
    nodes = [" ".join(word for word in words_in(node) if word in known) for node in graph.nodes]
    place = {old: new for new, old in enumerate(k for k, node in enumerate(nodes) if node)}
    edges = tuple(
        Edge(edge.predicate, place[edge.subject], place[edge.object])
        for edge in graph.edges
        if {edge.subject, edge.object} <= place.keys() and all(word in known for word in edge.predicate.split())
    )
    return SceneGraph(tuple(filter(None, nodes)), edges) if place else None
