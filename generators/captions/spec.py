"""What captions of a split say: which objects of a scene they mention, in which order, and what they leave out.

Captions of tests mention everything, but of scenes of many objects most mention the two exchanged objects, and others
up to the most that a training caption mentions. Longer texts would be unfair: a model may have learnt nothing for
positions that no training text reached. A caption may state a chain of relations, each between an object and the next
one.

Training captions may be incomplete, as those of photographs are, with which CLIP fails to learn binding (Gurung,
Hoffmann and Brox 2025, "Common data properties limit object-attribute binding in CLIP"): objects are not mentioned,
attributes are left out, and salient objects are mentioned more often. To add such a field to recipes, add an entry to
`CAPTION_FIELDS`. All draws depend on (seed, scene) only; the words in their seeds are constants.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS, size_factor
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.contents import exchanged_objects
from menagerie.generators.captions.relations import chain
from menagerie.generators.captions.templates import (
    Caption,
    Content,
    Template,
    content_of,
    mention_order,
    template_of,
    write_caption,
)
from menagerie.generators.coverage import Coverage, coverage_of
from menagerie.generators.rules.hold_out import matches_any, rules_in
from menagerie.generators.vocabulary import Vocabulary

SEARCH = "search"  # starts the names of tests whose captions mention the target alone
LEAST = 2  # objects in captions of tests: those whose textures are exchanged


@dataclass(frozen=True)
class CaptionSpec:
    """What decides the captions of a split and of its tests' tasks: its recipe, and the names of its world."""

    recipe: Mapping[str, Any]
    words: Vocabulary | None = None

    @property
    def seed(self) -> int:
        return self.recipe["seed"]

    @property
    def multi_object(self) -> bool:
        """Whether scenes show up to six objects, and captions some of them."""
        return "coverage" in self.recipe

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

    def order(self, scene: Scene) -> tuple[Object, ...]:
        """Return all objects of a scene, in the order in which its captions mention them."""
        return mention_order(scene, self.seed, self.template.mention_order)

    def caption(self, scene: Scene, objects: Sequence[Object], predicates: Sequence[str] | None = None) -> Caption:
        """Write a caption of `objects`, which may differ from the scene's, in the phrasing drawn for the scene. Without
        `predicates`, it states the relations of the objects' slots."""
        content = content_of(scene, self.seed, self.template, objects)
        chained = content.predicates if predicates is None else tuple(predicates)
        return write_caption(content._replace(predicates=chained), self.template)

    def backwards(self, scene: Scene, objects: Sequence[Object]) -> Caption:
        """Write a caption that says the same as `caption`, with the objects in the opposite order.

        The objects of the chain, and those after it, are reversed separately, so that the same relations are stated.
        """
        chained = content_of(scene, self.seed, self.template, objects).predicates
        number = len(chained) + bool(chained)
        return self.caption(scene, (*objects[:number][::-1], *objects[number:][::-1]))

    def tested_objects(self, scene: Scene) -> tuple[Object, ...]:
        """Return the objects that a test's caption of a multi-object scene mentions, in its order: the exchanged ones,
        and others, drawn if they would be more than `most` together."""
        kept, most = {scene.objects[i].slot for i in exchanged_objects(scene)}, max(self.most, LEAST)
        others = [obj.slot for obj in scene.objects if obj.slot not in kept]
        if len(scene.objects) > most:
            drawn = generator(self.seed, "others told", scene.key).permutation(len(others))[: most - LEAST]
            others = [others[i] for i in drawn]
        return tuple(obj for obj in self.order(scene) if obj.slot in kept.union(others))

    def training_content(self, scene: Scene) -> Content:
        """What a training caption says of a scene: what `CAPTION_FIELDS` leave of it."""
        content = content_of(scene, self.seed, self.template)
        for name, (default, change) in CAPTION_FIELDS.items():
            if self.recipe.get(name, default) != default:
                content = change(content, self)
        slots = [obj.slot for obj in content.objects]
        return content._replace(predicates=chain(slots, self.template.relations))


def mention_some(content: Content, spec: CaptionSpec) -> Content:
    """Leave out each object with the probability 1 - `mentioned`; one is always mentioned."""
    slots, _ = draw_mentions(content.scene, spec)
    return content._replace(objects=tuple(obj for obj in content.objects if obj.slot in slots))


def mention_salient(content: Content, spec: CaptionSpec) -> Content:
    """Mention only the salient object, with the probability `salient`."""
    draw = draw_mentions(content.scene, spec)[1]
    return content._replace(objects=(salient_object(content.scene),)) if draw < spec.recipe["salient"] else content


