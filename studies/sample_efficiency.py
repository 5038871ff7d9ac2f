"""How little data is enough? Fewest training images against accuracy, and images to a target.

    python studies/sample_efficiency.py --preset smoke    # tiny world, under 90 seconds on 2 cores
    python studies/sample_efficiency.py                   # laptop: 12 animals, 32 px, 5 seeds
    python studies/sample_efficiency.py --preset fixed    # 8 animals, 3 seeds, 700 steps for all
    python studies/sample_efficiency.py --storage postgresql+psycopg://user@host/database --workers 4
    optuna-dashboard runs/sample_efficiency-laptop/journal.log      # if you have it

Two searches with Optuna for each model, over the fraction of animal pairs in training, the fraction of those with hard
negatives, views of the single-object scenes and their share of a batch:

- the Pareto front: fewest distinct images against highest accuracy (TPE for several objectives);
- the target: fewest images whose accuracy is at least --target (Gaussian processes with this constraint). A model that
  never reaches it gives a lower bound.

Settings are chosen on validation; the report's figures are from the test of unseen pairs. With --budgets, as in laptop,
a setting gets more steps until its mean over seeds on validation stops rising; ratios of images are reported at
convergence and at equal compute. Without --budgets all settings have the same steps. Commands with a folder each and
one --storage share the trials, on any machine; the report of each has the settings that it trained.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.identity import seed_of
from menagerie.models.recipe import Recipe
from menagerie.studies.analysis import pareto
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.arm import Arm, KnownResults, raise_until_flat
from menagerie.studies.frame.cells import recipe_line
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import PAPER, SMOKE
from menagerie.studies.frame.parts import Front, Heading, Lines, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.search_study import AmountSearch, Setting, trial_table, trial_text, write_trials

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

    from menagerie.studies.frame.search import Search, TrialResult

# The objectives of each search: images and accuracy, and images alone.
DIRECTIONS = {"front": ("minimize", "maximize"), "target": ("minimize",)}
TARGETS = ("model", "images to target", "trial", "validation", "test", "most images that missed it")
RATIOS = ("other model", "images of the first / images of the other", "in words", "compared", "95 % interval")
WHAT_WAS_DONE = """Each distinct image counts once: a scene in a view, single objects included. Each model is searched
twice, {0.trials} settings each. Settings are judged by the mean over {0.seeds} seeds on validation, and no search has
looked at the test."""
STEPS = """Steps: {0.recipe.steps}, and of --budgets {0.budgets} one after the other, until {0.patience} in a row raise
validation by no more than {0.rise:.1%}."""
FRONTS = "All settings of the first search on validation. Dashed: the target."
FEWEST = """The fewest images of any setting that reaches the target on validation. `>`: none did. `test`: its
accuracy on unseen pairs, which chose nothing."""
IMAGES = """How many images the first model needs for each that the other needs. `<`: the other didn't reach the target;
`>`: the first didn't. Intervals draw seeds and animal pairs of validation anew."""


class SettingRuns(NamedTuple):
    """The runs of a setting, and their accuracy on validation."""

    arms: Sequence[Arm]
    """All runs that are planned so far, including finished ones."""
    chosen: Sequence[Arm]
    """The runs by which the setting is judged: those of the best budget, or of the one that hasn't ended."""
    validations: Sequence[float]
    """Accuracy on validation of each chosen run that has ended."""
    accuracy: float | None
    """Their mean; None until all of them have ended, and if one diverged."""
    diverged: bool = False


class Tried(NamedTuple):
    """A trial of one of the two searches, with its results."""

    question: str
    model: str
    number: int
    state: str
    """"complete", "missed" (below the target of the second search), "pruned" (it diverged) or "running"."""
    setting: Setting
    images: int
    accuracy: float | None
    """Accuracy on validation over seeds; None for a trial without a value."""
    runs: SettingRuns

    @property
    def here(self) -> bool:
        """Whether all its seeds were trained in this folder."""
        return self.runs.accuracy is not None


