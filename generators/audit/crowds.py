"""Checks of crowd splits: which things their scenes have, where, how often, and which cells train shows.

Cells are combinations of animal and texture. Which of them train shows is read from train itself.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import perm, sqrt
from typing import NamedTuple

from menagerie.envs.layouts import LAYOUTS
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.audit.findings import Finding, first, rules_of
from menagerie.generators.audit.regeneration import left_out
from menagerie.generators.captions.hard_negatives.swaps import exchanged, swap_exchanged
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.storage.split_file import Split

TOLERANCE = 0.01  # of the normalised mutual information
MOST_LEFT_OUT = 0.5  # share of scenes; 3 % hide too much of six things that overlap, by the default
MORE_SWAPS = 0.02  # share of scenes whose swap may be in train by chance


class Test(NamedTuple):
    """What the name of a test says."""

    kind: str  # seen, unseen, search_feature, search_conjunction, triplets
    number: int

    @property
    def things(self) -> int:
        return 4 if self.kind == "triplets" else self.number + self.kind.startswith("search")


def read_name(name: str) -> Test | None:
    """The kind and number in a test's name; None for train, validation and tests of rules."""
    kind, _, number = name.rpartition("_")
    return Test(kind, int(number)) if number.isdigit() else None


def cells_of(scene: Scene) -> list[tuple[str, str]]:
    return [(thing.animal, thing.texture) for thing in scene.things]


def changed(scene: Scene) -> tuple[list[Thing], list[Thing]]:
    """The things that the swap of a scene changes, before and after."""
    swap = swap_exchanged(scene)
    return [t for t in scene.things if t not in swap.things], [t for t in swap.things if t not in scene.things]


def check_crowd_places(split: Split) -> Iterator[Finding]:
    """Check that things stand in places that the layout combines."""
    recipe = split.recipe
    for name, records in split.subsets.items():
        layout = recipe["layout"] if name == "train" else recipe["test_layout"] or recipe["layout"]
        strange = (
            scene.key
            for scene in records.scenes
            if tuple(thing.slot for thing in scene.things) not in LAYOUTS[layout].choices(len(scene.things))
        )
        yield Finding(f"every scene of {name} has places of the layout {layout}", *first(strange))


def check_crowd_things(split: Split) -> Iterator[Finding]:
    """Check that the things of a scene share no animal and no texture, or as many as their test says."""
    for name, records in split.subsets.items():
        test = read_name(name)
        strange = (scene.key for scene in records.scenes if not shares_as_said(test, cells_of(scene)))
        yield Finding(f"things of {name} share as many animals and textures as they should", *first(strange))


def shares_as_said(test: Test | None, cells: Sequence[tuple[str, str]]) -> bool:
    """Whether the things of a scene share what its test says: no animal and no texture, or as many as in a conjunction
    search or in triplets."""
    animals, textures = (Counter(names) for names in zip(*cells, strict=True))
    most = animals.most_common(1)[0][1], textures.most_common(1)[0][1]
    if test is not None and test.kind == "triplets":
        shared = sum((animals[animal] - 1) * (textures[texture] - 1) for animal, texture in cells)
        return shared == test.number and len(set(cells)) == len(cells)
    if test is None or test.kind != "search_conjunction":
        return most == (1, 1)
    # k - 1 distractors share the target's animal or texture, half of them each, and nothing with one another.
    sharing = most[0] - 1, most[1] - 1
    groups = sum(n > 1 for n in animals.values()), sum(n > 1 for n in textures.values())
    return sum(sharing) == test.number - 1 and abs(sharing[0] - sharing[1]) <= 1 and max(groups) <= 1


def check_crowd_numbers(split: Split) -> Iterator[Finding]:
    """Check that train has each number of things equally often and, without hold-out rules, as many scenes as the
    recipe says. Check that every test has its own number of things, and that all subsets but train have at most
    `test_scenes` scenes and, unless they test rules, at least one. Without rules, check that a test of seen or unseen
    cells has fewer scenes only if it has one in all places, on all backgrounds and in all views: all that there are."""
    recipe, train = split.recipe, split.subsets["train"].scenes
    numbers = Counter(len(scene.things) for scene in train)
    left = len(left_out(split).get("train", ()))
    asked = {n: numbers[n] for n in recipe["things"]}
    even = sum(asked.values()) == len(train) and max(asked.values()) - min(asked.values()) <= 1 + left
    detail = ", ".join(f"{count} of {n}" for n, count in sorted(numbers.items()))
    if not rules_of(split):
        yield Finding(
            "train has as many scenes as the recipe says", len(train) + left == recipe["train_scenes"], detail
        )
    yield Finding("train has each number of things equally often", even, detail)
    for name, records in split.subsets.items():
        if test := read_name(name):
            strange = (scene.key for scene in records.scenes if len(scene.things) != test.things)
            yield Finding(f"every scene of {name} has {test.things} things", *first(strange))
        if name != "train":
            few = len(records) <= recipe["test_scenes"] and (len(records) > 0 or name.startswith(HELD_OUT))
            yield Finding(f"{name} has scenes, and no more than the recipe says", few, f"{len(records)} scenes")
        if test and test.kind in ("seen", "unseen") and not rules_of(split):
            claim, detail = f"{name} has as many scenes as the recipe says, or all", f"{len(records)} scenes"
            yield Finding(claim, whole(split, name, test), detail)


