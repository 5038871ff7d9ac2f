"""What runs on rendered and on photographed animals show: accuracies side by side, on animal pairs that no compared run
trained on."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import altair as alt
import pandas as pd

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.registry import short_name
from menagerie.studies.analysis.pareto import Curve, bound_ratio, fewest_images, image_ratio, tallies_by_seed
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.estimate import Estimate, compare_groups, points_in
from menagerie.studies.frame.records import Records
from menagerie.studies.sources.transfer_plan import WORTH, ZERO_SHOT, ComparedRuns, Side, TransferPlan, TransferRun

RECOGNITION, SWAPS, KNOWN = MEASURES = ("recognition", "swaps", "swaps where recognised")
NO_POINTS = pd.DataFrame({"seed": [], "subset": [], "task": [], "scene": [], "animals": [], "value": []})
Pair = tuple[pd.DataFrame, pd.DataFrame]


def measured_records(points: pd.DataFrame, measure: str) -> pd.DataFrame:
    replaced = points[points.task.isin(("replace animal", "replace texture"))]
    swaps = points[points.task == "swap"]
    if measure != KNOWN:
        return replaced if measure == RECOGNITION else swaps
    image = ["seed", "subset", "scene"]
    wrong = pd.MultiIndex.from_frame(replaced[replaced.value < 1][image])
    return swaps[~pd.MultiIndex.from_frame(swaps[image]).isin(wrong)]


class SidesCompared(NamedTuple):
    """A measure on the two sides of a comparison."""

    model: str
    setting: str | int
    tested: str
    measure: str
    first: Estimate
    second: Estimate
    difference: Estimate


class Answers(NamedTuple):
    """What the finished runs of a study answer to each question."""

    study: TransferPlan
    done: Mapping[TransferRun, Arm]
    """The arms of finished runs."""
    records: Records

    def points(self, side: Side | None, shown: Sequence[TransferRun]) -> pd.DataFrame:
        """Return the records of one test for all seeds of a run, without those whose animal pair a run of `shown`, or
        one that it starts from, trains on; none until all seeds are finished."""
        runs = [side[0]._replace(seed=seed) for seed in self.study.seed_numbers] if side else []
        if not side or not all(run in self.done for run in runs):
            return NO_POINTS
        parts = []
        for run in runs:
            points = points_in(self.records.folder(self.done[run]))
            seen = frozenset().union(*(self.pairs_shown(one._replace(seed=run.seed)) for one in shown))
            kept = (points.subset.str.rpartition("/")[0] == side[1]) & ~points.animals.isin(seen)
            parts.append(points[kept].assign(seed=run.seed))
        return pd.concat(parts)

    def pairs_shown(self, run: TransferRun) -> frozenset[str]:
        """Return the animal pairs that a run on a binding split shows, as records name them; none for a run on a
        spatial split, which is compared only with itself."""
        recipe = self.study.train_recipe(run)
        pairs = trained_pairs(recipe) if isinstance(recipe, BindingRecipe) else frozenset()
        return pairs | self.pairs_shown(run.start) if run.start else pairs

    def pairs(self, question: str, model: str) -> list[tuple[ComparedRuns, Pair]]:
        """Return the comparisons of a question with the records of both sides; none of worth until all are there."""
        found = []
        for its in self.study.comparisons(question, model):
            shown = [*its.runs, *its.others]
            found.append((its, (self.points(its.first, shown), self.points(its.second, shown))))
        if question != WORTH:
            return found
        if not all(len(part) for its, pair in found for part in pair[its.first is None :]):
            return []
        # There may be fewer images than asked for.
        images = [int(self.records.result(self.done[its.second[0]])["train_images"]) for its, _ in found]
        both = zip(images, found, strict=True)
        return [(its._replace(setting=n if its.first else its.setting), pair) for n, (its, pair) in both]

    def rows(self, question: str) -> list[SidesCompared]:
        """Return the comparisons of a question that have records on a side."""
        rows = [
            SidesCompared(model, *its[:2], measure, *compare_groups(*(measured_records(s, measure) for s in pair)))
            for model in self.study.models
            for its, pair in self.pairs(question, model)
            for measure in (MEASURES if question == ZERO_SHOT else MEASURES[:2])
        ]
        return [row for row in rows if row.first.n or row.second.n]

    def worth(self, targets: Sequence[float]) -> Iterator[list[str]]:
        """Yield a row for each model, measure and target: the fewest images that reach it both ways, and the ratio."""
        for model in self.study.models:
            pairs = {int(its.setting): pair for its, pair in self.pairs(WORTH, model)}
            for measure in MEASURES[:2] if pairs else ():
                found = {n: tuple(measured_records(points, measure) for points in pair) for n, pair in pairs.items()}
                for target in targets:
                    yield [short_name(model), measure, f"{100 * target:.0f}", *worth_cells(found, target)]


@cache
def trained_pairs(recipe: BindingRecipe) -> frozenset[str]:
    """Return the animal pairs that a recipe trains on, as records name them."""
    roles, _ = recipe.roles(load_world(recipe.world), "left/right")
    return frozenset(" + ".join(sorted(pair)) for pair in roles.train)


def worth_cells(found: dict[int, Pair], target: float) -> list[str]:
    """Say with how many images a target is reached from scratch and after synthetic training, and their ratio."""
    scratch = {images: pair[0] for images, pair in found.items() if images}
    # A model that needs no photograph counts as needing one image: a ratio to 0 isn't a number.
    tuned = {images or 1: pair[1] for images, pair in found.items()}
    curves = [Curve([*side], list(map(tallies_by_seed, side.values()))) for side in (scratch, tuned)]
    reached = [[bool(points.value.mean() >= target) for points in side.values()] for side in (scratch, tuned)]
    one, other = (fewest_images(curve.images, hit) for curve, hit in zip(curves, reached, strict=True))
    after = "0" if str(other) == "1" else str(other)
    return [str(one), after, bound_ratio(one, other), image_ratio(*curves, target).interval]


def side_chart(rows: Sequence[SidesCompared], setting: str, sides: Sequence[str]) -> alt.TopLevelMixin:
    """Draw both sides with their intervals: a column for each measure, a line of panels for each model and test."""
    frame = pd.DataFrame(
        [
            {"model": f"{short_name(row.model)}, {row.tested}", "setting": str(row.setting), "measure": row.measure}
            | {"side": side, "accuracy": 100 * its.value, "low": 100 * its.low, "high": 100 * its.high}
            for row in rows
            for side, its in zip(sides, (row.first, row.second), strict=True)
            if its.n
        ]
    )
    marks = alt.Chart().encode(
        alt.X("setting:N", sort=None, title=setting),
        xOffset=alt.XOffset("side:N", sort=sides),
        color=alt.Color("side:N", sort=sides, title=None),
    )
    y = alt.Y("accuracy:Q", title="accuracy (%)", scale=alt.Scale(domain=(0, 100)))
    chance = alt.Chart().mark_rule(strokeDash=[2, 3], color="gray").encode(y=alt.datum(50))
    bars = marks.mark_rule().encode(alt.Y("low:Q", title="accuracy (%)"), alt.Y2("high:Q"))
    layers = alt.layer(chance, bars, marks.mark_point(filled=True).encode(y), data=frame)
    return layers.properties(width=alt.Step(24), height=150).facet(
        column=alt.Column("measure:N", sort=None, title=None), row=alt.Row("model:N", sort=None, title=None)
    )
