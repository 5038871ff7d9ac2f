"""Templates that turn a scene into a caption and its scene graph. Fields of a recipe may modify a template.

A template has one phrasing, or several from which one is drawn for each scene. Captions and graphs are built together
from the scene; nothing is parsed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import attributes, counted, named, phrase, stated
from menagerie.generators.captions.relations import predicate_of

# Words that join two things if the caption doesn't state their relation.
CONJUNCTIONS = ("and", "while", "with", "but", "plus", "beside", "next to", "as well as", "together with")
ARTICLES = ("a", "the")
# `slots`: the thing in the first slot first (left before right, above before under).
ORDERS = ("random", "slots")


class Template(NamedTuple):
    """One or several phrasings of the same content, and the words in them."""

    phrasings: tuple[str, ...]
    """Phrasings, each with {things}, and with {place} ("in the desert") or {background} ("desert")."""
    relation: bool = False
    """Whether captions state the relation of two things; if not, a conjunction joins them."""
    statement: bool = False
    """Whether captions state things, "the cat is red", rather than name them, "a red cat"."""
    conjunction: str = "and"
    """Word that joins two things; one of `CONJUNCTIONS`."""
    mention_order: str = "random"
    """Order in which things are mentioned; one of `ORDERS`. A random order is drawn for each scene."""
    article: str = "a"
    """Article of things, one of `ARTICLES`; "a" becomes "an" before a vowel."""


class Phrasing(NamedTuple):
    """A single phrasing of a template, as drawn for a scene."""

    text: str
    template: Template


# OC-CLIP's: "a red cat and a white caribou in the desert".
PAPER = "{things} {place}"
# In the style of PUG:SPAR (Bordes et al. 2023), a word shorter than "in a ... environment": the longest text decides
# how long small text towers take.
PUG = "a photo of {things} in {background} surroundings"
FREE = (
    PAPER,
    PUG,
    "an image of {things} {place}",
    "{place} there is {things}",
    "{things} seen {place}",
    "the {background} with {things}",
)
# "In the desert the cat is red and the caribou is white".
STATED = (PAPER, "{place} {things}", "the {background} where {things}")

# To add a template, add an entry.
TEMPLATES: dict[str, Template] = {
    "conjunction": Template((PAPER,)),
    "pug-conjunction": Template((PUG,)),
    "free-conjunction": Template(FREE),
    "statement-conjunction": Template(STATED, statement=True, article="the"),
    "relation": Template((PAPER,), relation=True),
    "pug-relation": Template((PUG,), relation=True),
    "free-relation": Template(FREE, relation=True),
    "statement-relation": Template(STATED, relation=True, statement=True, article="the"),
}
# Fields of a recipe that replace those of its template, with their allowed values; an empty field replaces nothing.
CHOICES = {"conjunction": CONJUNCTIONS, "mention_order": ORDERS, "article": ARTICLES}


def template_of(recipe: Mapping[str, Any]) -> Template:
    """The template that a recipe's fields describe; all fields but `template` are optional."""
    return _template(
        recipe["template"], tuple(recipe.get("phrasings", ())), *(recipe.get(name, "") for name in CHOICES)
    )


@cache
def _template(name: str, phrasings: tuple[str, ...], *chosen: str) -> Template:
    template = TEMPLATES[choose("template", name, TEMPLATES)]
    given = {field: value for field, value in zip(CHOICES, chosen, strict=True) if value}
    for field, value in given.items():
        choose(field, value, CHOICES[field])
    if template.relation and "conjunction" in given:
        raise UserError(f"the template {name!r} joins things by their relation; leave out conjunction")
    for text in phrasings:
        check_phrasing(text)
    return template._replace(phrasings=phrasings or template.phrasings, **given)


def check_phrasing(text: str) -> None:
    """Raise unless a user's phrasing has the placeholders that a caption needs, and besides these only lower-case
    words."""
    fields = sorted(re.findall(r"{([^{}]*)}", text))
    if fields not in (["place", "things"], ["background", "things"]):
        raise UserError(f"the phrasing {text!r} must have {{things}}, and {{place}} or {{background}}, each once")
    if not re.fullmatch(r"[a-z]+( [a-z]+)*", re.sub(r"{(things|place|background)}", "word", text)):
        raise UserError(f"the phrasing {text!r} must be lower-case words with single spaces between them")


class Caption(NamedTuple):
    """A caption and the scene graph that it states."""

    text: str
    graph: SceneGraph


AnyTemplate = str | Template  # a name, or the template itself

# Words for some backgrounds; all others become "in the ...".
IN_PLACE = {"ocean floor": "on the ocean floor", "circus": "at the circus"}


