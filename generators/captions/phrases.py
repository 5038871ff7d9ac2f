"""Noun phrases of one or several like things, and the scene with another number of them."""

import zlib
from dataclasses import replace

from envs.scene import MOST_THINGS, Scene, Thing
from envs.slots import COUNTING

NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight")[: MOST_THINGS - 1]
# Animals whose plural doesn't follow the rules below.
PLURALS = {"goldfish": "goldfish", "caribou": "caribou", "sheep": "sheep", "deer": "deer", "wolf": "wolves"}


def plural(noun: str) -> str:
    """ "cat" -> "cats", "giant tortoise" -> "giant tortoises", "fox" -> "foxes", "pony" -> "ponies"."""
    if noun in PLURALS:
        return PLURALS[noun]
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


def other_number(scene: Scene) -> Scene:
    """The scene with another number of its things, from one to four; the number depends on the scene's key."""
    things, numbers = scene.things, [n for n in range(1, len(COUNTING) + 1) if n != len(scene.things)]
    number = numbers[zlib.crc32(scene.key.encode()) % len(numbers)]
    free = [slot for slot in COUNTING if slot not in {thing.slot for thing in things}]
    more = tuple(things[0]._replace(slot=slot) for slot in free[: max(number - len(things), 0)])
    return replace(scene, things=things[:number] + more)
