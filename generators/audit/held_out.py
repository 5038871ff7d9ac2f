"""Checks that what a hold-out rule matches is in its tests, and only there."""

import re
from collections.abc import Iterator

from menagerie.generators.audit.findings import Finding, animal_pair, first, rules_of
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.storage.split_file import Split


def check_hold_out(split: Split) -> Iterator[Finding]:
    """Scenes that a rule matches are in `held_out` or in the test of that rule, and nothing else is."""
    rules = rules_of(split)
    for name, records in split.subsets.items():
        number = re.fullmatch(rf"{HELD_OUT} ([1-9]\d*)", name)
        its = rules[int(number[1]) - 1 : int(number[1])] if number else rules
        matched = [any(rule.matches(scene) for rule in its) for scene in records.scenes]
        held_out = bool(number) or name == HELD_OUT
        strange = (s.key for s, held in zip(records.scenes, matched, strict=True) if held != held_out)
        claim = "a rule holds out every scene of" if held_out else "no rule holds out any scene of"
        yield Finding(f"{claim} {name}", *first(strange))
    if own := {name for name in split.subsets if name.startswith(f"{HELD_OUT} ")}:  # files of old have none
        expected = {f"{HELD_OUT} {k}" for k in range(1, len(rules) + 1)}
        yield Finding("every rule has a test of its own", *first(iter(sorted(own ^ expected))))
    if rules:
        pairs = {animal_pair(scene) for scene in split.subsets[HELD_OUT].scenes}
        validation = {animal_pair(scene) for scene in split.subsets["validation"].scenes}
        shared = sorted(map(sorted, pairs & validation)) if split.recipe["kind"] == "binding" else []
        yield Finding("held_out and validation share no animal pair", not shared, f"{shared[:1] or ''}")
