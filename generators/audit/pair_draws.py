"""Whether what is drawn once for a pair or an animal depends on nothing: roles, textures, orders, and their sequence.

Which pairs train shows, and in which textures (binding) or order (spatial), is drawn for each pair by itself; so is,
for dependence, which of an animal's appearances get which of its textures. See `menagerie.generators.audit.tallies` for
the statistics; of a few pairs they say little.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import place_of
from menagerie.generators.audit.candidates import Stratum, different, left, scenes_of, shown_textures, stratum_of
from menagerie.generators.audit.findings import Finding, animal_pair, rules_of
from menagerie.generators.audit.tallies import Tallies
from menagerie.generators.storage.split_file import Split


def check_pair_draws(split: Split) -> Iterator[Finding]:
    """Roles, textures and orders of pairs go with no animal, no texture and no place in the file."""
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
    """The textures of pairs of which one assignment is drawn: those on each animal, and both."""
    every, textures = different(split), sorted(split.vocabulary.textures)
    for name in ("train", "seen_pairs"):
        first = first_of_each(split.subsets[name].scenes)
        shown = {pair: shown_textures(scene) for pair, scene in first.items() if has_choice(split, pair, every)}
        for (pair, own), texture in product(shown.items(), textures):
            for animal, its in zip(sorted(pair[1]), own, strict=True):
                tallies.add(f"{texture} {animal}", name, its == texture, 1 / len(textures))
            tallies.add(f"{texture} on the first animal in the alphabet", name, own[0] == texture, 1 / len(textures))
        for (_, own), both in product(shown.items(), combinations(textures, 2)):
            tallies.add(" and ".join(both), name, set(own) == set(both), 2 / len(every))
        what = "the first animal in the alphabet has the first texture in the alphabet"
        tally_halves(tallies, what, name, [own[0] < own[1] for own in shown.values()])


def has_choice(split: Split, pair: Stratum, every: Sequence) -> bool:
    """Whether the hold-out rules leave scenes of a pair in all textures."""
    return not rules_of(split) or len(left(split, {own: scenes_of(split, pair, [own]) for own in every})) == len(every)


def tally_orders(split: Split, tallies: Tallies) -> None:
    """The orders of pairs of which one is drawn: which animal is first."""
    every = list(product(split.vocabulary.textures, repeat=2))
    for name, records in split.subsets.items():
        if name != "train" and not name.endswith("seen_order"):  # unseen_order, too
            continue
        drawn = []
        for pair, scene in first_of_each(records.scenes).items():
            own = tuple(thing.animal for thing in scene.things)
            orders = {its: scenes_of(split, pair, every, [its]) for its in (own, own[::-1])}
            if not rules_of(split) or len(left(split, orders)) == len(orders):
                drawn.append(own)
                for animal in own:
                    tallies.add(f"{animal} first, {pair[0]}", name, own[0] == animal, 0.5)
        tally_halves(tallies, "the first animal in the alphabet is first", name, [own[0] < own[1] for own in drawn])
        in_world = split.vocabulary.animals.index
        tally_halves(
            tallies, "the world's first is first", name, [in_world(own[0]) < in_world(own[1]) for own in drawn]
        )


def tally_halves(tallies: Tallies, what: str, name: str, fell: Sequence[bool]) -> None:
    """Fair coins in the sequence of the file: all of them, and those of each half."""
    middle = len(fell) // 2
    for part, own in {"": fell, ", first half": fell[:middle], ", second half": fell[middle:]}.items():
        if own:
            tallies.add(what + part, name, sum(own), 0.5, len(own))


def tally_roles(split: Split, tallies: Tallies) -> None:
    """How many pairs of train, of a test of unseen pairs and of validation have each animal."""
    animals = split.vocabulary.animals
    for name, records in split.subsets.items():
        if name in ("train", "validation") or name.endswith("unseen_pairs"):
            pairs = first_of_each(records.scenes)
            for relation in sorted({relation for relation, _ in pairs}):
                its = [pair for own, pair in pairs if own == relation]
                for animal in animals:
                    count = sum(animal in pair for pair in its)
                    tallies.add(f"pairs with {animal}, {relation}", name, count, 2 / len(animals), len(its))


def tally_paint(split: Split, tallies: Tallies) -> None:
    """Which of an animal's appearances in train have which of its textures: on which background, where, beside whom."""
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
    """What the texture of a thing could go with."""
    yield from (scene.background, f"view {scene.view}", place_of(thing.slot), *filter(None, [thing.size]))
    for other in scene.things:
        if other != thing:
            yield from (f"beside {other.animal}", f"beside {other.texture}")


CHECKS = (check_pair_draws,)
