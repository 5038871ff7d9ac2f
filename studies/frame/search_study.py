"""Studies that search with Optuna, and the search over how much data of which kind is trained on. Free of Optuna."""

import statistics
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.identity import json_value
from menagerie.envs.core.options import DATA, FIRST, PLACE, TRAINING, WHAT
from menagerie.envs.core.validation import FIRST_SEED, RUNS, SEEDS, SHARE, Several
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.cells import cell_of, training_recipe, tuned_recipes
from menagerie.studies.frame.options import EXECUTION, GROWS
from menagerie.studies.frame.parts import Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy, store_identity
from menagerie.studies.runs.command_line import only_models
from menagerie.studies.runs.data import FRACTIONS, SplitData, counts_of, distinct_images
from menagerie.studies.runs.folder import without_passwords

if TYPE_CHECKING:
    from menagerie.studies.frame.search import Search, Space


@dataclass(frozen=True)
class SearchStudy(SplitStudy):
    """A study on splits that makes a separate search for each model."""

    alone: ClassVar[bool] = True

    trials: Annotated[int, WHAT, FIRST, RUNS, GROWS] = 12
    """Trials of each search; more may follow later."""
    trials_at_once: Annotated[int, tyro.conf.arg(name="at-once"), WHAT, RUNS] = 2
    """Trials of a model that are drawn together, from the results of all earlier ones, and can run at once."""
    sampler_seed: Annotated[int, WHAT, FIRST_SEED] = 0
    """Seed of the searches' draws."""
    storage: Annotated[str, PLACE, GROWS] = ""
    """Where trials are stored: a journal file, or the URL of a database (sqlite:///trials.db, postgresql+psycopg://...)
    that many machines may share; empty takes journal.log in the folder of the results."""
    study: Annotated[str, PLACE, GROWS] = ""
    """Name of the study in its storage; empty takes the name of this command."""
    abandon: Annotated[bool, PLACE, GROWS] = False
    """Take over all running trials of other folders in this study, even if their commands still run."""

    @abstractmethod
    def searches(self) -> "list[Search]":
        """All searches of the study."""

    def check(self) -> None:
        from menagerie.studies.frame.search import check_storage

        super().check()
        check_storage(self.storage)

    def prepare(self, out: Path) -> "SearchStudy":
        for search in self.searches() if self.abandon and not self.dry_run else ():
            if number := search.take_over(Records((), out), self.storage):
                print(f"{search.name}: {number} trials of other commands were taken over")
        return self

    def decisive(self, model: str) -> dict[str, Any]:
        """Return the settings that decide the trials of a model; they must be the same for all who share its search."""
        alone = replace(self, models=(model,), scorers=only_models(self.scorers, (model,)))
        ignored = EXECUTION | self.growing() | ({"first_seed"} if not self.first_seed else set())  # new in old storages
        return {name: value for name, value in json_value(asdict(alone)).items() if name not in ignored}

    def as_recorded(self) -> "SearchStudy":
        return replace(self, storage=without_passwords(self.storage))


def write_trials(records: Records, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        write_csv(records.out / "trials.csv", list(rows[0]), (list(row.values()) for row in rows))


def trial_table(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the table of all trials on the page."""
    return Rows("all_trials", list(rows[0]) if rows else [], [list(map(trial_text, row.values())) for row in rows])


def trial_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {trial_text(each)}" for name, each in value.items())
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


SHARE_STEP = 0.1


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


@dataclass(frozen=True)
class AmountSearch(SearchStudy):
    """A search over amounts of data"""

    searched: ClassVar[frozenset[str]] = frozenset(FRACTIONS)
    decides: ClassVar[tuple[str, ...]] = ("split", "singles_share")

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
    """Numbers of steps, rising from `steps`. A setting gets the next until validation stops rising. Empty: `steps`."""
    patience: Annotated[int, TRAINING, RUNS] = 1
    """Number of budgets in a row without a rise of validation after which a setting gets no larger one."""
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
        """The setting of the space with the most data, and about the mean share of single objects."""
        low, middle = min(self.singles_shares), statistics.mean(self.singles_shares)
        share = low + round((middle - low) / SHARE_STEP) * SHARE_STEP
        return Setting(max(self.pairs), max(self.hard_negatives), self.views, share)

    @property
    def least(self) -> Setting:
        return self.everything._replace(pairs=min(self.pairs), hard_negatives=min(self.hard_negatives), singles_views=1)

    @property
    def equal_steps(self) -> int:
        """The largest budget that every setting gets, whatever its validation; 0 without budgets."""
        return self.budgets[min(self.patience, len(self.budgets) - 1)] if self.budgets else 0

    def recipe_of(self, setting: Setting, seed: int) -> SplitRecipe:
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
        """Return the training recipe of a model. A tuned warm-up keeps its share of the steps; with a larger budget,
        `steps`, warm-up and single-object phase keep their steps."""
        recipe = replace(training_recipe(self, model), singles_share=share)
        if model in tuned_recipes(self):
            warmup = round(recipe.warmup * recipe.steps / tuned_recipes(self)[model].conditions["steps"])
            recipe = replace(recipe, warmup=warmup)
        if not steps:
            return recipe
        return replace(recipe, steps=steps, single_object_phase=recipe.single_object_phase * recipe.steps / steps)

    @cache  # noqa: B019 - plans ask for the same cells again and again, and a process has one study
    def arm(self, model: str, setting: Setting, seed: int, steps: int = 0) -> Arm:
        """Return the run of a model in a setting, with the study's own steps or those of a budget, `steps`."""
        recipe, share = self.recipe_of(setting, seed), setting.singles_share
        data = SplitData(recipe, store_identity(self.store, recipe.world, self.resolution))
        cell, trained = cell_of(self, model, data, recipe.seed), self.training_of(model, share, steps)
        cell = replace(cell, recipe=trained)
        if cell.base:
            before = trained if model in tuned_recipes(self) else self.training_of(cell.base.model, share, steps)
            cell = replace(cell, base=replace(cell.base, recipe=before))
        return Arm(cell, {"steps": cell.recipe.steps, **setting._asdict()})

    def check(self) -> None:
        """Raise if there is nothing to search, or if target, split, recipe or budgets don't suit a search."""
        super().check()
        if not 0.5 < self.target <= 1:
            raise UserError(f"--target is above chance, 0.5, and at most 1; got {self.target:g}")
        if not hasattr(self.recipe_given, "singles_views"):
            raise UserError(f"--recipe: splits of kind {self.kind} have no singles_views, which is searched here")
        for name in ("test_pairs", "validation"):
            if not getattr(self, name):
                raise UserError(f"--{name.replace('_', '-')} must leave pairs, got 0")
        if self.images_of(self.least) == self.images_of(self.everything):
            raise UserError("all settings have as many images: give --pairs, --hard-negatives or --views more values")
        if not self.budgets:
            return
        if list(self.budgets) != sorted(set(self.budgets)) or self.budgets[0] != self.recipe.steps:
            raise UserError(f"--budgets rise from --steps, {self.recipe.steps}; got {self.budgets}")
        if self.recipe.decay is None:
            raise UserError("--budgets needs --decay, such as 0.2: no run continues one with a cosine schedule")
