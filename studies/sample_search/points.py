"""Trials of searches for few images: their settings and results, and the images that models need."""

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
# The number of trials of the paper's preset. Noise alone gives shares too: in simulations of four parameters without
# any effect the largest share is below 0.63 in 95 % of searches with 12 settings, 0.39 with 40, 0.31 with 60, 0.22 with
# 100.
FEWEST = 60


class Setting(NamedTuple):
    """A point of the space that is searched."""

    pairs: float
    """Fraction of the trainable animal pairs in train."""
    hard_negatives: float
    """Fraction of these pairs that also have their hard negatives."""
    singles_views: int
    """Views of each single-object scene."""
    singles_share: float
    """Share of a batch that shows single-object scenes."""


class SettingRuns(NamedTuple):
    """The runs of a setting, and their accuracy on validation."""

    arms: Sequence[Arm]
    """All runs that are planned so far, including finished ones."""
    chosen: Sequence[Arm]
    """The runs by which the setting is judged: of all seeds, or of as many as show that it misses the target."""
    validations: Sequence[float]
    """Accuracy on validation of each chosen run that has ended."""
    accuracy: float | None
    """Accuracy on validation over the chosen runs; None until all of them have ended, and if one diverged."""
    diverged: bool = False
    equal: Sequence[Arm] = ()
    """The runs with the budget that all settings get."""
    capped: bool = False
    """Whether validation was still rising at the largest budget."""


class SearchTrial(NamedTuple):
    """A trial of one of the two searches, with its results."""

    question: str
    model: str
    trial: "FrozenTrial"
    setting: Setting
    images: int
    judged: SettingRuns
    records: Records

    @property
    def accuracy(self) -> float:
        """Accuracy on validation over seeds, which settings are judged by; 0 for a trial without a value."""
        return self.trial.values[1] if self.trial.values else 0.0

    def state(self, study: Any) -> str:
        """Return "complete", "missed" (all seeds are below the target), "pruned" (ended before that), or "running"."""
        if not self.trial.values:
            return "pruned" if self.trial.state.is_finished() else "running"
        if self.question == "front" or study.budgets or self.accuracy >= study.target:
            return "complete"
        return "missed" if len(self.judged.validations) in (0, study.seeds) else "pruned"

    def tallies(self, study: Any, tests: Sequence[str] = ()) -> list[PairSums]:
        """Return each seed's points and numbers of swaps by animal pair, on the test or on other tests."""
        return [
            tally_swaps(self.records.folder(arm), tests or arm.cell.data.recipe.judged) for arm in self.judged.chosen
        ]

    def here(self, study: Any) -> bool:
        """Return whether all seeds were trained in this folder."""
        return len(self.judged.validations) == study.seeds

    def test(self, study: Any) -> float:
        """Return accuracy on the test: the mean or median over seeds, as on validation."""
        return (mean if study.budgets else median)(pareto.accuracies(self.tallies(study)))

    @property
    def images_seen(self) -> int:
        """Images of all steps, including those of the training that the model starts from."""
        return self.judged.chosen[0].cell.images_seen

    def row(self) -> list[str]:
        """Return the trial's images, the passes over them, and its setting, as texts."""
        fractions = [f"{share:.0%}" for share in self.setting[:2]]
        lone = [str(self.setting.singles_views), f"{self.setting.singles_share:.0%}"]
        return [str(self.images), f"{self.images_seen / self.images:.0f}", *fractions, *lone]

    def at_equal_compute(self) -> "SearchTrial":
        """Return the trial as it would be with only the budget that all settings get."""
        from optuna.trial import create_trial

        scores = [self.records.score(arm) or 0.0 for arm in self.judged.equal]
        trial = create_trial(values=[float(self.images), mean(scores)])
        return self._replace(trial=trial, judged=self.judged._replace(chosen=self.judged.equal, validations=scores))


def tally_swaps(folder: Path, tests: Sequence[str]) -> PairSums:
    """Return the points and the number of swaps of some tests, by animal pair."""
    from menagerie.studies.frame.estimate import points_in

    points = points_in(folder)
    chosen = points[points["subset"].isin(tests) & (points["task"] == "swap")]
    sums = chosen.groupby("animals", sort=True)["value"].agg(["sum", "count"])
    return {str(pair): [float(total), int(count)] for pair, total, count in sums.itertuples()}


def judged_by(study: Any) -> str:
    """Return the name of the statistic over seeds by which settings are judged."""
    return "mean" if study.budgets else "median"


def fronts_of(study: Any, points: Sequence[SearchTrial]) -> dict[str, list[SearchTrial]]:
    """Return each model's Pareto front on validation, of the settings of the first search trained in this folder."""
    fronts = {}
    for model in study.models:
        mine = [p for p in points if (p.model, p.question) == (model, "front") and is_complete(study, p)]
        fronts[model] = [mine[k] for k in pareto.pareto_front([p.images for p in mine], [p.accuracy for p in mine])]
    return fronts


