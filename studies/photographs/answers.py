"""The results of each question: accuracies and their differences, on animal pairs that no compared run trained on."""

from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import pandas as pd

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.studies.analysis.pareto import Bound, Curve, ImageRatio, fewest_images, image_ratio, tallies_by_seed
from menagerie.studies.frame.estimate import Estimate, compare_groups, points_in
from menagerie.studies.frame.records import Records
from menagerie.studies.photographs.cells import train_recipe
from menagerie.studies.photographs.trainings import (
    BINDING,
    FACTORS_PART,
    FINE_TUNING,
    HELD_OUT,
    NATURAL,
    OTHERS,
    OWN,
    PHOTOGRAPHS,
    SPATIAL,
    SYNTHETIC,
    WORTH,
    ZERO_SHOT,
    TransferRun,
    limit_counts,
    runs_of_question,
)

RECOGNITION, SWAPS, KNOWN = "recognition", "swaps", "swaps where recognised"
MEASURES = {
    RECOGNITION: "an animal or a texture that the image doesn't show in place of one (tasks replace animal, replace "
    "texture)",
    SWAPS: "two textures or two places exchanged, in the same words (task swap): binding",
    KNOWN: "the same on images on which a model got all tasks of recognition right: errors there aren't due to "
    "animals or textures that it doesn't know",
}
BOTH = (RECOGNITION, SWAPS)
REPLACED = ("replace animal", "replace texture")
# Kind of split, tests of rendered and of photographed animals, and the name of the comparison.
TESTS = (
    (BINDING, SYNTHETIC, PHOTOGRAPHS, "binding, photographs in the world's textures"),
    (SPATIAL, SYNTHETIC, PHOTOGRAPHS, "spatial, photographs in the world's textures"),
    (SPATIAL, f"{SYNTHETIC}, bare", NATURAL, "spatial, photographs in their own colours"),
)
NO_POINTS = pd.DataFrame({"seed": [], "subset": [], "task": [], "scene": [], "animals": [], "value": []})


