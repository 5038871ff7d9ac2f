"""What chance decides of a scene of two, and which scenes it could have been instead.

A test draws from all scenes that its rule of construction allows. Where those are as many with a thing on the left as
with it on the right, a fair coin has decided which of the two was drawn; so it has of the order of mention, scene by
scene, and of the one assignment or order of a pair in `seen_pairs`, `unseen_order` and `seen_order`, pair by pair. A
`Turn` says what the coin was thrown for: scenes (or pairs) of one group share it.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.envs.slots import place_of
from menagerie.generators.audit.findings import rules_of
from menagerie.generators.captions.templates import swap_places, swap_textures
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.rules.rule import Rule
from menagerie.generators.storage.split_file import Split


class Turn(NamedTuple):
    """A fair coin: the group of scenes that share its fall, and the scene that the other side gives."""

    group: Callable[[Scene], Hashable]
    other: Callable[[Scene], Scene]


def by_scene(scene: Scene) -> Hashable:
    """Each scene for itself."""
    return scene


def by_pair(scene: Scene) -> Hashable:
    """All scenes of two animals in one relation."""
    return scene.relation, frozenset(thing.animal for thing in scene.things)


def by_places(scene: Scene) -> Hashable:
    """A scene and the one with its two things in each other's places, in whatever sizes and facings."""
    things = frozenset((thing.animal, thing.texture) for thing in scene.things)
    return scene.background, scene.view, scene.relation, things


def by_textures(scene: Scene) -> Hashable:
    """A scene and the one with its two textures exchanged, in whatever sizes and facings."""
    places = tuple((place_of(thing.slot), thing.animal) for thing in scene.things)
    return scene.background, scene.view, places, frozenset(thing.texture for thing in scene.things)


MENTION = Turn(by_scene, lambda scene: scene)
PLACES = Turn(by_places, swap_places)
TEXTURES = Turn(by_textures, swap_textures)
PAIR_TEXTURES = Turn(by_pair, swap_textures)
PAIR_PLACES = Turn(by_pair, swap_places)


def turn_of(signs: str, kind: str, subset: str) -> Turn | None:
    """The coin that decides a product of signs (see `menagerie.generators.audit.balance.SIGNS`) in a test; None if none
    does.

    Animals of dependence splits have one texture each in a test, by construction.
    """
    if "m" in signs:
        return MENTION
    if kind == "spatial":
        if "a" in signs:
            return TEXTURES
        return PAIR_PLACES if subset.endswith("seen_order") else PLACES  # unseen_order too
    if "p" in signs:
        return PLACES
    if kind == "binding":
        return PAIR_TEXTURES if subset == "seen_pairs" else TEXTURES
    return None


def answer_turn(kind: str, subset: str) -> Turn | None:
    """The coin that decides which of a record's two texts is the true one."""
    return turn_of("p" if kind == "spatial" else "a", kind, subset)


def rules_for(split: Split, subset: str) -> Sequence[Rule]:
    """The hold-out rules that decide whether a scene may be in a subset."""
    rules, number = rules_of(split), re.fullmatch(rf"{HELD_OUT} ([1-9]\d*)", subset)
    return rules[int(number[1]) - 1 : int(number[1])] if number else rules


def open_to(turn: Turn, rules: Sequence[Rule], scene: Scene) -> bool:
    """Whether hold-out rules leave the coin both its sides: they are true of both scenes or of neither."""
    if not rules:
        return True
    own, other = (any(rule.matches(its) for rule in rules) for its in (scene, turn.other(scene)))
    return own == other
