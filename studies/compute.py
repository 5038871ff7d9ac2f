"""Does CLIP bind with enough training? Accuracy against compute, at the hardest cells of both grids.

    python studies/compute.py --preset smoke              # tiny world, a minute on 2 cores
    python studies/compute.py                             # laptop: 8 animals, 32 px, to 6000 steps
    python studies/compute.py --budgets 500 1000 2000 4000 6000 16000     # continues from there
    python studies/compute.py --preset long               # CLIP, one seed: pug, 64 px, 16 000 steps
    python studies/compute.py --preset wide --device cuda # towers, batches, pooling; 32 000 steps

First the learning rate (and towers, and batch) is chosen by successive halving: all are trained with one seed, and
after each budget of steps the half that is better on validation continues. The last one is trained with all seeds and
rising budgets, until validation stops rising (at chance it continues, because it may not have begun to rise).

The rate is constant and then decays (warmup-stable-decay; Hägele et al. 2024, Hu et al. 2024): a longer run continues
from where a shorter one began to decay. Each point is a finished model.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import FIRST, MODEL, TRAINING, WHAT
from menagerie.envs.core.validation import RATE, RUNS, SHARE, STEPS, Range, Several
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.ablations import HardestCells
from menagerie.studies.frame.arm import Arm, Course, KnownResults, raise_until_flat, successive_halving
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.command import main
from menagerie.studies.frame.costs import UNKNOWN, cost_in_labels, run_cost
from menagerie.studies.frame.grids import Grid
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.parts import Curves, Lines, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.command_line import only_models, scorer_options

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate


RATES = (2e-4, 6e-4, 1.8e-3, 5.4e-3)  # CLIP's best trial of `tune` stood at 7e-4


class Setup(NamedTuple):
    """A model's towers, batch and learning rate, the same for all its budgets."""

    architecture: str
    batch: int
    learning_rate: float


Key = tuple[str, Any]
"""A split and a model."""
Finished = Mapping[Key, Mapping[int, Sequence[Arm]]]
"""The runs of each model on each split, by budget, for the budgets that all seeds have finished."""


