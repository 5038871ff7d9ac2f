"""Checks that draws made for each scene are independent: phrasings, mentions, facings, sizes, slots for counting.

The recipe gives the probability of each result of a draw. The result must have that frequency with each animal and
texture, overall and per place, on each background, in each view, and with each answer (tallies of `statistics`). A
phrasing that correlates with an answer, or a place that correlates with an animal, would give the answer away.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import COUNTING, OUTWARD, place_of
from menagerie.generators.audit.balance import SIGNS, TOGETHER, signs_of
from menagerie.generators.audit.findings import Finding, bare, rules_of, within, world_of
from menagerie.generators.audit.statistics import Tallies
from menagerie.generators.audit.texts import NO, mentioned_phrases, phrasing_in, requested_chances, salient_of
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.templates import template_of
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.storage.split_file import Records, Split

# The result, its context, its count, its probability and the number of draws.
Draws = Iterator[tuple[str, str, int, float, int]]


def check_scene_draws(split: Split) -> Iterator[Finding]:
    """Check that the draws made for each scene are independent of everything else in it."""
    tallies = Tallies()
    for name, records in split.subsets.items():
        # Tests of single rules may repeat scenes of `held_out`: in a joint count, no draw may count twice.
        together = [TOGETHER] if name != "train" and not name.startswith(f"{HELD_OUT} ") else []
        for draws, places in (
            (single_draws(split, name, records), [name, *together]),
            (shared_draws(split, name, records), [name]),
        ):
            for what, word, count, chance, number in draws:
                for where in places:
                    tallies.add(f"{what} with {word}" if word else what, where, count, chance, number)
    yield tallies.finding("phrasings, mentions, facings, sizes and places for counting go with nothing else")


def single_draws(split: Split, name: str, records: Records) -> Draws:
    """Yield the draws that are made for each scene by itself."""
    yield from phrasings(split, records)
    yield from first_mentions(split, records)
    if name == "train":
        yield from omissions(split, records)
    if split.recipe["kind"] == "counting":
        yield from counting_places(records.scenes)


def shared_draws(split: Split, name: str, records: Records) -> Draws:
    """Yield the draws that a scene shares with its swap, which may be in another test."""
    yield from facings(once(split, (scene for scene in records.scenes if scene.relation == "left/right")))
    if split.vocabulary.sizes and not name.startswith(HELD_OUT):  # there each size is a scene of its own
        yield from sizes(split, once(split, (scene for scene in records.scenes if len(scene.things) > 1)))


def words_of(thing: Thing, scene: Scene) -> list[str]:
    """The words for a thing's context: animal, texture, background, view and place. A draw may depend on none of these.

    Draws for the two things of a scene are independent, or exclude each other and then vary less.
    """
    words = (thing.texture, scene.background, f"view {scene.view}")
    return ["", thing.animal, *words, *(f"{word} {place_of(thing.slot)}" for word in words)]


def alike(what: str, came: bool, chance: float, context: Iterable[str]) -> Draws:
    """Yield the result of one draw once for each word of its context."""
    return ((what, word, int(came), chance, 1) for word in context)


def phrasings(split: Split, records: Records) -> Draws:
    """Yield which of the template's phrasings each caption has."""
    texts = template_of(split.recipe).phrasings
    if len(texts) < 2:
        return
    scenes, found = Counter(), Counter()
    for scene, text, graph in zip(records.scenes, records.captions, records.graphs, strict=True):
        context = {"", scene.background, f"view {scene.view}", *answer(scene, graph)}
        for thing in scene.things:
            context |= {f"{word}{rest}" for word in thing[:2] for rest in ("", f" {place_of(thing.slot)}")}
        scenes.update(context)
        found.update(product((phrasing_in(text, scene, texts),), context))
    for phrasing, word in product(texts, scenes):
        yield f"the phrasing {phrasing!r}", word, found[phrasing, word], 1 / len(texts), scenes[word]


def answer(scene: Scene, graph: SceneGraph) -> Iterator[str]:
    """Yield the true answers to every question that a test could ask about a scene."""
    yield f"{len(scene.things)} things"
    if len({thing.animal for thing in scene.things}) == len(scene.things) == 2:
        signs = signs_of(scene, graph)
        for product, text in SIGNS.items():
            if signs.keys() >= set(product):
                holds = prod(signs[sign] for sign in product) > 0
                yield text.format(texture="the first texture in the alphabet") + ("" if holds else ": false")


def first_mentions(split: Split, records: Records) -> Draws:
    """Yield which of two things a caption mentions first, for captions that mention both."""
    if template_of(split.recipe).mention_order != "random":
        return
    for scene, graph in zip(records.scenes, records.graphs, strict=True):
        phrases = mentioned_phrases(graph, scene)
        if len(phrases) == 2 and len(set(phrases)) == 2 and all(phrases):
            nodes = [graph.nodes.index(text) for text in phrases]
            for thing, node in zip(scene.things, nodes, strict=True):
                yield from alike("mentioned first", node == min(nodes), 0.5, words_of(thing, scene))


