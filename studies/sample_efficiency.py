"""How little data is enough? Fewest training images against accuracy, and images to a target.

    python studies/sample_efficiency.py --preset smoke    # tiny world, under 90 seconds on 2 cores
    python studies/sample_efficiency.py                   # laptop: 12 animals, 32 px, 5 seeds
    python studies/sample_efficiency.py --preset fixed    # 8 animals, 3 seeds, 700 steps for all
    python studies/sample_efficiency.py --storage postgresql+psycopg://user@host/database --workers 4
    optuna-dashboard runs/sample_efficiency-laptop/journal.log      # if you have it

Two searches with Optuna for each model, over the fraction of animal pairs in training, the fraction
of those with hard negatives, views of the single-object scenes and their share of a batch:

- the Pareto front: fewest distinct images against highest accuracy (TPE for several objectives);
- the target: fewest images whose accuracy is at least --target, by trials near that boundary. A model that never
  reaches it gives a lower bound.

Settings are chosen on validation; the report's figures are from the test of unseen pairs. With --budgets, as in laptop,
a setting gets more steps until its mean over seeds on validation stops rising, so that too few steps aren't mistaken
for too little data. Ratios of images are reported at convergence and at equal compute, with intervals over seeds.
Without --budgets all settings have the same steps and are judged by the median over seeds; a trial of the second search
ends as soon as its seeds can't reach the target any more.

Commands with a folder each and one --storage share the trials, on any machine; the report of each has the settings that
it trained. A command that is started again continues with the same trials.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.identity import seed_of
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.adaptive import has_stopped
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import recipe_line
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import PAPER, SMOKE
from menagerie.studies.frame.parts import Part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.search_study import write_trials
from menagerie.studies.sample_search.page import parts
from menagerie.studies.sample_search.points import SearchTrial, Setting, SettingRuns, trial_rows
from menagerie.studies.sample_search.settings import SampleStudy

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

    from menagerie.studies.frame.search import Search, TrialResult

QUESTIONS = ("front", "target")


@dataclass(frozen=True)
class Config(SampleStudy):
    """Sample efficiency: how little data is enough"""

    def judge_setting(self, known: KnownResults, model: str, question: str, setting: Setting) -> SettingRuns:
        """Return the runs of a setting and their results. Without budgets, the search for the target stops adding seeds
        when the setting can't reach the target."""
        if self.budgets:
            return self.judge_best_budget(known, model, setting)
        runs = [self.arm(model, setting, seed) for seed in range(self.seeds)]
        if question == "front":
            return self.score_setting(known, runs, runs)
        for number in range(seeds_to_give_up(self), self.seeds + 1):  # until the target is out of reach
            judged = self.score_setting(known, runs[:number], runs[:number])
            if judged.accuracy is None or out_of_reach(self, judged.validations):
                break
        return judged

    def score_setting(
        self, known: KnownResults, arms: Sequence[Arm], chosen: Sequence[Arm], **more: Any
    ) -> SettingRuns:
        """Judge a setting by the results of `chosen`, a run for each seed. `arms` are all its runs so far."""
        scores = [known.score(arm) for arm in chosen]
        values = [score for score in scores if score is not None]
        over = len(values) == len(scores)
        diverged = any(known.has_diverged(arm) for arm in chosen)
        accuracy = judge_accuracy(self, values) if over and not diverged else None
        return SettingRuns(arms, chosen, values, accuracy, diverged, **more)

    def judge_best_budget(self, known: KnownResults, model: str, setting: Setting) -> SettingRuns:
        """Judge a setting by the budget that is best on validation, of equally good ones the smallest. The result also
        has the runs at `equal_steps`, a budget of all settings.

        Budgets rise until the mean over seeds stops rising; the validation of a single seed is too noisy.
        """
        arms: list[Arm] = []
        ended: list[SettingRuns] = []
        for steps in self.budgets:
            now = [self.arm(model, setting, seed, steps) for seed in range(self.seeds)]
            arms += now
            judged = self.score_setting(known, arms, now)
            if judged.accuracy is None:
                return judged
            ended.append(judged)
            means = [each.accuracy or 0.0 for each in ended]
            no_room = len(means) > self.patience and max(means) > 1 - self.rise
            if stopped := no_room or has_stopped(means, self.patience, self.rise):
                break
        best = ended[means.index(max(means))]
        equal = ended[self.budgets.index(self.equal_steps)].chosen
        return best._replace(arms=arms, equal=equal, capped=not stopped)

    def trial_result(self, known: KnownResults, model: str, question: str, trial: "FrozenTrial") -> "TrialResult":
        """Return the result of a trial: distinct images, and accuracy on validation."""
        from menagerie.studies.frame.search import TrialResult

        setting = self.setting_of(trial.params)
        judged = self.judge_setting(known, model, question, setting)
        labels = {"question": question, "trial": trial.number, "images": self.images_of(setting)}
        arms = [arm._replace(labels={**labels, **arm.labels}) for arm in judged.arms]
        if judged.diverged:
            return TrialResult(arms, pruned="its loss, weights or scores aren't finite")
        images = float(labels["images"])
        return TrialResult(arms, None if judged.accuracy is None else (images, judged.accuracy))

    def search(self, question: str, model: str) -> "Search":
        """Return one of a model's two searches. Its first trials are the same for all models: the setting of the space
        that is nearest to all data, which says whether the target can be reached, then evenly spread settings."""
        from menagerie.studies.frame.sampling import BoundarySampler, SpaceSampler, from_cube, spread_points, to_cube
        from menagerie.studies.frame.search import Search

        space, count = self.space, max(3, self.trials // 3)
        nearest = from_cube(to_cube(self.everything._asdict(), space), space)  # rounded to a step of the ranges

        def sampler(number: int) -> "BaseSampler":
            seed = seed_of(self.sampler_seed, question, number)
            if question == "front":
                return SpaceSampler(space, seed)
            return BoundarySampler(
                space, lambda params: self.images_of(self.setting_of(params)), self.target, seed_of(seed, number)
            )

        return Search(
            *(f"{self.study or 'sample_efficiency'} {question} {model}", space, self.trials, self.trials_at_once),
            directions=("minimize", "maximize"),
            sampler=sampler,
            first=[nearest, *spread_points(space, count - 1, self.sampler_seed)][:count],
            settings={"question": question} | self.decisive(model),
        )

    def searches(self) -> "list[Search]":
        return [self.search(question, model) for question in QUESTIONS for model in self.models]

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan both searches of every model."""
        for question in QUESTIONS:
            for model in self.models:
                search = self.search(question, model)
                for _, tried in search.follow(known, self.storage, partial(self.trial_result, known, model, question)):
                    yield from tried.arms

    def points(self, records: Records) -> list[SearchTrial]:
        """Return all trials, by question and model."""
        return [
            SearchTrial(question, model, trial, setting, self.images_of(setting), judged, records)
            for question in QUESTIONS
            for model in self.models
            for trial in self.search(question, model).found(records, self.storage)
            for setting in [self.setting_of(trial.params)]
            for judged in [self.judge_setting(records, model, question, setting)]
        ]

    def page(self, records: Records) -> Iterable[Part]:
        """Yield the results of the searches, the answer first."""
        return parts(self, self.points(records))

    def export(self, records: Records) -> None:
        """Write all trials; accuracies and fractions are from 0 to 1."""
        write_trials(records, trial_rows(self, self.points(records)))

    def notes(self) -> dict[str, str]:
        """Return each model's recipe, in which the share of single-object scenes is left to the setting."""
        return {f"recipe of {m}": recipe_line(self, m, self.training_of(m, None)) for m in self.models}


def judge_accuracy(study: Config, values: Sequence[float]) -> float:
    """Return the accuracy by which a setting is judged: the median over seeds, which one lucky seed of three doesn't
    move. With budgets it's the mean, which has an interval for new seeds."""
    return float((statistics.mean if study.budgets else statistics.median)(values))


def out_of_reach(study: Config, values: Sequence[float]) -> bool:
    """Whether a setting will miss the target, whatever the remaining seeds reach."""
    return judge_accuracy(study, [*values, *[1.0] * (study.seeds - len(values))]) < study.target


def seeds_to_give_up(study: Config) -> int:
    """Return the smallest number of seeds after which a setting may be out of reach of the target."""
    return next((n for n in range(1, study.seeds) if out_of_reach(study, [0.0] * n)), study.seeds)


RANGES: dict[str, Any] = {"pairs": (0.0, 1.0), "hard_negatives": (0.0, 1.0)}
PRESETS = {
    "smoke": Config(
        **SMOKE | RANGES | {"recipe": Recipe(steps=16, batch=16, warmup=4), "test_scenes": 16},
        **{"views": 2, "seeds": 2, "trials": 4, "target": 0.6},
    ),
    # 12 animals, so that 66 pairs leave 20 for the test and 9 for validation. Searched are the numbers of pairs and of
    # images of single animals: few settings, each with five seeds until it stops rising.
    "laptop": Config(
        **{"world": "twelve", "resolution": 32, "test_views": 2, "test_scenes": 200, "seeds": 5, "trials": 3},
        **{"test_pairs": 0.31, "validation": 0.14, "hard_negatives": (0.0,), "singles_shares": (0.5,), "target": 0.9},
        tuned="twelve",
        recipe=Recipe(steps=500, decay=0.2),
        budgets=(500, 1000, 2000),
    ),
    # 8 animals, so that 28 pairs leave 6 for the test and 6 for validation; hard negatives are searched too.
    "fixed": Config(
        world="eight",
        resolution=32,
        test_views=2,
        test_scenes=200,
        test_pairs=0.2,
        validation=0.2,
        tuned="laptop",
        recipe=Recipe(steps=700),
    ),
    "paper": Config(**PAPER | RANGES | {"trials": 60, "views": 16}),
}


if __name__ == "__main__":
    main(PRESETS)