@dataclass(frozen=True)
class Compute(HardestCells):
    """Accuracy against compute"""

    models: tuple[str, ...] = ("clip", "negclip", "oc-clip")
    """Scorers by name, or FILE.py:Class of your own; the question is about the first."""
    splits: tuple[str, ...] = ("binding", "spatial")
    cell: str = "breadth"
    budgets: Annotated[Axis[int], STEPS] = (500, 1000, 2000, 4000, 6000)
    """Numbers of optimiser steps, rising; each ends with a finished model."""
    patience: Annotated[int, WHAT, FIRST, GROWS, RUNS] = 2
    """Budgets in a row without a rise of validation (the mean over seeds) after which a model above chance stops."""
    rise: Annotated[float, WHAT, Range(0.0, 1.0)] = 0.005
    """Smallest rise that counts, as a share: 0.005 is half a point."""
    bar: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.95
    """Accuracy on the unseen test from which on a model counts as binding."""
    seeds: int = 3
    """Number of seeds, each of which decides split and training; towers and rates are chosen with the first."""
    architectures: Annotated[tuple[str, ...], MODEL, FIRST, Several(least=1)] = ("mini",)
    """Towers to choose from: nano, micro, mini, broad, small, or any open_clip architecture."""
    learning_rates: Annotated[tuple[float, ...], TRAINING, FIRST, GROWS, RATE, Several(least=1)] = RATES
    """Peak learning rates to choose from."""
    batches: Annotated[tuple[int, ...], TRAINING, FIRST, Range(2, 10**6), Several(least=1)] = (64,)
    """Numbers of images per step to choose from."""
    warmup: Annotated[int, TRAINING, Range(0, STEPS.high)] = 100
    """Steps of linear warm-up."""
    decay: Annotated[float, TRAINING, Range(0.0, 1.0)] = 0.2
    """Share of the steps, at the end, in which the learning rate falls to zero."""
    weight_decay: Annotated[float, TRAINING] = 0.05
    """Decoupled weight decay."""
    singles_share: Annotated[float, TRAINING, SHARE] = 0.5
    """Share of a batch that shows single animals."""
    singles_steps: Annotated[int, TRAINING, Range(0, STEPS.high)] = 250
    """Number of first steps that show single animals only, the same in all budgets."""

    @property
    def subjects(self) -> Sequence[Any]:
        return self.models

    @property
    def setups(self) -> list[Setup]:
        return [Setup(*values) for values in product(self.architectures, self.batches, self.learning_rates)]

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        for split, model in product(self.names, self.subjects):
            yield from self.planned(split, model, self.course(known, split, model))

    def planned(self, split: str, model: Any, course: Course) -> Sequence[Arm]:
        return course.arms

    def course(self, known: KnownResults, split: str, model: Any) -> Course:
        """Return the runs of a model on a split so far, and the setup chosen by successive halving with the first seed,
        which then is trained with rising budgets and all seeds."""

        def first_seed(setup: Setup, steps: int) -> Arm:
            return self.run(split, model, setup, self.first_seed, steps)

        choosing = successive_halving(known, self.setups, self.budgets, first_seed)
        if choosing.waiting:
            return choosing

        def all_seeds(steps: int) -> list[Arm]:
            return [self.run(split, model, choosing.chosen, seed, steps) for seed in self.seed_numbers]

        rising = raise_until_flat(known, self.budgets, all_seeds, self.patience, self.rise)
        arms = {arm.id: arm for arm in (*choosing.arms, *rising.arms)}.values()
        return rising._replace(chosen=choosing.chosen, arms=sorted(arms, key=self.rank))

    @cache  # noqa: B019, a command has one study
    def run(self, split: str, model: Any, setup: Setup, seed: int, steps: int) -> Arm:
        grid = hardest_grid(self, split)
        varied = replace(grid, architecture=setup.architecture, recipe=self.recipe_of(setup, steps))
        labels = {"split": split, **setup._asdict(), "steps": steps}
        return varied.at(model, seed, **grid.places[0])._replace(labels=labels)

    def alike(self, arm: Arm) -> Hashable:
        """Return a key that is the same for runs whose steps cost the same."""
        return (arm.cell.model, *(value for name, value in arm.labels.items() if name not in ("steps", "alpha")))

    def setup_of(self, arm: Arm) -> Setup:
        return Setup(*(arm.labels[name] for name in Setup._fields))

    def rank(self, arm: Arm) -> tuple[int, int, int]:
        return self.setups.index(self.setup_of(arm)), arm.cell.seed, arm.labels["steps"]

    def recipe_of(self, setup: Setup, steps: int) -> Recipe:
        alike = {name: getattr(self, name) for name in ("warmup", "decay", "weight_decay", "singles_share")}
        rest = {"steps": steps, "batch": setup.batch, "learning_rate": setup.learning_rate}
        return Recipe(**alike, **rest, single_object_phase=self.singles_steps / steps)

    def check(self) -> None:
        """Raise for values out of range, budgets out of order, and splits without pairs for validation or tests."""
        if 0 in self.learning_rates:
            raise UserError(f"--learning-rates needs values above 0, got {self.learning_rates}")
        first = self.budgets[0]
        if list(self.budgets) != sorted(self.budgets):
            raise UserError(f"--budgets are steps in rising order, got {self.budgets}")
        if not 0 < self.decay < 1:
            raise UserError(f"--decay is a share of the steps between 0 and 1, got {self.decay:g}")
        if max(self.singles_steps, self.warmup) >= first - round(self.decay * first):
            raise UserError(
                f"--singles-steps {self.singles_steps} and --warmup {self.warmup} must end before the learning rate "
                f"of the smallest of --budgets, {first}, decays"
            )
        for split, name in product(self.names, ("validation", "test_pairs")):
            if not getattr(split_of(self, split, 0), name):
                raise UserError(f"{name} of the recipe must be above 0, as runs are judged by these pairs")

    def measures(self, arm: Arm, records: Records) -> Mapping[str, Any]:
        cells = [other.cell for other, _ in records.results if self.alike(other) == self.alike(arm)]
        return run_cost(arm.cell.trained_as, cells, records.out).columns | arm.cell.data.axes

    def courses(self, records: Records) -> dict[Key, Course]:
        return {key: self.course(records, *key) for key in product(self.names, self.subjects)}

    def finished_budgets(self, records: Records, courses: Mapping[Key, Course]) -> Finished:
        """Return the runs with the setup that was chosen, for the budgets that all seeds have finished."""
        done, found = {arm.id: arm for arm, _ in records.results}, {}
        for key, course in courses.items():
            budgets: dict[int, list[Arm]] = {}
            for arm in self.planned(*key, course):
                if arm.id in done and self.setup_of(arm) == course.chosen:
                    budgets.setdefault(arm.labels["steps"], []).append(done[arm.id])
            found[key] = {steps: arms for steps, arms in sorted(budgets.items()) if len(arms) == self.seeds}
        return found

    def best_budget(self, records: Records, budgets: Mapping[int, Sequence[Arm]]) -> int:
        """Return the budget that is best on validation; of equal ones the smallest."""
        return max(budgets.keys() & {*self.budgets}, key=lambda steps: (records.mean(budgets[steps]) or 0.0, -steps))

    def unseen(self) -> dict[str, Any]:
        """Return the tests of what is unseen, by which models are judged, as `Records.where` takes them."""
        tests = dict.fromkeys(test for split in self.names for test in split_of(self, split, 0).judged)
        return {"subset": tuple(tests), "task": "swap"}

    def page(self, records: Records) -> Iterator[Part]:
        """Yield each model at its best budget, accuracy by cost, and what was chosen from."""
        courses = self.courses(records)
        whole = {key: its for key, its in self.finished_budgets(records, courses).items() if its}
        best = {key: budgets[self.best_budget(records, budgets)] for key, budgets in whole.items()}
        every = runs_of((arm for budgets in whole.values() for arms in budgets.values() for arm in arms), records)
        rows = list(self.best_rows(records, courses, best))
        yield Sentence(f"On what is unseen: {'; '.join(f'{row[1]} ({row[0]} split): {row[6]}' for row in rows)}.")
        says = f"The budget that is best on validation; points above {title_of(self.models[0])}. Bar: {self.bar:.0%}."
        yield Rows("best", BEST, rows, says=f"{says} {OUTCOMES}")
        if whole:
            unseen = every_cost(every).where(**self.unseen())
            look: dict[str, Any] = {"at": FLOPS, "log": True, "level": self.bar, "panels": ("split",)}
            yield Lines("operations", unseen, "steps", says=BY_COST, **look)
            costs = {(*key, n): cost_in_labels(its[n][0]).texts for key, its in whole.items() for n in its}
            beside = {name: {key: its[k] for key, its in costs.items()} for k, name in enumerate(COSTS)}
            yield Table("compute", unseen, ("split", "model", "steps"), ("task",), intervals=True, beside=beside)
        first = records.where(subset="validation", task="swap", seed=min(records.labels("seed")))
        yield Table("choices", first, ("split", "model", *Setup._fields), ("steps",), says=CHOSEN_FROM)
        longest = runs_of((arm for budgets in whole.values() for arm in budgets[max(budgets)]), records)
        yield Curves("training", longest, ("split",), says=RISING)

    def best_rows(
        self, records: Records, courses: Mapping[Key, Course], best: Mapping[Key, Sequence[Arm]]
    ) -> Iterator[tuple[str, ...]]:
        """Yield a row for each model: its budget that is best on validation, accuracy there, and what that says."""
        unseen = runs_of((arm for arms in best.values() for arm in arms), records).where(**self.unseen())
        levels = unseen.estimates(("split", "model")) if best else {}
        gaps = unseen.estimates(("split", "model"), {"model": self.models[0]}) if best else {}
        for (split, model), course in courses.items():
            level, arms, outlook = levels.get((split, model)), best.get((split, model), ()), course.outlook(self.rise)
            said = (str(arms[0].labels["steps"]), f"{100 * (records.mean(arms) or 0):.1f}") if arms else (UNKNOWN,) * 2
            above, outcome = str(gaps.get((split, model), UNKNOWN)), budget_outcome(level, outlook, self.bar)
            yield split, title_of(model), *said, str(level or UNKNOWN), above, outcome, outlook