def measured_records(points: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the records that a measure is taken over."""
    replaced, swaps = points[points.task.isin(REPLACED)], points[points.task == "swap"]
    if measure != KNOWN:
        return replaced if measure == RECOGNITION else swaps
    image = ["seed", "subset", "scene"]
    wrong = pd.MultiIndex.from_frame(replaced[replaced.value < 1][image])
    return swaps[~pd.MultiIndex.from_frame(swaps[image]).isin(wrong)]


class GroupComparison(NamedTuple):
    """A measure on two groups of records: of rendered and of photographed animals, from scratch and after synthetic
    training, or with the synthetic world unchanged and changed."""

    model: str
    place: Any
    """The setting in which the two groups are compared, beside the model."""
    measure: str
    first: Estimate
    second: Estimate
    difference: Estimate


class Step(NamedTuple):
    """A test after training on a number of photographs."""

    world: str
    """The animals on the photographs: OWN for the tested animals, OTHERS for other animals."""
    count: int
    test: str


class Ladder(NamedTuple):
    """A measure by the number of distinct images of photographs."""

    model: str
    measure: str
    images: list[int]
    scratch: list[pd.DataFrame]
    tuned: list[pd.DataFrame]
    synthetic: pd.DataFrame
    """Records of the synthetic run, which was trained on no photographs."""


class PhotographWorth(NamedTuple):
    """The fewest images of photographs that reach a target, from scratch and after synthetic training."""

    model: str
    measure: str
    target: float
    scratch: Bound
    tuned: Bound
    ratio: ImageRatio


class Answers:
    """The answers that the finished runs of a study give to each question."""

    def __init__(self, study: Any, records: Records) -> None:
        self.study, self.material = study, study.prepared.material
        results = {arm.id: (records.folder(arm), result) for arm, result in records.results}
        self.done = {run: results[arm.id] for run, arm in study.runs(records).items() if arm.id in results}

    def points(self, training: TransferRun, label: str, *others: TransferRun) -> pd.DataFrame:
        """Return the records of one test for all seeds of a training; none until all seeds are finished. Records are
        left out if the training, one of `others`, or a run that one of these starts from shows their animal pair."""
        seeds = [training._replace(seed=seed) for seed in range(self.study.seeds)]
        if not all(run in self.done for run in seeds):
            return NO_POINTS
        runs = [training, *others]
        runs += [run.start for run in runs if run.start]
        parts = []
        for seed, run in enumerate(seeds):
            points = points_in(self.done[run][0])
            seen = frozenset().union(*(self.pairs_shown(each._replace(seed=seed)) for each in runs))
            kept = (points.subset.str.rpartition("/")[0] == label) & ~points.animals.isin(seen)
            parts.append(points[kept].assign(seed=seed))
        return pd.concat(parts)

    def pairs_shown(self, training: TransferRun) -> frozenset[str]:
        """Return the animal pairs that a training on a binding split shows, as records name them; none for a training
        on a spatial split, which is compared only with itself."""
        recipe = train_recipe(self.study, training)
        return trained_pairs(recipe) if isinstance(recipe, BindingRecipe) else frozenset()

    def each(
        self, model: str, place: Any, *groups: pd.DataFrame, measures: Collection[str] = BOTH
    ) -> list[GroupComparison]:
        """Compare two groups of records by each measure."""
        return [
            GroupComparison(
                model, place, measure, *compare_groups(*(measured_records(points, measure) for points in groups))
            )
            for measure in measures
        ]

    @cached_property
    def rows(self) -> dict[str, list[Any]]:
        """The rows of every question that has results so far."""
        makers = {ZERO_SHOT: self.gaps, FINE_TUNING: self.steps, WORTH: self.ladders, FACTORS_PART: self.changes}
        found = {part: [row for model in self.study.models for row in makers[part](model)] for part in self.study.parts}
        return {part: rows for part, rows in found.items() if rows}

    def gaps(self, model: str) -> Iterator[GroupComparison]:
        """Compare tests of rendered and of photographed animals, for models trained on rendered animals only."""
        for kind, synthetic, photographs, test in TESTS:
            run = TransferRun(model, 0, kind)
            both = self.points(run, synthetic), self.points(run, photographs)
            yield from (row for row in self.each(model, test, *both, measures=MEASURES) if row.first.clusters)

    def steps(self, model: str) -> Iterator[GroupComparison]:
        """Compare training from scratch with training after synthetic training, on more and more photographs."""
        several, most = self.material.several, self.material.others
        places = (
            [Step(OWN, n, HELD_OUT) for n in (0, *limit_counts(self.study.photographs, several))] if several else []
        )
        for test in ([HELD_OUT, PHOTOGRAPHS] if several else [PHOTOGRAPHS]) if most else ():
            places += [Step(OTHERS, n, test) for n in (0, *limit_counts(self.study.other_animals, most))]
        for place in places:
            rows = self.each(model, place, *self.at_step(model, place))
            yield from (row for row in rows if row.first.clusters or row.second.clusters)

    def at_step(self, model: str, place: Step) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the records with and without synthetic training, of animal pairs that no run of the figure shows."""
        base = TransferRun(model, 0)
        own = [base._replace(world=OWN, count=n) for n in limit_counts(self.study.photographs, self.material.several)]
        shown = (base, *own[:1]) if place.test == HELD_OUT else (base,)  # all of `own` show the same pairs
        run = base._replace(world=place.world, count=place.count) if place.count else base
        scratch = self.points(run, place.test, *shown) if run.world == OWN else NO_POINTS
        return scratch, self.points(run._replace(tuned=bool(place.count)), place.test, *shown)

    def ladders(self, model: str) -> Iterator[Ladder]:
        """Yield each measure by the number of images, once all runs are finished."""
        runs = {
            run.place for run in runs_of_question(self.study, self.material, WORTH) if run.model == model and run.images
        }
        base, first = TransferRun(model, 0), min(runs, default=None)
        points = {run: self.points(run, HELD_OUT, base, first) for run in (base, *runs) if first}
        if not points or not all(map(len, points.values())):
            return
        ladder = [[first._replace(images=n, tuned=tuned) for n in self.study.images] for tuned in (False, True)]
        images = [int(self.done[run][1]["train_images"]) for run in ladder[0]]  # there may be fewer than asked for
        for measure in BOTH:
            sides = [[measured_records(points[run], measure) for run in side] for side in ladder]
            yield Ladder(model, measure, images, *sides, measured_records(points[base], measure))

    def changes(self, model: str) -> Iterator[GroupComparison]:
        """Compare the unchanged synthetic world with each changed factor, on animal pairs that neither trains on."""
        if model not in self.study.with_factors:
            return
        base = TransferRun(model, 0)
        for factor in (name for name in self.study.factors if name in self.material.factors):
            other = base._replace(factor=factor)
            for test in (PHOTOGRAPHS, SYNTHETIC):
                both = self.points(base, test, other), self.points(other, test, base)
                yield from self.each(model, (factor, test), *both) if all(map(len, both)) else ()


@cache
def trained_pairs(recipe: BindingRecipe) -> frozenset[str]:
    """Return the animal pairs that a recipe trains on, as records name them."""
    roles, _ = recipe.roles(load_world(recipe.world), "left/right")
    return frozenset(" + ".join(sorted(pair)) for pair in roles.train)


def images_to_targets(ladders: Sequence[Ladder], targets: Sequence[float]) -> Iterator[PhotographWorth]:
    """Yield, for each target, the fewest images that reach it in both ways, and their ratio."""
    for ladder in ladders:
        # A model that needs no photograph counts as needing one image: a ratio to 0 isn't a number.
        sides = {1: [ladder.synthetic, *ladder.tuned], 0: ladder.scratch}
        tuned, scratch = (
            Curve([1] * one + ladder.images, list(map(tallies_by_seed, side))) for one, side in sides.items()
        )
        for target in targets:
            reached = [[bool(each.value.sum() / len(each) >= target) for each in sides[one]] for one in (0, 1)]
            bounds = map(fewest_images, (scratch.images, tuned.images), reached)
            yield PhotographWorth(ladder.model, ladder.measure, target, *bounds, image_ratio(scratch, tuned, target))