def whole(split: Split, name: str, test: Test) -> bool:
    """Whether a test has the recipe's number of scenes or, if it has fewer, at least one of each choice of places, on
    each background, in each view."""
    recipe, scenes = split.recipe, split.subsets[name].scenes
    choices = LAYOUTS[recipe["test_layout"] or recipe["layout"]].choices(test.things)
    shown = {(tuple(thing.slot for thing in scene.things), scene.background, scene.view) for scene in scenes}
    every = len(choices) * len(split.vocabulary.backgrounds) * recipe["test_views"]
    left = len(left_out(split).get(name, ()))
    return len(scenes) + left >= recipe["test_scenes"] or len(shown) + left >= every


def check_crowd_apart(split: Split) -> Iterator[Finding]:
    """Check that no scene of validation or a test is the swap of another one there, and that validation has no scene of
    a test, nor its swap."""
    tested: set[Scene] = set()
    for name, records in split.subsets.items():
        if name == "train":
            continue
        swaps = set(map(swap_exchanged, records.scenes))
        twice = (scene.key for scene in records.scenes if scene in swaps)
        yield Finding(f"no scene of {name} is the swap of another", *first(twice))
        tested |= {*records.scenes, *swaps} if read_name(name) else set()
    shared = (scene.key for scene in split.subsets["validation"].scenes if scene in tested)
    yield Finding("validation has no scene of a test", *first(shared))


def check_crowd_cells(split: Split) -> Iterator[Finding]:
    """Check that train shows the requested share of cells, and animals of a class in the same textures. Check that, for
    each scene of other subsets except tests of rules, train shows all cells of the scene and of its swap; in tests of
    unseen cells, all but the four that the swap exchanges."""
    v, recipe = split.vocabulary, split.recipe
    shown = {cell for scene in split.subsets["train"].scenes for cell in cells_of(scene)}
    rows = {frozenset(texture for animal, texture in shown if animal == name) for name in v.animals}
    share, total = len(shown) / (len(v.animals) * len(v.textures)), len(v.animals) * len(v.textures)
    # Classes of different sizes can't have exactly the share.
    spare = sum(len(names) % recipe["classes"] > 0 for names in (v.animals, v.textures)) * 0.1
    enough = abs(share - recipe["coverage"]) <= 0.002 + spare or bool(rules_of(split))
    detail = f"{len(shown)} of {total} = {share:.3f}, requested {recipe['coverage']:.3f}"
    yield Finding("cells in train: the requested share", enough, detail)
    if not rules_of(split):
        few = len(rows) <= (recipe["classes"] if recipe["coverage"] < 1 else 1)
        yield Finding("animals of one class are in train in the same textures", few, f"{len(rows)} sets of textures")
    for name, records in split.subsets.items():
        if name == "train" or name.startswith(HELD_OUT):
            continue
        unseen = name.startswith("unseen")
        strange = (scene.key for scene in records.scenes if not is_known(scene, shown, unseen))
        what = "none of the exchanged cells, and all others" if unseen else "all cells, exchanged ones too,"
        yield Finding(f"train shows {what} of every scene of {name}", *first(strange))


def is_known(scene: Scene, shown: set[tuple[str, str]], unseen: bool) -> bool:
    """Whether the swap of a scene changes two cells into two others, and train shows these four and all other cells of
    the scene; with `unseen`, whether train shows none of the four, and all others."""
    before, after = changed(scene)
    exchanged = {(thing.animal, thing.texture) for thing in (*before, *after)}
    others = set(cells_of(scene)) - exchanged
    return len(exchanged) == 4 and others <= shown and (not exchanged & shown if unseen else exchanged <= shown)


def check_unseen_cells(split: Split) -> Iterator[Finding]:
    """Check that tests of unseen cells can be the same at every coverage: that exchanged things use one class of
    textures for each class of animals, and so do other things. Train tells the classes, unless there are rules."""
    shown = {cell for scene in split.subsets["train"].scenes for cell in cells_of(scene)}
    animals, textures = classes(shown, 0), classes(shown, 1)
    tests = [] if rules_of(split) else [name for name in split.subsets if name.startswith("unseen")]
    scenes = [scene for name in tests for scene in split.subsets[name].scenes]
    pairs = [exchanged(scene) for scene in scenes]
    for role, swapped in {"exchanged": True, "other": False}.items() if tests else ():
        cells = {
            cell
            for scene, pair in zip(scenes, pairs, strict=True)
            for i, cell in enumerate(cells_of(scene))
            if (i in pair) == swapped
        }
        met = {(animals.get(animal), textures.get(texture)) for animal, texture in cells}
        one = all(max(Counter(both[i] for both in met).values(), default=1) == 1 for i in (0, 1))
        yield Finding(f"{role} things of unseen cells use one class of textures for each class of animals", one, "")


