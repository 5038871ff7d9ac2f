"""What captions of crowds say: which things of a scene of up to six they mention, in which order, and how they relate.

Most captions of tests mention the two exchanged things, and others up to the most that a training caption mentions.
Longer texts would be unfair: a model may have learnt nothing for positions that no training text reached. A caption may
state a chain of relations, each between a thing and the next one. All draws depend on (seed, scene) only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.incomplete import salient
from menagerie.generators.captions.templates import (
    Caption,
    Template,
    content_of,
    mention_order,
    template_of,
    write_caption,
)
from menagerie.generators.coverage import Coverage, coverage_of
from menagerie.generators.vocabulary import Vocabulary

SEARCH = "search"  # starts the names of tests whose captions mention the target alone
LEAST = 2  # things in captions of tests: those whose textures are exchanged


@dataclass(frozen=True)
class Telling:
    """What decides the captions of a split, and of its tests' tasks: its recipe, and the names of its world."""

    recipe: Mapping[str, Any]
    words: Vocabulary | None = None

    @property
    def seed(self) -> int:
        return self.recipe["seed"]

    @property
    def most(self) -> int:
        """The most things that captions of a crowd split mention."""
        return max(self.recipe["things"])

    @cached_property
    def template(self) -> Template:
        return template_of(self.recipe)

    @cached_property
    def coverage(self) -> Coverage:
        """The compositions of a crowd split."""
        return coverage_of(self.recipe, self.words.animals, self.words.textures)


def in_order(scene: Scene, telling: Telling) -> tuple[Thing, ...]:
    """Return all things of a scene, in the order in which its captions mention them."""
    return mention_order(scene, telling.seed, telling.template.mention_order)


def caption_of(
    scene: Scene, things: Sequence[Thing], telling: Telling, predicates: Sequence[str] | None = None
) -> Caption:
    """Write a caption of `things`, which may differ from the scene's, in the phrasing drawn for the scene. Without
    `predicates`, it states the relations of the things' slots."""
    content = content_of(scene, telling.seed, telling.template, things)
    stated = content.predicates if predicates is None else tuple(predicates)
    return write_caption(content._replace(predicates=stated), telling.template)


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


def trained_things(scene: Scene, telling: Telling) -> tuple[Thing, ...]:
    """The things that a training caption mentions, in its order; an omitted texture is "", sizes are kept."""
    chances = telling.recipe
    random = generator(telling.seed, "crowd told", scene.key)
    textured = {thing.slot: random.random() < chances["attributes"] for thing in scene.things}
    drawn = [thing.slot for thing in scene.things if random.random() < chances["mentioned"]]
    order = random.permutation(len(scene.things))
    only_salient = random.random() < chances["salient"]
    most = [scene.things[i].slot for i in order]
    told = [slot for slot in most if slot in drawn][: telling.most] or most[:1]
    if only_salient:
        told = [salient(scene).slot]
    return tuple(
        thing if textured[thing.slot] else thing._replace(texture="")
        for thing in in_order(scene, telling)
        if thing.slot in told
    )


def backwards(scene: Scene, things: Sequence[Thing], telling: Telling) -> Caption:
    """Write a caption that says the same as `caption_of`, with the things in the opposite order.

    The things of the chain, and those after it, are reversed separately, so that the same relations are stated.
    """
    stated = content_of(scene, telling.seed, telling.template, things).predicates
    number = len(stated) + bool(stated)
    return caption_of(scene, (*things[:number][::-1], *things[number:][::-1]), telling)


def swapped(scene: Scene, things: Sequence[Thing]) -> tuple[Thing, ...]:
    """Return the things of a caption, with the textures of the scene's two exchanged things swapped."""
    one, other = (scene.things[i] for i in exchanged(scene))
    textures = {one.slot: other.texture, other.slot: one.texture}
    return tuple(thing._replace(texture=textures.get(thing.slot, thing.texture)) for thing in things)


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
    from scipy.stats import binom  # loads slowly

    numbers = [n for n in recipe["things"] if n >= LEAST]
    shares = [
        binom.pmf(k, n, recipe["mentioned"]) * binom.sf(LEAST - 1, min(k, max(recipe["things"])), recipe["attributes"])
        for n in numbers
        for k in range(LEAST, n + 1)
    ]
    return float((1 - recipe["salient"]) * sum(shares) / max(len(numbers), 1))