def draw_mentions(scene: Scene, spec: CaptionSpec) -> tuple[list[str], float]:
    """Draw the slots of mentioned objects, at least one, and a number: below `salient` only that one is mentioned."""
    slots, chance = [obj.slot for obj in scene.objects], spec.recipe.get("mentioned", 1)
    if spec.multi_object:
        random = generator(spec.seed, "crowd told", scene.key)
        mentioned = random.random((2, len(slots)))[1] < chance  # the first are those of textures
        order = random.permutation(len(slots))
        drawn = [slots[i] for i in order if mentioned[i]][: spec.most]
        return drawn or [slots[order[0]]], random.random()
    random = generator(spec.seed, "things told", scene.key)
    draw, spare = random.random(), slots[random.integers(len(slots))]
    return [slot for slot in slots if random.random() < chance] or [spare], draw


def omit_textures(content: Content, spec: CaptionSpec) -> Content:
    """Leave out the texture of each object with the probability 1 - `attributes`."""
    scene = content.scene
    random = generator(spec.seed, "crowd told" if spec.multi_object else "textures told", scene.key)
    textured = {obj.slot for obj in scene.objects if random.random() < spec.recipe["attributes"]}
    objects = (obj if obj.slot in textured else obj._replace(texture="") for obj in content.objects)
    return content._replace(objects=tuple(objects))


def negate(content: Content, spec: CaptionSpec) -> Content:
    """With the probability `negated`, negate an object (Alhamoud et al. 2025, "Vision-language models do not understand
    negation": hybrid captions)."""
    return content._replace(denied=draw_denied(content.scene, spec))


def draw_denied(scene: Scene, spec: CaptionSpec) -> tuple[Object, ...]:
    """Draw whether a training caption negates an object that the scene doesn't show, and which one.

    Objects that a rule holds out are never negated, so that no training text names them.
    """
    random = generator(spec.seed, "denied", scene.key)
    if random.random() >= spec.recipe["negated"]:
        return ()
    world = load_world(spec.recipe["world"])
    rules = rules_in(spec.recipe, world)
    allowed = [obj for obj in absent_objects(scene, world) if not matches_any(rules, Scene(scene.background, (obj,)))]
    return (allowed[random.integers(len(allowed))],) if allowed else ()


# Fields of recipes that change what training captions say, in this order: the value that changes nothing, and how.
CAPTION_FIELDS: dict[str, tuple[float, Callable[[Content, CaptionSpec], Content]]] = {
    "mentioned": (1.0, mention_some),
    "salient": (0.0, mention_salient),
    "attributes": (1.0, omit_textures),
    "negated": (0.0, negate),
}


def absent_objects(scene: Scene, words: World | Vocabulary) -> list[Object]:
    """Return all objects, in every size, whose animal and texture are together neither in the scene nor in its texture
    swap."""
    present = set(product((obj.animal for obj in scene.objects), (obj.texture for obj in scene.objects)))
    objects = product(words.animals, words.textures, words.sizes or ("",))
    return [Object(*pair, "center", size) for *pair, size in objects if tuple(pair) not in present]


def salient_object(scene: Scene) -> Object:
    """The salient object of a scene: the biggest of the foremost row, and of several equally big ones the first in slot
    order.

    In worlds without sizes all animals have about one visual size, and visible areas are known only after rendering;
    there the first slot is salient by definition.
    """
    return min(scene.objects, key=lambda obj: (SLOTS[obj.slot].position[1], -size_factor(obj.size)))


def swap_exchanged_textures(scene: Scene, objects: Sequence[Object]) -> tuple[Object, ...]:
    """Return the objects of a caption, with the textures of the scene's two exchanged objects swapped."""
    one, other = (scene.objects[i] for i in exchanged_objects(scene))
    textures = {one.slot: other.texture, other.slot: one.texture}
    return tuple(obj._replace(texture=textures.get(obj.slot, obj.texture)) for obj in objects)


def search_target(scene: Scene) -> Object:
    """Return the target of a search: the first of the two exchanged objects that has its animal or texture in common
    with a third object; if neither has, the first."""
    pair = [scene.objects[i] for i in exchanged_objects(scene)]
    others = [obj for obj in scene.objects if obj not in pair]
    shared = [any(one.animal == other.animal or one.texture == other.texture for other in others) for one in pair]
    return pair[shared == [False, True]]


def expected_binding_share(recipe: Mapping[str, Any]) -> float:
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
