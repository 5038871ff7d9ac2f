"""Checks that random draws for tests, pairs and animals are even.

A test with fewer records than its recipe allows must have every scene that it can have (`candidates`). A test with as
many as allowed is compared with the scenes that it was drawn from. Each pair and each animal must be as frequent in the
test as in those scenes; and within each pair, however many records it has, so must each background, view, animal,
texture and number, also per place and in combination.

Draws made once for a pair or an animal must be independent of everything else: which pairs train shows, in which
textures (binding) or order (spatial), and, for dependence, which of an animal's appearances get which texture. With few
pairs the statistics (tallies of `statistics`) have little power.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import place_of
from menagerie.generators.audit.balance import TOGETHER
from menagerie.generators.audit.candidates import (
    OF_KIND,
    Drawn,
    Stratum,
    candidates,
    different,
    left,
    scenes_of,
    shown_textures,
    stratum_of,
)
from menagerie.generators.audit.findings import Finding, animal_pair, first, parts, rules_of, shown_objects, skipped
from menagerie.generators.audit.statistics import Tallies
from menagerie.generators.storage.split_file import Split

EVENLY = "tests are drawn evenly: pairs, animals, textures, places, backgrounds, views and numbers"


def check_drawn(split: Split) -> Iterator[Finding]:
    """Check that tests have only scenes that their recipe gives them, in the right number and drawn evenly."""
    if split.recipe["kind"] not in OF_KIND:
        yield skipped(EVENLY, f"what tests of {split.recipe['kind']} are drawn from isn't written")
        return
    tests, start = list(candidates(split)), split.recipe["views"]
    views = range(start, start + split.recipe["test_views"])
    strange = (f"{scene.key} of {test.name}" for test in tests for scene in impossible(test))
    yield Finding("every scene of a test is one of those that its recipe gives it", *first(strange))
    short = (text for test in tests if (text := wrong_number(test, len(views))))
    yield Finding("every test has all scenes that its recipe gives it, or as many as it says", *first(short))
    tallies = Tallies()
    for test in tests:
        if len(test.scenes) >= test.most:
            tally_strata(test, tallies)
            tally_within(test, views, tallies)
    yield tallies.finding(EVENLY)


def impossible(test: Drawn) -> list[Scene]:
    """The scenes of a test that aren't among those from which it is drawn."""
    possible = {stratum: set(scenes) for stratum, scenes in test.strata.items()}
    return [scene for scene, _ in test.scenes if scene not in possible.get(stratum_of(scene), ())]


def wrong_number(test: Drawn, views: int) -> str:
    """A message if a test doesn't have the number of records that it should; else empty."""
    least = views * (sum(map(len, test.strata.values())) + sum(test.hidden))
    if min(test.most, least) <= len(test.scenes) <= test.most:
        return ""
    return f"{test.name} has {len(test.scenes)} records of at least {least} scenes; at most {test.most} are drawn"


def by_stratum(test: Drawn) -> dict[Stratum, list[tuple[Scene, int]]]:
    found: dict[Stratum, list[tuple[Scene, int]]] = {stratum: [] for stratum in test.strata}
    for scene, view in test.scenes:
        found.setdefault(stratum_of(scene), []).append((scene, view))
    return found


def tally_strata(test: Drawn, tallies: Tallies) -> None:
    """Count how often each stratum is drawn. Unless some may be hidden, also count how often each animal is drawn."""
    found, draws = by_stratum(test), len(test.scenes)
    size = {stratum: len(scenes) for stratum, scenes in test.strata.items()}
    least, most = (sum(size.values()) + sum(hidden) for hidden in (test.hidden, test.most_hidden))
    for stratum, number in size.items():
        count = len(found[stratum])
        tallies.add(f"records of {named(stratum)}", test.name, count, number / most, draws, number / least)
    for i, number in enumerate(test.hidden):
        tallies.add(f"records of a pair that isn't there ({i + 1})", test.name, 0, number / most, draws)
    if not test.most_hidden:
        for animal in {animal for stratum in size for animal in animals_of(stratum)}:
            strata = [stratum for stratum in size if animal in animals_of(stratum)]
            count, number = sum(len(found[stratum]) for stratum in strata), sum(size[stratum] for stratum in strata)
            tallies.add(f"records of {animal}", test.name, count, number / most, draws)