def runs_of(arms: Iterable[Arm], records: Records) -> Records:
    ids = {arm.id for arm in arms}
    return records.where(lambda arm: arm.id in ids)


def every_cost(records: Records) -> Records:
    """Return the records with each run's operations as a label, along which figures place it."""
    return records.with_labels(lambda arm, _: {FLOPS: cost_in_labels(arm).flops / 1e12})


def budget_outcome(level: "Estimate | None", outlook: str, bar: float) -> str:
    """Return what a model's accuracy on what is unseen, and its course (`Course.outlook`), say of whether it binds."""
    if level is None:
        return UNKNOWN
    if level.conclusive and level.low >= bar:
        return "binds"
    if level.conclusive and level.high < bar:
        return {"stopped": "does not bind", "rising": "not yet", "at chance": "at chance"}.get(outlook, "open")
    return "undecided"


@cache
def hardest_grid(study: Compute, split: str) -> Grid:
    """Return the grid of a split, reduced to its hardest cell or to the user's recipe."""
    return replace(study.hardest(split), tuned="", scorers=only_models(study.scorers, study.models))


def split_of(study: Compute, split: str, seed: int) -> SplitRecipe:
    grid = hardest_grid(study, split)
    return grid.split_of(seed, **grid.places[0])


FLOPS = "operations of training (TFLOP)"
COSTS = ("images", "TFLOP", "CPU-seconds")
BEST = ("split", "model", "steps", "validation (%)", "unseen (%)", "above the first", "outcome", "budgets")
OUTCOMES = """Binds: the interval lies at or above the bar. Below it: does not bind, if validation stopped rising; not
yet, if it still rose with the largest budget; at chance, if it left chance with none; else open. Undecided: the bar
lies within the interval, or there is none."""
BY_COST = """Accuracy on swaps of what is unseen, by operations. Larger: the budget that is best on validation. Dashed:
the bar. Dotted: chance."""
RISING = """The largest budget of each model. Budgets rise until `--patience` in a row raise validation by no more than
`--rise`, in the mean over seeds; a model that hasn't left chance goes on."""
CHOSEN_FROM = """Validation (%) of each choice with the first seed, by steps. After each budget the better half goes on,
until one is left, which is trained with all seeds."""

