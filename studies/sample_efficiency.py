"""How little data is enough? Fewest training images against accuracy, and images to a target.

    python studies/sample_efficiency.py --preset smoke    # tiny world, under 90 seconds on 2 cores
    python studies/sample_efficiency.py                   # laptop: 12 animals, 32 px, 5 seeds
    python studies/sample_efficiency.py --preset fixed    # 8 animals, 3 seeds, 700 steps for all
    python studies/sample_efficiency.py --storage postgresql+psycopg://user@host/database --workers 4
    optuna-dashboard runs/sample_efficiency-laptop/journal.log      # if you have it

Two searches with Optuna for each model, over the fraction of animal pairs in training, the fraction
of those with hard negatives, views of the single-object scenes and their share of a batch:

- the Pareto front: fewest distinct images against highest accuracy (TPE for several objectives);
- the target: fewest images whose accuracy is at least --target (Gaussian processes with this constraint). A model that
  never reaches it gives a lower bound.

Settings are chosen on validation; the report's figures are from the test of unseen pairs. With --budgets, as in laptop,
a setting gets more steps until its mean over seeds on validation stops rising, so that too few steps aren't mistaken
for too little data. Ratios of images are reported at convergence and at equal compute, with intervals over seeds.
Without --budgets all settings have the same steps.

Commands with a folder each and one --storage share the trials, on any machine; the report of each has the settings that
it trained. A command that is started again continues with the same trials.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import seed_of
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import RUNS, SEEDS, SHARE, Several
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.analysis import pareto
from menagerie.studies.frame.adaptive import raise_until_flat
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import cell_of as plain_cell
from menagerie.studies.frame.cells import recipe_line, training_recipe, tuned_recipes
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import PAPER, SMOKE
from menagerie.studies.frame.parts import Front, Heading, Lines, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.search_study import SearchStudy, trial_table, trial_text, write_trials
from menagerie.studies.frame.study import store_identity
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.data import FRACTIONS, SplitData, counts_of, distinct_images

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

    from menagerie.studies.frame.search import Search, Space, TrialResult

SHARE_STEP = 0.1
# The objectives of each search: images and accuracy, and images alone.
DIRECTIONS = {"front": ("minimize", "maximize"), "target": ("minimize",)}
TARGET_COLUMNS = ("model", "images to target", "trial", "validation", "test", "most images that missed it")
DASH = "–"
WHAT_WAS_DONE = """Training images are distinct images: each scene in a view counts once, single-object scenes included,
however often it is seen. Each model is searched twice, {0.trials} settings each: for few images and high accuracy at
once, and for the fewest images that reach {0.target:.0%} on validation. Settings are judged by the mean over
{0.seeds} seeds of accuracy on validation pairs. No search has looked at the test of unseen pairs. """
BUDGETS = """Every setting takes {0.budgets} steps, one budget after the other, until {0.patience} in a row raise its
mean on validation by no more than {0.rise:.1%} (a setting at chance goes on to the last, the cap). It counts with the
budget that is best on validation. All take at least {0.equal_steps} steps, by which they are compared at equal compute.
Settings that reached the cap before validation had stopped rising: {1}."""
FRONTS = "All settings of the first search on validation; lines: fronts; points: these settings on the test."
TARGETS = """The fewest distinct images of any setting of both searches that reach the target on validation: enough,
though fewer might be too. `>`: no setting reached it, and this is the most images that were tried. `test`: that
setting's accuracy on unseen pairs, which chose nothing; if it is below the target, all this holds for validation
alone."""
RATIOS = """How many images the first model needs for each that the other needs. `<`: the other didn't reach the target,
so the true ratio is smaller; `>`: the first didn't. Intervals draw seeds and animal pairs of validation anew."""
STATES = """`complete`: all seeds were trained; `missed`: the same, but below the target; `pruned`: it diverged. Shares
are from 0 to 1; `front`: whether the setting is on its model's front."""


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
    """The runs by which the setting is judged: those of the best budget, or of the one that hasn't ended."""
    validations: Sequence[float]
    """Accuracy on validation of each chosen run that has ended."""
    accuracy: float | None
    """Accuracy on validation over the chosen runs; None until all of them have ended, and if one diverged."""
    diverged: bool = False
    capped: bool = False
    """Whether validation was still rising at the largest budget."""


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

    @property
    def images_seen(self) -> int:
        """Images of all steps, including those of the training that the model starts from."""
        return self.runs.chosen[0].cell.images_seen


