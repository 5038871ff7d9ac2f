"""What a scene is made of, as words, and scenes without what is drawn for each."""

from dataclasses import replace
from itertools import combinations

from menagerie.envs.scene import Scene
from menagerie.envs.slots import COUNTING, place_of


def bare(scene: Scene, sizes: bool = False) -> Scene:
    """A scene in view 0 without what is drawn for it: facings, places for counting, and sizes unless they are kept."""
    things = scene.things
    counted = things[0].slot in COUNTING
    slots = COUNTING[: len(things)] if counted else [place_of(thing.slot) for thing in things]
    own = zip(things, slots, strict=True)
    things = tuple(thing._replace(slot=slot, size=thing.size if sizes else "") for thing, slot in own)
    return replace(scene, things=things, view=0)


def parts(scene: Scene) -> set[str]:
    """What can be said of a scene: its background, and of its things animal, texture and size, also with background,
    place and each other; if its things are to be counted, their number in place of their places."""
    counted = scene.things[0].slot in COUNTING
    found = {scene.background}
    for thing in scene.things:
        place = f"{len(scene.things)} times" if counted else place_of(thing.slot)
        words = [thing.animal, thing.texture, *filter(None, [thing.size])]
        words += [f"{other} {word}" for word, other in combinations(words, 2)]
        found |= {f"{word}{rest}" for word in words for rest in ("", f" {place}", f", {scene.background}")}
    if counted:
        found |= {place, f"{place}, {scene.background}"}
    return found