PRESETS: dict[str, Compute] = {
    "smoke": Compute(
        **{"cell": "smoke", "models": ("clip", "oc-clip"), "scorers": scorer_options("smoke"), "seeds": 2},
        **{"budgets": (12, 24, 48), "architectures": ("nano",), "batches": (32,), "learning_rates": (1e-3, 4e-3)},
        **{"warmup": 4, "singles_steps": 6, "bar": 0.75, "patience": 1},
    ),
    "laptop": Compute(),
    # Towers, rate and shares of its best trial of `tune` on the binding cell. All budgets are trained, because
    # validation with one seed is too uncertain to stop by.
    "long": Compute(
        **{"cell": "laptop", "models": ("clip",), "seeds": 1, "patience": 4, "learning_rates": (7.5e-4,)},
        **{"budgets": (2000, 4000, 8000, 16_000), "warmup": 390, "singles_share": 0.37, "singles_steps": 500},
    ),
    # For a GPU or a cluster: 20 towers, batches and rates a model, of which one is left after five budgets.
    "wide": Compute(
        **{"models": ("clip", "clip-gap", "negclip", "oc-clip"), "architectures": ("mini", "small"), "seeds": 5},
        **{"batches": (64, 256), "learning_rates": (7e-5, 2e-4, 6e-4, 1.8e-3, 5.4e-3)},
        budgets=(500, 1000, 2000, 4000, 8000, 16_000, 32_000),
    ),
}


if __name__ == "__main__":
    main(PRESETS)