def is_complete(study: Any, point: SearchTrial) -> bool:
    """Return whether a trial is complete, with all its seeds trained in this folder."""
    return point.state(study) == "complete" and point.here(study)


class ImagesToTarget(NamedTuple):
    """The images that a model needs to reach the target."""

    bound: Bound | None
    """None before any setting has ended."""
    best: SearchTrial | None
    """The trial with the fewest images that reached the target."""
    most_missed: int | None
    """The most images of a setting that hasn't reached the target; None if all have."""


def images_to_target(study: Any, points: Sequence[SearchTrial], model: str) -> ImagesToTarget:
    """Return the images that a model needs to reach the target, over the settings of both searches that have ended.
    Those that reached it in another folder are left out."""
    ended = [point for point in points if point.model == model and point.state(study) != "running"]
    mine = [point for point in ended if point.accuracy < study.target or point.here(study)]
    did = [point.accuracy >= study.target for point in mine]
    best = min((point for point, ok in zip(mine, did, strict=True) if ok), key=lambda p: p.images, default=None)
    missed = [point.images for point, ok in zip(mine, did, strict=True) if not ok]
    bound = pareto.fewest_images([point.images for point in mine], did) if mine else None
    return ImagesToTarget(bound, best, max(missed, default=None))


def importances(points: Sequence[SearchTrial], model: str) -> dict[str, float]:
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


def curve_of(study: Any, points: Sequence[SearchTrial], tests: Sequence[str] = ()) -> Curve:
    """Return settings with their results on the test, or on other tests."""
    return Curve([p.images for p in points], [p.tallies(study, tests) for p in points])


def ratio_interval(study: Any, points: Sequence[SearchTrial], other: str) -> str:
    """Return the interval of the ratio to another model; a dash if either lacks a setting with all seeds."""
    both = [[p for p in points if p.model == model and p.here(study)] for model in (study.models[0], other)]
    curves = [curve_of(study, its, ("validation",)) for its in both]
    return pareto.image_ratio(*curves, study.target).interval if all(both) else DASH


def count_capped(study: Any, points: Sequence[SearchTrial]) -> dict[str, tuple[int, int]]:
    """Count, for each model, the settings for which validation was still rising at the largest budget, and all
    settings. A setting that both searches tried counts once."""
    settings: dict[str, dict[tuple[str, ...], bool]] = {model: {} for model in study.models}
    for point in points:
        if point.judged.equal:
            settings[point.model][tuple(arm.id for arm in point.judged.chosen)] = point.judged.capped
    return {model: (sum(capped.values()), len(capped)) for model, capped in settings.items() if capped}


def axis_of(study: Any) -> Axis:
    """Return the smallest and the largest number of distinct images in the space."""
    return Axis(study.images_of(study.least), study.images_of(study.everything))


def volumes_so_far(study: Any, points: Sequence[SearchTrial]) -> list[tuple[int, float]]:
    """Return the hypervolume on validation of the first setting, the first two, ..., with the last trial's number."""
    ended = [p for p in points if is_complete(study, p)]
    images, accuracy = np.array([p.images for p in ended], float), np.array([p.accuracy for p in ended])
    return [
        (ended[n - 1].trial.number, float(pareto.hypervolume(images[:n], accuracy[:n], axis_of(study))))
        for n in range(1, len(ended) + 1)
    ]


def ratio_rows(study: Any, points: Sequence[SearchTrial]) -> list[list[str]]:
    """Return a row for each other model: its name, the first model's images by its own, and this in words."""
    first, *others = study.models
    need = {model: images_to_target(study, points, model).bound for model in study.models}
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


def sentences_on_test(study: Any, points: Sequence[SearchTrial]) -> list[str]:
    """Write a sentence on the accuracy on the test for each model that reached the target on validation."""
    said = []
    for model in study.models:
        if best := images_to_target(study, points, model).best:
            test, known = best.test(study), f"{100 * best.accuracy:.1f} % on validation"
            has = f"On the test the setting by which {model} reached the target, {best.images} images, has "
            missed = (
                f" and misses the target: {known} was luck, or doesn't carry over to the test. The number of images "
                "and comparisons with it hold for validation alone."
            )
            said.append(f"{has}{100 * test:.1f} %" + (f", {known}." if test >= study.target else missed))
    return said


def trial_rows(study: Any, points: Sequence[SearchTrial]) -> list[dict[str, Any]]:
    """Return all trials as rows of a CSV file."""
    return [
        {"question": p.question, "model": p.model, "trial": p.trial.number, "state": p.state(study)}
        | {**p.setting._asdict(), "images": p.images, "images_seen": p.images_seen}
        | {"validation": p.accuracy if p.trial.values else ""}
        | {f"validation_{k}": dict(enumerate(p.judged.validations)).get(k, "") for k in range(study.seeds)}
        for p in points
    ]
