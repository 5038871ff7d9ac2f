"""Texts that a model doesn't read to their end: counted for results, and named by pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from menagerie.generators.captions.templates import Caption
from menagerie.models.scorer import Scorer

SHOWN = 60  # characters of a text that pages name


def cut_record(scorer: Scorer, texts: Sequence[Caption]) -> dict[str, Any]:
    """Count the texts that are longer than the scorer's context, for a result; also gives the first. Empty if the
    scorer's reader can't tell."""
    cut = scorer.cut_texts([text.text for text in texts], [text.graph for text in texts])
    if cut is None:
        return {}
    long = [text.text for text, is_cut in zip(texts, cut, strict=True) if is_cut]
    return {"texts": len(long), "of": len(texts), "context": scorer.texts.context, "first": long[0] if long else ""}


def unread_texts(results: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """For each result by name whose texts weren't all read whole, the sentence for pages."""
    said = {name: words_of(result) for name, result in results.items()}
    return {name: text for name, text in said.items() if text}


def words_of(result: Mapping[str, Any]) -> str:
    """Say for pages which texts of a result weren't read whole; empty if all were."""
    parts = []
    if not (cut := result["cut"]):
        parts.append("its reader doesn't say which texts it cuts")
    elif cut["texts"]:
        first = cut["first"] if len(cut["first"]) <= SHOWN else f"{cut['first'][:SHOWN]}…"
        parts.append(
            f"{cut['texts']} of {cut['of']} texts are longer than its {cut['context']} tokens, {first!r} first"
        )
    if short := result.get("skipped", {}).get("texts"):
        parts.append(f"{short} texts were shortened to words that it knows, and to as many as it reads")
    return "; ".join(parts)
