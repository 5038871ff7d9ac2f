"""The rows of each question's table and figure."""

from collections.abc import Sequence
from typing import NamedTuple

from menagerie.studies.analysis.paired_bootstrap import Points, tally
from menagerie.studies.analysis.pareto import Bound, Curve, ImageRatio, Tally, bound, image_ratio
from menagerie.studies.photographs.measures import KNOWN, RECOGNITION, SWAPS, Level, Lines, compared, measured
from menagerie.studies.photographs.trainings import (
    BINDING,
    OTHERS,
    OWN,
    SPATIAL,
    SYNTHETIC,
    WORTH,
    Training,
    counts,
    trainings,
)
from menagerie.studies.photographs.worlds import HELD_OUT, NATURAL, PHOTOGRAPHS

# Kind of split, tests of rendered and of photographed animals, and what the latter look like.
TESTS = (
    (BINDING, SYNTHETIC, PHOTOGRAPHS, "binding, photographs in the world's textures"),
    (SPATIAL, SYNTHETIC, PHOTOGRAPHS, "spatial, photographs in the world's textures"),
    (SPATIAL, f"{SYNTHETIC}, bare", NATURAL, "spatial, photographs in their own colours"),
)
BOTH = (RECOGNITION, SWAPS)


class Gap(NamedTuple):
    """One measure on rendered and on photographed animals."""

    model: str
    test: str
    measure: str
    synthetic: Level
    photographs: Level
    gap: Level


def gaps(lines: Lines, models: Sequence[str]) -> list[Gap]:
    """(a) Models that saw rendered animals only, on photographed ones."""
    rows = []
    for model in models:
        for kind, synthetic, photographs, test in TESTS:
            training = Training(model, 0, kind)
            first, second = lines.points(training, synthetic), lines.points(training, photographs)
            for measure in (RECOGNITION, SWAPS, KNOWN):
                both = [measured(points, measure) for points in (first, second)]
                rows.append(Gap(model, test, measure, *compared(*both)))
    return [row for row in rows if row.synthetic.clusters]


class Step(NamedTuple):
    """One measure after training on some photographs; `NOTHING` where a run isn't made or isn't finished."""

    model: str
    measure: str
    world: str
    """Whose photographs they are: OWN for the tested animals, OTHERS for other animals."""
    count: int
    test: str
    scratch: Level
    tuned: Level
    saved: Level
    """The accuracy after synthetic training minus that from scratch."""


def steps(lines: Lines, models: Sequence[str]) -> list[Step]:
    """(b) More and more photographs, with and without synthetic training."""
    config, material = lines.study.config, lines.study.material
    of_tested = [(OWN, count, HELD_OUT) for count in (0, *counts(config.photographs, material.several))]
    tests = [HELD_OUT, PHOTOGRAPHS] if material.several else [PHOTOGRAPHS]
    others = [(OTHERS, count, test) for test in tests for count in (0, *counts(config.other_animals, material.others))]
    rows = []
    for model in models:
        for world, count, test in (*(of_tested if material.several else []), *(others if material.others else [])):
            rows += steps_at(lines, model, world, count, test)
    return [row for row in rows if row.scratch.clusters or row.tuned.clusters]


def steps_at(lines: Lines, model: str, world: str, count: int, test: str) -> list[Step]:
    """All measures at one number of photographs, on pairs that no run of the figure shows."""
    base = Training(model, 0)
    tuned = Training(model, 0, world=world, count=count, tuned=True) if count else base
    config, material = lines.study.config, lines.study.material
    runs = [base._replace(world=OWN, count=count) for count in counts(config.photographs, material.several)]
    shown = (base, *runs[:1]) if test == HELD_OUT else (base,)  # all of them show the same pairs
    after = lines.points(tuned, test, *shown)
    before = lines.points(tuned._replace(tuned=False), test, *shown) if count and world == OWN else {}
    rows = []
    for measure in BOTH:
        both = [measured(points, measure) for points in (before, after)]
        rows.append(Step(model, measure, world, count, test, *compared(*both)))
    return rows


class Ladder(NamedTuple):
    """One measure by the number of distinct images of photographs."""

    model: str
    measure: str
    images: list[int]
    scratch: list[Points]
    tuned: list[Points]
    synthetic: Points
    """Without any photograph."""


def ladders(lines: Lines, models: Sequence[str]) -> list[Ladder]:
    """(c) The ladders of images of which all runs are finished."""
    found = []
    for model in models:
        places = [run for run in trainings(lines.study.config, lines.study.material, WORTH) if run.model == model]
        places = list(dict.fromkeys(run.place for run in places))
        base, runs = Training(model, 0), [run for run in places if run.images]
        if not runs or not all(lines.points(run, HELD_OUT, base, runs[0]) for run in places):
            continue
        images = sorted({run.images for run in runs})
        for measure in BOTH:
            records = {run: measured(lines.points(run, HELD_OUT, base, runs[0]), measure) for run in places}
            by_start = [[records[runs[0]._replace(images=n, tuned=tuned)] for n in images] for tuned in (False, True)]
            found.append(
                Ladder(model, measure, [distinct(lines, runs[0], n) for n in images], *by_start, records[base])
            )
    return found


def distinct(lines: Lines, run: Training, images: int) -> int:
    """Distinct images of a rung, which may be fewer than were requested."""
    return lines.images(run._replace(images=images))


class Worth(NamedTuple):
    """Fewest images of photographs that reach a target."""

    model: str
    measure: str
    target: float
    scratch: Bound
    tuned: Bound
    ratio: ImageRatio


def worths(found: Sequence[Ladder], targets: Sequence[float]) -> list[Worth]:
    """(c) With and without synthetic training, and how many times more the latter takes."""
    rows = []
    for ladder in found:
        scratch = Curve(ladder.images, [tallies(points) for points in ladder.scratch])
        # A model that needs no photograph counts as one that needs a single image: a ratio to none has no number.
        tuned = Curve([1, *ladder.images], [tallies(points) for points in (ladder.synthetic, *ladder.tuned)])
        for target in targets:
            bounds = [
                bound(curve.images, [share(tests) >= target for tests in curve.tests]) for curve in (scratch, tuned)
            ]
            rows.append(Worth(ladder.model, ladder.measure, target, *bounds, image_ratio(scratch, tuned, target)))
    return rows


def tallies(points: Points) -> list[Tally]:
    """Points and numbers of each animal pair, by seed."""
    seeds = sorted({key[0] for key in points})
    return [tally({key: score for key, score in points.items() if key[0] == seed}) for seed in seeds]


def share(tests: Sequence[Tally]) -> float:
    """The accuracy over all seeds."""
    both = [sums for test in tests for sums in test.values()]
    return sum(points for points, _ in both) / sum(number for _, number in both)


class Change(NamedTuple):
    """One measure on photographs with one thing changed in the synthetic world."""

    model: str
    factor: str
    test: str
    measure: str
    plain: Level
    changed: Level
    difference: Level


def changes(lines: Lines, models: Sequence[str]) -> list[Change]:
    """(d) Each factor, on records of pairs that neither world's training shows."""
    rows = []
    for model in models:
        base = Training(model, 0)
        for factor in (name for name in lines.study.config.factors if name in lines.study.material.factors):
            other = base._replace(factor=factor)
            for test in (PHOTOGRAPHS, SYNTHETIC):
                both = lines.points(base, test, other), lines.points(other, test, base)
                for measure in BOTH if all(both) else ():
                    records = [measured(points, measure) for points in both]
                    rows.append(Change(model, factor, test, measure, *compared(*records)))
    return rows
