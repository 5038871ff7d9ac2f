"""Tunes every model alike: equally many trials over the same space, judged on validation alone.

    python studies/tune.py     # 12 trials a model, an hour or two; with --preset breadth every scorer
    python studies/binding_grid.py --tuned runs/tune-laptop/best.json

Searched are learning rate, weight decay, warm-up, depth and width of the towers within one budget of parameters, the
share of single-object scenes in a batch, the length of the single-object phase, and the options that a model's spec
lists. Every trial trains on the same split for the same number of steps. A model's first trial has the study's own
values, as far as they are in the space. Its best trials are repeated with further seeds; the best mean gives its
recipe.

Trials are stored in a journal file or a database, which optuna-dashboard can open. Further commands, each with its own
folder and the same --storage, share the search. For another space or objective write `class Mine(Tune)` in a file of
yours (docs/extending.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import seed_of
from menagerie.envs.core.options import FIRST, MODEL, WHAT
from menagerie.envs.core.records import write_record
from menagerie.envs.core.validation import RATE, RUNS, SHARE, Range, Several
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.studies.frame.arm import WHY, Arm, KnownResults
from menagerie.studies.frame.cells import SEARCHED, tuning_conditions
from menagerie.studies.frame.command import main
from menagerie.studies.frame.costs import model_size
from menagerie.studies.frame.grids import APART, BREADTH, SMOKE
from menagerie.studies.frame.options import CaptionOptions
from menagerie.studies.frame.parts import Heading, Paragraph, Part, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.search_study import SearchStudy, trial_table, trial_text, write_trials

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from menagerie.studies.frame.search import Search, TrialResult

Params = Mapping[str, Any]
Row = dict[str, Any]
PHASES = (0.0, 0.25, 0.5)  # shares of the steps that are the single-object phase
PLACES = ("architecture", "pretrained", "tokenizer", "resolution")  # further settings of a run that may be searched
OWN = "option "  # prefix of a model's own options, whose names may be those of fields of the recipe
WHAT_WAS_DONE = """Every model had {0.trials} trials over the same space, on the same split and for the same number of
steps, each with one seed and judged by {1}. As the best of many trials is partly luck, each model's best ones were
repeated with {0.seeds} seeds (`repeated`); the best mean is chosen."""


class Searched(NamedTuple):
    """The state of a model's search so far."""

    model: str
    trials: "Sequence[FrozenTrial]"
    finals: Mapping[int, Sequence[Arm]]
    """The runs of each repeated trial, one a seed, by number."""
    means: Mapping[int, float | None]
    """The mean over seeds of each repeated trial; None while it isn't known, or if a seed diverged."""
    elsewhere: int
    """Number of trials that other commands are running."""
    over: bool
    """Whether all runs have ended."""

    @property
    def chosen(self) -> "tuple[FrozenTrial, float] | None":
        """The trial with the best mean, of equal ones the first, and that mean; None without any."""
        known = [(trial, mean) for trial in self.trials if (mean := self.means.get(trial.number)) is not None]
        return max(known, key=lambda both: both[1], default=None)


def own_options(params: Params) -> Row:
    """Return the model's own options among the parameters of a trial."""
    return {name.removeprefix(OWN): value for name, value in params.items() if name.startswith(OWN)}