def place(scene: Scene) -> str:
    """Words for a scene's background: "in the desert"."""
    return IN_PLACE.get(scene.background, f"in the {scene.background}")


Predicates = str | tuple[str, ...]  # of two things; or of a chain, each of a thing and the next


def build_caption(
    phrasing: Phrasing, scene: Scene, things: Sequence[Thing], predicate: Predicates = "", denied: Sequence[Thing] = ()
) -> Caption:
    """Build the caption of `things`, in their order, on the background of `scene`, with its graph.

    A single predicate has the first thing as its subject. Predicates of a chain each relate a thing to the next, from
    the first one on; a conjunction joins the things after the chain. Each of `denied` adds a phrase such as "no white
    caribou" to the text and a node to the graph. The background is a node too: the caption mentions it like the
    animals, and it gives shuffled graphs (OC-CLIP, eq. 6) a third node to draw.
    """
    numbers = Counter(thing._replace(slot="") for thing in things)  # equal things are counted: "two red cats"
    phrases = [counted(attributes(thing), thing.animal, number) for thing, number in numbers.items()]
    phrases += [f"no {phrase(thing)}" for thing in denied]
    joined = joined_things(phrasing.template, numbers, predicate, denied)
    text = phrasing.text.format(things=joined, place=place(scene), background=scene.background)
    stated = (predicate,) if isinstance(predicate, str) else predicate
    edges = tuple(Edge(name, i, i + 1) for i, name in enumerate(stated) if name)
    return Caption(text, SceneGraph((*phrases, scene.background), edges))


def joined_things(template: Template, numbers: Counter[Thing], predicate: Predicates, denied: Sequence[Thing]) -> str:
    """Write things in words: "a red cat and a white pig", "the cat is red and the pig is white", "a red cat above a
    white pig", "a red cat above a white pig that is behind a grass dog"."""
    word = stated if template.statement and not predicate else named
    texts = [word(thing, number, template.article) for thing, number in numbers.items()]
    texts += [word(thing, no=True) for thing in denied]
    if not isinstance(predicate, str):
        return chained(texts, predicate, template.conjunction)
    joint = f"is {predicate}" if template.statement else predicate
    return f" {joint if predicate else template.conjunction} ".join(texts)


def chained(texts: Sequence[str], predicates: Sequence[str], conjunction: str) -> str:
    """Join texts of things: the first ones by predicates, those after the chain by a conjunction."""
    joints = [f"that is {name}" if i else name for i, name in enumerate(predicates)]
    joints += [conjunction] * (len(texts) - 1 - len(joints))
    return " ".join(word for both in zip(texts, [*joints, ""], strict=True) for word in both if word)


def bare_mentions(template: Template, animals: Iterable[str]) -> Iterator[str]:
    """Yield each animal as captions mention it without its texture: "a cat", "the cat is there"."""
    word = stated if template.statement else named
    return (word(Thing(animal, "", ""), 1, template.article) for animal in animals)


def as_template(template: AnyTemplate) -> Template:
    return TEMPLATES[template] if isinstance(template, str) else template


def phrasing_of(scene: Scene, seed: int, template: AnyTemplate) -> Phrasing:
    """Draw one of a template's phrasings for `scene`."""
    template = as_template(template)
    return Phrasing(template.phrasings[phrasing_number(scene, seed, template)], template)


def phrasing_number(scene: Scene, seed: int, template: Template) -> int:
    """Draw the number of one of a template's phrasings for `scene`."""
    if len(template.phrasings) == 1:  # skip the draw, which takes most of a caption's time
        return 0
    return int(generator(seed, "phrasing", scene.key).integers(len(template.phrasings)))


def predicate_for(scene: Scene, things: Sequence[Thing], template: AnyTemplate) -> str:
    """The predicate whose subject is the first of `things`; "" if the template or the scene has no relation."""
    if not as_template(template).relation or scene.relation is None:
        return ""
    return predicate_of(scene, [thing.slot for thing in scene.things].index(things[0].slot))


@lru_cache(maxsize=16)  # a scene's caption and hard negative have the same order
def mention_order(scene: Scene, seed: int, order: str = "random") -> tuple[Thing, ...]:
    """Return the things of `scene` in the order in which its caption mentions them. A random order says nothing about
    slots."""
    if order == "slots":
        return scene.things
    drawn = generator(seed, "mention", scene.key).permutation(len(scene.things))
    return tuple(scene.things[i] for i in drawn)


def caption(scene: Scene, seed: int, template: AnyTemplate = "conjunction") -> Caption:
    """The true caption of `scene`."""
    things = mention_order(scene, seed, as_template(template).mention_order)
    return build_caption(phrasing_of(scene, seed, template), scene, things, predicate_for(scene, things, template))
