"""Checks that no subset is empty that mustn't be, and that each animal of a scene has one size."""

from collections.abc import Iterator

from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding, first, rules_of
from menagerie.generators.storage.split_file import Split


def check_not_empty(split: Split) -> Iterator[Finding]:
    """Train, validation and unseen tests have scenes; the latter two may be empty with hold-out rules."""
    required = {"train": True, "validation": split.recipe["validation"] > 0 and not rules_of(split)}
    unseen = split.recipe["reserve"] > 0 and not rules_of(split)
    required |= {name: unseen for name in split.subsets if "unseen_pairs" in name or name == "unseen_counts"}
    empty = (name for name, must in required.items() if must and not len(split.subsets[name]))
    yield Finding("train, validation and unseen tests have scenes", *first(empty))


def check_sizes(split: Split) -> Iterator[Finding]:
    """In a world with sizes every thing has one, and all things of one animal have the same."""
    if split.vocabulary.sizes:
        for name, records in split.subsets.items():
            strange = (scene.key for scene in records.scenes if not soundly_sized(scene))
            yield Finding(f"every animal of {name} has one size", *first(strange))


def soundly_sized(scene: Scene) -> bool:
    """Whether each animal of a scene has exactly one size."""
    sizes = {(thing.animal, thing.size) for thing in scene.things}
    return len(sizes) == len({thing.animal for thing in scene.things}) and all(size for _, size in sizes)