@dataclass(frozen=True)
class Tune(CaptionOptions, SearchStudy):
    """Equal tuning"""

    decides: ClassVar[tuple[str, ...]] = ("tuned", "pretrained")  # tuning is for training from scratch

    pairs: Annotated[float, WHAT, FIRST, SHARE] = 0.2
    """Fraction of the trainable animal pairs."""
    hard_negatives: Annotated[float, WHAT, FIRST, SHARE] = 0.0
    """Fraction of these pairs that have hard negatives too."""
    seeds: int = 3
    """Seeds of a finalist, the trial's own among them."""
    finalists: Annotated[int, WHAT, RUNS] = 3
    """Best trials of each model that are run with other seeds too; the best mean wins."""
    architectures: Annotated[tuple[str, ...], MODEL, FIRST, Several(1)] = ("micro", "mini", "broad")
    """Towers to choose from: one layer, two layers, one wider layer."""
    learning_rates: Annotated[tuple[float, ...], WHAT, RATE, Several(1)] = (3e-4, 1e-2)
    """Smallest and largest learning rate; one value fixes it."""
    singles_shares: Annotated[tuple[float, ...], WHAT, SHARE, Several(1)] = (0.3, 0.97)
    """Smallest and largest share of a batch that shows single animals; one value fixes it."""
    parameters: Annotated[int, MODEL, Range(1, 10**15)] = 450_000
    """Largest number of parameters of a model in any trial."""

    @property
    def title(self) -> str:
        return f"Equal tuning: {', '.join(self.models)}"

    # A study with another space, or another objective, overrides these two.
    def space(self, model: str) -> "dict[str, BaseDistribution]":
        """Return the space: fields of recipe or split, `architecture`, and the model's options as "option NAME"."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        from menagerie.studies.frame.search import distribution

        rates, shares = self.learning_rates, self.singles_shares
        shared = {
            "learning_rate": FloatDistribution(min(rates), max(rates), log=True),
            "weight_decay": FloatDistribution(1e-2, 1.0, log=True),
            "warmup": IntDistribution(20, max(20, self.recipe.steps // 5)),
            "singles_share": FloatDistribution(min(shares), max(shares)),
            "single_object_phase": CategoricalDistribution(PHASES),
            "architecture": CategoricalDistribution(self.architectures),
        }
        return shared | {f"{OWN}{name}": distribution(values) for name, values in spec_of(model).space.items()}

    def objective(self, known: KnownResults, arms: Sequence[Arm]) -> float | None:
        """Return the objective, of which higher is better: accuracy on validation. None until all arms have ended. The
        first line of an overriding method's docstring is its name on the page."""
        return known.mean(arms)

    @property
    def judge(self) -> str:
        """The name of a user's objective; empty for accuracy on validation."""
        own = type(self).objective
        said = (own.__doc__ or "objective").strip().partition("\n")[0].removesuffix(".")
        return "" if own is Tune.objective else said

    def first_point(self, model: str) -> Row:
        """Return the first trial of a model: the study's own recipe and options, as far as the space holds them."""
        from menagerie.studies.frame.search import can_have

        given = asdict(self.recipe) | {"architecture": self.architecture}
        given |= {f"{OWN}{name}": value for name, value in asdict(self.scorers.config(model)).items()}
        return {n: given[n] for n, values in self.space(model).items() if n in given and can_have(values, given[n])}

    def search(self, model: str) -> "Search":
        """Return a model's search: the study's values, then random points, the same for all models, then TPE."""
        from menagerie.studies.frame.search import Search, draw_by_tpe

        return Search(
            *(f"{self.study or 'tune'} search {model}", self.space(model), self.trials, self.trials_at_once),
            sampler=lambda number: draw_by_tpe(seed_of(self.sampler_seed, number)),
            first=[self.first_point(model)],
            settings=self.decisive(model),
        )

    def searches(self) -> "list[Search]":
        return list(map(self.search, self.models))

    def run(self, model: str, params: Params, seed: int) -> Arm:
        recipe = {item.name: params[item.name] for item in fields(Recipe) if item.name in params}
        places = {name: params[name] for name in PLACES if name in params}
        data = {name: params[name] for name in params.keys() - {*recipe, *places} if not name.startswith(OWN)}
        scorers = self.scorers.replace_options(model, own_options(params))
        varied = replace(self, recipe=replace(self.recipe, **recipe), scorers=scorers, **places)
        if self.split:
            return varied.of_file(model, seed, *self.files, **data)
        return varied.at(model, seed, **{"pairs": self.pairs, "hard_negatives": self.hard_negatives} | data)

    def trial_result(self, known: KnownResults, model: str, trial: "FrozenTrial") -> "TrialResult":
        """Return a trial's objective with one seed; pruned if its scorer is too large or diverged."""
        from menagerie.studies.frame.search import TrialResult

        arm = self.arm_of(model, trial, self.first_seed)
        if (count := model_size(arm.cell)) > self.parameters:
            return TrialResult((), pruned=f"{count} parameters, more than --parameters {self.parameters}")
        if known.has_diverged(arm):
            return TrialResult([arm], pruned="its loss, weights or scores aren't finite")
        value = self.objective(known, [arm])
        return TrialResult([arm], None if value is None else (value,))

    def arm_of(self, model: str, trial: "FrozenTrial", seed: int) -> Arm:
        return self.run(model, trial.params, seed)._replace(labels={"trial": trial.number})

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan each model's search, then its best trials with all seeds."""
        for model in self.models:
            search = self.search(model)
            found = search.follow(known, self.storage, partial(self.trial_result, known, model))
            for _, tried in found:
                yield from tried.arms
            for arms in self.finals_of(search, model, [trial for trial, _ in found]).values():
                yield from arms

    def finals_of(self, search: "Search", model: str, trials: "Sequence[FrozenTrial]") -> dict[int, list[Arm]]:
        """Return the runs with all seeds of the best trials of a search that has ended, the best first, by number."""
        valued = [trial for trial in trials if trial.values] if search.over(trials) else []
        best = sorted(valued, key=lambda trial: -trial.values[0])[: self.finalists]
        return {trial.number: [self.arm_of(model, trial, seed) for seed in self.seed_numbers] for trial in best}

    def check(self) -> None:
        """Raise for several split files, for learning rates that aren't above 0, and for towers that are too large."""
        super().check()
        if len(self.split) > 1:
            raise UserError("tuning needs one split: give one file behind --split")
        if min(self.learning_rates) <= 0:
            raise UserError(f"--learning-rates are one or two values above 0, got {self.learning_rates}")
        for model, architecture in ((model, each) for model in self.models for each in self.architectures):
            if (count := model_size(self.run(model, {"architecture": architecture}, 0).cell)) > self.parameters:
                raise UserError(
                    f"{model} on {architecture} has {count} parameters, more than --parameters {self.parameters}; "
                    "raise it for all models, or choose other --architectures"
                )

    def all_searched(self, records: Records) -> Iterator[Searched]:
        from menagerie.studies.frame.search import running_elsewhere

        for model in self.models:
            search = self.search(model)
            trials = search.found(records, self.storage)
            finals = self.finals_of(search, model, trials)
            means = {number: self.mean(arms, records) for number, arms in finals.items()}
            over = search.over(trials) and all(records.over(arm) for arms in finals.values() for arm in arms)
            yield Searched(model, trials, finals, means, len(running_elsewhere(trials, records.owner)), over)

    def mean(self, arms: Sequence[Arm], records: Records) -> float | None:
        """Return the mean over all seeds; None until all have ended, and if one diverged."""
        values = [None if records.has_diverged(arm) else self.objective(records, [arm]) for arm in arms]
        return None if None in values else sum(values) / len(values)

    def page(self, records: Records) -> Iterator[Part]:
        """Yield each model's recipe, its progress over trials, and all trials."""
        from menagerie.studies.frame.search_figures import search_figures

        searched, judge = list(self.all_searched(records)), self.judge or "accuracy on validation"
        yield from (Sentence(f"{its.model}: {self.finding(its, records)}.") for its in searched)
        yield Paragraph(WHAT_WAS_DONE.format(self, judge))
        names = {name for its in searched for trial in its.trials for name in trial.params if not name.startswith(OWN)}
        if further := sorted(names - {"architecture", *SEARCHED}):
            yield Paragraph(f"`--tuned` takes no {', '.join(further)} from `best.json`: give these as options.")
        yield from search_figures({its.model: its.trials for its in searched}, judge)
        yield Heading("All trials")
        yield trial_table(self.trial_rows(searched))

    def finding(self, its: Searched, records: Records) -> str:
        """Say which trial was chosen for a model, or why none was yet."""
        if not (its.chosen and its.over):
            if its.elsewhere:
                return f"{its.elsewhere} of its trials run elsewhere; start this command again when they have ended"
            return "every trial failed" if its.over else "none is chosen yet"
        trial, mean = its.chosen
        named = ", ".join(f"{name.removeprefix(OWN)} {trial_text(value)}" for name, value in trial.params.items())
        finals = replace(records, arms=tuple(its.finals[trial.number])).where(subset="validation", task="swap")
        estimate = next(iter(finals.estimates("model").values()), None) if not self.judge else None
        value = f"{self.judge} {mean:.3g}" if self.judge else f"{estimate or f'{100 * mean:.1f}'} % of validation"
        return f"trial {trial.number} is best, with {value} over {self.seeds} seeds. It has {named}"

    def trial_rows(self, searched: Sequence[Searched]) -> list[Row]:
        """Return a row for each trial; "repeated" is its mean over seeds, if it was repeated, "failed" why it has no
        value. Rows have the same columns, without that of own options if no model has any."""
        rows = [
            {"model": its.model, "trial": trial.number, self.judge or "validation": (trial.values or [None])[0]}
            | {"repeated": its.means.get(trial.number), "failed": trial.user_attrs.get(WHY, "")}
            | {name: value for name, value in trial.params.items() if not name.startswith(OWN)}
            | {"options": own_options(trial.params)}
            for its in searched
            for trial in its.trials
        ]
        names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "options"]
        names += ["options"] * any(row["options"] for row in rows)
        return [{name: row.get(name) for name in names} for row in rows]

    def export(self, records: Records) -> None:
        """Write all trials, and the best recipes for `--tuned`. Raises in the end if a model has no recipe."""
        searched = list(self.all_searched(records))
        write_trials(records, self.trial_rows(searched))
        if best := {its.model: self.best_entry(its.model, *its.chosen) for its in searched if its.over and its.chosen}:
            write_record(records.out / "best.json", best, indent=1)
        lacking = [its.model for its in searched if not its.chosen]
        if lacking and all(its.over for its in searched):
            page = records.out / "report.html"
            raise UserError(f"every trial of {', '.join(lacking)} failed; {page} has the reasons")

    def best_entry(self, model: str, trial: "FrozenTrial", mean: float) -> Row:
        """Return the recipe chosen for a model, with the conditions of the search, as `--tuned` reads it."""
        own, recipe = own_options(trial.params), asdict(self.recipe)
        return {
            "validation": mean,
            "architecture": trial.params.get("architecture", self.architecture),
            "recipe": recipe | {name: value for name, value in trial.params.items() if name in recipe},
            "tuned_for": tuning_conditions(self, model),
        } | ({"options": own} if own else {})

    def conclude(self, records: Records) -> None:
        for its in self.all_searched(records):
            print(f"{its.model}: {self.finding(its, records)}")


