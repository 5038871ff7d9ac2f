"""Which things captions of crowds mention, which of them first, and whether with textures.

`crowd_draws` compares how often each comes with its probability: the draws must depend on nothing in the scene.
"""

from menagerie.envs.scene import Scene, Thing
from menagerie.generators.audit.crowd_texts import draws_mentions, foremost, numbers_told
from menagerie.generators.audit.scene_draws import Draws, alike
from menagerie.generators.audit.texts import mentioned_phrases
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.templates import template_of
from menagerie.generators.storage.split_file import Records, Split


def contexts(thing: Thing, scene: Scene) -> list[str]:
    """The words for what a draw for a thing could depend on. At most one thing of most scenes has each of them, because
    the draws for the things of a scene may depend on each other."""
    words = (thing.animal, thing.texture, scene.background, f"view {scene.view}")
    return [thing.animal, thing.texture, thing.slot, *(f"{word} {thing.slot}" for word in words)]


def first_mentions(split: Split, records: Records) -> Draws:
    """Yield which of the things that a caption mentions it mentions first."""
    if template_of(split.recipe).mention_order != "random":
        return
    for scene, graph in zip(records.scenes, records.graphs, strict=True):
        phrases = mentioned_phrases(graph, scene)
        told = [(thing, graph.nodes.index(text)) for thing, text in zip(scene.things, phrases, strict=True) if text]
        start = min((node for _, node in told), default=0)
        for thing, node in told if len(told) > 1 else ():
            yield from alike("mentioned first", node == start, 1 / len(told), contexts(thing, scene))


def omissions(split: Split, name: str, records: Records) -> Draws:
    """Yield which things training captions mention, and whether they omit textures."""
    recipe = split.recipe
    if name != "train" or not draws_mentions(recipe):
        return
    for scene, graph in zip(records.scenes, records.graphs, strict=True):
        salient = foremost(scene)
        for thing, text in zip(scene.things, mentioned_phrases(graph, scene), strict=True):
            chance = chance_of_mention(recipe, len(scene.things), thing == salient)
            yield from alike("mentioned", bool(text), chance, contexts(thing, scene))
            if text:
                textured = text == phrase(thing)
                yield from alike("mentioned with its texture", textured, recipe["attributes"], contexts(thing, scene))


def chance_of_mention(recipe: dict, things: int, salient: bool) -> float:
    """The probability that a training caption mentions one of some things."""
    most = max(recipe["things"])
    share = sum(k * chance for k, chance in numbers_told(things, recipe["mentioned"], most).items()) / things
    return recipe["salient"] * salient + (1 - recipe["salient"]) * share
