"""Hold-out rules of a split, their tests, and sets of animals that rules name.

A scene that any rule matches (`menagerie.generators.rules.rule`) is only in the test `held_out`, in test views. With
several rules, each also has a test of its own, `held_out 1`, `held_out 2`, in the recipe's order. Rules may name the
sets of a recipe, such as "felines={cat, lion}", and those of its world (docs/splits.md, section 3).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Scene
from menagerie.envs.world import World, validate_sets
from menagerie.generators.rules.parser import parse_rule
from menagerie.generators.rules.rule import Rule
from menagerie.generators.vocabulary import Vocabulary


def set_texts(table: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Write the sets in a TOML table as recipes hold them."""
    return tuple(f"{name}={{{', '.join(members)}}}" for name, members in table.items())


def read_sets(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Read the members of each set in a recipe. Raises for a text without =, and for a second set of a name."""
    sets: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, members = (part.strip() for part in text.partition("="))
        if not equals:
            raise UserError(f"set {text!r} must be a name and its animals, such as felines={{cat, lion}}")
        if name in sets:
            raise UserError(f"set {name!r} is there twice; rename one")
        inner = members.removeprefix("{").removesuffix("}")
        sets[name] = tuple(" ".join(member.split()) for member in inner.split(",") if member.strip())
    return sets


@lru_cache(maxsize=64)
def with_sets(world: World, texts: tuple[str, ...]) -> World:
    """Return `world` with a recipe's sets added. Raises for an invalid set, and for a set whose name has other
    members in `world`.
    """
    sets, added = dict(world.sets), validate_sets(read_sets(texts), world.animals)
    for name, members in added:
        if set(sets.get(name, members)) != set(members):
            theirs, ours = (", ".join(names) for names in (sets[name], members))
            raise UserError(f"set {name!r} is {theirs} in the world {world.name!r} and {ours} here; rename one")
    return replace(world, sets=tuple((sets | dict(added)).items())) if added else world


HELD_OUT = "held_out"
MOST_RULES = 200  # a test for each


def held_out_tests(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the tests of hold-out rules, each with its rules. A test's scenes match at least one of its rules."""
    whole = {HELD_OUT: tuple(texts)} if texts else {}
    return whole | ({f"{HELD_OUT} {k}": (text,) for k, text in enumerate(texts, 1)} if len(texts) > 1 else {})


def test_label(test: str, texts: Sequence[str]) -> str:
    """Return a test's name as people read it: with its rule if it has one, "held_out 1: texture=red & animal=cat"."""
    rules = held_out_tests(texts).get(test, ())
    return f"{test}: {rules[0]}" if len(rules) == 1 else test


@lru_cache(maxsize=64)
def parse_rules(texts: tuple[str, ...], world: World) -> tuple[Rule, ...]:
    """Parse the rules of a recipe; raises for an invalid or repeated one."""
    if len(texts) > MOST_RULES:
        raise UserError(f"hold_out has {len(texts)} rules, from {texts[0]!r:.60} on; at most {MOST_RULES} are read")
    for text in texts:
        if re.search(r"\bview\b", text):
            raise UserError(f"rule {text!r}: tests have views of their own already; leave out view")
    if len(set(texts)) != len(texts):
        raise UserError(f"hold_out has a rule twice: {', '.join(texts)}")
    return tuple(parse_rule(text, world) for text in texts)


def matches_any(rules: Iterable[Rule], scene: Scene) -> bool:
    """Whether any rule matches `scene`."""
    return any(rule.matches(scene) for rule in rules)


def recorded_rules(recipe: Mapping[str, Any], words: Vocabulary) -> tuple[Rule, ...]:
    """Parse the hold-out rules that a split records, with the sets that it records. Doesn't need the world's file."""
    return rules_in(recipe, World("", words.animals, words.textures, words.backgrounds, words.sizes))


def rules_in(recipe: Mapping[str, Any], world: World) -> tuple[Rule, ...]:
    """Parse the hold-out rules of a recipe, with its sets and those of its world."""
    return parse_rules(tuple(recipe.get("hold_out", ())), with_sets(world, tuple(recipe.get("sets", ()))))
