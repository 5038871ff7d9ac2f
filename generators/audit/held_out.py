"""Checks of what train must not show, and of what it must show completely.

Train must show nothing of the tests: none of their scenes, partners or views, and nothing that a hold-out rule matches.
And train must be fully crossed: for each training pair, and for each animal that is alone or counted, the kind of split
prescribes textures, orders, numbers and backgrounds, and train must show all their combinations, each once in every
training view. If one is missing without a rule, a pair could go with a background, or a texture with a place. What is
drawn at random for each scene, such as facings, is ignored in the comparison (`findings.bare`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import COUNTING, SLOTS_OF
from menagerie.generators.audit.candidates import assignments, left, orders_of, scenes_of
from menagerie.generators.audit.findings import (
    Finding,
    animal_pair,
    bare,
    first,
    rule_number,
    rules_for,
    rules_of,
    shown_objects,
)
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.rules.hold_out import HELD_OUT, matched
from menagerie.generators.storage.split_file import Split


def check_hold_out(split: Split) -> Iterator[Finding]:
    """Check that some rule matches each scene of `held_out`, that each rule matches the scenes of its own test, and
    that no rule matches any other scene. Check that each of several rules has a test of its own, and, for binding, that
    `held_out` and validation share no animal pair."""
    rules = rules_of(split)
    for name, records in split.subsets.items():
        held_out = rule_number(name) > 0 or name == HELD_OUT
        strange = (scene.key for scene in records.scenes if matched(rules_for(split, name), scene) != held_out)
        claim = "a rule holds out every scene of" if held_out else "no rule holds out any scene of"
        yield Finding(f"{claim} {name}", *first(strange))
    single = {name for name in split.subsets if name.startswith(f"{HELD_OUT} ")}
    if single or len(rules) > 1:  # a single rule is tested by `held_out`
        expected = {f"{HELD_OUT} {k}" for k in range(1, len(rules) + 1)}
        yield Finding("every rule has a test of its own", *first(iter(sorted(single ^ expected))))
    if rules:
        pairs = {animal_pair(scene) for scene in split.subsets[HELD_OUT].scenes}
        validation = {animal_pair(scene) for scene in split.subsets["validation"].scenes}
        shared = sorted(map(sorted, pairs & validation)) if split.recipe["kind"] == "binding" else []
        yield Finding("held_out and validation share no animal pair", not shared, f"{shared[:1] or ''}")


def check_disjoint(split: Split) -> Iterator[Finding]:
    """Check that no scene of train is in a test or in validation, or is the partner of such a scene."""
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
    """Check that every scene of a test or of validation has a partner, and that no scene of train has one.
    `check_store` checks that it is the right one."""
    alone = (
        f"{scene.key} of {name}"
        for name, r in split.subsets.items()
        for scene, row in zip(r.scenes, r.partners.tolist(), strict=True)
        if (row >= 0) != (name != "train")
    )
    yield Finding("scenes of tests have partners, those of train have none", *first(alone))


def check_views(split: Split) -> Iterator[Finding]:
    """Check that train has the first views of the recipe, and tests and validation the next ones."""
    views, more = split.recipe["views"], split.recipe["test_views"]
    for name, records in split.subsets.items():
        allowed = range(views) if name == "train" else range(views, views + more)
        strange = (scene.key for scene in records.scenes if scene.view not in allowed)
        yield Finding(f"every view of {name} is one from {allowed[0]} to {allowed[-1]}", *first(strange))


def check_repeats(split: Split) -> Iterator[Finding]:
    """Check that no subset has a scene twice."""
    for name, records in split.subsets.items():
        twice = (f"{scene.key}, {n} times" for scene, n in Counter(records.scenes).items() if n > 1)
        yield Finding(f"no scene is in {name} twice", *first(twice))


def check_not_empty(split: Split) -> Iterator[Finding]:
    """Check that train, validation and unseen tests have scenes. Validation and unseen tests may be empty if the recipe
    has hold-out rules, or sets nothing apart for them."""
    required = {"train": True, "validation": split.recipe["validation"] > 0 and not rules_of(split)}
    unseen = split.recipe["reserve"] > 0 and not rules_of(split)
    required |= {name: unseen for name in split.subsets if "unseen_pairs" in name or name == "unseen_counts"}
    empty = (name for name, must in required.items() if must and not len(split.subsets[name]))
    yield Finding("train, validation and unseen tests have scenes", *first(empty))


def check_sizes(split: Split) -> Iterator[Finding]:
    """Check that in a world with sizes every thing has a size, and animals of one kind in a scene the same."""
    if split.vocabulary.sizes:
        for name, records in split.subsets.items():
            strange = (scene.key for scene in records.scenes if not soundly_sized(scene))
            yield Finding(f"every animal of {name} has one size", *first(strange))


def soundly_sized(scene: Scene) -> bool:
    """Whether each animal of a scene has exactly one size."""
    sizes = {(thing.animal, thing.size) for thing in scene.things}
    return len(sizes) == len({thing.animal for thing in scene.things}) and all(size for _, size in sizes)


def check_single_objects(split: Split) -> Iterator[Finding]:
    """Check that train has every texture-animal-background conjunction as a single-object scene, in every slot of the
    recipe and every size, unless a rule or objects held out exclude it."""
    slots = split.recipe.get("singles_slots") or single_slots_of(split.recipe.get("relations", ("left/right",)))
    rules = rules_of(split)
    known = shown_objects(split)  # the audit counts them, too
    required = [
        scene
        for scene in singles(split, slots)
        if not any(rule.matches(scene) for rule in rules) and (known is None or scene.things[0][:2] in known)
    ]
    views = split.recipe.get("singles_views") or split.recipe["views"]
    yield everywhere("every single-object scene is in train in all its views", required, shown(split, alone), views)
    strange = (
        scene.key for scene in split.subsets["train"].scenes if alone(scene) and scene.things[0].slot not in slots
    )
    yield Finding("every single-object scene of train has a slot of the recipe", *first(strange))


def check_pairs_crossed(split: Split) -> Iterator[Finding]:
    """Check that train has, for each of its pairs in the textures or orders that it shows, every scene that no rule
    holds out, in all views."""
    if split.recipe["kind"] == "spatial":
        every = list(product(split.vocabulary.textures, repeat=2))
        strata = {pair: scenes_of(split, pair, every, orders) for pair, orders in orders_of(split).items()}
    else:
        strata = {pair: scenes_of(split, pair, textures) for pair, textures in assignments(split).items()}
    required = [scene for scenes in left(split, strata).values() for scene in scenes]
    claim = "every pair of train is there in both orders, or one, in all textures and backgrounds and all its views"
    yield everywhere(claim, required, shown(split, lambda scene: not alone(scene)), split.recipe["views"])


def check_dependence_crossed(split: Split) -> Iterator[Finding]:
    """Check that every animal alone, and every pair of train in both orders, is on every background in all views;
    textures are ignored."""
    views, sizes = split.recipe["views"], split.vocabulary.sizes or ("",)
    every = product(split.vocabulary.backgrounds, split.vocabulary.animals, sizes)
    required = [Scene(background, (Thing(animal, "", "center", size),)) for background, animal, size in every]
    claim = "every animal is in train alone on every background"
    yield everywhere(claim, required, shown(split, alone, unpainted), views)
    pairs = assignments(split)
    required = [scene for pair in pairs for scene in scenes_of(split, pair, [("", "")])]
    claim = "every pair of train is there in both orders on every background, in all its views"
    yield everywhere(claim, required, shown(split, lambda scene: not alone(scene), unpainted), views)


def check_numbers_crossed(split: Split) -> Iterator[Finding]:
    """Check that train has every animal alone in every texture, background and size, and counted animals in every
    number, texture and background."""
    views, v = split.recipe["views"], split.vocabulary
    required = singles(split, COUNTING[:1])
    claim = "every animal is in train singly in all its textures and backgrounds, in all its views"
    yield everywhere(claim, required, shown(split, alone), views)
    counted = sorted({scene.things[0].animal for scene in split.subsets["train"].scenes if not alone(scene)})
    numbers = range(2, len(COUNTING) + 1)
    required = [
        Scene(background, tuple(Thing(animal, texture, slot) for slot in COUNTING[:number]))
        for background, animal, texture, number in product(v.backgrounds, counted, v.textures, numbers)
    ]
    claim = "every counted animal is in train in all its numbers, textures and backgrounds, in all its views"
    yield everywhere(claim, required, shown(split, lambda scene: not alone(scene)), views)


def alone(scene: Scene) -> bool:
    """Whether a scene shows a single thing."""
    return len(scene.things) == 1


def singles(split: Split, slots: Iterable[str]) -> list[Scene]:
    """Every conjunction of texture, animal and background as a scene of one thing, in each of `slots` and each size."""
    v = split.vocabulary
    every = product(v.backgrounds, v.animals, v.textures, slots, v.sizes or ("",))
    return [Scene(background, (Thing(*thing),)) for background, *thing in every]


def single_slots_of(relations: Iterable[str]) -> set[str]:
    """The slots of single-object scenes: the centre for left/right pairs, else the slots of the pairs."""
    sets = ({"center"} if relation == "left/right" else set(SLOTS_OF[relation]) for relation in relations)
    return set().union(*sets)


def unpainted(scene: Scene) -> Scene:
    """A scene without its textures."""
    return replace(scene, things=tuple(thing._replace(texture="") for thing in scene.things))


def shown(
    split: Split, which: Callable[[Scene], bool], less: Callable[[Scene], Scene] = lambda scene: scene
) -> dict[Scene, list[int]]:
    """Map each scene in train, without the draws made for it (`findings.bare`), to its views. Scenes of a single thing
    keep their sizes, because train shows all of them. `which` selects scenes, `less` removes what the comparison
    ignores."""
    views: dict[Scene, list[int]] = {}
    for scene in split.subsets["train"].scenes:
        if which(scene):
            views.setdefault(less(bare(scene, sizes=alone(scene))), []).append(scene.view)
    return views


def everywhere(claim: str, required: Sequence[Scene], shown: dict[Scene, list[int]], views: int) -> Finding:
    """Make a finding on whether train shows each `required` scene once in each of the first `views` views, and no other
    scene."""
    every, known = list(range(views)), set(required)
    wrong = [scene for scene in required if sorted(shown.get(scene, ())) != every] + [
        scene for scene in shown if scene not in known
    ]
    detail = f"{len(required)} scenes in {views} views"
    if wrong:
        lacking = wrong[0].key.rpartition("|")[0]
        detail = f"{len(wrong)} of {detail}, first: {lacking} in views {sorted(shown.get(wrong[0], ()))}"
    return Finding(claim, not wrong, detail)
