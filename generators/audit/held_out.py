"""Checks of what train must not show, in splits of every kind: scenes, counterfactuals and views of tests, and what a
hold-out rule matches."""

import re
from collections.abc import Iterator

import numpy as np

from menagerie.generators.audit.findings import (
    Finding,
    animal_pair,
    compositions_in,
    compositions_of,
    every,
    none,
    rules_of,
)
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.rules.hold_out import HELD_OUT, matches_any
from menagerie.generators.storage.split_file import Split


def check_hold_out(split: Split) -> Iterator[Finding]:
    """Check that some rule matches each scene of `held_out`, that each rule matches the scenes of its own test, and
    that no rule matches any other scene. Check that each of several rules has a test of its own, and, for binding, that
    `held_out` and validation share no animal pair."""
    rules = rules_of(split)
    for name, records in split.subsets.items():
        one = re.fullmatch(rf"{HELD_OUT} ([1-9]\d*)", name)
        tested, held_out = rules[int(one[1]) - 1 :][:1] if one else rules, name == HELD_OUT or one is not None
        claim = "a rule holds out every scene of" if held_out else "no rule holds out any scene of"
        strange = (scene.key for scene in records.scenes if matches_any(tested, scene) != held_out)
        yield none(f"{claim} {name}", strange)
    single = {name for name in split.subsets if name.startswith(f"{HELD_OUT} ")}
    if single or len(rules) > 1:  # a single rule is tested by `held_out`
        expected = {f"{HELD_OUT} {k}" for k in range(1, len(rules) + 1)}
        yield none("every rule has a test of its own", sorted(single ^ expected))
    if rules and split.recipe["kind"] == "binding":
        tested, apart = ({animal_pair(s) for s in split.subsets[name].scenes} for name in (HELD_OUT, "validation"))
        yield none("held_out and validation share no animal pair", map(str, map(sorted, tested & apart)))


def check_disjoint(split: Split) -> Iterator[Finding]:
    """Check that no scene of train is in a test or in validation, or is the counterfactual of such a scene."""
    train, swap = set(split.subsets["train"].scenes), SWAPS[split.recipe["kind"]]
    for name, records in split.subsets.items():
        if name != "train":
            there = (scene.key for scene in records.scenes if scene in train)
            yield none(f"no scene of {name} is in train", there, f"{len(records)} scenes")
            counterfactuals = map(swap, records.scenes)
            yield every(
                f"no counterfactual of a scene of {name} is in train", counterfactuals, lambda scene: scene not in train
            )


def check_counterfactuals(split: Split) -> Iterator[Finding]:
    """Check that the counterfactual of each record is its swapped scene, and that only records of train lack one: those
    whose swapped scene isn't in train."""
    swap = SWAPS[split.recipe["kind"]]
    alone, other = [], []
    for name, records in split.subsets.items():
        rows, scenes, there = records.counterfactual, records.scenes, set(records.scenes)
        has, lacks = (np.flatnonzero(of).tolist() for of in (rows >= 0, rows < 0))
        shown = zip(has, records.scenes_at(rows[has]), strict=True)
        other += [f"{scenes[i].key} of {name}" for i, scene in shown if scene != swap(scenes[i])]
        swapped = (i for i in lacks if len(scenes[i].objects) > 1 or records.columns["negative"][i])
        wrong = lacks if name != "train" else (i for i in swapped if swap(scenes[i]) in there)
        alone += [f"{scenes[i].key} of {name}" for i in wrong]
    yield none("scenes whose swap is there have counterfactuals", alone)
    yield none("every counterfactual is the swapped scene", other)
    beyond = [
        f"row {row} of {name}"
        for name, records in split.subsets.items()
        for row in sorted({*range(len(records), len(records.columns["view"]))} - {*records.counterfactual.tolist()})
    ]
    yield none("rows beyond the records are counterfactuals", beyond)


def check_negatives(split: Split) -> Iterator[Finding]:
    """Check that the hard negatives of train name no composition that train never shows, and nothing that a rule holds
    out."""
    train, swap, rules = split.subsets["train"], SWAPS[split.recipe["kind"]], rules_of(split)
    shown = compositions_in(split, "train")
    named = [swap(scene) for scene, text in zip(train.scenes, train.false, strict=True) if text]
    claim = "hard negatives of train name only compositions that train shows"
    yield every(claim, named, lambda scene: compositions_of(scene) <= shown)
    yield every("no rule holds out any hard negative of train", named, lambda scene: not matches_any(rules, scene))


def check_views(split: Split) -> Iterator[Finding]:
    """Check that train has the first views of the recipe, and tests and validation the next ones; in a probe set, which
    trains nothing, that all are its own."""
    its = split.recipe
    train, tests = range(its["views"]), range(its["views"], its["views"] + its["test_views"])
    if "probe_views" in its:
        train = tests = range(its["first_view"], its["first_view"] + its["probe_views"])
    for name, records in split.subsets.items():
        allowed = train if name == "train" else tests
        claim = f"every view of {name} is one from {allowed[0]} to {allowed[-1]}"
        yield every(claim, records.scenes, lambda scene, allowed=allowed: scene.view in allowed)
