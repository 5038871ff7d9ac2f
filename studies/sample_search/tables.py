"""Tables of sample efficiency, from the trials in a storage and nothing else."""

from collections.abc import Mapping, Sequence
from copy import copy
from statistics import mean
from typing import NamedTuple

import optuna
import pandas as pd
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState

from menagerie.studies.analysis import pareto
from menagerie.studies.analysis.pareto import Axis, Bound, Curve, Volume
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.sample_search.budget import Config, everything, images_of, images_seen, least

SETTING = ("pairs", "hard_negatives", "singles_views", "singles_share")
# What is kept of each seed at every budget.
EQUAL = ("cell", "validation", "step", "known", "test")
# Below so many settings there is nothing to say of what mattered.
FEWEST = 8


class Point(NamedTuple):
    """One trial that was judged."""

    model: str
    question: str
    trial: FrozenTrial

    @property
    def images(self) -> int:
        return self.trial.user_attrs["images"]

    @property
    def accuracy(self) -> float:
        """Over seeds on validation, as settings are judged; of a pruned trial, over what it got to."""
        return self.trial.user_attrs.get("accuracy", 0.0)

    @property
    def test(self) -> float:
        """Accuracy on unseen pairs over seeds: the median, or the mean of runs that were trained until they stopped
        rising; only chosen settings have it."""
        tests = self.trial.user_attrs["tests"]
        return mean(pareto.accuracies(tests)) if "steps" in self.trial.user_attrs else pareto.median_accuracy(tests)

    @property
    def steps(self) -> int:
        """Steps, the mean over seeds where they differ; 0: the study's."""
        return round(mean(self.trial.user_attrs.get("steps", [0])))

    def at_equal_compute(self) -> "Point":
        """The same setting after the budget that all settings have, as if nobody had trained any further."""
        attributes = self.trial.user_attrs
        equal = {f"{name}s": [one[name] for one in attributes["equals"]] for name in EQUAL}
        accuracy = mean(equal["validations"])
        frozen = copy(self.trial)
        frozen.user_attrs = attributes | equal | {"accuracy": accuracy}
        return self._replace(trial=frozen)

    @property
    def seeds_known(self) -> list[float]:
        """Accuracy of each seed that was trained."""
        return self.trial.user_attrs.get("validations", [])

    @property
    def known(self) -> Curve:
        """The setting as a curve of one, by its scores on validation."""
        return Curve([self.images], [self.trial.user_attrs["knowns"]])

    @property
    def whole(self) -> bool:
        return self.trial.state is TrialState.COMPLETE

    def row(self, config: Config) -> list[str]:
        """Images, passes over them, and the setting, as texts."""
        setting = self.trial.user_attrs["setting"]
        fractions = [f"{setting[name]:.0%}" for name in ("pairs", "hard_negatives")]
        lone = [str(setting["singles_views"]), f"{setting['singles_share']:.0%}"]
        passes = images_seen(config, self.model, self.steps) / self.images
        return [str(self.images), f"{passes:.0f}", *fractions, *lone]


def state_of(config: Config, trial: FrozenTrial) -> str:
    """complete or pruned, as Optuna has it; missed where all seeds were trained and they miss the target together."""
    ended = len(trial.user_attrs.get("validations", ())) == config.seeds
    return "missed" if trial.state is TrialState.PRUNED and ended else trial.state.name.lower()


HEADER = ("images", "passes", "pairs", "hard negatives", "singles views", "singles share")


def points(trials: Mapping[str, Sequence[FrozenTrial]]) -> list[Point]:
    """All trials, by question and model, as they are in the storage."""
    named = ((*name.split(" ", 1), trial) for name, tried in trials.items() for trial in tried)
    return [Point(model, question, trial) for question, model, trial in named]


def axis_of(config: Config) -> Axis:
    """The least and the most distinct images of the space."""
    return Axis(images_of(config, least(config)), images_of(config, everything(config)))


def pareto_fronts_of(config: Config, all_points: Sequence[Point]) -> dict[str, list[Point]]:
    """Each model's Pareto front, chosen on validation among the settings of the first search."""
    fronts = {}
    for model in config.models:
        mine = [point for point in all_points if (point.model, point.question) == (model, "front") and point.whole]
        chosen = pareto.front([point.images for point in mine], [point.accuracy for point in mine])
        fronts[model] = [mine[k] for k in chosen]
    return fronts


