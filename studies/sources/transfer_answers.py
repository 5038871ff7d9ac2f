"""What runs on rendered and on photographed animals show: accuracies side by side, on animal pairs that no compared run
trained on."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import COUNTED, Overlap, RecipeScenes, Training, measure_overlap
from menagerie.studies.analysis.pareto import Curve, fewest_images, image_ratio, tallies_by_seed
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.estimate import Estimate, compare_groups, points_in
from menagerie.studies.frame.records import Records
from menagerie.studies.report.figures import model_label
from menagerie.studies.scoring.trained_on import coverage_cells
from menagerie.studies.sources.cut_outs import SYNTHETIC
from menagerie.studies.sources.transfer_data import TestedSplit
from menagerie.studies.sources.transfer_options import FACTORS_PART, FINE_TUNING, WORTH, ZERO_SHOT
from menagerie.studies.sources.transfer_runs import (
    BINDING,
    HELD_OUT,
    NATURAL,
    OTHERS,
    OWN,
    PHOTOGRAPHS,
    SPATIAL,
    TransferPlan,
    TransferRun,
)

RECOGNITION, SWAPS, KNOWN = "recognition", "swaps", "swaps where recognised"
BOTH, MEASURES = (RECOGNITION, SWAPS), (RECOGNITION, SWAPS, KNOWN)
REPLACED = ("replace animal", "replace texture")
# Kind of split, tests of rendered and of photographed animals, and the name of the comparison.
TESTS = (
    (BINDING, SYNTHETIC, PHOTOGRAPHS, "in the world's textures"),
    (SPATIAL, SYNTHETIC, PHOTOGRAPHS, "in the world's textures"),
    (SPATIAL, f"{SYNTHETIC}, bare", NATURAL, "in their own colours"),
)
TESTED = {HELD_OUT: "held-out photographs", PHOTOGRAPHS: "all photographs", SYNTHETIC: "rendered animals"}
# What is varied in a question, and the two sides that are compared.
SIDES = {
    ZERO_SHOT: ("split", "rendered", "photographed"),
    FINE_TUNING: ("photographs in training", "from scratch", "after synthetic"),
    WORTH: ("images of photographs", "from scratch", "after synthetic"),
    FACTORS_PART: ("changed", "as it is", "changed world"),
}
NO_POINTS = pd.DataFrame({"seed": [], "subset": [], "task": [], "scene": [], "animals": [], "value": []})
Pair = tuple[pd.DataFrame, pd.DataFrame]


def measured_records(points: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the records that a measure is taken over."""
    replaced, swaps = points[points.task.isin(REPLACED)], points[points.task == "swap"]
    if measure != KNOWN:
        return replaced if measure == RECOGNITION else swaps
    image = ["seed", "subset", "scene"]
    wrong = pd.MultiIndex.from_frame(replaced[replaced.value < 1][image])
    return swaps[~pd.MultiIndex.from_frame(swaps[image]).isin(wrong)]


class SidesCompared(NamedTuple):
    """A measure on two groups of records (`SIDES`)."""

    model: str
    setting: Any
    tested: str
    measure: str
    first: Estimate
    second: Estimate
    difference: Estimate


