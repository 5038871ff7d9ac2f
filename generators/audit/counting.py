"""Checks of counting splits: the numbers in which train and tests show each animal."""

import re
from collections.abc import Iterator, Sequence

from menagerie.envs.scene import Scene
from menagerie.envs.slots import COUNTING
from menagerie.generators.audit.findings import Finding, first, nearest
from menagerie.generators.captions.phrases import plural
from menagerie.generators.storage.split_file import Records, Split

NUMBERS = ("two", "three", "four")
# Words in captions of one thing that captions of several things don't have.
SINGULAR = {"a", "an", "the", "is", "are"}


def numbers_of(records: Records) -> set[tuple[str, int]]:
    """All (animal, number) that a subset shows."""
    return {(scene.things[0].animal, len(scene.things)) for scene in records.scenes}


def check_same_things(split: Split) -> Iterator[Finding]:
    """Check that each scene shows one to four things of one kind, in the slots for counting."""
    for name, records in split.subsets.items():
        strange = (scene.key for scene in records.scenes if not countable(scene))
        yield Finding(f"every scene of {name} shows one to four of one thing", *first(strange))


def countable(scene: Scene) -> bool:
    """Whether all things of a scene are alike and stand in slots for counting."""
    alike = len({thing._replace(slot="") for thing in scene.things}) == 1
    return alike and {thing.slot for thing in scene.things} <= set(COUNTING)


def check_stated_numbers(split: Split) -> Iterator[Finding]:
    """Check that a caption states the right number, and that its negative states another number and differs in nothing
    else."""
    animals = split.vocabulary.animals
    for name, r in split.subsets.items():
        rows = list(zip(r.scenes, r.captions, r.negatives, strict=True))
        wrong = (s.key for s, text, _ in rows if stated_number(text) != len(s.things))
        yield Finding(f"every caption of {name} states the number", *first(wrong))
        other = (
            s.key
            for s, text, negative in rows
            if bare(text, animals) != bare(negative, animals) or stated_number(negative) == len(s.things)
        )
        yield Finding(f"every negative of {name} states another number and differs in nothing else", *first(other))


def stated_number(text: str) -> int:
    """The number that a caption states; 1 if it has no number word."""
    return max((NUMBERS.index(word) + 2 for word in text.split() if word in NUMBERS), default=1)


def bare(text: str, animals: Sequence[str]) -> str:
    """A caption without its number words, articles and verbs, and with all `animals` in the singular."""
    for animal in animals:
        text = re.sub(rf"\b{re.escape(plural(animal))}\b", animal, text)
    return " ".join(word for word in text.split() if word not in SINGULAR.union(NUMBERS))


def check_held_animals(split: Split) -> Iterator[Finding]:
    """Check that `unseen_counts` and validation share no animal, and that train shows their animals only alone. Check
    that train shows each animal of `seen_counts` in every number in which that test shows it."""
    train = numbers_of(split.subsets["train"])
    counted = {animal for animal, number in train if number > 1}
    for name in ("unseen_counts", "validation"):
        leaked = sorted({animal for animal, _ in numbers_of(split.subsets[name])} & counted)
        yield Finding(f"no animal of {name} is in train in numbers", *first(iter(leaked)))
    strange = (f"{number} of {animal}" for animal, number in sorted(numbers_of(split.subsets["seen_counts"]) - train))
    yield Finding("every number of seen_counts is in train of that animal", *first(strange))
    unseen, validation = ({a for a, _ in numbers_of(split.subsets[name])} for name in ("unseen_counts", "validation"))
    shared = sorted(unseen & validation)
    yield Finding("unseen_counts and validation share no animal", *first(iter(shared)))


def check_animal_fraction(split: Split) -> Iterator[Finding]:
    """Check that the realised fraction of counted animals is the nearest to the requested one."""
    counted = {animal for animal, number in numbers_of(split.subsets["train"]) if number > 1}
    n = len(split.vocabulary.animals)
    apart = sum(max(round(share * n), share > 0) for share in (split.recipe["reserve"], split.recipe["validation"]))
    yield nearest("counted animals", len(counted), split.recipe["pairs"], [n - apart])
