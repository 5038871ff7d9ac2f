"""The results of a tuning study: its trials, the best recipe of each model, and its page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import isclose, nan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_record, write_record
from menagerie.studies.frame.cells import SEARCHED, tuning_conditions
from menagerie.studies.frame.parts import Facts, Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.study import SplitStudy

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from menagerie.studies.frame.records import Records

Row = dict[str, Any]
# Prefix of a model's own options, whose names may be those of fields of the recipe.
OWN = "option "
ACCURACIES = ("validation", "repeated")  # columns of fractions, shown in percent
WHAT = """Every model had {trials} trials over the same space of recipes, and over its own options if it has any, on the
same split and for the same number of steps. A trial is a training run with one seed, judged by {judge}. As the best of
many trials is partly luck, each model's best ones were repeated with further seeds. The best mean over all {seeds}
seeds (`repeated`) decides, not the first seed. {interval}`best.json` has the recipes as `--tuned` reads them. """
ON_VALIDATION = """its accuracy on validation pairs alone, which no cell with this seed trains on or tests; chance is
50 %"""
INTERVAL = """Its interval is for these pairs and seeds, and doesn't account for the luck of choosing the best. """
LONE = """Only one trial of each model was repeated, so the first seed alone chose it: the mean says how good it is, not
that it is the best. """
COURSE = """{judge} of every trial, in the order of the search. A pale point: the trial's first seed; the line: the best
of these so far. A thick dash, joined to its point: the mean over {seeds} seeds of a repeated trial. The ring marks the
best mean of a model, whose recipe was chosen. {failed}"""
FAILED_AT_0 = "A trial that failed is drawn at 0."
TRIED = """A line for each trial, through its value of each parameter, between the least and the largest value of that
parameter. Its colour is the value of the trial's first seed, on one scale for all models; the best is on top, and the
chosen one has dots. Parameters with a single value are left out; the others are written as options of the command are:
shares from 0 to 1."""
ALL = """`{judge}`: {value} of the trial's first seed; `repeated`: its mean over {seeds} seeds, `–` for trials that
weren't repeated. {fractions}✓: the trial whose recipe was chosen."""


class Searched(NamedTuple):
    """The state of a model's search so far."""

    model: str
    trials: "Sequence[FrozenTrial]"
    means: Mapping[int, float | None]
    """The mean over seeds of each repeated trial, by number; None while it isn't known, or if a seed diverged."""
    failures: Mapping[int, str]
    """Why trials that ended have no value, by number; empty for those that have one."""
    elsewhere: int
    """Number of trials that other processes are running."""
    over: bool
    """Whether all runs have ended."""
    records: "Mapping[int, Records]" = MappingProxyType({})
    """The records of all seeds of each repeated trial, by number."""

    @property
    def chosen(self) -> "tuple[FrozenTrial, float] | None":
        """The trial with the best mean, of equal ones the first, and that mean; None without any."""
        known = [(trial, mean) for trial in self.trials if (mean := self.means.get(trial.number)) is not None]
        return max(known, key=lambda both: both[1], default=None)

    @property
    def interval(self) -> str:
        """The interval of the chosen trial's mean over its validation pairs; empty if trials are judged otherwise."""
        trial, mean = self.chosen or (None, nan)
        if trial is None or trial.number not in self.records:
            return ""
        found = self.records[trial.number].where(subset="validation", task="swap").estimates("model")
        return next((f" [{its.bounds}]" for its in found.values() if isclose(its.value, mean, abs_tol=5e-4)), "")

    @property
    def rows(self) -> list[Row]:
        """A row for each trial; "repeated" is its mean over seeds, if it was repeated."""
        return [
            {"model": self.model, "trial": trial.number, "validation": trial.values[0] if trial.values else None}
            | {"repeated": self.means.get(trial.number)}
            | {name: value for name, value in trial.params.items() if not name.startswith(OWN)}
            | {"options": own_options(trial.params)}
            for trial in self.trials
        ]


def own_options(params: Mapping[str, Any]) -> Row:
    """Return the model's own options among the parameters of a trial."""
    return {name.removeprefix(OWN): value for name, value in params.items() if name.startswith(OWN)}


