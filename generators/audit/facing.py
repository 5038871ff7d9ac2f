"""Checks of which way the left and the right thing of a scene face."""

from collections.abc import Iterator, Sequence

from menagerie.envs.scene import Scene
from menagerie.envs.slots import OUTWARD
from menagerie.generators.audit.findings import Finding, first, within
from menagerie.generators.storage.split_file import Split


def check_facing(split: Split) -> Iterator[Finding]:
    """Drawn facings are even, and independent of the place and of each other; others are inward.

    Recipes of before there was a choice, in older files, have them inward.
    """
    beside = {
        name: [scene for scene in records.scenes if scene.relation == "left/right"]
        for name, records in split.subsets.items()
    }
    if split.recipe.get("facing", "inward") == "drawn":
        tested = [scene for name, scenes in beside.items() if name != "train" for scene in scenes]
        yield from (*check_even("train", beside["train"]), *check_even("tests", tested))
        return
    strange = (scene.key for scenes in beside.values() for scene in scenes if any(outward(scene)))
    yield Finding("things beside each other face each other", *first(strange))


def check_even(name: str, scenes: Sequence[Scene]) -> Iterator[Finding]:
    """Half of the things in each place face outward, whichever way the other one does."""
    found = [outward(scene) for scene in one_of_each(scenes)]
    for what, count in {
        "things on the left that face outward": sum(left for left, _ in found),
        "things on the right that face outward": sum(right for _, right in found),
        "pairs that both face outward or both inward": sum(left == right for left, right in found),
    }.items():
        yield within(f"{what}, {name}", count, len(found), 0.5)


def outward(scene: Scene) -> tuple[bool, ...]:
    """Whether each thing of a scene faces outward."""
    return tuple(thing.slot.endswith(OUTWARD) for thing in scene.things)


def one_of_each(scenes: Sequence[Scene]) -> list[Scene]:
    """One scene of those that differ in what a swap exchanges: they share their facing, which was drawn once."""
    kept: dict[tuple, Scene] = {}
    for scene in scenes:
        animals, textures = (frozenset(getattr(t, name) for t in scene.things) for name in ("animal", "texture"))
        kept.setdefault((scene.background, scene.view, animals, textures), scene)
    return list(kept.values())
