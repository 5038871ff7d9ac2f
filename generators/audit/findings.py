"""What all parts of the audit share."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from envs.scene import Scene
from envs.world import World
from generators.rules.rule import Rule, parse_rule
from generators.storage.split_file import Split
from generators.vocabulary import Vocabulary

ASKED_FRACTION = ": the asked fraction"  # ends the claims of `nearest`


class Finding(NamedTuple):
    """One check: what it claims, whether it holds, and the figures or the first offender."""

    claim: str
    holds: bool
    detail: str


def first(offenders: Iterator[str]) -> tuple[bool, str]:
    """(True, "") for no offender, else (False, the first of them)."""
    offender = next(iter(offenders), None)
    return offender is None, "" if offender is None else f"first: {offender}"


def nearest(what: str, found: int, fraction: float, totals: Iterable[int]) -> Finding:
    """Whether `found` of one of `totals` is as near to `fraction` as a whole number gets."""
    off, total = min((abs(found - fraction * total), total) for total in totals)
    realised = found / total if total else 0.0
    detail = f"{found} of {total} = {realised:.3f}, asked {fraction:.3f}"
    return Finding(what + ASKED_FRACTION, off <= 0.5 + 1e-9, detail)


def within(what: str, found: int, total: int, chance: float) -> Finding:
    """Whether `found` of `total` draws is within 4 standard errors and one draw of `chance`; one that is
    certain, or impossible, is exactly that. A sound split fails by chance once in some 15 000 times."""
    error = (chance * (1 - chance) / total) ** 0.5 if total else 0.0
    realised = found / total if total else chance
    tolerance = 4 * error + 1 / total if error else 1e-9
    detail = f"{found} of {total} = {realised:.3f}, asked {chance:.3f} within {tolerance:.3f}"
    return Finding(f"{what}: the asked share", abs(realised - chance) <= tolerance, detail)


def animal_pair(scene: Scene) -> frozenset[str] | None:
    """The unordered pair of two different animals; None for a lone one, or several alike."""
    animals = frozenset(thing.animal for thing in scene.things)
    return animals if len(animals) == 2 else None


@cache
def _rules(texts: tuple[str, ...], vocabulary: Vocabulary) -> tuple[Rule, ...]:
    return tuple(parse_rule(text, world_of(vocabulary)) for text in texts)


def world_of(vocabulary: Vocabulary) -> World:
    """The world that a vocabulary names, without what is drawn."""
    return World("", vocabulary.animals, vocabulary.textures, vocabulary.backgrounds, vocabulary.sizes)


def rules_of(split: Split) -> tuple[Rule, ...]:
    """The hold-out rules that the split says it has."""
    return _rules(tuple(split.recipe.get("hold_out", ())), split.vocabulary)


def leave_any(split: Split, scenes: Iterable[Scene]) -> bool:
    """Whether the rules leave any of some scenes, whatever the sizes of its animals."""
    rules, world = rules_of(split), world_of(split.vocabulary)
    sized = (one for scene in scenes for one in world.in_sizes(scene))
    return any(not any(rule.matches(scene) for rule in rules) for scene in sized)


def trainable(split: Split, unusable: int) -> range:
    """How many pairs a fraction may count: all but those of reserve and validation.

    Of the `unusable` pairs, which the rules leave nothing of, the file doesn't say which are in the
    reserve anyway.
    """
    n_pairs = len(split.vocabulary.animals) * (len(split.vocabulary.animals) - 1) // 2
    shares = (split.recipe[name] for name in ("reserve", "validation"))
    most = n_pairs - sum(max(round(share * n_pairs), share > 0) for share in shares)
    return range(max(most - unusable, 0), most + 1)
