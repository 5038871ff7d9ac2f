"""Checks of captions whose recipe sets their wording: conjunction, article, order of mention, phrasings."""

import re
from collections.abc import Callable, Iterable, Iterator

from envs.scene import Scene
from generators.audit.findings import Finding, first
from generators.audit.mentions import mentioned_phrases
from generators.parsers.world_grammar import Reading, read
from generators.storage.split_file import Split

# Whether a caption and what was read of it, of a scene, are as a value of the field says.
Follows = Callable[[str, Reading, Scene, object], bool]


def conjunction(text: str, reading: Reading, scene: Scene, requested: object) -> bool:
    """Whether every joint is the conjunction."""
    return set(reading.joints) <= {requested}


def article(text: str, reading: Reading, scene: Scene, requested: object) -> bool:
    """Whether all articles are the requested one, if there are any."""
    return reading.article in ("", requested)


def mention_order(text: str, reading: Reading, scene: Scene, requested: object) -> bool:
    """Whether things are mentioned in the order of their slots, unless the order is random."""
    places = [reading.graph.nodes.index(its) for its in mentioned_phrases(reading.graph, scene) if its]
    return requested == "random" or places == sorted(places)


def phrasings(text: str, reading: Reading, scene: Scene, requested: object) -> bool:
    """Whether the caption has one of the phrasings."""
    return phrasing_in(text, scene, requested) is not None


def phrasing_in(text: str, scene: Scene, phrasings: Iterable[str]) -> str | None:
    """The phrasing that a caption has: of those that it fits, the one with the most words of its own."""
    place = rf"(?:in|on|at) the {re.escape(scene.background)}"
    words = {"things": ".+", "place": place, "background": re.escape(scene.background)}
    fitting = (its for its in phrasings if re.fullmatch(its.format(**words), text))
    return max(fitting, key=lambda its: len(its.split()), default=None)


FIELDS: dict[str, Follows] = {
    "conjunction": conjunction,
    "article": article,
    "mention_order": mention_order,
    "phrasings": phrasings,
}


def check_wording(split: Split) -> Iterator[Finding]:
    """True captions are worded as the recipe requests; negatives have the same words."""
    for field, follows in FIELDS.items():
        if not (requested := split.recipe.get(field)):
            continue
        for name, records in split.subsets.items():
            rows = zip(records.scenes, records.captions, strict=True)
            readings = ((scene, text, read(text, split.vocabulary)) for scene, text in rows)
            strange = (s.key for s, text, said in readings if said is None or not follows(text, said, s, requested))
            shown = requested if isinstance(requested, str) else " or ".join(requested)
            yield Finding(f"captions of {name} have the {field.replace('_', ' ')} {shown}", *first(strange))
