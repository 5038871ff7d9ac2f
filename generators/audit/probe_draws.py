"""Checks of what is drawn for probe sets: places, and once for each quartet backgrounds, sizes, facings and phrasings.

All scenes of a bag (animals and textures) in a view share these draws, so that one scene of each stands for them. A
draw may depend on nothing that the scene shows, on no other draw, and not on the draw of another view: what two views
share would be free of its noise.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from menagerie.envs.layouts import LAYOUTS
from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding, first
from menagerie.generators.audit.probes import FIRST, bag, tested
from menagerie.generators.audit.regeneration import left_out
from menagerie.generators.audit.scene_draws import outward, phrasings
from menagerie.generators.audit.statistics import Tallies
from menagerie.generators.audit.texts import phrasing_in
from menagerie.generators.captions.templates import template_of
from menagerie.generators.storage.split_file import Records, Split

# The result of a draw, whether it came, its probability, and the words for what it could depend on.
Draws = Iterator[tuple[str, bool, float, Iterable[str]]]


def check_probe_draws(split: Split) -> Iterator[Finding]:
    """Check the draws made for each bag in a view: backgrounds, sizes, facings and phrasings depend on no animal,
    texture or view, nor on each other, and views are drawn apart. Check that animals and textures of a crowd are in
    each place equally often."""
    tallies, lost = Tallies(), lost_draws(split)
    for scene in one_of_each(split.subsets[FIRST].scenes).values():
        for what, came, chance, words in drawn_for(split, scene):
            for word in words:
                tallies.add(f"{what} {word}".strip(), FIRST, came, chance, lost=lost)
    for what, came, chance in drawn_again(split):
        tallies.add(f"{what} as in the view before", FIRST, came, chance, lost=lost)
    for name, records in tested(split).items():
        for what, word, count, chance, number in phrasings(split, representatives(records)):
            tallies.add(f"{what} with {word}" if word else what, name, count, chance, number)
    if split.recipe["layout"]:
        tally_places(split, tallies)
    yield tallies.finding("backgrounds, sizes, facings, phrasings and places are drawn whatever else is shown")


def lost_draws(split: Split) -> int:
    """The number of draws, in all views, that are lacking because quartets hide too much; each thing counts, because
    its size is drawn."""
    return len(left_out(split).get(FIRST, ())) // 4 * split.recipe["things"]


def check_probe_phrasings(split: Split) -> Iterator[Finding]:
    """Check that the captions of a quartet have one phrasing."""
    texts = template_of(split.recipe).phrasings
    for name, records in tested(split).items():
        shown: dict[Hashable, str | None] = {}
        rows = zip(records.scenes, records.captions, strict=True)
        found = ((scene, phrasing_in(text, scene, texts)) for scene, text in rows)
        strange = (s.key for s, phrasing in found if shown.setdefault((s.view, bag(s)), phrasing) != phrasing)
        yield Finding(f"captions of a quartet of {name} have one phrasing", *first(strange))


def one_of_each(scenes: Iterable[Scene]) -> dict[tuple[int, Hashable], Scene]:
    """One scene for each view and bag."""
    return {(scene.view, bag(scene)): scene for scene in scenes}


def representatives(records: Records) -> Records:
    """The scenes of a test that stand for their quartets, with their captions and graphs; other columns stay whole."""
    chosen = {(scene.view, bag(scene)): i for i, scene in enumerate(records.scenes)}.values()
    columns = {name: [getattr(records, name)[i] for i in chosen] for name in ("scenes", "captions", "graphs")}
    return replace(records, **columns)


def drawn_for(split: Split, scene: Scene) -> Draws:
    """Yield the draws of a bag in a view, each with its context."""
    v, animals = split.vocabulary, sorted(scene.things)
    names = ["", f"view {scene.view}", *(name for thing in animals for name in thing[:2])]
    places = [thing.slot for thing in animals if split.recipe["layout"]]
    for background in v.backgrounds:
        yield background, scene.background == background, 1 / len(v.backgrounds), [*names, *places]
    names.append(scene.background)
    shared = ["", f"view {scene.view}", scene.background, *(thing.texture for thing in animals)]
    for thing in animals if v.sizes else ():
        for size in v.sizes:
            yield size, thing.size == size, 1 / len(v.sizes), [*shared, thing.animal, *places]
    for one, other in pairwise(animals if v.sizes else ()):
        yield "the size of the next animal", one.size == other.size, 1 / len(v.sizes), names
    if faces_either_way(split):
        for place, faces_outward in zip(("left", "right"), outward(scene), strict=True):
            yield f"facing outward on the {place}", faces_outward, 0.5, names


def drawn_again(split: Split) -> Iterator[tuple[str, bool, float]]:
    """Yield whether a draw for a bag in a view has the result that it has in the view before, with the probability."""
    v, shown = split.vocabulary, one_of_each(split.subsets[FIRST].scenes)
    for (view, its), scene in shown.items():
        if (before := shown.get((view - 1, its))) is None:
            continue
        yield "the background", scene.background == before.background, 1 / len(v.backgrounds)
        for one, other in zip(sorted(scene.things), sorted(before.things), strict=True) if v.sizes else ():
            yield "a size", one.size == other.size, 1 / len(v.sizes)
        for one, other in zip(outward(scene), outward(before), strict=True) if faces_either_way(split) else ():
            yield "a facing", one == other, 0.5


def faces_either_way(split: Split) -> bool:
    """Whether the facings of a probe set are drawn."""
    return not split.recipe["layout"]


def tally_places(split: Split, tallies: Tallies) -> None:
    """Count which animals and textures are in which places: in the first view, for one scene of each quartet."""
    recipe, number = split.recipe, split.recipe["things"]
    choices = LAYOUTS[recipe["layout"]].choices(number)
    scenes = {bag(s): s for s in split.subsets[FIRST].scenes if s.view == recipe["first_view"]}.values()
    lost = len(left_out(split).get(FIRST, ())) // (4 * recipe["probe_views"])
    known = (recipe["animals"] or split.vocabulary.animals, recipe["textures"] or split.vocabulary.textures)
    for slot in sorted({slot for choice in choices for slot in choice}):
        share = sum(slot in choice for choice in choices) / len(choices)
        there = [thing for scene in scenes for thing in scene.things if thing.slot == slot]
        tallies.add(slot, FIRST, len(there), share, len(scenes), lost=lost)
        for part, names in enumerate(known):
            for name in names:
                count, chance = sum(t[part] == name for t in there), share / len(names)
                tallies.add(f"{name} {slot}", FIRST, count, chance, len(scenes), lost=lost)
