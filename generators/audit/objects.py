"""Checks of objects held out: which combinations of animal and texture train shows, and which the tests show."""

from collections import Counter
from collections.abc import Iterator

from menagerie.envs.scene import Scene
from menagerie.generators.audit.candidates import OBJECT_TESTS
from menagerie.generators.audit.findings import Finding, animal_pair, first, nearest, shown_objects
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.storage.split_file import Split

UNEVEN = 1, 2  # by which the objects of two animals, and of two textures, may differ in number


def check_objects(split: Split) -> Iterator[Finding]:
    """Check that train shows the requested share of objects, evenly over animals and textures. Check that scenes of
    other subsets, or their swaps, have as many unseen objects as their test's name says, or none. Check that tests of
    unseen objects share no animal pair with validation."""
    shown, v = shown_objects(split), split.vocabulary
    if shown is None:
        return
    yield nearest("objects in train", len(shown), split.recipe["objects"], [len(v.animals) * len(v.textures)])
    for part, (names, allowed) in enumerate(zip((v.animals, v.textures), UNEVEN, strict=True)):
        numbers = Counter(cell[part] for cell in shown)
        least, most = min(numbers[name] for name in names), max(numbers[name] for name in names)
        what = ("animals", "textures")[part]
        yield Finding(f"{what} have nearly as many objects each", most - least <= allowed, f"{least} to {most}")
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
