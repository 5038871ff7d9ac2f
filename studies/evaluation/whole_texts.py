"""Texts that a model doesn't read to their end, or not all words of: how many there were of a benchmark."""

from collections.abc import Mapping, Sequence
from typing import Any

from menagerie.generators.captions.templates import Caption
from menagerie.models.scorer import Scorer

SHOWN = 60  # characters of a text that reports name


def cut_record(scorer: Scorer, texts: Sequence[Caption]) -> dict[str, Any]:
    """What a result says of texts that the scorer cuts at its context: how many, of how many, and the first; nothing
    where its reader can't tell."""
    cut = scorer.cut_texts([text.text for text in texts], [text.graph for text in texts])
    if cut is None:
        return {}
    long = [text.text for text, its in zip(texts, cut, strict=True) if its]
    return {"texts": len(long), "of": len(texts), "context": scorer.texts.context, "first": long[0] if long else ""}


def unread_texts(results: Sequence[Mapping[str, Any]], what: str) -> dict[str, str]:
    """What reports say of each model and what it was scored on, a key of its result, where not all was read."""
    said = {f"{its['model']} on {its[what]}": words_of(its) for its in results}
    return {name: text for name, text in said.items() if text}


def words_of(result: Mapping[str, Any]) -> str:
    """Of one result; empty where every text was read whole."""
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
