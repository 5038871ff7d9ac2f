"""Defines the finding that a check of the audit yields, and helpers that several checks share."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.envs.slots import COUNTING, place_of
from menagerie.generators.rules.hold_out import HELD_OUT, recorded_rules, world_of
from menagerie.generators.rules.hold_out import leave_any as leave_any_of
from menagerie.generators.rules.rule import Rule
from menagerie.generators.storage.split_file import Split

REQUESTED_FRACTION = ": the requested fraction"  # ends the claims that `nearest` makes


class Finding(NamedTuple):
    """The result of one check: its claim, whether it holds, and the numbers or the first counterexample."""

    claim: str
    holds: bool
    detail: str
    skipped: bool = False
    """Whether the check wasn't done, for the reason in `detail`; then `holds` has no meaning."""


def first(counterexamples: Iterator[str]) -> tuple[bool, str]:
    """Return (True, "") if there is no counterexample, else False and a text with the first one."""
    counterexample = next(iter(counterexamples), None)
    return counterexample is None, "" if counterexample is None else f"first: {counterexample}"


def skipped(claim: str, reason: str) -> Finding:
    """Make the finding of a check that couldn't be done here: it counts as no failure, but is shown."""
    return Finding(claim, True, reason, skipped=True)


def nearest(what: str, count: int, fraction: float, totals: Iterable[int]) -> Finding:
    """Make a finding on whether `count` is the whole number nearest to `fraction` of one of `totals`."""
    off, total = min((abs(count - fraction * total), total) for total in totals)
    realised = count / total if total else 0.0
    detail = f"{count} of {total} = {realised:.3f}, requested {fraction:.3f}"
    return Finding(what + REQUESTED_FRACTION, off <= 0.5 + 1e-9, detail)


def within(what: str, count: int, total: int, chance: float) -> Finding:
    """Make a finding on whether `count` / `total` differs from the probability `chance` by at most 4 standard errors
    and one draw.

    Probabilities 0 and 1 allow no deviation. A correct split fails by chance once in some 15 000 times.
    """
    error = (chance * (1 - chance) / total) ** 0.5 if total else 0.0
    realised = count / total if total else chance
    tolerance = 4 * error + 1 / total if error else 1e-9
    detail = f"{count} of {total} = {realised:.3f}, requested {chance:.3f} within {tolerance:.3f}"
    return Finding(f"{what}: the requested share", abs(realised - chance) <= tolerance, detail)


def animal_pair(scene: Scene) -> frozenset[str] | None:
    """The two animals of a scene, as an unordered pair; None if it shows fewer or more different animals."""
    animals = frozenset(thing.animal for thing in scene.things)
    return animals if len(animals) == 2 else None


def rules_of(split: Split) -> tuple[Rule, ...]:
    return recorded_rules(split.recipe, split.vocabulary)


def shown_objects(split: Split) -> set[tuple[str, str]] | None:
    """All (animal, texture) that train shows, alone or in a pair; None if the recipe holds no objects out."""
    if split.recipe.get("objects", 1.0) == 1.0:
        return None
    return {thing[:2] for scene in split.subsets["train"].scenes for thing in scene.things}


def rule_number(subset: str) -> int:
    """The number, from 1, of the hold-out rule that a subset tests; 0 for a subset that tests no single rule."""
    match = re.fullmatch(rf"{HELD_OUT} ([1-9]\d*)", subset)
    return int(match[1]) if match else 0


def rules_for(split: Split, subset: str) -> tuple[Rule, ...]:
    """The hold-out rules that decide whether a scene may be in a subset."""
    rules, number = rules_of(split), rule_number(subset)
    return rules[number - 1 : number] if number else rules


def leave_any(split: Split, scenes: Iterable[Scene]) -> bool:
    """Whether the rules leave at least one of `scenes`, in any sizes of its animals."""
    return leave_any_of(rules_of(split), world_of(split.vocabulary), scenes)


def trainable(split: Split, unusable: int) -> range:
    """The possible numbers of trainable pairs: all pairs outside reserve and validation, less the `unusable` ones,
    which have no scene left after what is held out.

    It is a range because the file doesn't record how many unusable pairs are in the reserve or in validation.
    """
    n_pairs = len(split.vocabulary.animals) * (len(split.vocabulary.animals) - 1) // 2
    shares = (split.recipe[name] for name in ("reserve", "validation"))
    most = n_pairs - sum(max(round(share * n_pairs), share > 0) for share in shares)
    return range(max(most - unusable, 0), most + 1)


def bare(scene: Scene, sizes: bool = False) -> Scene:
    """The scene without the draws made for it: in view 0, without facings and, unless `sizes`, without sizes. Slots for
    counting become the first ones."""
    things = scene.things
    counted = things[0].slot in COUNTING
    slots = COUNTING[: len(things)] if counted else [place_of(thing.slot) for thing in things]
    placed = zip(things, slots, strict=True)
    things = tuple(thing._replace(slot=slot, size=thing.size if sizes else "") for thing, slot in placed)
    return replace(scene, things=things, view=0)


def parts(scene: Scene) -> set[str]:
    """The parts of a scene whose frequencies are checked: its background, and for each thing its animal, texture and
    size, alone and combined with background, place and each other. For counting, the number replaces the place."""
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
