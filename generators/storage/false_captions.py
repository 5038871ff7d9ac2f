"""False captions of training images, as negatives in a loss: swapped, replaced, shuffled.

A caption is false of an image if it claims something that the scene's full caption doesn't (`relations.claims`). Which
false caption is drawn depends only on the scene, its caption and a seed.

False captions don't reveal the compositions that a split keeps for its tests. None matches a hold-out rule, names a
texture on an animal that training never shows in it, or combines animals (and their relation, if captions state one)
that training never shows together. So unseen pairs, validation pairs, unseen counts and unseen textures aren't
mentioned. Some test texts still occur: the swap of a training pair is the true caption of the tests `seen_pairs` and
`unseen_order`, and a replaced texture may be one of `different_bag`. A model reads these texts in training, as false
ones, and never sees their images.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Literal, TypeVar, get_args

import numpy as np

from menagerie.envs.core.identity import generator
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.contents import Contents
from menagerie.generators.captions.graph import Edge
from menagerie.generators.captions.relations import chain, claims, compound_names
from menagerie.generators.captions.templates import Caption, Content, write_caption
from menagerie.generators.rules.hold_out import matches_any, recorded_rules
from menagerie.generators.storage.records import Records

FalseCaption = Literal["swap", "replace", "shuffle"]
TEXT_NEGATIVES: tuple[FalseCaption, ...] = get_args(FalseCaption)
Option = TypeVar("Option")
RelatedPair = tuple[str | None, tuple[str, str]]


class FalseCaptions:
    """The false captions of a split's training images."""

    def __init__(self, train: Records) -> None:
        """Of the records of train."""
        self.train, self.recipe, self.vocabulary = train, train.recipe, train.vocabulary
        self.contents = Contents(self.recipe, self.vocabulary)
        self.rules, self.names = recorded_rules(self.recipe, self.vocabulary), compound_names(self.vocabulary)

    @cached_property
    def longest(self) -> tuple[int, int]:
        """The numbers of words and of characters in the longest training captions."""
        texts = [caption.text for caption in self.train.true_of(self.train.spread())]
        return max((len(text.split()) for text in texts), default=0), max(map(len, texts), default=0)

    def draw(self, kind: str, content: Content, text: str, seed: int) -> Caption | None:
        """Draw a false caption by the seed: a replaced one if `kind` is "replace", else a shuffled one. None if
        there is none. `text` is that of the content's caption."""
        random, truth = generator(seed, "false caption", kind, text), self.truth(content.scene)
        alternatives = self.replace_part(content, random) if kind == "replace" else shuffle_objects(content, random)
        for alternative in alternatives:
            false = write_caption(alternative, self.contents.template)
            affirmed = tuple(node for node in false.graph.nodes if not node.startswith("no "))
            said = claims(false.graph._replace(nodes=affirmed), self.names)
            if self.usable(alternative, false.text) and not said <= truth:
                return false
        return None

    def truth(self, scene: Scene) -> frozenset[str]:
        """Return everything that captions may state and that is true of a scene, as claims."""
        graph = write_caption(Content(scene, scene.objects), self.contents.template).graph
        related = scene.relations if self.contents.template.relations else ()
        edges = (Edge(RELATIONS[name].predicates[0], first, second) for name, first, second in related)
        return claims(graph._replace(edges=tuple(edges)), self.names)

    def usable(self, content: Content, text: str) -> bool:
        """Return whether a text reveals nothing that is kept for tests, and isn't longer than the longest training
        caption, neither in words nor in characters; models are built for that length.
        """
        described = Scene(content.scene.background, content.objects)
        return self.allows(described) and len(text.split()) <= self.longest[0] and len(text) <= self.longest[1]

    def allows(self, described: Scene) -> bool:
        """Return whether training shows each animal of the described scene in its texture and the animals together, and
        no rule holds the scene out."""
        there = all(obj[:2] in self.textured for obj in described.objects if obj.texture)
        return there and self.pairs_of(described) <= self.pairs and not matches_any(self.rules, described)

    @cached_property
    def textured(self) -> set[tuple[str, str]]:
        """All (animal, texture) that training shows."""
        return {obj[:2] for scene in self.train.alike("animal", "texture") for obj in scene.objects}

    @cached_property
    def pairs(self) -> set[RelatedPair]:
        """Every two animals that training shows together."""
        fields = ("animal", "slot") if self.contents.template.relation else ("animal",)
        return set().union(*map(self.pairs_of, self.train.alike(*fields)))

    def pairs_of(self, scene: Scene) -> set[RelatedPair]:
        """Every two animals of a scene, and their relation if captions state that of two."""
        relation = scene.relation if self.contents.template.relation else None
        return {(relation, two) for two in combinations(sorted(obj.animal for obj in scene.objects), 2)}

    def replace_part(self, content: Content, random: np.random.Generator) -> Iterator[Content]:
        """Yield contents that differ in one animal, texture, size or predicate: all of one field, then all of the next,
        fields and contents in random order."""
        v, shown = self.vocabulary, content.scene.objects
        names = {
            "animal": [name for name in v.animals if name not in {obj.animal for obj in shown}],
            "texture": [name for name in v.textures if name not in {obj.texture for obj in shown}],
            "size": list(v.sizes),
        }
        for field in shuffle_options([*names, "predicate"], random):
            if field == "predicate":
                yield from shuffle_options(self.otherwise_related(content), random)
                continue
            stated = [kind for kind in content.kinds if getattr(kind, field)]
            for kind, name in shuffle_options(list(product(stated, names[field])), random):
                new = kind._replace(**{field: name})
                objects = (new._replace(slot=t.slot) if t._replace(slot="") == kind else t for t in content.objects)
                yield content._replace(objects=tuple(objects))

    def otherwise_related(self, content: Content) -> list[Content]:
        """Return copies of the content with its two objects in the split's other relations; none if it states no
        relation. The first object gets a relation's first slot by name or, unless the template says otherwise, its
        second."""
        if not content.predicates:
            return []
        others = [name for name in self.recipe.get("relations", ()) if name != content.scene.relation]
        steps = (1, -1) if self.contents.template.mention_order == "random" else (1,)
        found = []
        for slots in (sorted(RELATIONS[name].slots)[::step] for name in others for step in steps):
            objects = tuple(obj._replace(slot=slot) for obj, slot in zip(content.objects, slots, strict=True))
            found.append(content._replace(objects=objects, predicates=chain(slots, 1)))
        return found


def shuffle_objects(content: Content, random: np.random.Generator) -> Iterator[Content]:
    """Yield contents with the animals, textures and sizes of two objects redistributed, in random order.

    An animal only changes places with an animal, a texture with a texture and a size with a size. Otherwise a text
    model could tell without the image that "a red dog and a white desert in the cat" is false. If captions state no
    relation and there are no sizes, only swaps of textures are false.
    """
    if len(content.kinds) != len(content.objects) or len(content.objects) < 2:
        return
    chosen = list(combinations(range(len(content.objects)), 2))
    for pair in shuffle_options(chosen, random) if len(chosen) > 1 else chosen:
        two = [content.objects[i] for i in pair]
        orders = list(permutations(two))
        for animals, textures, sizes in shuffle_options(list(product(orders, repeat=3)), random):
            redistributed = zip(pair, animals, textures, two, sizes, strict=True)
            objects = {i: Object(a.animal, t.texture, place.slot, s.size) for i, a, t, place, s in redistributed}
            yield content._replace(objects=tuple(objects.get(i, obj) for i, obj in enumerate(content.objects)))


def shuffle_options(options: Sequence[Option], random: np.random.Generator) -> list[Option]:
    return [options[i] for i in random.permutation(len(options))]
