"""Checks that nothing leaks, in splits of every kind: scenes, counterfactuals and views of tests, what hold-out rules
match, and what the names of tests say that train lacks."""

from collections.abc import Iterator
from functools import partial
from itertools import starmap

import numpy as np

from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding, none
from menagerie.generators.rules.hold_out import HELD_OUT, held_out_tests, matches_any, recorded_rules
from menagerie.generators.splits.facts import Fact, composition_facts, facts_of
from menagerie.generators.storage.split_file import Split


def check_disjoint(split: Split) -> Iterator[Finding]:
    """Check that no scene of train is in a test or in validation, or is the counterfactual of such a scene."""
    train, swap = set(split.subsets["train"].scenes), split.kind.swap
    for name, records in split.subsets.items():
        if name != "train":
            there = (scene.key for scene in records.scenes if scene in train)
            yield none(f"no scene of {name} is in train", there, f"{len(records)} scenes")
            swapped = (scene.key for scene in map(swap, records.scenes) if scene in train)
            yield none(f"no counterfactual of a scene of {name} is in train", swapped)


def check_counterfactuals(split: Split) -> Iterator[Finding]:
    """Check that the counterfactual of each record is its swapped scene, and that only records of train lack one: those
    whose swapped scene isn't in train."""
    swap = split.kind.swap
    alone, other, beyond = [], [], []
    for name, records in split.subsets.items():
        rows, scenes, there = records.counterfactual, records.scenes, set(records.scenes)
        has, lacks = (np.flatnonzero(of).tolist() for of in (rows >= 0, rows < 0))
        pairs = zip(has, records.scenes_at(rows[has]), strict=True)
        other += [f"{scenes[i].key} of {name}" for i, scene in pairs if scene != swap(scenes[i])]
        swapped = (i for i in lacks if len(scenes[i].objects) > 1 or records.columns["negative"][i])
        wrong = lacks if name != "train" else (i for i in swapped if swap(scenes[i]) in there)
        alone += [f"{scenes[i].key} of {name}" for i in wrong]
        further = {*range(len(records), len(records.columns["view"]))}
        beyond += [f"row {row} of {name}" for row in sorted(further - {*rows.tolist()})]
    yield none("scenes whose swap is there have counterfactuals", alone)
    yield none("every counterfactual is the swapped scene", other)
    yield none("rows beyond the records are counterfactuals", beyond)


def check_hard_negatives(split: Split) -> Iterator[Finding]:
    """Check that the hard negatives of train name no composition that train never shows, and nothing that a rule holds
    out."""
    train, swap, rules = split.subsets["train"], split.kind.swap, recorded_rules(split.recipe, split.vocabulary)
    known = {fact for scene in train.scenes for fact in composition_facts(scene)}
    named = [swap(scene) for scene, text in zip(train.scenes, train.false, strict=True) if text]
    unknown = (scene.key for scene in named if not known.issuperset(composition_facts(scene)))
    yield none("hard negatives of train name only compositions that train shows", unknown)
    held_out = (scene.key for scene in named if matches_any(rules, scene))
    yield none("no rule holds out any hard negative of train", held_out)


def check_hold_out(split: Split) -> Iterator[Finding]:
    """Check that some rule matches each scene of `held_out`, that each rule matches the scenes of its own test, and
    that no rule matches any other scene."""
    rules = {rule.text: rule for rule in recorded_rules(split.recipe, split.vocabulary)}
    tests = held_out_tests(split.recipe["hold_out"])
    for name, records in split.subsets.items():
        tested = [rules[text] for text in tests.get(name, rules)]
        claim = "a rule holds out every scene of" if name in tests else "no rule holds out any scene of"
        strange = (scene.key for scene in records.scenes if matches_any(tested, scene) != (name in tests))
        yield none(f"{claim} {name}", strange)


def check_views(split: Split) -> Iterator[Finding]:
    """Check that train has its views, and tests and validation have theirs."""
    for name, records in split.subsets.items():
        allowed = split.made_by.train_range if name == "train" else split.made_by.test_range
        strange = (scene.key for scene in records.scenes if scene.view not in allowed)
        yield none(f"every view of {name} is one from {allowed[0]} to {allowed[-1]}", strange)


def check_test_names(split: Split) -> Iterator[Finding]:
    """Check what the name of each subset says of train: what it lacks (`SplitRecipe.lacks`) and what it has
    (`SplitRecipe.has`)."""
    known = frozenset(fact for scene in split.subsets["train"].scenes for fact in all_facts(split, scene))
    for name, records in split.subsets.items():
        if name != "train" and not name.startswith(HELD_OUT):
            for verb, claim in (("lacks", split.made_by.lacks(name)), ("has", split.made_by.has(name))):
                if claim:
                    strange = (scene.key for scene in records.scenes if not claim(scene, known))
                    yield none(f"train {verb} what the name of {name} says", strange)


def check_validation(split: Split) -> Iterator[Finding]:
    """Check that validation shares with no other subset what it keeps for itself (`SplitRecipe.apart`)."""
    apart = split.made_by.apart
    kept = {fact for scene in split.subsets["validation"].scenes for fact in apart(scene)}
    for name, records in split.subsets.items():
        if kept and name != "validation":
            facts = partial(all_facts, split) if name == "train" else apart
            shared = (scene.key for scene in records.scenes if not kept.isdisjoint(facts(scene)))
            yield none(f"validation shares with {name} nothing that it keeps for itself", shared)


def check_kind(split: Split) -> Iterator[Finding]:
    """Check the further claims of the split's kind."""
    return starmap(none, split.made_by.claims(split.subsets))


def all_facts(split: Split, scene: Scene) -> Iterator[Fact]:
    """Yield the facts of a scene, with those of the split's kind."""
    yield from facts_of(scene)
    yield from split.made_by.own_facts(scene)
