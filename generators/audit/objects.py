"""Checks of objects held out: combinations of animal and texture that train lacks, and what tests show of them."""

from collections.abc import Iterator

from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding, animal_pair, cells_in, first
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.storage.split_file import Split

OBJECT_TESTS = {"one_unseen_object": 1, "two_unseen_objects": 2}


def check_objects(split: Split) -> Iterator[Finding]:
    """Check that scenes of tests and validation, or their swaps, have as many unseen objects as their test's name says,
    or none. Check that tests of unseen objects share no animal pair with validation."""
    if split.recipe.get("objects", 1.0) == 1.0:
        return
    shown = cells_in(split, "train")
    for name, records in split.subsets.items():
        if name != "train":
            number = OBJECT_TESTS.get(name, 0)
            strange = (scene.key for scene in records.scenes if unseen_in(scene, shown) != number)
            yield Finding(f"{number or 'no'} unseen objects in scenes of {name}, or in their swaps", *first(strange))
    apart = {animal_pair(scene) for scene in split.subsets["validation"].scenes}
    tested = (scene for name in OBJECT_TESTS for scene in split.subsets[name].scenes)
    shared = (scene.key for scene in tested if animal_pair(scene) in apart)
    yield Finding("tests of unseen objects share no animal pair with validation", *first(shared))


def unseen_in(scene: Scene, shown: set[tuple[str, str]]) -> int:
    """The number of objects that train doesn't show, in a scene or in its swap, whichever has more."""
    return max(sum(thing[:2] not in shown for thing in one.things) for one in (scene, swap_textures(scene)))
