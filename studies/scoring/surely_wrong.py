"""The images that a model got wrong by the widest margin: found when they are scored, shown by pages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from menagerie.generators.benchmarks.benchmark import Result

SHOWN = 6  # images of a piece


def surely_wrong(results: Sequence[Result]) -> list[Mapping[str, Any]]:
    """The images that preferred a false text by the widest margin in tests that went wrong, each once."""
    examples = [example for result in results if result.outcome.official < 1 for example in preferences(result)]
    shown: dict[int, Mapping[str, Any]] = {}
    for example in sorted(examples, key=margin, reverse=True):
        if len(shown) < SHOWN:
            shown.setdefault(example["image"], example)
    return list(shown.values())


def preferences(result: Result) -> Iterator[Mapping[str, Any]]:
    """The images of a test that prefer a false text to their own, or have both level: both texts with their scores."""
    item, scores, _ = result
    if len(item.texts) < max(2, len(item.images)):  # texts that ask for images
        return
    for k, row in enumerate(scores):
        true_text = min(item.own(k), key=row.__getitem__)
        best = max((place for place in range(len(row)) if place not in item.own(k)), key=row.__getitem__)
        if row[best] >= row[true_text]:
            yield {
                **{
                    "image": item.images[k],
                    "record": item.record if item.record.startswith(item.group) else f"{item.group}, {item.record}",
                },
                **{"true": item.texts[true_text].text, "preferred": item.texts[best].text},
                "scores": [float(row[true_text]), float(row[best])],
            }


def margin(example: Mapping[str, Any]) -> float:
    """How much higher the preferred text scores than the true one."""
    true, preferred = example["scores"]
    return preferred - true
