"""Texts of benchmarks as models read them: with only the words that a model knows, and perhaps cut."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographBenchmark
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import plain_word
from menagerie.generators.captions.templates import Caption
from menagerie.models.judges.judge import Judge
from menagerie.models.scorer import Scorer

NAMED = 5  # unknown words that a message names
SHOWN = 60  # characters of a text that pages show
NONE_SKIPPED = {"words": 0, "texts": 0, "records": 0}
"""Numbers of different words that were left out, of texts that had such words or were longer than the scorer reads, and
of tests that were left out because no word of a text was left."""


def readable_texts(
    bench: PhotographBenchmark, scorer: Scorer, skip: bool, model: str
) -> tuple[PhotographBenchmark, dict[str, int]]:
    """Return the benchmark in a scorer's words, and counts of what is left out. Raises for others unless `skip`."""
    if not (known := set(scorer.texts.words)):  # it reads any text
        return bench, NONE_SKIPPED
    texts = bench.texts
    unknown = Counter(word for text in texts for word in {*words_in(text.text)} - known)
    if unknown and not skip:
        affected = sum(not known.issuperset(words_in(text.text)) for text in texts)
        some = ", ".join(repr(word) for word, _ in unknown.most_common(NAMED))
        raise UserError(
            f"{model} doesn't know {len(unknown)} of the words of {bench.name} ({some}, …), which are in {affected} of "
            f"{len(texts)} texts; --unknown-words skip leaves them out, or choose a model that reads any text"
        )
    new = {text: shorten_text(text, known, scorer.texts.context - 1) for text in texts}
    changed = sum(new[text].text.split() != words_in(text.text) for text in texts)
    made = bench.reword(new)
    matrix = isinstance(bench, MatrixBenchmark)
    before, after = (its.tests().total() if matrix else len(its.items) for its in (bench, made))
    return made, {"words": len(unknown), "texts": changed, "records": before - after}


def words_in(text: str) -> list[str]:
    """Return the words of a text, without capitals and punctuation."""
    return list(filter(None, map(plain_word, text.split())))


def shorten_text(text: Caption, known: set[str], most: int) -> Caption:
    """Return a text with only its first `most` known words, and its graph with only known words."""
    plain = " ".join([word for word in words_in(text.text) if word in known][:most])
    nodes = [" ".join(word for word in words_in(node) if word in known) for node in text.graph.nodes]
    place = {old: new for new, old in enumerate(k for k, node in enumerate(nodes) if node)}
    edges = tuple(
        Edge(edge.predicate, place[edge.subject], place[edge.object])
        for edge in text.graph.edges
        if {edge.subject, edge.object} <= place.keys() and known.issuperset(edge.predicate.split())
    )
    return Caption(plain, SceneGraph(tuple(filter(None, nodes)), edges) if place else SceneGraph((plain,)))


def cut_record(scorer: Scorer | Judge, texts: Sequence[Caption]) -> dict[str, Any]:
    """Return how many texts are longer than the scorer's context, and the first; empty if its reader can't tell."""
    if isinstance(scorer, Judge):
        return {"texts": 0, "of": len(texts)}
    cut = scorer.cut_texts([text.text for text in texts], [text.graph for text in texts])
    if cut is None:
        return {}
    long = [text.text for text, is_cut in zip(texts, cut, strict=True) if is_cut]
    return {"texts": len(long), "of": len(texts), "context": scorer.texts.context, "first": long[0] if long else ""}


def unread_sentence(result: Mapping[str, Any]) -> str:
    """Say which texts of a result weren't read to their end; empty if all were."""
    parts = []
    if not (cut := result["cut"]):
        parts.append("its reader doesn't say which texts it cuts")
    elif cut["texts"]:
        first = cut["first"] if len(cut["first"]) <= SHOWN else f"{cut['first'][:SHOWN]}…"
        text = f"{cut['texts']} of {cut['of']} texts are longer than its {cut['context']} tokens, {first!r} first"
        parts.append(text)
    if short := result.get("skipped", {}).get("texts"):
        parts.append(f"{short} texts were shortened to words that it knows, and to as many as it reads")
    return "; ".join(parts)
