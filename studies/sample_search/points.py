"""Trials of searches for few images: what was tried, how it did, and what that says of the images that are needed."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from menagerie.studies.analysis import pareto
from menagerie.studies.analysis.pareto import Axis, Bound, Curve, PairSums
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.records import Records

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

DASH = "–"
# As many as the paper preset searches. Noise alone gives shares, too: in simulations of four parameters that do nothing
# the greatest share is below 0.63 in 95 % of searches with 12 settings, 0.39 with 40, 0.31 with 60, 0.22 with 100.
FEWEST = 60


class Setting(NamedTuple):
    """One point of the space that is searched."""

    pairs: float
    """Fraction of the trainable animal pairs in train."""
    hard_negatives: float
    """Fraction of these pairs that also have their hard negatives."""
    singles_views: int
    """Views of each single-object scene."""
    singles_share: float
    """Share of a batch that shows single-object scenes."""


class Judged(NamedTuple):
    """The runs of a setting, and their results."""

    arms: Sequence[Arm]
    """All runs that are planned so far, finished ones too."""
    chosen: Sequence[Arm]
    """The runs by which the setting is judged: of all seeds, or of as many as tell that it misses the target."""
    validations: Sequence[float]
    """Accuracy on validation of the chosen runs that have ended."""
    accuracy: float | None
    """The accuracy on validation over the chosen runs; None until all of them have ended, and if one diverged."""
    diverged: bool = False
    equal: Sequence[Arm] = ()
    """The runs of the budget that all settings have."""
    capped: bool = False
    """Whether the setting got the largest budget before validation had stopped rising."""


class Point(NamedTuple):
    """One trial."""

    question: str
    model: str
    trial: "FrozenTrial"
    setting: Setting
    images: int
    judged: Judged
    records: Records

    @property
    def accuracy(self) -> float:
        """Accuracy on validation over seeds, as settings are judged; 0 for a setting that hasn't ended or has no
        value."""
        return self.trial.values[1] if self.trial.values else 0.0

    def state(self, study: Any) -> str:
        """The state of the trial: "complete"; "missed" if all seeds together are below the target; "pruned" if it ended
        before that was known; or "running"."""
        if not self.trial.values:
            return "pruned" if self.trial.state.is_finished() else "running"
        if self.question == "front" or study.budgets or self.accuracy >= study.target:
            return "complete"
        return "missed" if len(self.judged.validations) in (0, study.seeds) else "pruned"

    def tallies(self, study: Any, tests: Sequence[str] = ()) -> list[PairSums]:
        """Return, for each seed, the points and the number of swaps by animal pair on the test, or on the tests that
        are named."""
        return [tally(self.records.folder(arm), tests or arm.cell.data.recipe.judged) for arm in self.judged.chosen]

    def here(self, study: Any) -> bool:
        """Whether all seeds were trained in this folder."""
        return len(self.judged.validations) == study.seeds

    def test(self, study: Any) -> float:
        """Accuracy on the test over seeds: their mean or median, as on validation."""
        return (mean if study.budgets else median)(pareto.accuracies(self.tallies(study)))

    @property
    def images_seen(self) -> int:
        """Images of all steps, including those of the stage that the model starts from."""
        return self.judged.chosen[0].cell.images_seen

    def row(self) -> list[str]:
        """The trial's images, passes over them, and the setting, as texts."""
        fractions = [f"{share:.0%}" for share in self.setting[:2]]
        lone = [str(self.setting.singles_views), f"{self.setting.singles_share:.0%}"]
        return [str(self.images), f"{self.images_seen / self.images:.0f}", *fractions, *lone]

    def at_equal_compute(self) -> "Point":
        """Return the trial as it would be if it had been trained only with the budget that all settings get."""
        from optuna.trial import create_trial

        scores = [self.records.score(arm) or 0.0 for arm in self.judged.equal]
        trial = create_trial(values=[float(self.images), mean(scores)])
        return self._replace(trial=trial, judged=self.judged._replace(chosen=self.judged.equal, validations=scores))


def tally(folder: Path, tests: Sequence[str]) -> PairSums:
    """Sum up the points and the number of swaps of some tests, by animal pair."""
    from menagerie.studies.frame.estimate import points_in

    points = points_in(folder)
    chosen = points[points["subset"].isin(tests) & (points["task"] == "swap")]
    sums = chosen.groupby("animals", sort=True)["value"].agg(["sum", "count"])
    return {str(pair): [float(total), int(count)] for pair, total, count in sums.itertuples()}


def judged_by(study: Any) -> str:
    """The word for the statistic over seeds by which settings are judged."""
    return "mean" if study.budgets else "median"


def fronts_of(study: Any, points: Sequence[Point]) -> dict[str, list[Point]]:
    """Each model's Pareto front, chosen on validation among the settings of the first search that were trained here."""
    fronts = {}
    for model in study.models:
        mine = [p for p in points if (p.model, p.question) == (model, "front") and done(study, p)]
        fronts[model] = [mine[k] for k in pareto.front([p.images for p in mine], [p.accuracy for p in mine])]
    return fronts


def done(study: Any, point: Point) -> bool:
    """Whether a trial is complete, with all its seeds trained in this folder."""
    return point.state(study) == "complete" and point.here(study)


class Reached(NamedTuple):
    """The images that a model needs to reach the target."""

    bound: Bound | None
    """None before any setting has ended."""
    best: Point | None
    """The setting with the fewest images that reached the target."""
    most_missed: int | None
    """The most images of a setting that hasn't reached the target; None if all have."""


