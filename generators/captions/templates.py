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
from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import attribute_words, name_object, noun_phrase, phrase, state_object
from menagerie.generators.captions.relations import chain

# Words that join two objects if the caption doesn't state their relation.
CONJUNCTIONS = ("and", "while", "with", "but", "plus", "beside", "next to", "as well as", "together with")
ARTICLES = ("a", "the")
# `slots`: the object in the first slot first (left before right, above before under).
ORDERS = ("random", "slots")


class Template(NamedTuple):
    """One or several phrasings of the same content, and the words in them."""

    phrasings: tuple[str, ...]
    """Phrasings, each with {objects}, and with {place} ("in the desert") or {background} ("desert")."""
    relation: bool = False
    """Whether captions state the relation of two objects; if not, a conjunction joins them."""
    statement: bool = False
    """Whether captions state objects, "the cat is red", rather than name them, "a red cat"."""
    conjunction: str = "and"
    """Word that joins two objects; one of `CONJUNCTIONS`."""
    mention_order: str = "random"
    """Order in which objects are mentioned; one of `ORDERS`. A random order is drawn for each scene."""
    article: str = "a"
    """Article of objects, one of `ARTICLES`; "a" becomes "an" before a vowel."""
    chained: int = 0
    """The most relations that captions of multi-object scenes state, in a chain."""

    @property
    def relations(self) -> int:
        """The most relations that a caption states."""
        return max(self.relation, self.chained)


# OC-CLIP's: "a red cat and a white caribou in the desert".
PAPER = "{objects} {place}"
# In the style of PUG:SPAR (Bordes et al. 2023), a word shorter than "in a ... environment": the longest text decides
# how long small text towers take.
PUG = "a photo of {objects} in {background} surroundings"
FREE = (
    PAPER,
    PUG,
    "an image of {objects} {place}",
    "{place} there is {objects}",
    "{objects} seen {place}",
    "the {background} with {objects}",
)
# "In the desert the cat is red and the caribou is white".
STATED = (PAPER, "{place} {objects}", "the {background} where {objects}")

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
        raise UserError(f"the template {name!r} joins objects by their relation; leave out conjunction")
    for text in phrasings:
        check_phrasing(text)
    return template._replace(phrasings=phrasings or template.phrasings, chained=chained, **given)


def check_phrasing(text: str) -> None:
    """Raise unless a user's phrasing has the placeholders that a caption needs, and besides these only lower-case
    words."""
    fields = sorted(re.findall(r"{([^{}]*)}", text))
    if fields not in (["objects", "place"], ["background", "objects"]):
        raise UserError(f"the phrasing {text!r} must have {{objects}}, and {{place}} or {{background}}, each once")
    if not re.fullmatch(r"[a-z]+( [a-z]+)*", re.sub(r"{(objects|place|background)}", "word", text)):
        raise UserError(f"the phrasing {text!r} must be lower-case words with single spaces between them")


class Caption(NamedTuple):
    """A caption and the scene graph that it states."""

    text: str
    graph: SceneGraph


class Content(NamedTuple):
    """The content of a caption of `scene`. The objects of a false caption differ from the scene's."""

    scene: Scene
    objects: tuple[Object, ...]
    """The objects in the order of the caption; an omitted texture is ""."""
    predicates: tuple[str, ...] = ()
    """The predicates of a chain, each of an object and the next, from the first one on."""
    denied: tuple[Object, ...] = ()
    phrasing: int = 0
    """The number of the template's phrasing in which the caption is written."""
    negative: bool = False
    """Whether the caption has a hard negative, which is true of the swapped scene."""

    @property
    def kinds(self) -> list[Object]:
        """The distinct objects, ignoring slots."""
        return list(dict.fromkeys(obj._replace(slot="") for obj in self.objects))


# Words for some backgrounds; all others become "in the ...".
IN_PLACE = {"ocean floor": "on the ocean floor", "circus": "at the circus"}


def write_caption(content: Content, template: Template) -> Caption:
    """Write a content as a caption with its graph.

    A conjunction joins the objects after the chain. Each denied object adds a phrase such as "no white caribou" to the
    text and a node to the graph. The background is a node too: the caption mentions it like the animals, and it gives
    shuffled graphs (OC-CLIP, eq. 6) a third node to draw.
    """
    scene, predicates = content.scene, content.predicates
    numbers = Counter(obj._replace(slot="") for obj in content.objects)  # equal objects are counted: "two red cats"
    phrases = [noun_phrase(attribute_words(obj), obj.animal, number) for obj, number in numbers.items()]
    phrases += [f"no {phrase(obj)}" for obj in content.denied]
    place = IN_PLACE.get(scene.background, f"in the {scene.background}")
    objects = join_objects(template, numbers, predicates, content.denied)
    text = template.phrasings[content.phrasing].format(objects=objects, place=place, background=scene.background)
    edges = tuple(Edge(name, i, i + 1) for i, name in enumerate(predicates))
    return Caption(text, SceneGraph((*phrases, scene.background), edges))


def join_objects(
    template: Template, numbers: Counter[Object], predicates: Sequence[str], denied: Sequence[Object]
) -> str:
    """Write objects in words: "a red cat and a white pig", "the cat is red and the pig is white", "a red cat above a
    white pig that is behind a grass dog": the first ones joined by predicates, those after the chain by a
    conjunction."""
    word = state_object if template.statement and not predicates else name_object
    texts = [word(obj, number, template.article) for obj, number in numbers.items()]
    texts += [word(obj, no=True) for obj in denied]
    joints = [f"that is {name}" if i else f"{'is ' * template.statement}{name}" for i, name in enumerate(predicates)]
    joints += [template.conjunction] * (len(texts) - 1 - len(joints))
    return " ".join(word for both in zip(texts, [*joints, ""], strict=True) for word in both if word)


def bare_mentions(template: Template, animals: Iterable[str]) -> Iterator[str]:
    """Yield each animal as captions mention it without its texture: "a cat", "the cat is there"."""
    word = state_object if template.statement else name_object
    return (word(Object(animal, "", ""), 1, template.article) for animal in animals)


def phrasing_number(scene: Scene, seed: int, template: Template) -> int:
    """Draw the number of one of a template's phrasings for `scene`."""
    if len(template.phrasings) == 1:  # skip the draw, which takes most of a caption's time
        return 0
    return int(generator(seed, "phrasing", scene.key).integers(len(template.phrasings)))


@lru_cache(maxsize=16)  # a scene's caption and hard negative have the same order
def mention_order(scene: Scene, seed: int, order: str = "random") -> tuple[Object, ...]:
    """Return the objects of `scene` in the order in which its caption mentions them. A random order says nothing about
    slots."""
    if order == "slots":
        return scene.objects
    drawn = generator(seed, "mention", scene.key).permutation(len(scene.objects))
    return tuple(scene.objects[i] for i in drawn)


def content_of(scene: Scene, seed: int, template: Template, objects: Sequence[Object] | None = None) -> Content:
    """The content that mentions `objects`, or all objects of a scene in the order drawn for it, in the phrasing drawn
    for it, with the relations that the template states."""
    objects = mention_order(scene, seed, template.mention_order) if objects is None else tuple(objects)
    chained = chain([obj.slot for obj in objects], template.relations)
    return Content(scene, objects, chained, phrasing=phrasing_number(scene, seed, template))


def caption(scene: Scene, seed: int, template: Template | str = "conjunction") -> Caption:
    """The true caption of `scene`, in a template or the one with this name."""
    template = TEMPLATES[template] if isinstance(template, str) else template
    return write_caption(content_of(scene, seed, template), template)
