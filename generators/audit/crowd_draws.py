"""Checks of what is drawn for crowd splits: cells, places, backgrounds, views and sizes, and mentions in captions.

Scenes are dealt from shuffled decks. So all cells (combinations of animal and texture) are equally frequent, and so are
all backgrounds, all views and all choices of places that the layout has. No place, background, view or cell occurs more
often with one other than with the rest. In tests of unseen cells, exchanged things use one class of textures for each
class of animals, and so do other things. Which classes these are is read from train and from the tests. The cells of
searches and triplets aren't equally frequent. Of these the audit only checks that an animal is on each background, in
each view and in each place as often as all things are. It knows how many scenes were left out because they hide too
much, not which, and allows that all of these, or none, had what is counted (`statistics.widened`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from math import comb, factorial, prod
from typing import NamedTuple

from menagerie.envs.layouts import LAYOUTS
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.audit.crowd_mentions import contexts, first_mentions, omissions
from menagerie.generators.audit.crowds import cells_of, classes, read_name
from menagerie.generators.audit.findings import Finding, rules_of
from menagerie.generators.audit.regeneration import left_out
from menagerie.generators.audit.scene_draws import phrasings
from menagerie.generators.audit.statistics import Tallies
from menagerie.generators.captions.hard_negatives.swaps import exchanged, swap_exchanged
from menagerie.generators.storage.split_file import Split


class Dealt(NamedTuple):
    """Scenes with one number of things, and the shares of what their decks hold."""

    where: str
    """The subset and the number of things, in words."""
    scenes: Sequence[Scene]
    places: dict[str, float]
    """The share of the layout's choices that have each place."""
    backgrounds: dict[str, float]
    views: dict[str, float]
    choices: int
    """The number of the layout's choices of places."""
    lost: int
    """The number of scenes of the subset, of any number of things, that were left out because they hide too much."""

    @property
    def things(self) -> int:
        return len(self.scenes[0].things)

    @property
    def spots(self) -> dict[str, float]:
        """The share of things in each place, on each background and in each view."""
        return {place: share / self.things for place, share in self.places.items()} | self.backgrounds | self.views


def check_crowd_draws(split: Split) -> Iterator[Finding]:
    """Check that phrasings, and what captions mention, depend on nothing in the scene. Without hold-out rules, check
    that places, backgrounds and views are as frequent as even draws make them, each with each other, and so are
    animals, textures and cells in each of these, and that sizes depend on nothing. In searches, triplets and tests of
    unseen cells, check only that animals, textures and cells go with no place, background or view; of unseen cells also
    that exchanged things have all of them equally often."""
    tallies = Tallies()
    for name, records in split.subsets.items():
        draws = (phrasings(split, records), first_mentions(split, records), omissions(split, name, records))
        for what, word, count, chance, number in (draw for some in draws for draw in some):
            tallies.add(f"{what} with {word}" if word else what, name, count, chance, number)
        for dealt in () if rules_of(split) else dealt_in(split, name):
            tally_spots(dealt, tallies)
            tally_content(split, name, dealt, tallies)
            tally_sizes(split, dealt, tallies)
    yield tallies.finding("scenes are dealt evenly: cells, places, backgrounds and views go with nothing else")


def dealt_in(split: Split, name: str) -> Iterator[Dealt]:
    """Yield the scenes of a subset by their number of things."""
    recipe, scenes = split.recipe, split.subsets[name].scenes
    layout = recipe["layout"] if name == "train" else recipe["test_layout"] or recipe["layout"]
    start, views = (0, recipe["views"]) if name == "train" else (recipe["views"], recipe["test_views"])
    grounds = split.vocabulary.backgrounds
    for number in sorted({len(scene.things) for scene in scenes}):
        choices = LAYOUTS[layout].choices(number)
        places = Counter(slot for choice in choices for slot in choice)
        yield Dealt(
            f"{name}, {number} things",
            [scene for scene in scenes if len(scene.things) == number],
            {place: count / len(choices) for place, count in places.items()},
            dict.fromkeys(grounds, 1 / len(grounds)),
            {f"view {view}": 1 / views for view in range(start, start + views)},
            len(choices),
            len(left_out(split).get(name, ())),
        )