def animals_of(stratum: Stratum) -> Sequence[str]:
    return sorted(stratum[1]) if isinstance(stratum, tuple) else [stratum]


def named(stratum: Stratum) -> str:
    """A stratum in words: "cat and lion, left/right"."""
    return " and ".join(animals_of(stratum)) + (f", {stratum[0]}" if isinstance(stratum, tuple) else "")


def tally_within(test: Drawn, views: range, tallies: Tallies) -> None:
    """Count, within each stratum, how often each part of a scene and each view are drawn."""
    for stratum, records in by_stratum(test).items():
        scenes, draws = test.strata.get(stratum), len(records)
        if not (scenes and records):
            continue
        shares = {part: n / len(scenes) for part, n in Counter(p for scene in scenes for p in parts(scene)).items()}
        shown = [(list(parts(scene)), view) for scene, view in records]
        counts = Counter(part for shown_parts, _ in shown for part in shown_parts)
        in_view = Counter((part, view) for shown_parts, view in shown for part in shown_parts)
        seen = Counter(view for _, view in records)
        for where in (test.name, TOGETHER):
            for view in views:
                tallies.add(f"view {view}", where, seen[view], 1 / len(views), draws)
            for part, share in shares.items():
                if share < 1:
                    tallies.add(part, where, counts[part], share, draws)
                for view in views:
                    tallies.add(f"{part}, view {view}", where, in_view[part, view], share / len(views), draws)


def check_pair_draws(split: Split) -> Iterator[Finding]:
    """Check that the subset, the textures and the order of a pair depend on no animal, no texture and no position in
    the file."""
    tallies, kind = Tallies(), split.recipe["kind"]
    if kind == "binding":
        tally_assignments(split, tallies)
    if kind == "spatial":
        tally_orders(split, tallies)
    if kind == "dependence":
        tally_paint(split, tallies)
    if kind != "counting" and not rules_of(split):
        tally_roles(split, tallies)
    yield tallies.finding("pairs, their textures and orders are drawn whatever the animals, places and backgrounds")


def first_of_each(scenes: Sequence[Scene]) -> dict[Stratum, Scene]:
    """The first scene of every pair."""
    found: dict[Stratum, Scene] = {}
    for scene in scenes:
        if animal_pair(scene):
            found.setdefault(stratum_of(scene), scene)
    return found


def tally_assignments(split: Split, tallies: Tallies) -> None:
    """Count, over the pairs for which one assignment is drawn, how often each animal has each texture, and how often
    each two textures are drawn together."""
    every, textures = different(split), sorted(split.vocabulary.textures)
    for name in ("train", "seen_pairs"):
        first = first_of_each(split.subsets[name].scenes)
        shown = {pair: shown_textures(scene) for pair, scene in first.items() if has_choice(split, pair, every)}
        for (pair, worn), texture in product(shown.items(), textures):
            for animal, shown_texture in zip(sorted(pair[1]), worn, strict=True):
                tallies.add(f"{texture} {animal}", name, shown_texture == texture, 1 / len(textures))
            tallies.add(f"{texture} on the first animal in the alphabet", name, worn[0] == texture, 1 / len(textures))
        for (_, worn), both in product(shown.items(), combinations(textures, 2)):
            tallies.add(" and ".join(both), name, set(worn) == set(both), 2 / len(every))
        what = "the first animal in the alphabet has the first texture in the alphabet"
        tally_halves(tallies, what, name, [worn[0] < worn[1] for worn in shown.values()])


