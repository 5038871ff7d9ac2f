"""Checks of counting splits: the numbers in which train and tests show each animal."""

from collections.abc import Iterator

from menagerie.envs.scene import Scene
from menagerie.envs.slots import COUNTING
from menagerie.generators.audit.findings import Finding, first
from menagerie.generators.storage.split_file import Split


def numbers_of(split: Split, name: str) -> set[tuple[str, int]]:
    """All (animal, number) that a subset shows."""
    return {(scene.things[0].animal, len(scene.things)) for scene in split.subsets[name].scenes}


def check_same_things(split: Split) -> Iterator[Finding]:
    """Check that each scene shows one to four things of one kind, in the slots for counting."""
    for name, records in split.subsets.items():
        strange = (scene.key for scene in records.scenes if not countable(scene))
        yield Finding(f"every scene of {name} shows one to four of one thing", *first(strange))


def countable(scene: Scene) -> bool:
    """Whether all things of a scene are alike and stand in slots for counting."""
    alike = len({thing._replace(slot="") for thing in scene.things}) == 1
    return alike and {thing.slot for thing in scene.things} <= set(COUNTING)


def check_held_animals(split: Split) -> Iterator[Finding]:
    """Check that `unseen_counts` and validation share no animal, and that train shows their animals only alone. Check
    that train shows each animal of `seen_counts` in every number in which that test shows it."""
    train = numbers_of(split, "train")
    counted = {animal for animal, number in train if number > 1}
    unseen, apart = ({a for a, _ in numbers_of(split, name)} for name in ("unseen_counts", "validation"))
    for name, animals in {"unseen_counts": unseen, "validation": apart}.items():
        yield Finding(f"no animal of {name} is in train in numbers", *first(iter(sorted(animals & counted))))
    strange = (f"{number} of {animal}" for animal, number in sorted(numbers_of(split, "seen_counts") - train))
    yield Finding("every number of seen_counts is in train of that animal", *first(strange))
    yield Finding("unseen_counts and validation share no animal", *first(iter(sorted(unseen & apart))))