@dataclass(frozen=True)
class Config(SearchStudy):
    """Sample efficiency: how little data is enough"""

    searched: ClassVar[frozenset[str]] = frozenset(FRACTIONS)

    pairs: Annotated[tuple[float, ...], WHAT, FIRST, SHARE, Several(1)] = (0.0, 1.0)
    """Smallest and largest fraction of the animal pairs. One value fixes it."""
    hard_negatives: Annotated[tuple[float, ...], WHAT, FIRST, SHARE, Several(1)] = (0.0, 1.0)
    """Smallest and largest fraction of these pairs that have hard negatives. One value fixes it."""
    singles_shares: Annotated[tuple[float, ...], WHAT, SHARE, Several(1)] = (0.2, 0.8)
    """Smallest and largest share of a batch that shows single animals; replaces `singles_share`."""
    views: int = 8
    """Views of each training scene of two animals, and the most views of a single animal; the search goes down to 1."""
    test_pairs: Annotated[float, DATA, SHARE] = 0.1
    """Share of all pairs that no setting trains on: the test."""
    validation: Annotated[float, DATA, SHARE] = 0.1
    """Share of all pairs kept for validation, by which settings are judged."""
    seeds: Annotated[int, WHAT, FIRST, SEEDS] = 3
    """Seeds of each setting. Their mean counts. A seed decides all that is drawn."""
    trials_at_once: Annotated[int, tyro.conf.arg(name="at-once")] = 1
    target: Annotated[float, WHAT, FIRST] = 0.95
    """Accuracy that the second search has to reach."""
    budgets: Annotated[tuple[int, ...], TRAINING, FIRST] = ()
    """Numbers of steps, rising from `steps`. A setting gets the next one until validation stops rising. Empty: `steps`
    alone."""
    patience: Annotated[int, TRAINING, RUNS] = 1
    """Number of budgets in a row without a rise of validation (the mean over seeds) after which a setting gets no
    larger one."""
    rise: Annotated[float, TRAINING, SHARE] = 0.01
    """Smallest rise that counts, as a share: 0.01 is a point."""

    @classmethod
    def growing(cls) -> frozenset[str]:
        """The options that may get more values when a folder is continued; not seeds, which all judge a setting."""
        return super().growing() - {"seeds"}

    @property
    def space(self) -> "Space":
        """The space that is searched. `setting_of` rounds pairs and hard negatives to whole pairs."""
        from optuna.distributions import FloatDistribution, IntDistribution

        return {
            "pairs": FloatDistribution(min(self.pairs), max(self.pairs), step=0.05),
            "hard_negatives": FloatDistribution(min(self.hard_negatives), max(self.hard_negatives), step=0.25),
            "singles_views": IntDistribution(1, self.views, log=True),
            "singles_share": FloatDistribution(min(self.singles_shares), max(self.singles_shares), step=SHARE_STEP),
        }

    @property
    def everything(self) -> Setting:
        """The setting with the most data."""
        return Setting(max(self.pairs), max(self.hard_negatives), self.views, statistics.mean(self.singles_shares))

    @property
    def least(self) -> Setting:
        """The setting with the least data."""
        return Setting(min(self.pairs), min(self.hard_negatives), 1, statistics.mean(self.singles_shares))

    @property
    def equal_steps(self) -> int:
        """The largest budget that every setting gets, whatever its validation; 0 without budgets."""
        return self.budgets[min(self.patience, len(self.budgets) - 1)] if self.budgets else 0

    def recipe_of(self, setting: Setting, seed: int) -> SplitRecipe:
        """Return the recipe of a setting's split."""
        plain = self.split_of(seed, pairs=setting.pairs, hard_negatives=setting.hard_negatives)
        return replace(plain, singles_views=setting.singles_views)

    def setting_of(self, params: Mapping[str, Any]) -> Setting:
        """Return the setting of a trial, its fractions rounded to whole pairs, so that equal data make one setting."""
        requested = Setting(**{name: params[name] for name in Setting._fields})
        counts = counts_of(self.recipe_of(requested, 0))
        swapped = counts.swapped / counts.train if counts.train else 0.0
        return requested._replace(pairs=counts.train / counts.trainable, hard_negatives=swapped)

    def images_of(self, setting: Setting) -> int:
        """Return the number of distinct training images of a setting, which is the same for all seeds."""
        return distinct_images(self.recipe_of(setting, 0))

    def training_of(self, model: str, share: float | None, steps: int = 0) -> Recipe:
        """Return the training recipe of a model: the study's, or the tuned one, whose warm-up keeps its share of the
        steps.

        Runs with a larger budget, `steps`, begin in the same way: warm-up and single-object phase keep their steps.
        """
        recipe = replace(training_recipe(self, model), singles_share=share)
        if model in tuned_recipes(self):
            warmup = round(recipe.warmup * recipe.steps / tuned_recipes(self)[model].conditions["steps"])
            recipe = replace(recipe, warmup=warmup)
        if not steps:
            return recipe
        return replace(recipe, steps=steps, single_object_phase=recipe.single_object_phase * recipe.steps / steps)

    def cell_of(self, model: str, setting: Setting, seed: int, steps: int = 0) -> Cell:
        """Return the training run of a model in a setting, with the study's own steps or those of a budget, `steps`."""
        recipe, share = self.recipe_of(setting, seed), setting.singles_share
        data = SplitData(recipe, store_identity(self.store, recipe.world, self.resolution))
        cell, trained = plain_cell(self, model, data, recipe.seed), self.training_of(model, share, steps)
        if cell.base is None:
            return replace(cell, recipe=trained)
        before = trained if model in tuned_recipes(self) else self.training_of(cell.base.model, share, steps)
        return replace(cell, recipe=trained, base=replace(cell.base, recipe=before))

    @cached_property
    def made(self) -> dict[Any, Cell]:
        """The cells made so far, which a plan asks for repeatedly."""
        return {}

    def arm(self, model: str, setting: Setting, seed: int, steps: int = 0) -> Arm:
        """Return a run of a setting."""
        key = (model, setting, seed, steps)
        if key not in self.made:
            self.made[key] = self.cell_of(*key)
        return Arm(self.made[key], {"steps": self.made[key].recipe.steps, **setting._asdict()})

    def judge_setting(self, known: KnownResults, model: str, setting: Setting) -> SettingRuns:
        """Judge a setting by the budget that is best on validation, of equally good ones the smallest.

        Budgets rise until the mean over seeds stops rising; the validation of a single seed is too noisy.
        """

        def arms_of(steps: int) -> list[Arm]:
            return [self.arm(model, setting, seed, steps) for seed in range(self.seeds)]

        course = raise_until_flat(known, self.budgets or (0,), arms_of, self.patience, self.rise)
        diverged = any(map(known.has_diverged, course.arms))
        best = len(course.means) if course.waiting or diverged else course.means.index(max(course.means))
        chosen = course.arms[best * self.seeds :][: self.seeds] or course.arms[-self.seeds :]
        validations = [score for score in map(known.score, chosen) if score is not None]
        accuracy = None if course.waiting or diverged else max(course.means)
        capped = bool(self.budgets) and not course.waiting and not course.stopped
        return SettingRuns(course.arms, chosen, validations, accuracy, diverged, capped)

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
        """Return one of a model's two searches. Its first trials are the same for all models: the setting of the space
        that is nearest to all data, which says whether the target can be reached, then random settings."""
        from menagerie.studies.frame.search import Search, draw_by_constraint, draw_by_tpe

        low, values = min(self.singles_shares), self.everything._asdict()
        values |= {"singles_share": low + round((self.everything.singles_share - low) / SHARE_STEP) * SHARE_STEP}

        def sampler(number: int) -> "BaseSampler":
            seed = seed_of(self.sampler_seed, number)
            if question == "front":
                return draw_by_tpe(seed)
            return draw_by_constraint(seed, lambda trial: self.target - trial.user_attrs.get("validation", 0.0))

        return Search(
            *(f"{self.study or 'sample_efficiency'} {question} {model}", self.space, self.trials, self.trials_at_once),
            directions=DIRECTIONS[question],
            sampler=sampler,
            first=[values],
            settings={"question": question} | self.decisive(model),
        )

    def searches(self) -> "list[Search]":
        return [self.search(question, model) for question in DIRECTIONS for model in self.models]

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan both searches of every model."""
        for question in DIRECTIONS:
            for model in self.models:
                search = self.search(question, model)
                for _, tried in search.follow(known, self.storage, partial(self.trial_result, known, model, question)):
                    yield from tried.arms

    def points(self, records: Records) -> list[Tried]:
        """Return all trials, by question and model."""
        return [
            self.tried(records, question, model, trial)
            for question in DIRECTIONS
            for model in self.models
            for trial in self.search(question, model).found(records, self.storage)
        ]

    def tried(self, records: Records, question: str, model: str, trial: "FrozenTrial") -> Tried:
        """Return a trial with its results."""
        setting = self.setting_of(trial.params)
        accuracy = trial.user_attrs["validation"] if trial.values else None
        state = "complete" if trial.values else "pruned" if trial.state.is_finished() else "running"
        if accuracy is not None and question == "target" and accuracy < self.target:
            state = "missed"
        runs = self.judge_setting(records, model, setting)
        return Tried(question, model, trial.number, state, setting, self.images_of(setting), accuracy, runs)

    def equal_compute(self, records: Records, points: Sequence[Tried]) -> list[Tried]:
        """Return the trials that were trained here as they would be with only the budget that all settings get."""
        found = []
        for point in points:
            arms = [arm for arm in point.runs.arms if arm.cell.recipe.steps == self.equal_steps]
            if point.here and arms:
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

    def fronts(self, points: Sequence[Tried]) -> dict[str, list[Tried]]:
        """Return each model's Pareto front on validation, of the settings of the first search trained in this
        folder."""
        tried = {m: [p for p in points if (p.model, p.question) == (m, "front") and p.here] for m in self.models}
        return {
            model: [its[k] for k in pareto.pareto_front([p.images for p in its], [p.accuracy or 0.0 for p in its])]
            for model, its in tried.items()
        }

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
            equal = self.equal_compute(records, points)
            compared[f"at equal compute, {self.equal_steps} steps"] = equal
        for when, some in compared.items():
            need = {model: self.to_target(some, model)[0] for model in self.models}
            curves = {
                model: self.curve(records, its, ("validation",)) if its else None
                for model in self.models
                for its in [[p for p in some if p.model == model and p.here]]
            }
            first, *others = self.models if None not in need.values() else self.models[:1]
            for other in others:
                both = curves[first], curves[other]
                interval = pareto.image_ratio(*both, self.target).interval if all(both) else DASH
                words = pareto.compare_bounds(first, need[first], other, need[other])
                yield [other, pareto.bound_ratio(need[first], need[other]), words, when, interval]

    def page(self, records: Records) -> Iterator[Part]:
        """Yield the ratios in words and the fronts; tables of both searches, the course of both, and all trials."""
        from menagerie.studies.frame.search_figures import search_figures

        points = self.points(records)
        ratios = list(self.ratios(records, points))
        yield from (Sentence(f"{words}, {compared}.") for _, _, words, compared, _ in ratios)
        chosen = {arm.id for point in points if point.here for arm in point.runs.chosen}
        tried = records.where(lambda arm: arm.id in chosen, task="swap")
        front = tried.where(lambda arm: arm.labels["question"] == "front")
        tests = front.where(subset=self.recipe_of(self.everything, 0).judged)
        validation = front.where(subset="validation")
        yield Front(*("fronts", validation, "images", ("model", "trial")), judged=tests, level=self.target, says=FRONTS)
        yield Paragraph(self.what_was_done(points))
        yield Rows("targets", TARGET_COLUMNS, [self.target_row(records, points, m) for m in self.models], says=TARGETS)
        header = ["other model", f"images of {self.models[0]} / images of the other", "in words", "compared"]
        yield Rows("ratios", [*header, "95 % interval of the ratio"], ratios, says=RATIOS)
        if self.budgets:
            says = "Validation by steps, a line for each setting: one that still rises at its end reached the cap."
            every = records.where(subset="validation", task="swap")
            yield Lines("convergence", every, "steps", colour="trial", panels=("question", "model"), says=says)
        yield Heading("All trials", STATES)
        yield trial_table(self.trial_rows(records, points))
        yield Heading("Course of the searches")
        for question, directions in DIRECTIONS.items():
            searches = {f"{m}, {question}": self.search(question, m).found(records, self.storage) for m in self.models}
            value = "accuracy on validation" if question == "front" else "number of images"
            yield from search_figures(searches, value, directions, question)

    def target_row(self, records: Records, points: Sequence[Tried], model: str) -> list[str]:
        """Return what a model needs to reach the target, as texts."""
        bound, best, missed = self.to_target(points, model)
        shown = [best.number, best.accuracy, self.on_test(records, best)] if best else [None] * 3
        return [model, str(bound or DASH), *map(trial_text, [*shown, missed])]

    def what_was_done(self, points: Sequence[Tried]) -> str:
        """Explain what is counted, how long each setting is trained, and which accuracy it is judged by."""
        said = WHAT_WAS_DONE.format(self)
        if not self.budgets:
            return f"{said}Every model in every setting takes {self.recipe.steps} steps."
        capped = {(p.model, tuple(arm.id for arm in p.runs.chosen)): p.runs.capped for p in points if p.here}
        counts = {m: [its for (model, _), its in capped.items() if model == m] for m in self.models}
        listed = ", ".join(f"{sum(its)} of {len(its)} of {model}" for model, its in counts.items() if its)
        return said + BUDGETS.format(self, listed or "none yet")

    def trial_rows(self, records: Records, points: Sequence[Tried]) -> list[dict[str, Any]]:
        """Return all trials as rows of a CSV file."""
        fronts = {(p.model, p.number) for its in self.fronts(points).values() for p in its}
        return [
            {"question": p.question, "model": p.model, "trial": p.number, "state": p.state}
            | {**p.setting._asdict(), "images": p.images, "images_seen": p.images_seen}
            | {"validation": p.accuracy}
            | {f"validation_{k}": dict(enumerate(p.runs.validations)).get(k) for k in range(self.seeds)}
            | {"test": self.on_test(records, p) if p.here else None}
            | {"front": "✓" * (p.question == "front" and (p.model, p.number) in fronts)}
            for p in points
        ]

    def export(self, records: Records) -> None:
        """Write all trials; accuracies and fractions are from 0 to 1."""
        write_trials(records, self.trial_rows(records, self.points(records)))

    def notes(self) -> dict[str, str]:
        """Return each model's recipe, in which the share of single-object scenes is left to the setting."""
        return {f"recipe of {m}": recipe_line(self, m, self.training_of(m, None)) for m in self.models}

    def check_given(self, preset: "Config") -> None:
        """Raise if the user sets an option that the search decides."""
        if self.recipe.singles_share != preset.recipe.singles_share:
            raise UserError("--singles-share is searched here, between the least and the most of --singles-shares")
        super().check_given(preset)

    def check(self) -> None:
        """Raise if there is nothing to search, or if target, split, recipe or budgets don't suit a search."""
        super().check()
        if not 0.5 < self.target <= 1:
            raise UserError(f"--target is above chance, 0.5, and at most 1; got {self.target:g}")
        if self.split:
            raise UserError("--split fixes the amount of data, which is searched here; give --recipe instead")
        if not hasattr(self.recipe_given, "singles_views"):
            raise UserError(f"--recipe: splits of kind {self.kind} have no singles_views, which is searched here")
        self.check_budgets()
        for name in ("test_pairs", "validation"):
            if not getattr(self, name):
                raise UserError(f"--{name.replace('_', '-')} must leave pairs, got 0")
        if self.images_of(self.least) == self.images_of(self.everything):
            raise UserError(
                "all settings have as many images: there is nothing to search; give --pairs, --hard-negatives or "
                "--views more than one value"
            )

    def check_budgets(self) -> None:
        """Raise for budgets that don't rise from --steps, or whose longer runs can't continue shorter ones."""
        if not self.budgets:
            given = [name for name in ("patience", "rise") if getattr(self, name) != getattr(Config, name)]
            if given:
                raise UserError(
                    f"--{given[0]} changes nothing without --budgets; leave it out, or give several budgets"
                )
            return
        if list(self.budgets) != sorted(set(self.budgets)) or self.budgets[0] != self.recipe.steps:
            raise UserError(f"--budgets rise from --steps, {self.recipe.steps}; got {self.budgets}")
        if self.recipe.decay is None:
            raise UserError(
                "--budgets needs --decay, such as 0.2: with a cosine schedule no run can continue a shorter one"
            )


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
