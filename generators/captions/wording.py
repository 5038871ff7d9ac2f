"""The wording of captions: templates by name, and the fields of a recipe that change one.

A template has one phrasing, or several from which one is drawn for each scene.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError, choose

# What joins two things whose relation a caption doesn't state.
CONJUNCTIONS = ("and", "while", "with", "but", "plus", "beside", "next to", "as well as", "together with")
ARTICLES = ("a", "the")
# `slots`: the thing in the first slot first (left before right, above before under).
ORDERS = ("random", "slots")


class Template(NamedTuple):
    """One or several phrasings of the same content, and the words in them."""

    phrasings: tuple[str, ...]
    """Each with {things}, and with {place} ("in the desert") or {background} ("desert")."""
    relation: bool = False
    """Whether it states the relation of two things; if not, they are joined by the conjunction."""
    statement: bool = False
    """Whether things are stated, "the cat is red", rather than named, "a red cat"."""
    conjunction: str = "and"
    """One of `CONJUNCTIONS`."""
    mention_order: str = "random"
    """The order in which things are mentioned: one of `ORDERS`; a random one is drawn for each scene."""
    article: str = "a"
    """One of `ARTICLES`; "a" is "an" before a vowel."""


class Phrasing(NamedTuple):
    """One phrasing of a template."""

    text: str
    template: Template


# OC-CLIP's: "a red cat and a white caribou in the desert".
PAPER = "{things} {place}"
# In the manner of PUG:SPAR (Bordes et al. 2023), a word shorter than "in a ... environment": small text towers read
# what the longest text takes.
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
# Fields of a recipe that replace those of its template, with their values; empty ones replace nothing.
CHOICES = {"conjunction": CONJUNCTIONS, "mention_order": ORDERS, "article": ARTICLES}


def template_of(recipe: Mapping[str, Any]) -> Template:
    """The template that a recipe's fields describe; of all but `template` they may be missing."""
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
    """Raise unless a phrasing of one's own has what a caption needs, and lower-case words besides."""
    fields = sorted(re.findall(r"{([^{}]*)}", text))
    if fields not in (["place", "things"], ["background", "things"]):
        raise UserError(f"the phrasing {text!r} must have {{things}}, and {{place}} or {{background}}, each once")
    if not re.fullmatch(r"[a-z]+( [a-z]+)*", re.sub(r"{(things|place|background)}", "word", text)):
        raise UserError(f"the phrasing {text!r} must be lower-case words with single spaces between them")