def volumes_of(config: Config, chosen: Mapping[str, Sequence[Point]]) -> dict[str, Volume]:
    """Hypervolumes on the test, and differences to the first model; of models that have a Pareto front."""
    curves = {
        model: Curve([point.images for point in settings], [point.trial.user_attrs["tests"] for point in settings])
        for model, settings in chosen.items()
        if settings
    }
    return pareto.volumes(curves, axis_of(config)) if curves else {}


class Reached(NamedTuple):
    """The images that a model needs to reach the target."""

    bound: Bound
    best: Point | None  # the setting with fewest images that did
    most_missed: int | None  # the most images of a setting that did not


def reached_of(config: Config, all_points: Sequence[Point], model: str) -> Reached:
    """Images to the target, over the settings of both searches."""
    mine = [point for point in all_points if point.model == model and "images" in point.trial.user_attrs]
    did = [point.whole and point.accuracy >= config.target for point in mine]
    best = min((point for point, ok in zip(mine, did, strict=True) if ok), key=lambda point: point.images, default=None)
    missed = [point.images for point, ok in zip(mine, did, strict=True) if not ok]
    return Reached(pareto.bound([point.images for point in mine], did), best, max(missed, default=None))


def pareto_table(config: Config, chosen: Mapping[str, Sequence[Point]]) -> pd.DataFrame:
    """A row for each setting on a Pareto front."""
    header = ["model", *HEADER, "validation (%)", "unseen pairs (%)"]
    rows = [
        [model, *point.row(config), f"{100 * point.accuracy:.1f}", f"{100 * point.test:.1f}"]
        for model, settings in chosen.items()
        for point in settings
    ]
    return pd.DataFrame(rows, columns=header)


def volume_table(volumes: Mapping[str, Volume]) -> pd.DataFrame:
    """A row for each model and difference."""
    rows = [[name, f"{volume.value:.3f}", volume.interval] for name, volume in volumes.items()]
    return pd.DataFrame(rows, columns=["model", "hypervolume", "95 % interval"])


def target_table(config: Config, all_points: Sequence[Point]) -> pd.DataFrame:
    """For each model what it needs to reach the target."""
    header = [
        "model",
        "images to target",
        *HEADER[1:],
        "validation (%)",
        "unseen pairs (%)",
        "most images that missed it",
    ]
    rows = []
    for model in config.models:
        reached = reached_of(config, all_points, model)
        best = reached.best
        accuracies = [f"{100 * best.accuracy:.1f}", f"{100 * best.test:.1f}"] if best else [DASH] * 2
        setting = best.row(config)[1:] if best else [DASH] * len(HEADER[1:])
        missed = DASH if reached.most_missed is None else str(reached.most_missed)
        rows.append([model, str(reached.bound), *setting, *accuracies, missed])
    return pd.DataFrame(rows, columns=header)


def importance_table(config: Config, all_points: Sequence[Point]) -> pd.DataFrame:
    """Each parameter's share in the variance of accuracy over the settings of the first search."""
    shares = {model: importances(all_points, model) for model in config.models}
    rows = [
        [word, *(f"{share[name]:.2f}" if name in share else DASH for share in shares.values())]
        for name, word in zip(SETTING, HEADER[2:], strict=True)
    ]
    return pd.DataFrame(rows, columns=["parameter", *config.models])


def importances(all_points: Sequence[Point], model: str) -> dict[str, float]:
    """Functional analysis of variance (Hutter et al. 2014), Optuna's; empty for too few settings, or equal ones."""
    mine = [p.trial for p in all_points if (p.model, p.question) == (model, "front") and p.whole]
    if len(mine) < FEWEST or len({trial.values[1] for trial in mine}) == 1:  # no variance to be shared
        return {}
    study = optuna.create_study(directions=("minimize", "maximize"))
    study.add_trials(mine)
    return get_param_importances(
        study, evaluator=FanovaImportanceEvaluator(seed=0), target=lambda trial: trial.values[1]
    )
