"""Checks that train shows nothing of the tests: no scene, no partner, no view; and nothing twice."""

from collections import Counter
from collections.abc import Iterator

from menagerie.generators.audit.findings import Finding, first
from menagerie.generators.captions.templates import SWAPS
from menagerie.generators.storage.split_file import Split


def check_disjoint(split: Split) -> Iterator[Finding]:
    """No scene of train is in a test or in validation, or the partner of one that is."""
    train, swap = set(split.subsets["train"].scenes), SWAPS[split.recipe["kind"]]
    for name, records in split.subsets.items():
        if name == "train":
            continue
        holds, detail = first(scene.key for scene in records.scenes if scene in train)
        yield Finding(f"no scene of {name} is in train", holds, detail or f"{len(records)} scenes")
        pairs = zip(records.scenes, records.partners.tolist(), strict=True)
        partners = (swap(scene) for scene, row in pairs if row >= 0)
        yield Finding(f"no partner of a scene of {name} is in train", *first(s.key for s in partners if s in train))


def check_partners(split: Split) -> Iterator[Finding]:
    """Every scene of a test and of validation has a partner; which one it must be, the store's check says."""
    alone = (
        f"{scene.key} of {name}"
        for name, r in split.subsets.items()
        for scene, row in zip(r.scenes, r.partners.tolist(), strict=True)
        if (row >= 0) != (name != "train")
    )
    yield Finding("scenes of tests have partners, those of train have none", *first(alone))


def check_views(split: Split) -> Iterator[Finding]:
    """Train has the first views of the recipe, tests and validation those that come next."""
    views, more = split.recipe["views"], split.recipe["test_views"]
    for name, records in split.subsets.items():
        allowed = range(views) if name == "train" else range(views, views + more)
        strange = (scene.key for scene in records.scenes if scene.view not in allowed)
        yield Finding(f"every view of {name} is one from {allowed[0]} to {allowed[-1]}", *first(strange))


def check_repeats(split: Split) -> Iterator[Finding]:
    """No subset has a scene twice."""
    for name, records in split.subsets.items():
        twice = (f"{scene.key}, {n} times" for scene, n in Counter(records.scenes).items() if n > 1)
        yield Finding(f"no scene is in {name} twice", *first(twice))


CHECKS = (check_disjoint, check_partners, check_views, check_repeats)
