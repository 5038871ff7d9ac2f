"""Whether tests show what they were drawn from: all of it, or an even part (see `candidates` and `tallies`).

In a test that has fewer records than its recipe allows every scene must be there. In another, each background, view,
animal and texture, each in each place and together, and each number must be as frequent as in the scenes that it was
drawn from, within each pair, however many records it has; and so must the pairs and animals among each other.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from menagerie.envs.scene import Scene
from menagerie.generators.audit.balance import TOGETHER
from menagerie.generators.audit.candidates import OF_KIND, Drawn, Stratum, candidates, stratum_of
from menagerie.generators.audit.findings import Finding, first, skipped
from menagerie.generators.audit.parts import parts
from menagerie.generators.audit.tallies import Tallies
from menagerie.generators.storage.split_file import Split

EVENLY = "tests are drawn evenly: pairs, animals, textures, places, backgrounds, views and numbers"


def check_drawn(split: Split) -> Iterator[Finding]:
    """Tests have only scenes of their kind, all or as many as they may, and evenly."""
    if split.recipe["kind"] not in OF_KIND:
        yield skipped(EVENLY, f"what tests of {split.recipe['kind']} are drawn from isn't written")
        return
    tests, start = list(candidates(split)), split.recipe["views"]
    views = range(start, start + split.recipe["test_views"])
    strange = (f"{scene.key} of {its.name}" for its in tests for scene in impossible(its))
    yield Finding("every scene of a test is one of those that its recipe gives it", *first(strange))
    short = (text for its in tests if (text := wrong_number(its, len(views))))
    yield Finding("every test has all scenes that its recipe gives it, or as many as it says", *first(short))
    tallies = Tallies()
    for its in tests:
        if len(its.scenes) >= its.most:
            tally_strata(its, tallies)
            tally_within(its, views, tallies)
    yield tallies.finding(EVENLY)


def impossible(its: Drawn) -> list[Scene]:
    """Scenes of a test that it can't have been drawn from."""
    possible = {stratum: set(scenes) for stratum, scenes in its.strata.items()}
    return [scene for scene, _ in its.scenes if scene not in possible.get(stratum_of(scene), ())]


def wrong_number(its: Drawn, views: int) -> str:
    """How many records a test has and should have; empty if these are as many."""
    least = views * (sum(map(len, its.strata.values())) + sum(its.hidden))
    if min(its.most, least) <= len(its.scenes) <= its.most:
        return ""
    return f"{its.name} has {len(its.scenes)} records of at least {least} scenes; at most {its.most} are drawn"


def by_stratum(its: Drawn) -> dict[Stratum, list[tuple[Scene, int]]]:
    """The records of a test by their strata."""
    found: dict[Stratum, list[tuple[Scene, int]]] = {stratum: [] for stratum in its.strata}
    for scene, view in its.scenes:
        found.setdefault(stratum_of(scene), []).append((scene, view))
    return found


def tally_strata(its: Drawn, tallies: Tallies) -> None:
    """How often each pair is drawn, and, where none is hidden, each animal."""
    found, draws = by_stratum(its), len(its.scenes)
    size = {stratum: len(scenes) for stratum, scenes in its.strata.items()}
    least, most = (sum(size.values()) + sum(hidden) for hidden in (its.hidden, its.most_hidden))
    for stratum, number in size.items():
        count = len(found[stratum])
        tallies.add(f"records of {named(stratum)}", its.name, count, number / most, draws, number / least)
    for i, number in enumerate(its.hidden):
        tallies.add(f"records of a pair that isn't there ({i + 1})", its.name, 0, number / most, draws)
    if not its.most_hidden:
        for animal in {animal for stratum in size for animal in animals_of(stratum)}:
            own = [stratum for stratum in size if animal in animals_of(stratum)]
            count, number = sum(len(found[stratum]) for stratum in own), sum(size[stratum] for stratum in own)
            tallies.add(f"records of {animal}", its.name, count, number / most, draws)


def animals_of(stratum: Stratum) -> Sequence[str]:
    """The animals of a stratum."""
    return sorted(stratum[1]) if isinstance(stratum, tuple) else [stratum]


def named(stratum: Stratum) -> str:
    """ "cat and lion, left/right"."""
    return " and ".join(animals_of(stratum)) + (f", {stratum[0]}" if isinstance(stratum, tuple) else "")


def tally_within(its: Drawn, views: range, tallies: Tallies) -> None:
    """Within each stratum how often each part of a scene is drawn, and each view of it."""
    for stratum, records in by_stratum(its).items():
        scenes, draws = its.strata.get(stratum), len(records)
        if not (scenes and records):
            continue
        shares = {part: n / len(scenes) for part, n in Counter(p for scene in scenes for p in parts(scene)).items()}
        shown = [(list(parts(scene)), view) for scene, view in records]
        counts = Counter(part for its_parts, _ in shown for part in its_parts)
        in_view = Counter((part, view) for its_parts, view in shown for part in its_parts)
        seen = Counter(view for _, view in records)
        for where in (its.name, TOGETHER):
            for view in views:
                tallies.add(f"view {view}", where, seen[view], 1 / len(views), draws)
            for part, share in shares.items():
                if share < 1:
                    tallies.add(part, where, counts[part], share, draws)
                for view in views:
                    tallies.add(f"{part}, view {view}", where, in_view[part, view], share / len(views), draws)


CHECKS = (check_drawn,)