def tally_spots(dealt: Dealt, tallies: Tallies) -> None:
    """Count places by background and by view, and backgrounds by view, once for a scene and its swap."""
    found, scenes = Counter(), one_of_each(dealt.scenes)
    for scene in scenes:
        places, view = [thing.slot for thing in scene.things], f"view {scene.view}"
        found.update([*product(places, (scene.background, view)), (scene.background, view)])
    grounds = dealt.backgrounds | dealt.views
    joint = [*product(dealt.places.items(), grounds.items()), *product(dealt.backgrounds.items(), dealt.views.items())]
    for (one, chance), (other, share) in joint:
        count = found[one, other]
        tallies.add(f"{one}, {other}", dealt.where, count, chance * share, len(scenes), lost=dealt.lost)


def one_of_each(scenes: Sequence[Scene]) -> list[Scene]:
    """Keep one of a scene and its swap, which share their draws."""
    kept: dict[frozenset[Scene], Scene] = {}
    for scene in scenes:
        kept.setdefault(frozenset({scene, swap_exchanged(scene)} if len(scene.things) > 1 else {scene}), scene)
    return list(kept.values())


def tally_content(split: Split, name: str, dealt: Dealt, tallies: Tallies) -> None:
    """Count what the things of scenes are, alone and by place, background and view."""
    test = read_name(name)
    if test is None or test.kind == "seen":
        tally_dealt(split, dealt, tallies)
        return
    tally_names({"": 1.0}, dealt, tallies)
    for role, scenes in roles(dealt).items():
        tally_ties(scenes, f"{role} things of {dealt.where}", dealt.lost, tallies)
    if test.kind == "unseen":
        tally_unseen(split, dealt, tallies)


def tally_dealt(split: Split, dealt: Dealt, tallies: Tallies) -> None:
    """Count animals, textures and cells, of which train's are equally frequent, by place, background and view."""
    v, shown = split.vocabulary, shown_cells(split)
    things = {"": 1.0} | {f"{texture} {animal}": 1 / len(shown) for animal, texture in shown}
    for i, part in enumerate((v.animals, v.textures)):
        things |= {word: sum(cell[i] == word for cell in shown) / len(shown) for word in part}
    tally_names(things, dealt, tallies)


def shown_cells(split: Split) -> set[tuple[str, str]]:
    return {cell for scene in split.subsets["train"].scenes for cell in cells_of(scene)}


def tally_names(things: dict[str, float], dealt: Dealt, tallies: Tallies) -> None:
    """Count the things with each of some names, alone and in each spot; `things` has the share of each name."""
    found, draws = Counter(), dealt.things * len(dealt.scenes)
    more = 1 + dealt.lost / len(dealt.scenes)
    for scene in dealt.scenes:
        for thing in scene.things:
            spots = ("", thing.slot, scene.background, f"view {scene.view}")
            found.update(product(("", *words_of(thing)), spots))
    for (what, chance), (spot, share) in product(things.items(), ({"": 1.0} | dealt.spots).items()):
        # One thing of a scene has a name or a place, all have its background and view.
        lost = dealt.lost * (1 if what or spot in dealt.places else dealt.things)
        if what or spot:
            low, high = chance * share, min(chance * share * more, 1.0)
            tallies.add(f"{what} {spot}".strip(), dealt.where, found[what, spot], low, draws, high, lost)


def words_of(thing: Thing) -> tuple[str, str, str]:
    """The animal, the texture and the cell of a thing."""
    return thing.animal, thing.texture, f"{thing.texture} {thing.animal}"


# Some things of each scene.
Chosen = list[tuple[list[Thing], Scene]]


def roles(dealt: Dealt) -> dict[str, Chosen]:
    """The things that swaps exchange, and all others, each with their scenes."""
    found: dict[str, Chosen] = {"exchanged": [], "other": []}
    for scene in dealt.scenes:
        pair = exchanged(scene)
        found["exchanged"].append(([scene.things[i] for i in pair], scene))
        found["other"].append(([thing for i, thing in enumerate(scene.things) if i not in pair], scene))
    return found


