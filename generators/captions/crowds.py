"""What captions of crowds say: which things of a scene of up to six they mention, in which order, and how they relate.

Most captions of tests mention the two exchanged things, and others up to the most that a training caption mentions.
Longer texts would be unfair: a model may have learnt nothing for positions that no training text reached. A caption may
state a chain of relations, each between a thing and the next one. All draws depend on (seed, scene) only.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import comb
from typing import Any, NamedTuple

from menagerie.envs.core.identity import generator
from menagerie.envs.layouts import stated
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import SLOTS, size_factor
from menagerie.generators.captions.contents import Content, write_caption
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.incomplete import Chances
from menagerie.generators.captions.relations import PREDICATES
from menagerie.generators.captions.templates import (
    Caption,
    Template,
    mention_order,
    phrasing_number,
    template_of,
)

SEARCH = "search"  # starts the names of tests whose captions mention the target alone
LEAST = 2  # things in captions of tests: those whose textures are exchanged


class Telling(NamedTuple):
    """What decides the captions of a crowd split."""

    seed: int
    template: Template
    most: int
    """The most things that captions mention."""
    relations: int
    """Number of relations that a caption states; fewer if it mentions too few things."""


def telling_of(recipe: Mapping[str, Any]) -> Telling:
    """Return what decides the captions of a split with this recipe."""
    most = max(recipe["things"])
    return Telling(recipe["seed"], template_of(recipe), most, recipe["relations_stated"])


def in_order(scene: Scene, telling: Telling) -> tuple[Thing, ...]:
    """Return all things of a scene, in the order in which its captions mention them."""
    return mention_order(scene, telling.seed, telling.template.mention_order)


def tested_things(scene: Scene, telling: Telling) -> tuple[Thing, ...]:
    """Return the things that a test's caption mentions, in its order: the exchanged ones, and others, drawn if they
    would be more than `telling.most` together."""
    kept, most = {scene.things[i].slot for i in exchanged(scene)}, max(telling.most, LEAST)
    if len(scene.things) > most:
        others = [thing.slot for thing in scene.things if thing.slot not in kept]
        drawn = generator(telling.seed, "others told", scene.key).permutation(len(others))[: most - LEAST]
        kept |= {others[i] for i in drawn}
        return tuple(thing for thing in in_order(scene, telling) if thing.slot in kept)
    return in_order(scene, telling)


def trained_things(scene: Scene, telling: Telling, chances: Chances) -> tuple[Thing, ...]:
    """The things that a training caption mentions, in its order; an omitted texture is "", sizes are kept."""
    random = generator(telling.seed, "crowd told", scene.key)
    textured = {thing.slot: random.random() < chances.attributes for thing in scene.things}
    drawn = [thing.slot for thing in scene.things if random.random() < chances.mentioned]
    order = random.permutation(len(scene.things))
    only_salient = random.random() < chances.salient
    most = [scene.things[i].slot for i in order]
    told = [slot for slot in most if slot in drawn][: telling.most] or most[:1]
    if only_salient:
        told = [salient(scene).slot]
    return tuple(
        thing if textured[thing.slot] else thing._replace(texture="")
        for thing in in_order(scene, telling)
        if thing.slot in told
    )


def salient(scene: Scene) -> Thing:
    """The salient thing of a scene: the biggest of the foremost row, and of several equally big ones the first in slot
    order."""
    return min(scene.things, key=lambda thing: (SLOTS[thing.slot].position[1], -size_factor(thing.size)))


def predicate(subject: Thing, other: Thing) -> str:
    """Return the predicate that relates `subject` to `other`, by their slots."""
    if name := stated(subject.slot, other.slot):
        return PREDICATES[name][0]
    return PREDICATES[stated(other.slot, subject.slot)][1]


def chain(things: Sequence[Thing], relations: int) -> tuple[str, ...]:
    """Return the predicates that a caption of `things` states, at most `relations`, each between a thing and the
    next."""
    number = min(relations, len(things) - 1)
    return tuple(predicate(*both) for both in pairwise(things[: number + 1]))


def content_of(scene: Scene, things: Sequence[Thing], telling: Telling) -> Content:
    """The content that mentions `things` in the phrasing drawn for the scene, with the relations of `chain`."""
    phrasing = phrasing_number(scene, telling.seed, telling.template)
    return Content(scene, tuple(things), chain(things, telling.relations) or "", phrasing=phrasing)


def caption_of(
    scene: Scene, things: Sequence[Thing], telling: Telling, predicates: Sequence[str] | None = None
) -> Caption:
    """Write a caption of `things` in the phrasing drawn for the scene. Without `predicates`, it states those of
    `chain`."""
    content = content_of(scene, things, telling)
    if predicates is not None:
        content = content._replace(predicate=tuple(predicates) or "")
    return write_caption(content, telling.template)


def backwards(scene: Scene, things: Sequence[Thing], telling: Telling) -> Caption:
    """Write a caption that says the same as `caption_of`, with the things in the opposite order.

    The things of the chain, and those after it, are reversed separately, so that the same relations are stated.
    """
    number = len(chain(things, telling.relations)) + 1
    if number == 1:
        return caption_of(scene, things[::-1], telling)
    return caption_of(scene, (*things[:number][::-1], *things[number:][::-1]), telling)


def with_textures(things: Sequence[Thing], textures: Mapping[str, str]) -> tuple[Thing, ...]:
    """Return the things with new textures in the slots that `textures` has."""
    return tuple(thing._replace(texture=textures.get(thing.slot, thing.texture)) for thing in things)


def swapped(scene: Scene, things: Sequence[Thing]) -> tuple[Thing, ...]:
    """Return the things of a caption, with the textures of the scene's two exchanged things swapped."""
    one, other = (scene.things[i] for i in exchanged(scene))
    return with_textures(things, {one.slot: other.texture, other.slot: one.texture})


def target(scene: Scene) -> tuple[Thing, Thing]:
    """Return the target of a search, and the other exchanged thing. The target is the first of the two that has its
    animal or texture in common with a third thing; if neither has, the first."""
    pair = exchanged(scene)
    both = [scene.things[i] for i in pair]
    others = [thing for i, thing in enumerate(scene.things) if i not in pair]
    shared = [any(one.animal == other.animal or one.texture == other.texture for other in others) for one in both]
    first = both[shared.index(True) if any(shared) else 0]
    return first, both[both[0] == first]


def share_bound(recipe: Mapping[str, Any]) -> float:
    """Return the expected share of training captions, among those of scenes of two or more things, that mention at
    least two things with their textures. Only such captions say which of two textures belongs to which thing."""
    numbers = [n for n in recipe["things"] if n >= LEAST]
    most, mentioned, attributes = telling_of(recipe).most, recipe["mentioned"], recipe["attributes"]
    shares = [
        events(k, n, mentioned) * (1 - sum(events(few, min(k, most), attributes) for few in range(LEAST)))
        for n in numbers
        for k in range(LEAST, n + 1)
    ]
    return (1 - recipe["salient"]) * sum(shares) / max(len(numbers), 1)


def events(number: int, of: int, chance: float) -> float:
    """Return the probability that exactly `number` of `of` independent events happen, each with probability
    `chance`."""
    return comb(of, number) * chance**number * (1 - chance) ** (of - number)