@dataclass(frozen=True)
class Config(AmountSearch):
    """Sample efficiency: how little data is enough"""

    def judge_setting(self, known: KnownResults, model: str, setting: Setting) -> SettingRuns:
        """Judge a setting by the budget that is best on validation, of equally good ones the smallest. Budgets rise
        until the mean over seeds stops rising; the validation of a single seed is too noisy."""

        def arms_of(steps: int) -> list[Arm]:
            return [self.arm(model, setting, seed, steps) for seed in self.seed_numbers]

        course = raise_until_flat(known, self.budgets or (0,), arms_of, self.patience, self.rise)
        diverged = any(map(known.has_diverged, course.arms))
        if diverged:  # no larger budget
            first = next(number for number, arm in enumerate(course.arms) if known.has_diverged(arm))
            course = course._replace(arms=course.arms[: (first // self.seeds + 1) * self.seeds])
        best = len(course.means) if course.waiting or diverged else course.means.index(max(course.means))
        chosen = course.arms[best * self.seeds :][: self.seeds] or course.arms[-self.seeds :]
        validations = [score for score in map(known.score, chosen) if score is not None]
        accuracy = None if course.waiting or diverged else max(course.means)
        return SettingRuns(course.arms, chosen, validations, accuracy, diverged)

    def trial_result(self, known: KnownResults, model: str, question: str, trial: "FrozenTrial") -> "TrialResult":
        """Return the result of a trial: distinct images, and accuracy on validation, which is an objective of the first
        search and the constraint of the second."""
        from menagerie.studies.frame.search import TrialResult

        setting = self.setting_of(trial.params)
        runs, images = self.judge_setting(known, model, setting), self.images_of(setting)
        labels = {"question": question, "trial": trial.number, "images": images}
        arms = [arm._replace(labels={**labels, **arm.labels}) for arm in runs.arms]
        if runs.diverged:
            return TrialResult(arms, pruned="its loss, weights or scores aren't finite")
        if runs.accuracy is None:
            return TrialResult(arms)
        values = (float(images), runs.accuracy) if question == "front" else (float(images),)
        return TrialResult(arms, values, attributes={"validation": runs.accuracy})

    def search(self, question: str, model: str) -> "Search":
        """Return one of a model's two searches. Its first trials are the same for all models: the setting with the most
        data, which says whether the target can be reached, then random settings."""
        from menagerie.studies.frame.search import Search, draw_by_constraint, draw_by_tpe

        def sampler(number: int) -> "BaseSampler":
            seed = seed_of(self.sampler_seed, number)
            if question == "front":
                return draw_by_tpe(seed)
            return draw_by_constraint(seed, lambda trial: self.target - trial.user_attrs.get("validation", 0.0))

        return Search(
            *(f"{self.study or 'sample_efficiency'} {question} {model}", self.space, self.trials, self.trials_at_once),
            directions=DIRECTIONS[question],
            sampler=sampler,
            first=[self.everything._asdict()],
            settings={"question": question} | self.decisive(model),
        )

    def searches(self) -> "list[Search]":
        return [self.search(question, model) for question, model in product(DIRECTIONS, self.models)]

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        for question, model in product(DIRECTIONS, self.models):
            judge = partial(self.trial_result, known, model, question)
            for _, tried in self.search(question, model).follow(known, self.storage, judge):
                yield from tried.arms

    def points(self, records: Records) -> list[Tried]:
        return [
            self.tried(records, question, model, trial)
            for question, model in product(DIRECTIONS, self.models)
            for trial in self.search(question, model).found(records, self.storage)
        ]

    def tried(self, records: Records, question: str, model: str, trial: "FrozenTrial") -> Tried:
        setting = self.setting_of(trial.params)
        accuracy = trial.user_attrs["validation"] if trial.values else None
        missed = accuracy is not None and question == "target" and accuracy < self.target
        ended = "missed" if missed else "complete" if trial.values else "pruned"
        state = ended if trial.state.is_finished() else "running"
        runs = self.judge_setting(records, model, setting)
        return Tried(question, model, trial.number, state, setting, self.images_of(setting), accuracy, runs)

    def equal_compute(self, records: Records, points: Sequence[Tried]) -> list[Tried]:
        """Return the trials that were trained here as they would be with only the budget that all settings get."""
        found = []
        for point in (point for point in points if point.here):
            if arms := [arm for arm in point.runs.arms if arm.cell.recipe.steps == self.equal_steps]:
                scores = [records.score(arm) or 0.0 for arm in arms]
                runs = point.runs._replace(chosen=arms, validations=scores)
                found.append(point._replace(accuracy=statistics.mean(scores), runs=runs))
        return found

    def curve(self, records: Records, points: Sequence[Tried], tests: Sequence[str] = ()) -> pareto.Curve:
        """Return settings with each seed's results on the test, or on other tests."""
        tallies = []
        for point in points:
            subsets = tuple(tests or point.runs.chosen[0].cell.data.recipe.judged)
            swaps = replace(records, arms=tuple(point.runs.chosen)).where(subset=subsets, task="swap")
            tallies.append(pareto.tallies_by_seed(swaps.points))
        return pareto.Curve([point.images for point in points], tallies)

    def on_test(self, records: Records, point: Tried) -> float:
        """Return a setting's accuracy on the test, the mean over seeds."""
        return statistics.mean(pareto.accuracies(self.curve(records, [point]).tests[0]))

    def to_target(self, points: Sequence[Tried], model: str) -> tuple[pareto.Bound | None, Tried | None, int | None]:
        """Return the images that a model needs to reach the target (None before any setting has ended), the setting
        that reached it with the fewest, and the most images of one that didn't. Settings that reached it in another
        folder are left out."""
        ended = [point for point in points if point.model == model and point.state != "running"]
        did = [(point, (point.accuracy or 0.0) >= self.target) for point in ended]
        did = [(point, reached) for point, reached in did if point.here or not reached]
        best = min((point for point, reached in did if reached), key=lambda point: point.images, default=None)
        bound = pareto.fewest_images([p.images for p, _ in did], [reached for _, reached in did]) if did else None
        return bound, best, max((point.images for point, reached in did if not reached), default=None)

    def ratios(self, records: Records, points: Sequence[Tried]) -> Iterator[list[str]]:
        """Yield a row for each other model, with budgets also at equal compute: its name, the first model's images by
        its own, this in words, what is compared, and the ratio's interval."""
        compared = {"at convergence" if self.budgets else "at equal steps": points}
        if self.budgets:
            compared[f"at equal compute, {self.equal_steps} steps"] = self.equal_compute(records, points)
        for when, some in compared.items():
            need = {model: self.to_target(some, model)[0] for model in self.models}
            first, *others = self.models if None not in need.values() else self.models[:1]
            for other in others:
                here = [[p for p in some if p.model == model and p.here] for model in (first, other)]
                both = [self.curve(records, its, ("validation",)) for its in here if its]
                interval = pareto.image_ratio(*both, self.target).interval if all(here) else DASH
                words = pareto.compare_bounds(first, need[first], other, need[other])
                yield [other, pareto.bound_ratio(need[first], need[other]), words, when, interval]

    def page(self, records: Records) -> Iterator[Part]:
        """Yield the ratios in words and the fronts; tables of both searches, their course, and all trials."""
        from menagerie.studies.frame.search_figures import search_figures

        points = self.points(records)
        ratios = list(self.ratios(records, points))
        yield from (Sentence(f"{words}, {compared}.") for _, _, words, compared, _ in ratios)
        best = {model: self.to_target(points, model)[1] for model in self.models}
        tested = [f"{m} {100 * self.on_test(records, its):.1f} %" for m, its in best.items() if its]
        reached = f" On the test the settings that reached it have {', '.join(tested)}." if tested else ""
        yield Sentence(f"The target is {self.target:.0%} of swaps right on validation.{reached}")
        chosen = {arm.id for point in points if point.here for arm in point.runs.chosen}
        front = records.where(lambda arm: arm.id in chosen and arm.labels["question"] == "front", task="swap")
        tests = front.where(subset=self.recipe_of(self.everything, 0).judged)
        look: dict[str, Any] = {"x": "images", "points": ("model", "trial"), "judged": tests, "level": self.target}
        yield Front("fronts", front.where(subset="validation"), says=FRONTS, **look)
        yield Paragraph(f"{WHAT_WAS_DONE} {STEPS if self.budgets else ''}".format(self))
        yield Rows("targets", TARGETS, [self.target_row(records, points, m) for m in self.models], says=FEWEST)
        yield Rows("ratios", RATIOS, ratios, says=IMAGES)
        if self.budgets:
            every, panels = records.where(subset="validation", task="swap"), ("question", "model")
            says = "Validation by steps, a line for each setting."
            yield Lines("convergence", every, "steps", colour="trial", panels=panels, says=says)
        for question, directions in DIRECTIONS.items():
            searches = {f"{m}, {question}": self.search(question, m).found(records, self.storage) for m in self.models}
            value = "accuracy on validation" if question == "front" else "number of images"
            yield from search_figures(searches, value, directions, f"{question}-")
        yield Heading("All trials", "`missed`: below the target. `pruned`: it diverged. Shares are from 0 to 1.")
        yield trial_table(self.trial_rows(records, points))

    def target_row(self, records: Records, points: Sequence[Tried], model: str) -> list[str]:
        bound, best, missed = self.to_target(points, model)
        shown = [best.number, best.accuracy, self.on_test(records, best)] if best else [None] * 3
        return [model, str(bound or DASH), *map(trial_text, [*shown, missed])]

    def trial_rows(self, records: Records, points: Sequence[Tried]) -> list[dict[str, Any]]:
        return [
            {"question": p.question, "model": p.model, "trial": p.number, "state": p.state}
            | {**p.setting._asdict(), "images": p.images, "steps": p.runs.chosen[0].cell.recipe.steps}
            | {"images_seen": p.runs.chosen[0].cell.images_seen, "validation": p.accuracy}
            | {f"validation_{k}": its for k, its in zip_longest(self.seed_numbers, p.runs.validations)}
            | {"test": self.on_test(records, p) if p.here else None}
            for p in points
        ]

    def export(self, records: Records) -> None:
        """Write all trials; accuracies and fractions are from 0 to 1."""
        write_trials(records, self.trial_rows(records, self.points(records)))

    def notes(self) -> dict[str, str]:
        """Return each model's recipe, in which the share of single-object scenes is left to the setting."""
        return {f"recipe of {m}": recipe_line(self, m, self.training_of(m, None)) for m in self.models}


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