def tally_ties(scenes: Chosen, where: str, lost: int, tallies: Tallies) -> None:
    """Count the animals, textures and cells in each place and, scene by scene, on each background and in each view. Up
    to `lost` scenes may lack."""
    named = [({word for thing in things for word in words_of(thing)}, scene) for things, scene in scenes]
    for draws in (
        [(words_of(thing), thing.slot) for things, _ in scenes for thing in things],
        [(words, scene.background) for words, scene in named],
        [(words, f"view {scene.view}") for words, scene in named],
    ):
        words, spots = Counter(word for some, _ in draws for word in some), Counter(spot for _, spot in draws)
        both = Counter((word, spot) for some, spot in draws for word in some)
        less = lost * len(draws) / len(scenes)
        for word, spot in product(words, spots):
            low, high = (number / (len(draws) + less) for number in (words[word], words[word] + less))
            tallies.add(f"{word} {spot}", where, both[word, spot], low, spots[spot], high, lost)


def tally_unseen(split: Split, dealt: Dealt, tallies: Tallies) -> None:
    """Count the animals, textures and cells of exchanged things, which all have cells of one distance. How many cells
    these are depends on which classes the distance combines, if classes differ in size. Count nothing if other things
    may not find their places beside some of them: those are exchanged less often."""
    shown = shown_cells(split)
    animals, textures = classes(shown, 0), classes(shown, 1)
    sizes = [sorted(Counter(its.values()).values()) for its in (animals, textures)]
    scenes = fewest_scenes(dealt, sizes)
    if not scenes:
        return
    least, most = (sum(map(prod, zip(sizes[0], its, strict=False))) for its in (sizes[1][::-1], sizes[1]))
    shares = {name: (sizes[1][0] / most, sizes[1][-1] / least) for name in animals}
    shares |= {name: (sizes[0][0] / most, sizes[0][-1] / least) for name in textures}
    things = [scene.things[i] for scene in dealt.scenes for i in exchanged(scene)]
    blocks = {(animals.get(thing.animal), textures.get(thing.texture)) for thing in things}
    for animal, texture in product(animals, textures):
        if (animals[animal], textures[texture]) in blocks:
            shares[f"{texture} {animal}"] = 1 / most, 1 / least
    # Scenes that are dealt again don't count; small classes have more of these.
    again = len(dealt.scenes) ** 2 // (2 * scenes) if least < most else 0
    lost, found = dealt.lost + again, Counter(word for thing in things for word in words_of(thing))
    for word, (low, high) in shares.items():
        tallies.add(word, f"exchanged things of {dealt.where}", found[word], low, len(things), high, lost)


def fewest_scenes(dealt: Dealt, sizes: Sequence[Sequence[int]]) -> int:
    """A number of scenes with unseen cells that train's smallest classes allow at least, of a scene and its swap one;
    `sizes` are those of the classes of animals and textures. Zero if other things may not find any cells."""
    (animals, *_), (textures, *_) = sizes
    # In each class, as many other things as its animals and textures allow; exchanged ones take two of each.
    others, rest = dealt.things - 2, max(len(sizes[0]) * min(animals, textures) - 4, 0)
    pairs = animals * (animals - 1) * textures * (textures - 1) // 2
    shown = dealt.choices * len(dealt.backgrounds) * len(dealt.views)
    return shown * pairs * comb(rest, others) * factorial(others)


def tally_sizes(split: Split, dealt: Dealt, tallies: Tallies) -> None:
    """Count the sizes of animals."""
    sizes, found, draws = split.vocabulary.sizes, Counter(), Counter()
    for scene in one_of_each(dealt.scenes) if sizes else ():
        for thing in {thing.animal: thing for thing in scene.things}.values():
            context = contexts(thing, scene)
            draws.update(context)
            found.update(product([thing.size], context))
    for size, (word, number) in product(sizes, draws.items()):
        tallies.add(f"{size} with {word}", dealt.where, found[size, word], 1 / len(sizes), number, lost=dealt.lost)