def has_choice(split: Split, pair: Stratum, every: Sequence) -> bool:
    """Whether the hold-out rules, or objects held out, leave scenes of a pair in `every` assignment of textures."""
    if (shown := shown_objects(split)) is not None:
        return all((animal, texture) in shown for animal in pair[1] for texture in split.vocabulary.textures)
    scenes = {textures: scenes_of(split, pair, [textures]) for textures in every}
    return not rules_of(split) or len(left(split, scenes)) == len(scenes)


def tally_orders(split: Split, tallies: Tallies) -> None:
    """Count, over the pairs for which one order is drawn, how often each animal is first."""
    every = list(product(split.vocabulary.textures, repeat=2))
    for name, records in split.subsets.items():
        if name != "train" and not name.endswith("seen_order"):  # the ending of unseen_order too
            continue
        drawn = []
        for pair, scene in first_of_each(records.scenes).items():
            order = tuple(thing.animal for thing in scene.things)
            orders = {one: scenes_of(split, pair, every, [one]) for one in (order, order[::-1])}
            if not rules_of(split) or len(left(split, orders)) == len(orders):
                drawn.append(order)
                for animal in order:
                    tallies.add(f"{animal} first, {pair[0]}", name, order[0] == animal, 0.5)
        number = split.vocabulary.animals.index
        in_world = [number(one) < number(other) for one, other in drawn]
        tally_halves(tallies, "the first animal in the alphabet is first", name, [one < other for one, other in drawn])
        tally_halves(tallies, "the world's first is first", name, in_world)


def tally_halves(tallies: Tallies, what: str, name: str, fell: Sequence[bool]) -> None:
    """Count how often draws with probability 1/2 came out true: among all of them, and in each half of the file's
    order."""
    middle = len(fell) // 2
    for part, coins in {"": fell, ", first half": fell[:middle], ", second half": fell[middle:]}.items():
        if coins:
            tallies.add(what + part, name, sum(coins), 0.5, len(coins))


def tally_roles(split: Split, tallies: Tallies) -> None:
    """Count the pairs with each animal in train, in validation and in the tests of unseen pairs, by relation."""
    animals = split.vocabulary.animals
    for name, records in split.subsets.items():
        if name in ("train", "validation") or name.endswith("unseen_pairs"):
            pairs = first_of_each(records.scenes)
            for relation in sorted({relation for relation, _ in pairs}):
                related = [pair for named_in, pair in pairs if named_in == relation]
                for animal in animals:
                    count = sum(animal in pair for pair in related)
                    tallies.add(f"pairs with {animal}, {relation}", name, count, 2 / len(animals), len(related))


def tally_paint(split: Split, tallies: Tallies) -> None:
    """Count, for each animal in train, how often it has each texture on each background, in each view, place and size,
    and beside each other thing."""
    things = [(thing, scene) for scene in split.subsets["train"].scenes for thing in scene.things]
    shown = Counter(thing.animal for thing, _ in things)
    worn = Counter((thing.animal, thing.texture) for thing, _ in things)
    contexts: dict[tuple[str, str], int] = defaultdict(int)
    found: Counter[tuple[str, str, str]] = Counter()
    for thing, scene in things:
        for word in beside(thing, scene):
            contexts[thing.animal, word] += 1
            found[thing.animal, thing.texture, word] += 1
    for (animal, word), draws in contexts.items():
        for texture in split.vocabulary.textures:
            chance, count = worn[animal, texture] / shown[animal], found[animal, texture, word]
            tallies.add(f"{texture} {animal}, {word}", "train", count, chance, draws)
            if not word.startswith("beside"):
                tallies.add(f"{texture}, {word}", "train", count, chance, draws)


def beside(thing: Thing, scene: Scene) -> Iterator[str]:
    """Yield words for what a thing's texture could depend on: background, view, place, size and the other thing."""
    yield from (scene.background, f"view {scene.view}", place_of(thing.slot), *filter(None, [thing.size]))
    for other in scene.things:
        if other != thing:
            yield from (f"beside {other.animal}", f"beside {other.texture}")