FEWER: dict[str, Any] = {"trials": 2, "trials_at_once": 1, "finalists": 1, "seeds": 2, "parameters": 100_000}
MANY: dict[str, Any] = {**BREADTH, "hard_negatives": 0.0, "trials": 8}
SPATIAL: dict[str, Any] = {"pairs": 0.4, "views": 2, "base": SpatialRecipe()}
# The models that the published grids compare, with depth searched: CLIP binds only with two layers or more.
DEPTHS: dict[str, Any] = {
    "models": ("clip", "filip", "oc-clip", "negclip", "sparo", "captioner", "filip-phrases"),
    "architectures": ("micro", "mini", "triple", "quad"),
    "parameters": 900_000,
}
# Each is the hardest place of a grid: its fewest pairs, no hard negatives.
PRESETS = {
    "smoke": Tune(**SMOKE | FEWER | {"pairs": 0.5, "views": 4, "architectures": ("nano",)}),
    "laptop": Tune(),
    "spatial": Tune(**SPATIAL),
    "depth": Tune(**DEPTHS),
    "depth-spatial": Tune(**SPATIAL | DEPTHS),
    # At 32 px and in a third of the steps, so that every scorer can have as many trials.
    "breadth": Tune(**MANY | {"pairs": 0.25, "base": BindingRecipe(**APART)}),
    "breadth-spatial": Tune(**MANY | SPATIAL | {"pairs": 0.5, "base": SpatialRecipe(**APART)}),
    # For sample_efficiency.py: its setting with most data, in which single animals always are half of a batch.
    "twelve": Tune(
        **{"world": "twelve", "resolution": 32, "pairs": 1.0, "views": 8, "test_views": 2, "test_scenes": 200},
        base=BindingRecipe(test_pairs=0.31, validation=0.14, singles_views=8),
        recipe=Recipe(steps=1000, decay=0.2, learning_rate=7e-4, singles_share=0.5, single_object_phase=0.25),
        **{"trials": 10, "architectures": ("mini",), "learning_rates": (1e-4, 5e-3), "singles_shares": (0.5,)},
    ),
}

if __name__ == "__main__":
    main(PRESETS)
