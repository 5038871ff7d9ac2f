"""Checks that records are in their kind's fixed order, so that no part of a file is biased towards an answer.

Every kind lists its scenes by nested loops over views, backgrounds, pairs, textures and places, and draws keep that
order. Only the sequence of pairs (or assignments, orders, counted animals) is random, and it must be the same on each
background and in each view. Draws made for each pair must not depend on that sequence (`draws.check_pair_draws`).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.envs.slots import SINGLE_SLOTS
from menagerie.generators.audit.findings import Finding, first, skipped
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.storage.split_file import Split
from menagerie.generators.vocabulary import Vocabulary

CLAIM = "records stand in the order of their kind, in which answers are mixed"


class Position(NamedTuple):
    """A scene's position in its subset, in three parts: its place in the outer loops; the item, such as a pair, whose
    sequence is random; and its place among the scenes of that item."""

    outer: tuple[int, ...]
    part: Hashable
    inner: tuple[int, ...]


def check_sequence(split: Split) -> Iterator[Finding]:
    """Check that every subset has its records in the order that its kind prescribes."""
    if split.recipe["kind"] not in POSITION_OF:
        yield skipped(CLAIM, f"the order of {split.recipe['kind']} isn't written")
        return
    wrong = (f"{scene.key} of {name}" for name in split.subsets if (scene := out_of_order(split, name)))
    yield Finding(CLAIM, *first(wrong))


def out_of_order(split: Split, name: str) -> Scene | None:
    """The first record of a subset that isn't in its kind's order; None if all are."""
    place = held_out_position if name.startswith(HELD_OUT) else POSITION_OF[split.recipe["kind"]]
    scenes = split.subsets[name].scenes
    places = [place(split, name, scene) for scene in scenes]
    for before, here, scene in zip(places, places[1:], scenes[1:], strict=False):
        same = (before.outer, before.part) == (here.outer, here.part)
        if here.outer < before.outer or (same and here.inner <= before.inner):
            return scene
    turns = (group for _, group in groupby(places, lambda spot: spot.outer))  # one iteration of the outer loops
    parts = one_sequence([[part for part, _ in groupby(turn, lambda spot: spot.part)] for turn in turns])
    return next((scene for scene, here in zip(scenes, places, strict=True) if here.part in parts), None)


def one_sequence(groups: Iterable[Sequence[Hashable]]) -> Sequence[Hashable]:
    """Items that the groups have in different orders; empty if one sequence fits the orders of all groups."""
    later = TopologicalSorter()
    for group in groups:
        for part, following in pairwise(group):
            later.add(following, part)
    try:
        later.prepare()
    except CycleError as error:
        return error.args[1]
    return ()


def numbered(names: Sequence[str], *given: str) -> tuple[int, ...]:
    """The indices of `given` in `names`; -1 for an empty size."""
    return tuple(names.index(name) if name else -1 for name in given)


def single_position(split: Split, scene: Scene, *outer: int) -> Position:
    """The position of a scene of a single thing in a binding or spatial split, which lists such scenes by view and
    slot."""
    v, (thing,) = split.vocabulary, scene.things
    relations = split.recipe.get("relations", ("left/right",))
    slots = split.recipe.get("singles_slots") or [slot for relation in relations for slot in SINGLE_SLOTS[relation]]
    names = numbered(v.backgrounds, scene.background) + described(v, thing.animal, thing.texture, thing.size)
    return Position(outer, "", (scene.view, *numbered(slots, thing.slot), *names))


def described(v: Vocabulary, animal: str, texture: str, size: str) -> tuple[int, ...]:
    """The indices of an animal, its texture and its size."""
    return numbered(v.animals, animal) + numbered(v.textures, texture) + numbered(v.sizes, size)


def pair_numbers(split: Split, scene: Scene) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The indices of a pair's animals in the world's order, of their textures, and whether the scene shows them
    reversed."""
    v = split.vocabulary
    things = [described(v, thing.animal, thing.texture, "")[:2] for thing in scene.things]
    (one, textures), (other, other_textures) = sorted(things)
    return (one, other), (textures, other_textures), int(things[0][0] == other)


def binding_position(split: Split, name: str, scene: Scene) -> Position:
    """The position of a scene in a binding split, which lists its scenes pair by pair. In train and `train_pairs`,
    where a pair may have two assignments of textures, it lists them assignment by assignment."""
    if len(scene.things) == 1:
        return single_position(split, scene, 0)
    animals, textures, turned = pair_numbers(split, scene)
    inner = (scene.view, *numbered(split.vocabulary.backgrounds, scene.background), turned)
    if name in ("train", "train_pairs"):
        return Position((1,), (animals, textures), inner)
    return Position((1,), animals, (*textures, *inner))


def grounds(split: Split, scene: Scene) -> tuple[int, int]:
    return scene.view, split.vocabulary.backgrounds.index(scene.background)


def spatial_position(split: Split, name: str, scene: Scene) -> Position:
    """The position of a scene in a spatial split, which lists its scenes by relation, then by view and background, then
    order by order."""
    if len(scene.things) == 1:
        return single_position(split, scene, -1)
    textures = numbered(split.vocabulary.textures, *(thing.texture for thing in scene.things))
    relation = list(split.recipe["relations"]).index(scene.relation)
    part = (relation, *(thing.animal for thing in scene.things))
    return Position((relation, *grounds(split, scene)), part, textures)


def dependence_position(split: Split, name: str, scene: Scene) -> Position:
    """The position of a scene in a dependence split: on each background single animals come first, then pairs, order by
    order."""
    animals = tuple(thing.animal for thing in scene.things)
    if len(animals) > 1:
        return Position((*grounds(split, scene), 1), animals, ())
    v, thing = split.vocabulary, scene.things[0]
    inner = numbered(v.animals, thing.animal) + numbered(v.sizes, thing.size)
    return Position((*grounds(split, scene), 0), "", inner)


def counting_position(split: Split, name: str, scene: Scene) -> Position:
    """The position of a scene in a counting split: in train single animals come first; all others are listed by
    view, then by background, then animal by animal."""
    v, thing, number = split.vocabulary, scene.things[0], len(scene.things)
    if name == "train" and number == 1:
        return Position((0, *grounds(split, scene)), "", described(v, thing.animal, thing.texture, thing.size))
    inner = (*numbered(v.textures, thing.texture), number)
    return Position((1, *grounds(split, scene)), thing.animal, inner)


def held_out_position(split: Split, name: str, scene: Scene) -> Position:
    """The position of a scene in a test of hold-out rules. Such a test lists pairs in the world's order, a spatial one
    anew for each relation and background; all views of a scene stand together."""
    animals, textures, turned = pair_numbers(split, scene)
    ground = split.vocabulary.backgrounds.index(scene.background)
    sizes = numbered(split.vocabulary.sizes, *(thing.size for thing in sorted(scene.things)))
    if split.recipe["kind"] == "binding":
        return Position((), "", (*animals, *textures, ground, turned, *sizes, scene.view))
    relation = list(split.recipe["relations"]).index(scene.relation)
    textures = numbered(split.vocabulary.textures, *(thing.texture for thing in scene.things))
    return Position((), "", (relation, ground, *animals, turned, *textures, *sizes, scene.view))


POSITION_OF: dict[str, Callable[[Split, str, Scene], Position]] = {
    "binding": binding_position,
    "spatial": spatial_position,
    "dependence": dependence_position,
    "counting": counting_position,
}
