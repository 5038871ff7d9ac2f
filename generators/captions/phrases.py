"""Noun phrases of one object or of several equal objects, and captions as people type them."""

import difflib
import re
import string
from collections.abc import Iterable

from menagerie.envs.scene import MOST_OBJECTS, Object

NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight")[: MOST_OBJECTS - 1]
# Animals with irregular plurals.
PLURALS = {
    **{same: same for same in ("goldfish", "caribou", "sheep", "deer", "bison", "moose", "fish", "shrimp", "squid")},
    **{"wolf": "wolves", "mouse": "mice", "goose": "geese", "ox": "oxen", "calf": "calves"},
}
# Words that begin with a vowel letter but a consonant sound.
CONSONANTS = re.compile("uni|ewe|eu|one")


def plural(noun: str) -> str:
    """The plural of a noun: "cat" -> "cats", "giant tortoise" -> "giant tortoises", "fox" -> "foxes", "pony" ->
    "ponies"."""
    *before, last = noun.split()
    if last in PLURALS:
        return " ".join((*before, PLURALS[last]))
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def noun_phrase(attributes: str, animal: str, number: int) -> str:
    """A noun phrase with a number: "red cat", "three small red cats"; "three cats" if `attributes` is empty."""
    if number == 1:
        return f"{attributes} {animal}".lstrip()
    return f"{NUMBERS[number - 2]} {attributes} {plural(animal)}".replace("  ", " ")


def attribute_words(obj: Object) -> str:
    """The words of an object's size and texture: "small red"."""
    return f"{obj.size} {obj.texture}".strip()


def phrase(obj: Object) -> str:
    """The noun phrase of an object: "small red cat"."""
    return noun_phrase(attribute_words(obj), obj.animal, 1)


def with_article(phrase: str, article: str = "a") -> str:
    """Put an article before a phrase: "a red cat", "an asphalt cat"; phrases with a number or "no" stay unchanged."""
    if phrase.split()[0] in ("no", *NUMBERS):
        return phrase
    vowel = phrase[0] in "aeiou" and not CONSONANTS.match(phrase)
    return f"{'an' if article == 'a' and vowel else article} {phrase}"


def name_object(obj: Object, number: int = 1, article: str = "a", no: bool = False) -> str:
    """Name an object: "a small red cat", "three small red cats", "no small red cat"."""
    return with_article(f"{'no ' * no}{noun_phrase(attribute_words(obj), obj.animal, number)}", article)


def state_object(obj: Object, number: int = 1, article: str = "the", no: bool = False) -> str:
    """State an object: "the small cat is red", "three cats are red", "no cat is red"; "the cat is there" without a
    texture."""
    subject = with_article(f"{'no ' * no}{noun_phrase(obj.size, obj.animal, number)}", article)
    return f"{subject} {'is' if number == 1 else 'are'} {obj.texture or 'there'}"


def plain_word(word: str) -> str:
    """Return a word in lower case, without punctuation at its ends: "Cat," -> "cat"."""
    return word.strip(string.punctuation + "“”‘’…–—").lower()


def plain_text(text: str) -> str:
    """A text in plain words: "A red cat, and a dog." -> "a red cat and a dog"."""
    return " ".join(filter(None, map(plain_word, text.split())))


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown word, to append to a message: "; did you mean 'cat'?". It is empty if no known
    word resembles the word."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.65)
    return f"; did you mean {near[0]!r}?" if near else ""
