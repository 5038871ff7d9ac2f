"""Checks of probe sets: they are complete, quartets are whole, groups keep them together, and entropies are exact.

A quartet is four scenes of a view: a scene, its swap (two textures exchanged), its mirror (these two things in each
other's places) and the mirror's swap. Which two things a swap changes is read from the swap; the mirror follows.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import permutations, product
from math import comb, log2

from menagerie.envs.layouts import LAYOUTS
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import CROWD, place_of
from menagerie.generators.audit.findings import Finding, bare, first
from menagerie.generators.audit.regeneration import left_out
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.splits.recipe import ENTROPIES
from menagerie.generators.storage.split_file import Records, Split

LEAST_VIEW = 20_000  # a split for training has at most 10 000 views, and as many test views after them
BITS = 1e-9  # by which the sum of an entropy may be off
FIRST = "left_first"
MOST_LEFT_OUT = 0.5  # share of quartets


def tested(split: Split) -> dict[str, Records]:
    return {name: records for name, records in split.subsets.items() if name not in ("train", "validation")}


def exchanged_in(scene: Scene) -> tuple[Thing, Thing]:
    """The two things whose textures a swap exchanges."""
    one, other = (thing for thing in scene.things if thing not in SWAPS["probe"](scene).things)
    return one, other


def mirror(scene: Scene) -> Scene:
    one, other = exchanged_in(scene)
    moved = {one: one._replace(slot=other.slot), other: other._replace(slot=one.slot)}
    return replace(scene, things=tuple(moved.get(thing, thing) for thing in scene.things))


def bag(scene: Scene) -> Hashable:
    """The animals and the textures of a scene, without saying which texture belongs to which animal."""
    return frozenset(thing.animal for thing in scene.things), frozenset(thing.texture for thing in scene.things)


def cells(scene: Scene) -> Hashable:
    return frozenset((thing.animal, thing.texture) for thing in scene.things)


def check_probe_trains_nothing(split: Split) -> Iterator[Finding]:
    """Check that train and validation are empty."""
    full = (f"{len(split.subsets[name])} scenes in {name}" for name in ("train", "validation") if split.subsets[name])
    yield Finding("a probe set has nothing in train and validation", *first(full))


def check_probe_views(split: Split) -> Iterator[Finding]:
    """Check that scenes have the views of the recipe, and that no split for training can have these."""
    start, number = split.recipe["first_view"], split.recipe["probe_views"]
    yield Finding("no training can use the views", start >= LEAST_VIEW, f"views from {start}, training's are below")
    for name, records in tested(split).items():
        strange = (scene.key for scene in records.scenes if not start <= scene.view < start + number)
        yield Finding(f"every view of {name} is one from {start} to {start + number - 1}", *first(strange))


def check_probe_complete(split: Split) -> Iterator[Finding]:
    """Check that every view has each ordered pair of animals with each ordered pair of textures exactly once. For a
    crowd, check that all views have the same arrangements."""
    start, number = split.recipe["first_view"], split.recipe["probe_views"]
    for name, records in tested(split).items():
        found = Counter((scene.view, plain(scene)) for scene in records.scenes)
        shown = crowd_of(records) if split.recipe["layout"] else pairs_of(split)
        wrong = (
            f"view {key[0]} of {key[1].key}" for key in product(range(start, start + number), shown) if found[key] != 1
        )
        yield Finding(f"{name} has every pair of animals and of textures in every view", *first(wrong))
        surplus = (scene.key for scene in records.scenes if plain(scene) not in shown)
        yield Finding(f"{name} has no scene of another kind", *first(surplus))


def plain(scene: Scene) -> Scene:
    """The scene without its view and without what is drawn in a view: background, facings and sizes."""
    return replace(bare(scene), background="")


def pairs_of(split: Split) -> set[Scene]:
    """A scene for each ordered pair of the recipe's animals, with each ordered pair of its textures."""
    animals, textures = (split.recipe[name] or getattr(split.vocabulary, name) for name in ("animals", "textures"))
    every = product(permutations(animals, 2), permutations(textures, 2))
    return {Scene("", (Thing(a, t, "left"), Thing(b, u, "right"))) for (a, b), (t, u) in every}


def crowd_of(records: Records) -> set[Scene]:
    """The arrangements of a crowd that some view shows."""
    return {plain(scene) for scene in records.scenes}


def check_probe_crowd(split: Split) -> Iterator[Finding]:
    """Check that a crowd has the requested number of quartets, few of them left out, each of other animals or textures,
    and that its scenes have different things in places of the layout. Without a layout, check that no scene is left
    out."""
    recipe = split.recipe
    for name, records in tested(split).items():
        left = len(left_out(split).get(name, ())) / (4 * recipe["probe_views"])
        bags = len({bag(scene) for scene in records.scenes})
        if not recipe["layout"]:
            yield Finding(f"no scene of {name} is left out", not left, f"{left:g} quartets")
            continue
        detail = f"{bags} quartets, {left:g} left out, requested {recipe['quartets']}"
        yield Finding(f"{name} has the requested quartets", bags + left == recipe["quartets"], detail)
        few = left <= MOST_LEFT_OUT * recipe["quartets"]
        yield Finding(f"few quartets of {name} hide too much and are left out", few, detail)
        four = Counter((scene.view, bag(scene)) for scene in records.scenes)
        strange = (f"{number} scenes in view {view}" for (view, _), number in four.items() if number != 4)
        yield Finding(f"all animals and textures of {name} that are drawn are in one quartet a view", *first(strange))
        strange = (scene.key for scene in records.scenes if not suits(split, scene))
        yield Finding(f"every scene of {name} has different things in places of the layout", *first(strange))


