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
from menagerie.generators.captions.relations import chain

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
    chained: int = 0
    """The most relations that captions of crowds state, in a chain."""

    @property
    def relations(self) -> int:
        """The most relations that a caption states."""
        return max(self.relation, self.chained)


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
    chosen = (recipe.get(name, "") for name in CHOICES)
    return _template(recipe["template"], tuple(recipe.get("phrasings", ())), recipe.get("relations_stated", 0), *chosen)


@cache
def _template(name: str, phrasings: tuple[str, ...], chained: int, *chosen: str) -> Template:
    template = TEMPLATES[choose("template", name, TEMPLATES)]
    given = {field: value for field, value in zip(CHOICES, chosen, strict=True) if value}
    for field, value in given.items():
        choose(field, value, CHOICES[field])
    if template.relation and "conjunction" in given:
        raise UserError(f"the template {name!r} joins things by their relation; leave out conjunction")
    for text in phrasings:
        check_phrasing(text)
    return template._replace(phrasings=phrasings or template.phrasings, chained=chained, **given)


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


class Content(NamedTuple):
    """The content of a caption of `scene`. The things of a false caption differ from the scene's."""

    scene: Scene
    things: tuple[Thing, ...]
    """The things in the order of the caption; an omitted texture is ""."""
    predicates: tuple[str, ...] = ()
    """The predicates of a chain, each of a thing and the next, from the first one on."""
    denied: tuple[Thing, ...] = ()
    phrasing: int = 0
    """The number of the template's phrasing in which the caption is written."""
    negative: bool = False
    """Whether the caption has a hard negative, which is true of the swapped scene."""

    @property
    def kinds(self) -> list[Thing]:
        """The distinct things, ignoring slots."""
        return list(dict.fromkeys(thing._replace(slot="") for thing in self.things))

    def with_kind(self, kind: Thing, new: Thing) -> "Content":
        """Return a copy in which things of one kind are of another."""
        things = (new._replace(slot=it.slot) if it._replace(slot="") == kind else it for it in self.things)
        return self._replace(things=tuple(things))


# Words for some backgrounds; all others become "in the ...".
IN_PLACE = {"ocean floor": "on the ocean floor", "circus": "at the circus"}


def write_caption(content: Content, template: Template) -> Caption:
    """Write a content as a caption with its graph.

    A conjunction joins the things after the chain. Each denied thing adds a phrase such as "no white caribou" to the
    text and a node to the graph. The background is a node too: the caption mentions it like the animals, and it gives
    shuffled graphs (OC-CLIP, eq. 6) a third node to draw.
    """
    scene, predicates = content.scene, content.predicates
    numbers = Counter(thing._replace(slot="") for thing in content.things)  # equal things are counted: "two red cats"
    phrases = [counted(attributes(thing), thing.animal, number) for thing, number in numbers.items()]
    phrases += [f"no {phrase(thing)}" for thing in content.denied]
    place = IN_PLACE.get(scene.background, f"in the {scene.background}")
    things = joined_things(template, numbers, predicates, content.denied)
    text = template.phrasings[content.phrasing].format(things=things, place=place, background=scene.background)
    edges = tuple(Edge(name, i, i + 1) for i, name in enumerate(predicates))
    return Caption(text, SceneGraph((*phrases, scene.background), edges))


def joined_things(
    template: Template, numbers: Counter[Thing], predicates: Sequence[str], denied: Sequence[Thing]
) -> str:
    """Write things in words: "a red cat and a white pig", "the cat is red and the pig is white", "a red cat above a
    white pig that is behind a grass dog": the first ones joined by predicates, those after the chain by a
    conjunction."""
    word = stated if template.statement and not predicates else named
    texts = [word(thing, number, template.article) for thing, number in numbers.items()]
    texts += [word(thing, no=True) for thing in denied]
    joints = [f"that is {name}" if i else f"{'is ' * template.statement}{name}" for i, name in enumerate(predicates)]
    joints += [template.conjunction] * (len(texts) - 1 - len(joints))
    return " ".join(word for both in zip(texts, [*joints, ""], strict=True) for word in both if word)


def bare_mentions(template: Template, animals: Iterable[str]) -> Iterator[str]:
    """Yield each animal as captions mention it without its texture: "a cat", "the cat is there"."""
    word = stated if template.statement else named
    return (word(Thing(animal, "", ""), 1, template.article) for animal in animals)


def phrasing_number(scene: Scene, seed: int, template: Template) -> int:
    """Draw the number of one of a template's phrasings for `scene`."""
    if len(template.phrasings) == 1:  # skip the draw, which takes most of a caption's time
        return 0
    return int(generator(seed, "phrasing", scene.key).integers(len(template.phrasings)))


@lru_cache(maxsize=16)  # a scene's caption and hard negative have the same order
def mention_order(scene: Scene, seed: int, order: str = "random") -> tuple[Thing, ...]:
    """Return the things of `scene` in the order in which its caption mentions them. A random order says nothing about
    slots."""
    if order == "slots":
        return scene.things
    drawn = generator(seed, "mention", scene.key).permutation(len(scene.things))
    return tuple(scene.things[i] for i in drawn)


def content_of(scene: Scene, seed: int, template: Template, things: Sequence[Thing] | None = None) -> Content:
    """The content that mentions `things`, or all things of a scene in the order drawn for it, in the phrasing drawn for
    it, with the relations that the template states."""
    things = mention_order(scene, seed, template.mention_order) if things is None else tuple(things)
    stated = chain([thing.slot for thing in things], template.relations)
    return Content(scene, things, stated, phrasing=phrasing_number(scene, seed, template))


def caption(scene: Scene, seed: int, template: Template | str = "conjunction") -> Caption:
    """The true caption of `scene`, in a template or the one with this name."""
    template = TEMPLATES[template] if isinstance(template, str) else template
    return write_caption(content_of(scene, seed, template), template)