def reached_of(study: Any, points: Sequence[Point], model: str) -> Reached:
    """Return the images that a model needs to reach the target, over the settings of both searches that have ended.
    Those that reached it in another folder are left out."""
    ended = [point for point in points if point.model == model and point.state(study) != "running"]
    mine = [point for point in ended if point.accuracy < study.target or point.here(study)]
    did = [point.accuracy >= study.target for point in mine]
    best = min((point for point, ok in zip(mine, did, strict=True) if ok), key=lambda p: p.images, default=None)
    missed = [point.images for point, ok in zip(mine, did, strict=True) if not ok]
    bound = pareto.fewest_images([point.images for point in mine], did) if mine else None
    return Reached(bound, best, max(missed, default=None))


def importances(points: Sequence[Point], model: str) -> dict[str, float]:
    """Return the share of the variance of accuracy, from 0 to 1, that each parameter explains alone, averaged evenly
    over the values that the others can have (functional analysis of variance, Hutter et al. 2014, by Optuna).

    They don't add up to 1: the rest is what parameters explain only together, and noise. Empty for fewer than `FEWEST`
    settings, or if all have the same accuracy.
    """
    import optuna
    from optuna.importance import FanovaImportanceEvaluator  # `get_param_importances` would make them add up to 1

    mine = [p.trial for p in points if (p.model, p.question) == (model, "front") and p.trial.values]
    if len(mine) < FEWEST or len({trial.values[1] for trial in mine}) == 1:  # no variance to be shared
        return {}
    tried = optuna.create_study(directions=("minimize", "maximize"))
    tried.add_trials(mine)
    return FanovaImportanceEvaluator(seed=0).evaluate(tried, target=lambda trial: trial.values[1])


def curve_of(study: Any, points: Sequence[Point], tests: Sequence[str] = ()) -> Curve:
    """Return the settings with their results on the test, or on the tests that are named."""
    return Curve([p.images for p in points], [p.tallies(study, tests) for p in points])


def interval_of(study: Any, points: Sequence[Point], other: str) -> str:
    """Return the interval of the ratio to another model; a dash if either has no setting with all seeds trained."""
    both = [[p for p in points if p.model == model and p.here(study)] for model in (study.models[0], other)]
    curves = [curve_of(study, its, ("validation",)) for its in both]
    return pareto.image_ratio(*curves, study.target).interval if all(both) else DASH


def capped_of(study: Any, points: Sequence[Point]) -> dict[str, tuple[int, int]]:
    """Count, for each model, the settings that got the largest budget before validation had stopped rising, and all
    settings. A setting that both searches tried counts once."""
    settings: dict[str, dict[tuple[str, ...], bool]] = {model: {} for model in study.models}
    for point in points:
        if point.judged.equal:
            settings[point.model][tuple(arm.id for arm in point.judged.chosen)] = point.judged.capped
    return {model: (sum(capped.values()), len(capped)) for model, capped in settings.items() if capped}


def axis_of(study: Any) -> Axis:
    """The smallest and the largest number of distinct images in the space."""
    return Axis(study.images_of(study.least), study.images_of(study.everything))


def volumes_so_far(study: Any, points: Sequence[Point]) -> list[tuple[int, float]]:
    """Return the hypervolume on validation of the first, the first two, ... settings, each with the trial number of the
    last one."""
    ended = [p for p in points if done(study, p)]
    images, accuracy = np.array([p.images for p in ended], float), np.array([p.accuracy for p in ended])
    return [
        (ended[n - 1].trial.number, float(pareto.hypervolume(images[:n], accuracy[:n], axis_of(study))))
        for n in range(1, len(ended) + 1)
    ]


def ratio_rows(study: Any, points: Sequence[Point]) -> list[list[str]]:
    """Return a row for each further model: its name, how many times as many images the first model needs, and that in
    words."""
    first, *others = study.models
    need = {model: reached_of(study, points, model).bound for model in study.models}
    if None in need.values():
        return []
    return [
        [
            other,
            pareto.bound_ratio(need[first], need[other]),
            pareto.compare_bounds(first, need[first], other, need[other]),
        ]
        for other in others
    ]


def on_the_test(study: Any, points: Sequence[Point]) -> list[str]:
    """Write a sentence for each model that reached the target on validation: what accuracy on the test that setting
    has, and whether this misses the target."""
    said = []
    for model in study.models:
        if best := reached_of(study, points, model).best:
            test, known = best.test(study), f"{100 * best.accuracy:.1f} % on validation"
            has = f"On the test the setting by which {model} reached the target, {best.images} images, has "
            missed = (
                f" and misses it: {known} was luck, or what was learnt doesn't carry over. The number of images, and "
                "what is compared with it, hold for validation alone."
            )
            said.append(f"{has}{100 * test:.1f} %" + (f", {known}." if test >= study.target else missed))
    return said


def trial_rows(study: Any, points: Sequence[Point]) -> list[dict[str, Any]]:
    """Every trial as a row of a CSV file."""
    return [
        {"question": p.question, "model": p.model, "trial": p.trial.number, "state": p.state(study)}
        | {**p.setting._asdict(), "images": p.images, "images_seen": p.images_seen}
        | {"validation": p.accuracy if p.trial.values else ""}
        | {f"validation_{k}": dict(enumerate(p.judged.validations)).get(k, "") for k in range(study.seeds)}
        for p in points
    ]