def suits(split: Split, scene: Scene) -> bool:
    """Whether a crowd has the right number of things, of different known animals and textures, in the right places."""
    number, recipe = split.recipe["things"], split.recipe
    places = LAYOUTS[recipe["layout"]].choices(number)
    known = recipe["animals"] or split.vocabulary.animals, recipe["textures"] or split.vocabulary.textures
    names = bag(scene)
    return tuple(thing.slot for thing in scene.things) in places and all(
        len(some) == number and some <= set(every) for some, every in zip(names, known, strict=True)
    )


def check_probe_quartets(split: Split) -> Iterator[Finding]:
    """Check that for each scene the test also has its swap, its mirror and the mirror's swap: in the same view, on the
    same background, with the same sizes and facings."""
    for name, records in tested(split).items():
        known = set(records.scenes)
        torn = (scene.key for scene in records.scenes if not {SWAPS["probe"](scene), mirror(scene)} <= known)
        yield Finding(f"every scene of {name} has its swap and its mirror on its background", *first(torn))


def check_probe_groups(split: Split) -> Iterator[Finding]:
    """Check that records have one group for each pair of animals that swap and mirror exchange, so that no quartet is
    torn."""
    for name, records in tested(split).items():
        pairs = [frozenset(thing.animal for thing in exchanged_in(scene)) for scene in records.scenes]
        groups = [] if records.groups is None else records.groups.tolist()
        there = len(groups) == len(pairs)
        group_of = dict(zip(pairs, groups, strict=False))
        torn = (s.key for s, pair, group in zip(records.scenes, pairs, groups, strict=False) if group_of[pair] != group)
        holds, detail = first(torn)
        apart = len(set(group_of.values())) == len(group_of)
        detail = detail or f"{len(set(groups))} groups of {len(set(pairs))} pairs"
        yield Finding(f"groups of {name} keep a scene, its swap and its mirror together", holds and there, detail)
        yield Finding(f"groups of {name} are pairs of animals", apart and there, detail)


def entropy(counts: Iterable[int]) -> float:
    """The entropy, in bits, of outcomes with these counts."""
    numbers = list(counts)
    total = sum(numbers)
    return -sum(n / total * log2(n / total) for n in numbers)


def check_probe_entropies(split: Split) -> Iterator[Finding]:
    """Check that the recorded entropies are those of the scenes and that the textures' assignment is exactly 1 bit.
    Without a layout, also check that the recorded number of bags is that of all bags of two things."""
    recorded = split.recipe[ENTROPIES]
    animals, textures = (split.recipe[name] or getattr(split.vocabulary, name) for name in ("animals", "textures"))
    for name, records in tested(split).items():
        which, both = (
            entropy(Counter(map(key, records.scenes)).values()) for key in (bag, lambda s: (bag(s), cells(s)))
        )
        found = {"which": which, "binding": both - which}
        detail = ", ".join(f"{what} {bits:.4f} bits, recorded {recorded[what]:.4f}" for what, bits in found.items())
        same = all(abs(recorded[what] - bits) < BITS for what, bits in found.items())
        bags = comb(len(animals), 2) * comb(len(textures), 2)
        same &= bool(split.recipe["layout"]) or recorded["bags"] == bags
        yield Finding(f"entropies are those of {name}", same and recorded["binding"] == 1.0, detail)


def check_probe_mentions(split: Split) -> Iterator[Finding]:
    """Check that the tests have the same scenes, and captions mention their things from left to right in one, from
    right to left in the other."""
    shown = {name: records.scenes for name, records in tested(split).items()}
    differ = (name for name, scenes in shown.items() if scenes != shown[FIRST])
    yield Finding("both tests have the same scenes in the same order", *first(differ))
    for name, records in tested(split).items():
        rows = zip(records.scenes, records.graphs, strict=True)
        strange = (scene.key for scene, graph in rows if not follows(scene, graph.nodes, name == FIRST))
        yield Finding(f"captions of {name} mention things in its order", *first(strange))


def follows(scene: Scene, nodes: tuple[str, ...], left_first: bool) -> bool:
    """Whether the things of a graph go from left to right in the scene (`left_first`), or from right to left."""
    column = {"left": -1.0, "right": 1.0} | {slot: place.column for slot, place in CROWD.items()}
    at = {phrase(thing): column[place_of(thing.slot)] for thing in scene.things}
    columns = [at[node] for node in nodes if node in at]
    return len(columns) == len(scene.things) and columns == sorted(columns, reverse=not left_first)


def check_probe_answers(split: Split) -> Iterator[Finding]:
    """Check that in each view every text is as often true as false, so that texts alone tell nothing."""
    for name, records in tested(split).items():
        balance: dict[tuple[int, str], int] = defaultdict(int)
        for scene, true, false in zip(records.scenes, records.captions, records.negatives, strict=True):
            balance[scene.view, true] += 1
            balance[scene.view, false] -= 1
        odd = (f"view {view}, {text!r}" for (view, text), number in balance.items() if number)
        yield Finding(f"every text of {name} is as often true as false", *first(odd))