def classes(cells: set[tuple[str, str]], part: int) -> dict[str, frozenset[str]]:
    """For each animal (`part` 0) or texture (1) in cells, what it is combined with: the same for all of its class."""
    combined: dict[str, set[str]] = {}
    for cell in cells:
        combined.setdefault(cell[part], set()).add(cell[1 - part])
    return {name: frozenset(others) for name, others in combined.items()}


def check_crowd_information(split: Split) -> Iterator[Finding]:
    """Check that train shows its cells equally often: the mutual information of texture and animal is that of equally
    frequent cells."""
    from sklearn.metrics import normalized_mutual_info_score

    if rules_of(split):
        return
    things = [cell for scene in split.subsets["train"].scenes for cell in cells_of(scene)]
    realised, implied = (
        normalized_mutual_info_score(*zip(*cells, strict=True), average_method="arithmetic")
        for cells in (things, sorted(set(things)))
    )
    detail = f"{realised:.4f}, even cells have {implied:.4f} (arithmetic mean of both entropies)"
    # A small train can't show all cells equally often.
    allowed = TOLERANCE + len(set(things)) / len(things)
    yield Finding("information of texture and animal: that of its cells", abs(realised - implied) <= allowed, detail)


def check_left_out(split: Split) -> Iterator[Finding]:
    """Check that few scenes were left out because they hide too much, and none in layouts that hide nothing."""
    left, recipe = left_out(split), split.recipe
    for name, records in split.subsets.items():
        layout = recipe["layout"] if name == "train" else recipe["test_layout"] or recipe["layout"]
        number, total = len(left.get(name, ())), len(records) + len(left.get(name, ()))
        most = MOST_LEFT_OUT * total if LAYOUTS[layout].hides else 0
        detail = f"{number} of {total}"
        yield Finding(f"few scenes of {name} hide too much and are left out", number <= most, detail)


def check_crowd_swaps(split: Split) -> Iterator[Finding]:
    """Check that as many of train's scenes of several things as requested have their swap in train."""
    scenes = [scene for scene in split.subsets["train"].scenes if len(scene.things) > 1]
    known, numbers = set(scenes), Counter(len(scene.things) for scene in scenes)
    both = sum(swap_exchanged(scene) in known for scene in scenes)
    share, left = split.recipe["hard_negatives"], len(left_out(split).get("train", ()))
    requested = 2 * sum(round(share * number) for number in numbers.values())
    detail = f"{both} of {len(scenes)} scenes of several things have their swap in train, requested {requested}"
    # What was left out may have been swaps, each with its scene, or none.
    by_chance = max(MORE_SWAPS * len(scenes), 4, swaps_by_chance(split, {n: numbers[n] + left for n in numbers}))
    least, most = requested - 2 * left, requested + 2 * share * left + by_chance
    yield Finding("swaps in train: the requested share", least <= both <= most, detail)


def swaps_by_chance(split: Split, numbers: Mapping[int, int]) -> float:
    """The most scenes that have their swap in train by chance, if so many scenes of each number of things are dealt:
    five standard errors above what is expected. Only swaps whose cells train shows can be there."""
    scenes = split.subsets["train"].scenes
    shown = {cell for scene in scenes for cell in cells_of(scene)}
    several = (scene for scene in scenes if len(scene.things) > 1)
    usable = Counter(len(s.things) for s in several if shown.issuperset(cells_of(swap_exchanged(s))))
    pairs = sum(usable[n] * number / (2 * possible_scenes(split, n, shown)) for n, number in numbers.items())
    return 2 * (pairs + 5 * sqrt(pairs))


def possible_scenes(split: Split, things: int, shown: set[tuple[str, str]]) -> float:
    """About the number of different scenes of some things in `shown` cells that train could have, all equally
    likely."""
    v, scenes = split.vocabulary, split.subsets["train"].scenes
    share = len(shown) / (len(v.animals) * len(v.textures))
    cells = perm(len(v.animals), things) * perm(len(v.textures), things) * share**things
    grounds = len({(scene.background, scene.view) for scene in scenes})
    choices = len(LAYOUTS[split.recipe["layout"]].choices(things))
    return max(choices * grounds * cells * max(len(v.sizes), 1) ** things, 1.0)
