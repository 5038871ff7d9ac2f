"""A second opinion on crowd splits: it reads a file with h5py and recomputes every number that the recipe states.

    problems(path)      # what disagrees, a line each

It imports nothing of menagerie and draws nothing: places, layouts and swaps are written down anew from the design, and
what is drawn at random is compared with its probability. `crowd_cell_checker` does this for combinations of animal and
texture, `crowd_text_checker` for captions, `crowd_question_checker` for the tasks. Rules (`hold_out`) and statements
("the cat is red") aren't supported.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from tests.generators.crowd_cell_checker import CELL_CHECKS
from tests.generators.crowd_file import COLUMN, THREE, File, Record, Scene, cells, exchanged, read, swap, uneven
from tests.generators.crowd_text_checker import TEXT_CHECKS

IN_LAYOUT = {"apart": ("front", "high"), "rows": ("front", "back"), "overlap": ("front", "near", "back")}
CHANCE_SWAPS = 0.02  # share of a block's scenes whose swap is dealt by chance


def asked(subset: str) -> tuple[str, int]:
    """The kind of a test and its number of things, for train and validation 0."""
    kind, _, number = subset.rpartition("_")
    if not number.isdigit():
        return subset, 0
    return kind, 4 if kind == "triplets" else int(number) + kind.startswith("search")


def in_turn(numbers: Sequence[int], total: int) -> list[int]:
    """The number of things of each scene that is dealt, if each of `numbers` has an equal share of all."""
    each, more = divmod(total, len(numbers))
    return [n for i, n in enumerate(numbers) for _ in range(each + (i < more))]


def planned_numbers(file: File, subset: str) -> list[int]:
    """The number of things of each scene that the recipe asks for, without those that were left out."""
    recipe, (_, things) = file.recipe, asked(subset)
    if subset == "train":
        planned = in_turn(recipe["things"], recipe["train_scenes"])
    elif subset == "validation":
        planned = in_turn([n for n in recipe["things"] if n > 1] or [2], recipe["test_scenes"])
    else:
        planned = [things] * recipe["test_scenes"]
    left = set(file.left(subset))
    return [n for i, n in enumerate(planned) if i not in left]


def check_subsets(file: File) -> Iterator[str]:
    r = file.recipe
    named = [f"{kind}_{n}" for kind in ("seen", "unseen")[: 1 + (r["coverage"] < 1)] for n in r["test_things"]]
    named += [f"search_feature_{k}" for k in r["searches"]]
    named += [f"search_conjunction_{k}" for k in r["searches"] if k > 1]
    named += [f"triplets_{t}" for t in r["triplets"]]
    if {*named, "train", "validation"} != set(file.subsets):
        yield f"subsets are {sorted(file.subsets)}"
    for name, records in file.subsets.items():
        if [len(record.scene.things) for record in records] != planned_numbers(file, name):
            yield f"{name}: {len(records)} scenes have other numbers of things than the recipe asks for"


def layout_choices(layout: str, n: int) -> set[tuple[str, ...]]:
    """The places that n things may have, each choice sorted by name."""
    every = [place for place in COLUMN if place.split()[0] in IN_LAYOUT[layout]]
    if layout != "overlap" or n == 1:
        return {tuple(sorted(choice)) for choice in combinations(every, n)}
    near = [place for place in every if place.startswith("near")]
    ahead = {place: min(THREE, key=lambda name: abs(THREE[name] - COLUMN[place] * 4 / 3)) for place in near}
    found = set()
    for pair in combinations(near, 2) if n > 3 else zip(near, strict=True):
        columns = {ahead[place] for place in pair}
        others = [name for name in THREE if name not in columns]
        fronts = [f"front {name}" for name in sorted(columns)]
        if n <= 3:
            found |= {(*pair, *fronts, *(f"front {name}" for name in more)) for more in combinations(others, n - 2)}
        elif COLUMN[pair[1]] - COLUMN[pair[0]] > 1.2 and len(columns) == 2:
            found.add((*pair, *fronts, f"front {others[0]}", f"back {others[0]}")[:n])
    return {tuple(sorted(choice)) for choice in found}


def check_places(file: File) -> Iterator[str]:
    for name, records in file.subsets.items():
        layout = file.recipe["layout"] if name == "train" else file.recipe["test_layout"] or file.recipe["layout"]
        for n, scenes in by_number(records).items():
            choices = layout_choices(layout, n)
            used = Counter(tuple(thing.place for thing in scene.things) for scene in scenes)
            if not set(used) <= choices:
                yield f"{name}: places that {layout} doesn't combine: {min(set(used) - choices)}"
            yield from uneven(f"{name}, {n} things: places", [used[choice] for choice in choices], len(file.left(name)))


def by_number(records: Sequence[Record]) -> dict[int, list[Scene]]:
    found: dict[int, list[Scene]] = {}
    for record in records:
        found.setdefault(len(record.scene.things), []).append(record.scene)
    return found


def check_views(file: File) -> Iterator[str]:
    views, test_views = file.recipe["views"], file.recipe["test_views"]
    seen = {record.scene for record in file.subsets["train"]}
    tests = [record.scene for name, records in file.subsets.items() if asked(name)[1] for record in records]
    tested = {*tests, *map(swap, tests)}
    for name, records in file.subsets.items():
        allowed = range(views) if name == "train" else range(views, views + test_views)
        scenes, left = [record.scene for record in records], len(file.left(name))
        if not {scene.view for scene in scenes} <= set(allowed):
            yield f"{name}: views outside {allowed}"
        if len(set(scenes)) < len(scenes):
            yield f"{name}: a scene twice"
        if name != "train" and (set(scenes) | set(map(swap, scenes))) & seen:
            yield f"{name}: a scene or its swap is in train"
        if name != "train" and set(map(swap, scenes)) & set(scenes):
            yield f"{name}: a scene and its swap"
        if name == "validation" and set(scenes) & tested:
            yield "validation: a scene of a test"
        for n, some in by_number(records).items():
            grounds, sights = Counter(scene.background for scene in some), Counter(scene.view for scene in some)
            for what, used, cards in (("backgrounds", grounds, file.names["backgrounds"]), ("views", sights, allowed)):
                yield from uneven(f"{name}, {n} things: {what}", [used[card] for card in cards], left)


def check_swaps(file: File) -> Iterator[str]:
    """The last scenes of each number of things are swaps of the first ones, as many as `hard_negatives` says."""
    share, left, start = file.recipe["hard_negatives"], set(file.left("train")), 0
    scenes = [record.scene for record in file.subsets["train"]]
    for n, planned in Counter(in_turn(file.recipe["things"], file.recipe["train_scenes"])).items():
        swaps = round(share * planned) if n > 1 else 0
        numbers = range(start, start + planned)
        kept, kept_swaps = (len(set(some) - left) for some in (numbers, numbers[planned - swaps :]))
        block, scenes, start = scenes[:kept], scenes[kept:], start + planned
        first, last = block[: kept - kept_swaps], block[kept - kept_swaps :]
        if n > 1 and sum(swap(scene) in set(first) for scene in last) != kept_swaps:
            yield f"train: fewer than {kept_swaps} of {kept} scenes of {n} things are swaps of others"
        by_chance = sum(swap(scene) in set(first) for scene in first) if n > 1 else 0
        if by_chance > 4 + CHANCE_SWAPS * kept:
            yield f"train: {by_chance} scenes of {n} things more than {kept_swaps} have their swap in train"


def check_things(file: File) -> Iterator[str]:
    """Things of a scene differ, or share what their test says; they are sorted by place."""
    for name, records in file.subsets.items():
        (kind, _), number = asked(name), name.rpartition("_")[2]
        for scene in (record.scene for record in records):
            places = [thing.place for thing in scene.things]
            if places != sorted(set(places)):
                yield f"{name}: places {places}"
            if kind == "triplets":
                right = triplets_in(scene) == int(number)
            else:
                right = is_conjunction(scene) if kind == "search_conjunction" else shares_nothing(cells(scene))
            if not right:
                yield f"{name}: things share another number of animals and textures: {cells(scene)}"


def shares_nothing(some: Sequence[tuple[str, str]]) -> bool:
    return all(one[0] != other[0] and one[1] != other[1] for one, other in combinations(some, 2))


def triplets_in(scene: Scene) -> int:
    """The number of triplets: a thing, another of its animal, another of its texture; -1 if a thing is there twice."""
    some = cells(scene)
    alike = [(sum(a == b for b, _ in some) - 1) * (sum(t == u for _, u in some) - 1) for a, t in some]
    return sum(alike) if len(set(some)) == len(some) else -1


def is_conjunction(scene: Scene) -> bool:
    """Whether one of the exchanged things is a target: half of the others share its texture alone, half its animal
    alone, and no two things share anything else."""
    some, pair = cells(scene), exchanged(scene)
    for i, j in (pair, pair[::-1]):
        (animal, texture), others = some[i], [some[k] for k in range(len(some)) if k not in pair]
        by_animal = [t for a, t in others if a == animal and t != texture]
        by_texture = [a for a, t in others if t == texture and a != animal]
        even = abs(len(by_animal) - len(by_texture)) <= 1 and len(by_animal) + len(by_texture) == len(others)
        animals, textures = [animal, some[j][0], *by_texture], [texture, some[j][1], *by_animal]
        if even and len(set(animals)) == len(animals) and len(set(textures)) == len(textures):
            return True
    return False


def check_store(file: File) -> Iterator[str]:
    """Rows show their scenes, partners' rows the swaps; things show enough in what the file uses, and only there."""
    if not file.store:
        return
    least, used = file.recipe["least_visible"], set()
    for name, records in file.subsets.items():
        for record in records:
            if file.store[record.row].scene != record.scene:
                yield f"{name}: row {record.row} shows another scene"
            if name == "train" and record.partner != -1:
                yield f"{name}: a partner"
            if name != "train" and file.store[record.partner].scene != swap(record.scene):
                yield f"{name}: row {record.partner} doesn't show the swap"
            used |= {record.row, record.partner} - {-1}
    for i, (scene, shown) in enumerate(file.store):
        if (min(shown) < least) == (i in used):
            yield f"row {i}: {min(shown):.3f} of some thing shows, {'used' if i in used else 'left out'}: {scene}"
    if any(map(file.left, file.subsets)) != (len(used) < len(file.store)):
        yield "the recipe records other numbers of scenes that were left out"


def problems(path: Path) -> list[str]:
    """What in a split file disagrees with its recipe, a line each."""
    file = read(path)
    scenes = [record.scene for records in file.subsets.values() for record in records]
    if strange := {thing.place for scene in scenes for thing in scene.things} - set(COLUMN):
        return [f"{place} is no place of crowds" for place in sorted(strange)]
    return [problem for check in CHECKS for problem in check(file)]


CHECKS = (check_subsets, check_places, check_views, check_swaps, check_things, check_store, *CELL_CHECKS, *TEXT_CHECKS)