class Answers:
    """What the finished runs of a study answer to each question."""

    def __init__(self, study: TransferPlan, done: dict[TransferRun, Any], records: Records) -> None:
        """`done` maps finished runs to their arms."""
        self.study, self.done, self.records = study, done, records

    def points(self, run: TransferRun, label: str, *others: TransferRun) -> pd.DataFrame:
        """Return the records of one test for all seeds of a run; none until all seeds are finished. Records are left
        out if the run, one of `others`, or a run that one of these starts from shows their animal pair."""
        seeds = [run._replace(seed=seed) for seed in range(self.study.seeds)]
        if not all(each in self.done for each in seeds):
            return NO_POINTS
        shown = [run, *others]
        shown += [each.start for each in shown if each.start]
        parts = []
        for seed, each in enumerate(seeds):
            points = points_in(self.records.folder(self.done[each]))
            seen = frozenset().union(*(self.pairs_shown(one._replace(seed=seed)) for one in shown))
            kept = (points.subset.str.rpartition("/")[0] == label) & ~points.animals.isin(seen)
            parts.append(points[kept].assign(seed=seed))
        return pd.concat(parts)

    def pairs_shown(self, run: TransferRun) -> frozenset[str]:
        """Return the animal pairs that a run on a binding split shows, as records name them; none for a run on a
        spatial split, which is compared only with itself."""
        recipe = self.study.train_recipe(run)
        return trained_pairs(recipe) if isinstance(recipe, BindingRecipe) else frozenset()

    def rows(self, question: str) -> list[SidesCompared]:
        """Return the comparisons of a question that have records on a side."""
        groups = {ZERO_SHOT: self.gaps, FINE_TUNING: self.steps, WORTH: self.ladder, FACTORS_PART: self.changes}
        rows = [
            SidesCompared(
                model, setting, tested, measure, *compare_groups(*(measured_records(p, measure) for p in pair))
            )
            for model in self.study.models
            for setting, tested, pair in groups[question](model)
            for measure in (MEASURES if question == ZERO_SHOT else BOTH)
        ]
        return [row for row in rows if row.first.clusters or (row.second.clusters and question != ZERO_SHOT)]

    def gaps(self, model: str) -> Iterator[tuple[str, str, Pair]]:
        """Yield tests of rendered and of photographed animals, for models trained on rendered animals only."""
        for kind, synthetic, photographs, test in TESTS:
            run = TransferRun(model, 0, kind)
            yield kind, test, (self.points(run, synthetic), self.points(run, photographs))

    def steps(self, model: str) -> Iterator[tuple[str, str, Pair]]:
        """Yield training from scratch and after synthetic training, on more and more photographs."""
        base = TransferRun(model, 0)
        own = [base._replace(world=OWN, count=n) for n in self.study.own_counts]
        others = [base._replace(world=OTHERS, count=n) for n in self.study.other_counts]
        for tested in [*[HELD_OUT] * bool(own), *[PHOTOGRAPHS] * bool(others)]:
            shown = (base, *own[:1]) if tested == HELD_OUT else (base,)  # all of `own` show the same pairs
            yield "none", TESTED[tested], (NO_POINTS, self.points(base, tested, *shown))
            for run in (*(own if tested == HELD_OUT else ()), *others):
                name = f"{run.count} of each animal" if run.world == OWN else f"of {run.count} other animals"
                scratch = self.points(run, tested, *shown) if run.world == OWN else NO_POINTS
                yield name, TESTED[tested], (scratch, self.points(run._replace(tuned=True), tested, *shown))

    def ladder(self, model: str) -> Iterator[tuple[int, str, Pair]]:
        """Yield training from scratch and after synthetic training by the number of distinct images, once all runs are
        finished. The synthetic run itself has none."""
        base = TransferRun(model, 0)
        runs = [run for run in self.study.runs_of(WORTH) if run._replace(seed=0).model == model and run.images]
        first = next((run._replace(seed=0, tuned=False) for run in runs), base)
        sides = [[first._replace(images=n, tuned=tuned) for tuned in (False, True)] for n in self.study.images]
        points = {run: self.points(run, HELD_OUT, base, first) for run in (base, *chain(*sides))}
        if runs and all(map(len, points.values())):
            yield 0, TESTED[HELD_OUT], (NO_POINTS, points[base])
            for pair in sides:  # there may be fewer images than asked for
                images = int(self.records.result(self.done[pair[0]])["train_images"])
                yield images, TESTED[HELD_OUT], (points[pair[0]], points[pair[1]])

    def changes(self, model: str) -> Iterator[tuple[str, str, Pair]]:
        """Yield the unchanged synthetic world and each changed factor, on animal pairs that neither trains on."""
        base = TransferRun(model, 0)
        for factor in self.study.changeable:
            other = base._replace(factor=factor)
            for test in (PHOTOGRAPHS, SYNTHETIC):
                pair = self.points(base, test, other), self.points(other, test, base)
                if all(map(len, pair)):
                    yield factor, TESTED[test], pair

    def worth(self, targets: Sequence[float]) -> Iterator[list[str]]:
        """Yield a row for each model, measure and target: the fewest images that reach it in both ways, and their
        ratio."""
        for model in self.study.models:
            pairs = {images: pair for images, _, pair in self.ladder(model)}
            for measure in BOTH if pairs else ():
                found = {n: tuple(measured_records(p, measure) for p in pair) for n, pair in pairs.items()}
                for target in targets:
                    yield [model_label(model), measure, f"{100 * target:.0f}", *worth_cells(found, target)]

    def trained_on(self) -> Iterator[list[str]]:
        """Yield a row for each run, whatever its model, and each of its tests: how much of it its training had."""
        for run in dict.fromkeys(run._replace(model="") for run in self.done):
            start = f", after {run.start.data_name}" if run.start else ""
            place = [run.kind, run.data_name + start, str(run.images or "all"), run.factor or DASH, str(run.seed)]
            for test in self.study.tests_of(run):
                for name, subset in test.subsets.items():
                    had = covered_subset(self.training(run), test, subset)
                    cells = dict(zip((*COUNTED, "records"), coverage_cells(had), strict=True))
                    yield [*place, name, *(cells | {"texts": DASH} if test.bare else cells).values()]

    def training(self, run: TransferRun) -> Training:
        """Return what a run was trained on, with what the run that it starts from was trained on."""
        own = Training((RecipeScenes(self.study.train_recipe(run), run.images),))
        return own | self.training(run.start) if run.start else own