def omissions(split: Split, records: Records) -> Draws:
    """Yield which things training captions mention, whether they omit textures, and whether they negate something."""
    mentioned, attributes, salient, negated = chances = requested_chances(split)
    if chances == type(chances)():
        return
    for scene, graph in zip(records.scenes, records.graphs, strict=True):
        phrases = mentioned_phrases(graph, scene)
        either = mentioned + (1 - mentioned) ** 2 / 2  # at least one is mentioned
        for i, (thing, text) in enumerate(zip(scene.things, phrases, strict=True)):
            if len(phrases) == 2:
                chance = salient * (i == salient_of(scene)) + (1 - salient) * either
                yield from alike("mentioned", bool(text), chance, words_of(thing, scene))
            if text:
                yield from alike(
                    "mentioned with its texture", text == phrase(thing), attributes, words_of(thing, scene)
                )
        context = {"", scene.background, f"view {scene.view}", *(word for thing in scene.things for word in thing[:2])}
        if not rules_of(split):  # rules may leave nothing to negate
            yield from alike("a negation", any(node.startswith(NO) for node in graph.nodes), negated, context)


def counting_places(scenes: Sequence[Scene]) -> Draws:
    """Yield, for each slot of a counting scene, whether it holds a thing."""
    for scene in scenes:
        number, thing = len(scene.things), scene.things[0]
        shown = {other.slot for other in scene.things}
        context = {"", thing.animal, thing.texture, scene.background, f"view {scene.view}"}
        context |= {f"{number} things", f"{number} of {thing.animal}"}
        for slot in COUNTING:
            yield from alike(f"something {slot}", slot in shown, number / len(COUNTING), context)


def once(split: Split, scenes: Iterable[Scene]) -> list[Scene]:
    """Keep one of each scene and its swap, which share their draws; for counting, one of the scenes that differ only in
    number and slots."""
    kept: dict[Hashable, Scene] = {}
    for scene in scenes:
        if split.recipe["kind"] == "counting":
            key = (scene.background, scene.view, *scene.things[0][:2])
        else:
            plain = replace(bare(scene), view=scene.view)
            key = frozenset({plain, SWAPS[split.recipe["kind"]](plain)})
        kept.setdefault(key, scene)
    return list(kept.values())


def facings(scenes: Sequence[Scene]) -> Draws:
    """Yield, for each thing, whether it faces outward."""
    for scene in scenes:
        for thing, faces_outward in zip(scene.things, outward(scene), strict=True):
            yield from alike("facing outward", faces_outward, 0.5, words_of(thing, scene))


def sizes(split: Split, scenes: Sequence[Scene]) -> Draws:
    """Yield, for each animal, which size it has; skips scenes of which a rule holds out some size."""
    names, world, rules = split.vocabulary.sizes, world_of(split.vocabulary), rules_of(split)
    for scene in scenes:
        if rules and any(rule.matches(sized) for sized in world.in_sizes(scene) for rule in rules):
            continue
        for thing in {thing.animal: thing for thing in scene.things}.values():
            for size in names:
                yield from alike(size, thing.size == size, 1 / len(names), words_of(thing, scene))


def check_facing(split: Split) -> Iterator[Finding]:
    """Check that facings are even, and independent of the place and of each other."""
    beside = {
        name: [scene for scene in records.scenes if scene.relation == "left/right"]
        for name, records in split.subsets.items()
    }
    tested = [scene for name, scenes in beside.items() if name != "train" for scene in scenes]
    yield from (*check_even("train", beside["train"]), *check_even("tests", tested))


def check_even(name: str, scenes: Sequence[Scene]) -> Iterator[Finding]:
    """Check that half of the things in each place face outward, whichever way the other thing faces."""
    found = [outward(scene) for scene in one_of_each(scenes)]
    for what, count in {
        "things on the left that face outward": sum(left for left, _ in found),
        "things on the right that face outward": sum(right for _, right in found),
        "pairs that both face outward or both inward": sum(left == right for left, right in found),
    }.items():
        yield within(f"{what}, {name}", count, len(found), 0.5)


def outward(scene: Scene) -> tuple[bool, ...]:
    """For each thing of a scene, whether it faces outward."""
    return tuple(thing.slot.endswith(OUTWARD) for thing in scene.things)


def one_of_each(scenes: Sequence[Scene]) -> list[Scene]:
    """Keep one of the scenes that differ only by a swap: such scenes share their facing."""
    kept: dict[tuple, Scene] = {}
    for scene in scenes:
        animals, textures = (frozenset(getattr(t, name) for t in scene.things) for name in ("animal", "texture"))
        kept.setdefault((scene.background, scene.view, animals, textures), scene)
    return list(kept.values())
