"""Proves from a split file and its store that nothing held out is in train and nothing is mislabelled.

The audit recomputes pairs, fractions, words and graphs from the file's content, independently of the
code that generates splits, so that a mistake in one does not hide in the other. They share only the
words for numbers, relations and conjunctions, and the language of hold-out rules, which have tests of their own.
Besides it looks for answers that don't need the picture (balance, cues), makes the split again from its recipe
(regeneration), and compares every image with its digest, its scene and, for a sample, with a new rendering (pixels).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

from envs.common.errors import UserError, choose
from envs.scene import Scene, Thing
from envs.slots import SLOTS_OF
from generators.audit import (
    balance,
    binding,
    counting,
    cues,
    dependence,
    facing,
    file_checks,
    mentions,
    regeneration,
    separation,
    spatial,
    wording,
)
from generators.audit.exported import audit_export
from generators.audit.findings import Finding, animal_pair, first, rules_of, skipped
from generators.audit.mentions import RequestedChances, requested_chances, states_in_part
from generators.audit.pixels import HOW_MANY, Progress, check_pixels
from generators.captions.graph import SceneGraph
from generators.captions.phrases import attributes, counted
from generators.captions.relations import edge_holds
from generators.parsers.world_grammar import parse
from generators.rules.hold_out import HELD_OUT
from generators.splits.recipe_file import KINDS, typed
from generators.storage.split_file import REMEDY, Split, read_split

# Kinds whose negatives don't have the caption's bag of words.
OTHER_WORDS = {"counting"}
# Fields of a recipe that checks read; those that came later may be missing.
REQUIRED = {
    "kind",
    "world",
    "seed",
    "pairs",
    "hard_negatives",
    "views",
    "test_views",
    "reserve",
    "validation",
    "template",
}


def true_nodes(scene: Scene) -> set[str]:
    """All noun phrases that are true of the scene."""
    numbers = Counter((attributes(thing), thing.animal) for thing in scene.things)
    return {counted(*named, number) for named, number in numbers.items()} | {scene.background}


def states(graph: SceneGraph, scene: Scene) -> bool:
    """Whether every node and edge of `graph` is true of `scene` and all things are mentioned."""
    return set(graph.nodes) == true_nodes(scene) and all(edge_holds(edge, graph, scene) for edge in graph.edges)


def words(text: str) -> Counter:
    """The bag of words of a caption; "a" and "an" are one word."""
    return Counter("a" if word == "an" else word for word in text.split())


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


def check_hold_out(split: Split) -> Iterator[Finding]:
    """Scenes that a rule matches are in `held_out` or in the test of that rule, and nothing else is."""
    rules = rules_of(split)
    for name, records in split.subsets.items():
        number = re.fullmatch(rf"{HELD_OUT} ([1-9]\d*)", name)
        its = rules[int(number[1]) - 1 : int(number[1])] if number else rules
        matched = [any(rule.matches(scene) for rule in its) for scene in records.scenes]
        held_out = bool(number) or name == HELD_OUT
        strange = (s.key for s, held in zip(records.scenes, matched, strict=True) if held != held_out)
        claim = "a rule holds out every scene of" if held_out else "no rule holds out any scene of"
        yield Finding(f"{claim} {name}", *first(strange))
    if own := {name for name in split.subsets if name.startswith(f"{HELD_OUT} ")}:  # files of old have none
        expected = {f"{HELD_OUT} {k}" for k in range(1, len(rules) + 1)}
        yield Finding("every rule has a test of its own", *first(iter(sorted(own ^ expected))))
    if rules:
        pairs = {animal_pair(scene) for scene in split.subsets[HELD_OUT].scenes}
        validation = {animal_pair(scene) for scene in split.subsets["validation"].scenes}
        shared = sorted(map(sorted, pairs & validation)) if split.recipe["kind"] == "binding" else []
        yield Finding("held_out and validation share no animal pair", not shared, f"{shared[:1] or ''}")


def check_texts(split: Split) -> Iterator[Finding]:
    """Captions and graphs are true, negatives are false and have the same bag of words.

    Only training captions may be incomplete, and only if the recipe requests it.
    """
    v = split.vocabulary
    for name, r in split.subsets.items():
        incomplete = name == "train" and requested_chances(split) != RequestedChances()
        holds = states_in_part if incomplete else states
        rows = list(zip(r.scenes, r.captions, r.graphs, r.negatives, r.negative_graphs, strict=True))
        untrue = (s.key for s, c, g, _, _ in rows if not (holds(g, s) and parse(c, v) == g))
        yield Finding(f"every caption of {name} is true and states its graph", *first(untrue))
        negatives = [row for row in rows if row[3]]
        if split.recipe["kind"] not in OTHER_WORDS:
            bag = (s.key for s, c, _, n, _ in negatives if words(c) != words(n))
            yield Finding(f"every negative of {name} has its caption's bag of words", *first(bag))
        true = (s.key for s, _, _, n, g in negatives if holds(g, s) or parse(n, v) != g)
        yield Finding(f"every negative of {name} is false and states its graph", *first(true))
        if name != "train":
            lacking = (row[0].key for row in rows if not row[3])
            yield Finding(f"every scene of {name} has a negative", *first(lacking))


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


# Checks of every split, and of each kind.
CHECKS = (
    check_not_empty,
    *separation.CHECKS,
    check_hold_out,
    check_sizes,
    check_texts,
    wording.check_wording,
    facing.check_facing,
    *balance.CHECKS,
    *cues.CHECKS,
)
CHECKS_OF = {
    "binding": (check_single_objects, *binding.CHECKS, *mentions.CHECKS),
    "spatial": (check_single_objects, *spatial.CHECKS, mentions.check_shares),
    "dependence": dependence.CHECKS,
    "counting": counting.CHECKS,
}


def audit(
    path: Path, pixels: str = "sample", report: Progress = lambda *its: None, world_file: Path | None = None
) -> list[Finding]:
    """All findings on a split file, or on the folder of an export; one that can't be read raises `UserError`.

    `pixels`: whether a "sample" of the images is rendered again, or "all". `report` is called as by `check_pixels`.
    `world_file` is the file of the split's own world, which is loaded with its Python code; without it neither the
    split nor its images are made again.
    """
    choose("--pixels", pixels, HOW_MANY)
    if path.is_dir():
        return audit_export(path, pixels, report, world_file)
    split = read_split(path, verify=False)
    check_readable(split)
    findings = check_records(split, world_file)
    if any(finding.claim == file_checks.FITS and finding.holds for finding in findings):
        return [*findings, *check_pixels(split, pixels, report, world_file)]
    return [*findings, skipped("images and masks", "there is nothing to compare them with until the store fits")]


def check_records(split: Split, world_file: Path | None = None) -> list[Finding]:
    """All findings but those on pixels; each that fails says the way out."""

    def made_again(split: Split) -> Iterator[Finding]:
        return regeneration.check_regeneration(split, world_file)

    own = (*CHECKS, made_again, *CHECKS_OF[split.recipe["kind"]])
    found = (with_way_out(finding) for check in own for finding in done(check, split))
    return [*(finding for check in file_checks.CHECKS for finding in done(check, split)), *found]


def done(check: Callable[[Split], Iterator[Finding]], split: Split) -> Iterator[Finding]:
    """What a check finds; records that it can make nothing of, such as a single thing in a test of pairs, fail it."""
    try:
        yield from check(split)
    except (ValueError, LookupError) as error:
        yield Finding(f"{check.__name__.replace('_', ' ')}: records are of the split's kind", False, repr(error))


def with_way_out(finding: Finding) -> Finding:
    """A failed finding with what to do about it: the file is wrong as it is."""
    return finding if finding.holds else finding._replace(detail="; ".join(filter(None, (finding.detail, REMEDY))))


def check_readable(split: Split) -> None:
    """Raise unless the recipe is one, and the subsets that the checks read are there."""
    if not isinstance(split.recipe, dict) or not split.recipe.keys() >= REQUIRED:
        missing = REQUIRED - set(split.recipe)
        raise UserError(f"the recipe in {split.path} has no {' and no '.join(sorted(missing))}; {REMEDY}")
    kind = KINDS[choose(f"kind of {split.path}", split.recipe["kind"], CHECKS_OF)]
    known = {field.name for field in fields(kind)}
    try:
        recipe = kind(**typed(kind, {name: value for name, value in split.recipe.items() if name in known}))
    except UserError as error:
        raise UserError(f"the recipe in {split.path}: {error}; {REMEDY}") from error
    needed = {"train", "validation", *recipe.tests, *([HELD_OUT] if recipe.hold_out else [])}
    if missing := needed - split.subsets.keys():
        raise UserError(f"{split.path} has no subset {' and no '.join(sorted(missing))}; {REMEDY}")