@cache
def covered_subset(training: Training, test: TestedSplit, subset: str) -> Overlap:
    return measure_overlap(training, read_split(test.file), subset)


@cache
def trained_pairs(recipe: BindingRecipe) -> frozenset[str]:
    """Return the animal pairs that a recipe trains on, as records name them."""
    roles, _ = recipe.roles(load_world(recipe.world), "left/right")
    return frozenset(" + ".join(sorted(pair)) for pair in roles.train)


def worth_cells(found: dict[int, Pair], target: float) -> list[str]:
    """Say with how many images a target is reached from scratch and after synthetic training, and how many times more
    it takes from scratch: a bound if one of the two ways never reaches it."""
    scratch = {images: pair[0] for images, pair in found.items() if images}
    # A model that needs no photograph counts as needing one image: a ratio to 0 isn't a number.
    tuned = {images or 1: pair[1] for images, pair in found.items()}
    reached = [[bool(p.value.sum() / len(p) >= target) for p in side.values()] for side in (scratch, tuned)]
    fewest = [fewest_images([*side], hit) for side, hit in zip((scratch, tuned), reached, strict=True)]
    curves = [Curve([*side], list(map(tallies_by_seed, side.values()))) for side in (scratch, tuned)]
    ratio, (first, second) = fewest[0].images / fewest[1].images, (its.censored for its in fewest)
    sign = "≥ " if first else "≤ " if second else ""
    times = DASH if first and second else f"{sign}{ratio:.2g}" if ratio < 100 else f"{sign}{ratio:.0f}"
    texts = [str(fewest[0]), "0" if str(fewest[1]) == "1" else str(fewest[1])]
    return [*texts, times, image_ratio(*curves, target).interval]


def side_chart(question: str, rows: Sequence[SidesCompared]) -> alt.TopLevelMixin:
    """Draw both sides of a question's comparisons with their intervals: a column for each measure, a line of panels for
    each model and test."""
    setting, *sides = SIDES[question]
    frame = pd.DataFrame(
        [
            {"model": f"{model_label(row.model)}, {row.tested}", "setting": str(row.setting), "measure": row.measure}
            | {"side": side, "accuracy": 100 * its.value, "low": 100 * its.low, "high": 100 * its.high}
            for row in rows
            for side, its in zip(sides, (row.first, row.second), strict=True)
            if its.n
        ]
    )
    colour = alt.Color("side:N", sort=sides, title=None)
    x = alt.X("setting:N", sort=None, title=setting)
    y = alt.Y("accuracy:Q", title="accuracy (%)", scale=alt.Scale(domain=(0, 100)))
    marks = alt.Chart().encode(x, xOffset=alt.XOffset("side:N", sort=sides), color=colour)
    chance = alt.Chart().mark_rule(strokeDash=[2, 3], color="gray").encode(y=alt.datum(50))
    bars = marks.mark_rule().encode(alt.Y("low:Q", title="accuracy (%)"), alt.Y2("high:Q"))
    layers = alt.layer(chance, bars, marks.mark_point(filled=True).encode(y), data=frame)
    return layers.properties(width=alt.Step(24), height=150).facet(
        column=alt.Column("measure:N", sort=None, title=None), row=alt.Row("model:N", sort=None, title=None)
    )