def best_trials(trials: "Sequence[FrozenTrial]", number: int) -> "list[FrozenTrial]":
    """Return up to `number` of the trials that have a value, the best first."""
    return sorted((trial for trial in trials if trial.values), key=lambda trial: -trial.values[0])[:number]


def best_entry(study: SplitStudy, searched: Searched) -> Row:
    """Return the recipe chosen for a model, with the conditions of the search, as `--tuned` reads it."""
    assert searched.chosen
    trial, mean = searched.chosen
    own = own_options(trial.params)
    recipe = asdict(study.recipe)
    return {
        "validation": mean,
        "architecture": trial.params.get("architecture", study.architecture),
        "recipe": recipe | {name: value for name, value in trial.params.items() if name in recipe},
        "tuned_for": tuning_conditions(study, searched.model),
    } | ({"options": own} if own else {})


def search_rows(searched: Sequence[Searched]) -> list[Row]:
    """Return the rows of all models with the same columns, without that of own options if no model has any."""
    rows = [row for its in searched for row in its.rows]
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "options"]
    names += ["options"] * any(row["options"] for row in rows)
    return [{name: row.get(name) for name in names} for row in rows]


def write_best(path: Path, entries: Mapping[str, Row], judge: str = "") -> None:
    """Write the chosen recipes, and print new ones. `judge` names the user's own objective, if any."""
    try:
        before = read_record(path) if path.exists() else {}
    except Unreadable:  # it is written anew
        before = {}
    if not entries or {name: before.get(name) for name in entries} == entries:
        return
    write_record(path, dict(entries), indent=1)
    for model, entry in entries.items():
        value = f"{judge} {entry['validation']:.3g}" if judge else f"validation {entry['validation']:.1%}"
        print(f"{model}: {value} with {entry['architecture']}, {entry['recipe']}")


def parts(searched: Sequence[Searched], seeds: int, judge: str = "") -> Iterator[Part]:
    """Yield the page: the chosen recipes, the course of the trials, what was tried, all trials, and why some failed.
    `judge` names the user's own objective, a plain number; empty for accuracy on validation."""
    from menagerie.studies.frame.search_figures import VALIDATION, parallels, trial_percent, trial_value

    yield from map(partial(chosen_sentence, seeds=seeds, judge=judge), searched)
    rows = search_rows(searched)
    winners = {its.model: its.chosen[0].number for its in searched if its.chosen}
    named = {"judge": judge or "Validation accuracy", "failed": "" if judge else FAILED_AT_0}
    yield course_figure(rows, winners, COURSE.format(seeds=seeds, **named), judge)
    lone = all(len(its.means) < 2 for its in searched)
    trials = max(len(its.trials) for its in searched)
    judged = {"judge": judge or ON_VALIDATION, "interval": "" if judge else INTERVAL}
    yield Paragraph(
        WHAT.format(trials=trials, seeds=seeds, **judged) + LONE * lone + " ".join(tie_sentences(searched, judge))
    )
    if further := sorted({name for its in searched for row in its.rows for name in row} - {*SEARCHED, *KNOWN}):
        yield Paragraph(f"`--tuned` takes no {', '.join(further)} from `best.json`: give these as options.")
    yield Heading("What was tried", TRIED)
    trials_of = {its.model: its.trials for its in searched}
    yield from parallels(trials_of, winners, trial_value if judge else trial_percent, label=judge or VALIDATION)
    fractions = "" if judge else "`trials.csv` has both as fractions of 1. "
    column = {"judge": judge or "validation", "value": "the value" if judge else "accuracy"}
    yield Heading("All trials", ALL.format(seeds=seeds, fractions=fractions, **column))
    yield trial_table_part(rows, winners, judge)
    failed = {f"{its.model}, trial {number}": why for its in searched for number, why in its.failures.items() if why}
    if failed:
        yield Heading("Why trials failed")
        yield Facts(failed)


