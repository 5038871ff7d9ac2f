"""Checks of captions whose recipe sets their wording: conjunction, article, order of mention, phrasings."""

import re
from collections.abc import Callable, Iterable, Iterator

from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding, first
from menagerie.generators.audit.mentions import mentioned_phrases
from menagerie.generators.captions.phrases import with_article
from menagerie.generators.captions.wording import template_of
from menagerie.generators.parsers.world_grammar import Reading, read
from menagerie.generators.storage.split_file import Split

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


def check_template(split: Split) -> Iterator[Finding]:
    """What the recipe leaves to its template is as the template has it, and "a" is "an" before vowels only."""
    template = template_of(split.recipe)
    fields = [its for its in FIELDS if not split.recipe.get(its) and not (its == "conjunction" and template.relation)]
    rows = [(s, text) for r in split.subsets.values() for s, text in zip(r.scenes, r.captions, strict=True)]
    readings = ((scene, text, read(text, split.vocabulary)) for scene, text in rows)
    strange = (
        f"{text!r} of {scene.key}"
        for scene, text, said in readings
        if said is None or not all(FIELDS[its](text, said, scene, getattr(template, its)) for its in fields)
    )
    yield Finding(f"captions are worded as in the template {split.recipe['template']}", *first(strange))
    v = split.vocabulary
    article = re.compile(rf"\ban? ({'|'.join(map(re.escape, (*v.sizes, *v.textures, *v.animals)))})\b")
    texts = (text for r in split.subsets.values() for text in (*r.captions, *r.negatives))
    wrong = (
        f"{its[0]!r} in {text!r}" for text in texts for its in article.finditer(text) if its[0] != with_article(its[1])
    )
    yield Finding("articles suit the words that they are of", *first(wrong))


CHECKS = (check_wording, check_template)
