"""Checks of what train must not show, in splits of every kind: scenes, partners and views of tests, and what a hold-out
rule matches."""

from collections.abc import Iterator

from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding, animal_pair, first, rule_number, rules_of
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.rules.hold_out import HELD_OUT, matched
from menagerie.generators.storage.split_file import Split


def check_hold_out(split: Split) -> Iterator[Finding]:
    """Check that some rule matches each scene of `held_out`, that each rule matches the scenes of its own test, and
    that no rule matches any other scene. Check that each of several rules has a test of its own, and, for binding, that
    `held_out` and validation share no animal pair."""
    rules = rules_of(split)
    for name, records in split.subsets.items():
        number = rule_number(name)
        tested, held_out = rules[number - 1 : number] if number else rules, number > 0 or name == HELD_OUT
        strange = (scene.key for scene in records.scenes if matched(tested, scene) != held_out)
        claim = "a rule holds out every scene of" if held_out else "no rule holds out any scene of"
        yield Finding(f"{claim} {name}", *first(strange))
    single = {name for name in split.subsets if name.startswith(f"{HELD_OUT} ")}
    if single or len(rules) > 1:  # a single rule is tested by `held_out`
        expected = {f"{HELD_OUT} {k}" for k in range(1, len(rules) + 1)}
        yield Finding("every rule has a test of its own", *first(iter(sorted(single ^ expected))))
    if rules and split.recipe["kind"] == "binding":
        tested, apart = ({animal_pair(s) for s in split.subsets[name].scenes} for name in (HELD_OUT, "validation"))
        yield Finding("held_out and validation share no animal pair", *first(map(str, map(sorted, tested & apart))))


def check_disjoint(split: Split) -> Iterator[Finding]:
    """Check that no scene of train is in a test or in validation, or is the partner of such a scene."""
    train, swap = set(split.subsets["train"].scenes), SWAPS[split.recipe["kind"]]
    for name, records in split.subsets.items():
        if name != "train":
            holds, detail = first(scene.key for scene in records.scenes if scene in train)
            yield Finding(f"no scene of {name} is in train", holds, detail or f"{len(records)} scenes")
            partners = map(swap, records.scenes)
            yield Finding(f"no partner of a scene of {name} is in train", *first(s.key for s in partners if s in train))


def check_partners(split: Split) -> Iterator[Finding]:
    """Check that every scene of a test or of validation has a partner, that no scene of train has one, and that a row
    of the store is the scene, or the partner, of one scene only."""
    swap = SWAPS[split.recipe["kind"]]
    alone, other = [], []
    shown: dict[int, Scene] = {}
    for name, r in split.subsets.items():
        for scene, row, partner in zip(r.scenes, r.rows.tolist(), r.partners.tolist(), strict=True):
            same = shown.setdefault(row, scene) == scene
            if (partner >= 0) != (name != "train"):
                alone.append(f"{scene.key} of {name}")
            elif partner >= 0:
                same &= shown.setdefault(partner, its := swap(scene)) == its
            if not same:
                other.append(f"{scene.key} of {name}")
    yield Finding("scenes of tests have partners, those of train have none", *first(iter(alone)))
    yield Finding("no scene has the row or the partner of another one", *first(iter(other)))


def check_views(split: Split) -> Iterator[Finding]:
    """Check that train has the first views of the recipe, and tests and validation the next ones."""
    views, more = split.recipe["views"], split.recipe["test_views"]
    for name, records in split.subsets.items():
        allowed = range(views) if name == "train" else range(views, views + more)
        strange = (scene.key for scene in records.scenes if scene.view not in allowed)
        yield Finding(f"every view of {name} is one from {allowed[0]} to {allowed[-1]}", *first(strange))
