"""Checks that a split has the scenes that its kind promises: none empty, every single object, one size an animal."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from envs.scene import Scene, Thing
from envs.slots import SLOTS_OF
from generators.audit.findings import Finding, first, rules_of
from generators.storage.split_file import Split


def check_not_empty(split: Split) -> Iterator[Finding]:
    """Train, validation and unseen tests have scenes; the latter two may be empty with hold-out rules."""
    required = {"train": True, "validation": split.recipe["validation"] > 0 and not rules_of(split)}
    unseen = split.recipe["reserve"] > 0 and not rules_of(split)
    required |= {name: unseen for name in split.subsets if "unseen_pairs" in name or name == "unseen_counts"}
    empty = (name for name, must in required.items() if must and not len(split.subsets[name]))
    yield Finding("train, validation and unseen tests have scenes", *first(empty))


def check_single_objects(split: Split) -> Iterator[Finding]:
    """Every texture-animal-background conjunction is in train as a single-object scene, in every slot and size."""
    v = split.vocabulary
    rules = rules_of(split)
    slots = split.recipe.get("singles_slots") or single_slots_of(split.recipe.get("relations", ("left/right",)))
    shown = {replace(scene, view=0) for scene in split.subsets["train"].scenes if len(scene.things) == 1}
    required = {
        Scene(background, (Thing(*thing),))
        for background, *thing in product(v.backgrounds, v.animals, v.textures, slots, v.sizes or ("",))
    }
    required = {scene for scene in required if not any(rule.matches(scene) for rule in rules)}
    missing, strange = required - shown, (scene.key for scene in shown - required)
    detail = f"{len(shown)} conjunctions, {len(missing)} missing"
    yield Finding("every single-object scene is in train", not missing, detail)
    yield Finding("every single-object scene of train has a slot of the recipe", *first(strange))


def single_slots_of(relations: Iterable[str]) -> set[str]:
    """The slots of single-object scenes: the centre for left/right pairs, else the slots of the pairs."""
    sets = ({"center"} if relation == "left/right" else set(SLOTS_OF[relation]) for relation in relations)
    return set().union(*sets)


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
