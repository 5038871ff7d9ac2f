"""What captions of multi-object scenes say: which objects of a scene of up to six they mention, in which order, and how
they relate.

Most captions of tests mention the two exchanged objects, and others up to the most that a training caption mentions.
Longer texts would be unfair: a model may have learnt nothing for positions that no training text reached. A caption may
state a chain of relations, each between an object and the next one. All draws depend on (seed, scene) only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Object, Scene
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
LEAST = 2  # objects in captions of tests: those whose textures are exchanged


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
        """The most objects that captions of a multi-object split mention."""
        return max(self.recipe["objects"])

    @cached_property
    def template(self) -> Template:
        return template_of(self.recipe)

    @cached_property
    def coverage(self) -> Coverage:
        """The compositions of a multi-object split."""
        return coverage_of(self.recipe, self.words.animals, self.words.textures)


def in_order(scene: Scene, telling: Telling) -> tuple[Object, ...]:
    """Return all objects of a scene, in the order in which its captions mention them."""
    return mention_order(scene, telling.seed, telling.template.mention_order)


def caption_of(
    scene: Scene, objects: Sequence[Object], telling: Telling, predicates: Sequence[str] | None = None
) -> Caption:
    """Write a caption of `objects`, which may differ from the scene's, in the phrasing drawn for the scene. Without
    `predicates`, it states the relations of the objects' slots."""
    content = content_of(scene, telling.seed, telling.template, objects)
    stated = content.predicates if predicates is None else tuple(predicates)
    return write_caption(content._replace(predicates=stated), telling.template)


def tested_objects(scene: Scene, telling: Telling) -> tuple[Object, ...]:
    """Return the objects that a test's caption mentions, in its order: the exchanged ones, and others, drawn if they
    would be more than `telling.most` together."""
    kept, most = {scene.objects[i].slot for i in exchanged(scene)}, max(telling.most, LEAST)
    if len(scene.objects) > most:
        others = [obj.slot for obj in scene.objects if obj.slot not in kept]
        drawn = generator(telling.seed, "others told", scene.key).permutation(len(others))[: most - LEAST]
        kept |= {others[i] for i in drawn}
        return tuple(obj for obj in in_order(scene, telling) if obj.slot in kept)
    return in_order(scene, telling)


def trained_objects(scene: Scene, telling: Telling) -> tuple[Object, ...]:
    """The objects that a training caption mentions, in its order; an omitted texture is "", sizes are kept."""
    chances = telling.recipe
    random = generator(telling.seed, "crowd told", scene.key)
    textured = {obj.slot: random.random() < chances["attributes"] for obj in scene.objects}
    drawn = [obj.slot for obj in scene.objects if random.random() < chances["mentioned"]]
    order = random.permutation(len(scene.objects))
    only_salient = random.random() < chances["salient"]
    most = [scene.objects[i].slot for i in order]
    told = [slot for slot in most if slot in drawn][: telling.most] or most[:1]
    if only_salient:
        told = [salient(scene).slot]
    return tuple(
        obj if textured[obj.slot] else obj._replace(texture="") for obj in in_order(scene, telling) if obj.slot in told
    )


def backwards(scene: Scene, objects: Sequence[Object], telling: Telling) -> Caption:
    """Write a caption that says the same as `caption_of`, with the objects in the opposite order.

    The objects of the chain, and those after it, are reversed separately, so that the same relations are stated.
    """
    stated = content_of(scene, telling.seed, telling.template, objects).predicates
    number = len(stated) + bool(stated)
    return caption_of(scene, (*objects[:number][::-1], *objects[number:][::-1]), telling)


def swapped(scene: Scene, objects: Sequence[Object]) -> tuple[Object, ...]:
    """Return the objects of a caption, with the textures of the scene's two exchanged objects swapped."""
    one, other = (scene.objects[i] for i in exchanged(scene))
    textures = {one.slot: other.texture, other.slot: one.texture}
    return tuple(obj._replace(texture=textures.get(obj.slot, obj.texture)) for obj in objects)


def target(scene: Scene) -> tuple[Object, Object]:
    """Return the target of a search, and the other exchanged object. The target is the first of the two that has its
    animal or texture in common with a third object; if neither has, the first."""
    pair = exchanged(scene)
    both = [scene.objects[i] for i in pair]
    others = [obj for i, obj in enumerate(scene.objects) if i not in pair]
    shared = [any(one.animal == other.animal or one.texture == other.texture for other in others) for one in both]
    first = both[shared.index(True) if any(shared) else 0]
    return first, both[both[0] == first]


def share_bound(recipe: Mapping[str, Any]) -> float:
    """Return the expected share of training captions, among those of scenes of two or more objects, that mention at
    least two objects with their textures. Only such captions say which of two textures belongs to which object."""
    from scipy.stats import binom  # loads slowly

    numbers = [n for n in recipe["objects"] if n >= LEAST]
    shares = [
        binom.pmf(k, n, recipe["mentioned"]) * binom.sf(LEAST - 1, min(k, max(recipe["objects"])), recipe["attributes"])
        for n in numbers
        for k in range(LEAST, n + 1)
    ]
    return float((1 - recipe["salient"]) * sum(shares) / max(len(numbers), 1))
