"""Noun phrases of one or several like things, and captions as people type them."""

import difflib
import re
import string
from collections.abc import Iterable

from menagerie.envs.scene import MOST_THINGS, Thing

NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight")[: MOST_THINGS - 1]
# Animals whose plural doesn't follow the rules below.
PLURALS = {
    **{same: same for same in ("goldfish", "caribou", "sheep", "deer", "bison", "moose", "fish", "shrimp", "squid")},
    **{"wolf": "wolves", "mouse": "mice", "goose": "geese", "ox": "oxen", "calf": "calves"},
}
# Words that begin with a vowel's letter and a consonant's sound.
CONSONANTS = re.compile("uni|ewe|eu|one")


def plural(noun: str) -> str:
    """ "cat" -> "cats", "giant tortoise" -> "giant tortoises", "fox" -> "foxes", "pony" -> "ponies"."""
    *before, last = noun.split()
    if last in PLURALS:
        return " ".join((*before, PLURALS[last]))
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def counted(attributes: str, animal: str, number: int) -> str:
    """ "red cat", "three small red cats", "three cats" if attributes are left out ("")."""
    if number == 1:
        return f"{attributes} {animal}".lstrip()
    return f"{NUMBERS[number - 2]} {attributes} {plural(animal)}".replace("  ", " ")


def attributes(thing: Thing) -> str:
    """ "small red": the words of a thing's size and texture."""
    return f"{thing.size} {thing.texture}".strip()


def phrase(thing: Thing) -> str:
    """ "small red cat"."""
    return counted(attributes(thing), thing.animal, 1)


def with_article(phrase: str, article: str = "a") -> str:
    """ "red cat" -> "a red cat", "asphalt cat" -> "an asphalt cat"; "two red cats" and "no red cat" unchanged."""
    if phrase.split()[0] in ("no", *NUMBERS):
        return phrase
    vowel = phrase[0] in "aeiou" and not CONSONANTS.match(phrase)
    return f"{'an' if article == 'a' and vowel else article} {phrase}"


def named(thing: Thing, number: int = 1, article: str = "a", no: bool = False) -> str:
    """ "a small red cat", "three small red cats", "no small red cat"."""
    return with_article(f"{'no ' * no}{counted(attributes(thing), thing.animal, number)}", article)


def stated(thing: Thing, number: int = 1, article: str = "the", no: bool = False) -> str:
    """ "the small cat is red", "three cats are red", "no cat is red"; "the cat is there" without a texture."""
    subject = with_article(f"{'no ' * no}{counted(thing.size, thing.animal, number)}", article)
    return f"{subject} {'is' if number == 1 else 'are'} {thing.texture or 'there'}"


def plain_word(word: str) -> str:
    """ "Cat," -> "cat": lower case, without punctuation at its ends."""
    return word.strip(string.punctuation + "“”‘’…–—").lower()


def plain_text(text: str) -> str:
    """ "A red cat, and a dog." -> "a red cat and a dog"."""
    return " ".join(filter(None, map(plain_word, text.split())))


def nearest(word: str, known: Iterable[str]) -> str:
    """ "; did you mean 'cat'?" for the known word that resembles `word` most; empty where none does."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.65)
    return f"; did you mean {near[0]!r}?" if near else ""