def course_figure(rows: Sequence[Row], winners: Mapping[str, int], says: str = "", judge: str = "") -> Part:
    """Return the figure of the search: the value of each trial's first seed, the best so far, and means over seeds.
    `winners` has the number of each model's chosen trial, which gets a ring; `judge` is that of `parts`."""
    from menagerie.studies.frame.search_figures import CHOSEN, DASHES, FAINT, STEPS, VALIDATION, ByModel, Side

    rows = [row for row in rows if row["validation"] is not None] if judge else rows
    scale = 1 if judge else 100
    one = [(row["model"], row["trial"], scale * (row["validation"] or 0.0)) for row in rows]
    best = [(model, trial, max(y for m, t, y in one if m == model and t <= trial)) for model, trial, _ in one]
    pairs = [
        (its, (*its[:2], scale * r["repeated"])) for its, r in zip(one, rows, strict=True) if r["repeated"] is not None
    ]
    means = [mean for _, mean in pairs]
    joined = [point for its, mean in pairs for point in (its, mean, (its[0], nan, nan))]
    series = {
        "a trial, its first seed": (FAINT, one),
        "the best of these so far": (STEPS, best),
        "its mean over seeds, where repeated": (DASHES, joined),
        "chosen: the best mean": (CHOSEN, [its for its in means if winners.get(its[0]) == its[1]]),
    }
    side = Side("trial", judge or VALIDATION, series, pale="the best of these so far", accuracies=not judge)
    shown = [{"model": row["model"], "trial": row["trial"], **trial_values(row, judge)} for row in rows]
    return ByModel("history", list(dict.fromkeys(row["model"] for row in rows)), [side], shown, says=says)


def trial_values(row: Row, judge: str) -> Row:
    """Return the two values of a trial, by their names on the page."""
    return {judge or "validation": row["validation"], "repeated": row["repeated"]}


KNOWN = {"model", "trial", *ACCURACIES, "architecture", "options"}


def chosen_sentence(searched: Searched, seeds: int, judge: str = "") -> Sentence:
    """Say which trial was chosen for a model, or why none was yet."""
    model = searched.model
    if searched.chosen and searched.over:
        trial, mean = searched.chosen
        named = ", ".join(f"{name.removeprefix(OWN)} {trial_setting(value)}" for name, value in trial.params.items())
        how, over = "is best" if len(searched.means) > 1 else "alone was repeated", f"over {seeds} seeds"
        right = f"{interval} of validation {over}; chance is 50" if (interval := searched.interval) else f" {over}"
        value = f"{judge} {mean:.3g} {over}" if judge else f"{100 * mean:.1f} %{right}"
        return Sentence(f"{model}: trial {trial.number} {how}, with {value}. It has {named}.")
    if searched.elsewhere:
        return Sentence(
            f"{model}: {searched.elsewhere} of its trials run elsewhere; start this command again when they have ended."
        )
    return Sentence(f"{model}: every trial failed." if searched.over else f"{model}: none is chosen yet.")


def tie_sentences(searched: Sequence[Searched], judge: str) -> list[str]:
    """Return a sentence for each group of models whose chosen trials have the same mean, as shown."""
    means = {its.model: trial_setting(its.chosen[1], percent=not judge) for its in searched if its.chosen}
    groups = {mean: [model for model in means if means[model] == mean] for mean in means.values()}
    return [f"The chosen trials of {' and '.join(g)} have the same mean." for g in groups.values() if len(g) > 1]


def trial_table_part(rows: Sequence[Row], winners: Mapping[str, int], judge: str = "") -> Rows:
    """Return a table of all trials as texts, each model's best first; accuracies are in percent."""
    percents = () if judge else ACCURACIES
    models = list(dict.fromkeys(row["model"] for row in rows))
    names = list(rows[0])[1:] if rows else []

    def rank(row: Row) -> tuple[Any, ...]:
        return *((row[n] is None, -(row[n] or 0)) for n in ("repeated", "validation")), row["trial"]

    texts = [
        [row["model"], "✓" if winners.get(row["model"]) == row["trial"] else ""]
        + [trial_setting(row[name], percent=name in percents) for name in names]
        for row in sorted(rows, key=lambda r: (models.index(r["model"]), rank(r)))
    ]
    headers = (judge if judge and name == "validation" else name + " (%)" * (name in percents) for name in names)
    return Rows("all_trials", ["model", "chosen", *headers], texts)


def trial_setting(value: Any, percent: bool = False) -> str:
    """Return a value as text for the page."""
    if percent and value is not None:
        return f"{100 * value:.1f}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {trial_setting(each)}" for name, each in value.items())
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
