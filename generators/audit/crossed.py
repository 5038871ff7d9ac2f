"""Whether train crosses all that its kind crosses: what it shows of an animal or a pair it shows everywhere, once.

Of a training pair (or order, or number of an animal) every kind says which textures, orders and backgrounds train
shows, and all of them in all training views. What is left out without a rule is a fault, and could tie one to another:
a pair to a background, a texture to a place. What is drawn for each scene is left out
(`menagerie.generators.audit.parts`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import COUNTING, SLOTS_OF
from menagerie.generators.audit.candidates import assignments, left, orders_of, scenes_of
from menagerie.generators.audit.findings import Finding, first, rules_of
from menagerie.generators.audit.parts import bare
from menagerie.generators.storage.split_file import Split


def check_single_objects(split: Split) -> Iterator[Finding]:
    """Every texture-animal-background conjunction is in train as a single-object scene, in every slot and size."""
    slots = split.recipe.get("singles_slots") or single_slots_of(split.recipe.get("relations", ("left/right",)))
    rules = rules_of(split)
    required = [its for its in singles(split, slots) if not any(rule.matches(its) for rule in rules)]
    views = split.recipe.get("singles_views") or split.recipe["views"]
    yield everywhere("every single-object scene is in train in all its views", required, shown(split, alone), views)
    strange = (its.key for its in split.subsets["train"].scenes if alone(its) and its.things[0].slot not in slots)
    yield Finding("every single-object scene of train has a slot of the recipe", *first(strange))


def check_pairs_crossed(split: Split) -> Iterator[Finding]:
    """Every pair of train has all its scenes, whatever is drawn for each."""
    if split.recipe["kind"] == "spatial":
        every = list(product(split.vocabulary.textures, repeat=2))
        strata = {pair: scenes_of(split, pair, every, orders) for pair, orders in orders_of(split).items()}
    else:
        strata = {pair: scenes_of(split, pair, textures) for pair, textures in assignments(split).items()}
    required = [scene for scenes in left(split, strata).values() for scene in scenes]
    claim = "every pair of train is there in both orders, or one, in all textures and backgrounds and all its views"
    yield everywhere(claim, required, shown(split, lambda scene: not alone(scene)), split.recipe["views"])


def check_dependence_crossed(split: Split) -> Iterator[Finding]:
    """Every animal alone, and every pair of train in both orders, is on every background, in any textures."""
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
    """Every animal is in train singly in every texture, background and size, and counted ones in every number."""
    views, v = split.recipe["views"], split.vocabulary
    required = [replace(its, things=(its.things[0]._replace(slot=COUNTING[0]),)) for its in singles(split, ("center",))]
    claim = "every animal is in train singly in all its textures and backgrounds, in all its views"
    yield everywhere(claim, required, shown(split, alone), views)
    counted = sorted({its.things[0].animal for its in split.subsets["train"].scenes if not alone(its)})
    numbers = range(2, len(COUNTING) + 1)
    required = [
        Scene(background, tuple(Thing(animal, texture, slot) for slot in COUNTING[:number]))
        for background, animal, texture, number in product(v.backgrounds, counted, v.textures, numbers)
    ]
    claim = "every counted animal is in train in all its numbers, textures and backgrounds, in all its views"
    yield everywhere(claim, required, shown(split, lambda scene: not alone(scene)), views)


def alone(scene: Scene) -> bool:
    """Whether a scene is of one thing."""
    return len(scene.things) == 1


def singles(split: Split, slots: Iterable[str]) -> list[Scene]:
    """Every conjunction as a scene of one thing."""
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
    """The views in which train shows bare scenes; of single things with their sizes, which train shows all."""
    views: dict[Scene, list[int]] = {}
    for scene in split.subsets["train"].scenes:
        if which(scene):
            views.setdefault(less(bare(scene, sizes=alone(scene))), []).append(scene.view)
    return views


def everywhere(claim: str, required: Sequence[Scene], shown: dict[Scene, list[int]], views: int) -> Finding:
    """Whether all that is required is shown once in each of the first `views` views, and nothing else."""
    every, known = list(range(views)), set(required)
    wrong = [its for its in required if sorted(shown.get(its, ())) != every] + [
        its for its in shown if its not in known
    ]
    detail = f"{len(required)} scenes in {views} views"
    if wrong:
        lacking = wrong[0].key.rpartition("|")[0]
        detail = f"{len(wrong)} of {detail}, first: {lacking} in views {sorted(shown.get(wrong[0], ()))}"
    return Finding(claim, not wrong, detail)
