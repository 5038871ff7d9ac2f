"""What a study of sample efficiency writes: tables as CSV and LaTeX, figures, and `report.html`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from optuna.trial import FrozenTrial

from menagerie.envs.core.figures import write_figure
from menagerie.envs.core.files import write_text
from menagerie.envs.core.pages import write_page
from menagerie.models.registry import spec_of
from menagerie.studies.analysis.paired_bootstrap import Column, Count, counts_in, fewest_pairs, record_line
from menagerie.studies.analysis.tables import DASH, flat, to_csv, to_latex, to_rows, write_trials
from menagerie.studies.analysis.two_levels import meaning
from menagerie.studies.analysis.words import TERMS, models_explained, smoke_words
from menagerie.studies.frame.cells import recipe_line
from menagerie.studies.grids.grid import chosen_alone
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import finished
from menagerie.studies.sample_search.budget import Config, equal_steps, images_seen, recipe_of
from menagerie.studies.sample_search.figures import history_figure, map_figure, pareto_figure, settings_figures
from menagerie.studies.sample_search.objectives import CHECKS
from menagerie.studies.sample_search.ratios import capped_of, on_the_test, ratio_table
from menagerie.studies.sample_search.tables import (
    FEWEST,
    HEADER,
    Point,
    axis_of,
    importance_table,
    pareto_fronts_of,
    pareto_table,
    points,
    reached_of,
    state_of,
    target_table,
    volume_table,
    volumes_of,
)

LOOKS = CHECKS + 1  # at a seed: while it trains, and its end
# What each question's search is called.
SEARCHES = {"front": "first", "target": "second"}


def ended_early(config: Config, trial: FrozenTrial) -> float | str:
    """Accuracy on validation of the seed in whose training a trial was pruned, when it was; empty for any other."""
    trained = len(trial.user_attrs.get("validations", ()))
    if state_of(config, trial) != "pruned" or trial.last_step is None:
        return ""
    return trial.intermediate_values[trial.last_step] if trial.last_step // LOOKS == trained else ""


def trial_rows(config: Config, all_points: Sequence[Point]) -> list[dict[str, Any]]:
    """Every trial as a row of a CSV file."""
    rows = []
    for point in all_points:
        known = point.trial.user_attrs
        if "images" not in known:
            continue
        by_seed = {f"validation_{k}": value for k, value in enumerate(known.get("validations", []))}
        rows.append(
            {"question": point.question, "model": point.model, "trial": point.trial.number}
            | {"state": state_of(config, point.trial), **known["setting"], "images": point.images}
            | {"images_seen": images_seen(config, point.model, point.steps), "validation": known.get("accuracy", "")}
            | {f"validation_{k}": by_seed.get(f"validation_{k}", "") for k in range(config.seeds)}
            | {"ended_early": ended_early(config, point.trial)}
        )
    return rows


def trial_texts(config: Config, rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Header and rows of all trials as people read them, in the words and units of the other tables."""
    header = ["search", "model", "trial", "state", *HEADER[2:], HEADER[0], "images seen", "validation (%)"]
    table = [[*header, *(f"seed {k} (%)" for k in range(config.seeds))]]
    for row in rows:
        shares = [f"{row[name]:.0%}" for name in ("pairs", "hard_negatives")]
        lone = [str(row["singles_views"]), f"{row['singles_share']:.0%}"]
        seeds = [percent(row[f"validation_{k}"]) for k in range(config.seeds)]
        if row["ended_early"] != "":
            seeds[seeds.index(DASH)] = f"{percent(row['ended_early'])} (ended early)"
        so_far = " (so far)" if row["state"] == "pruned" and row["validation"] != "" else ""
        place = [SEARCHES[row["question"]], row["model"], str(row["trial"]), row["state"]]
        counts = [str(row["images"]), str(row["images_seen"])]
        table.append([*place, *shares, *lone, *counts, percent(row["validation"]) + so_far, *seeds])
    return table


def percent(value: float | str) -> str:
    """An accuracy in percent; a dash where a seed wasn't trained."""
    return DASH if value == "" else f"{100 * float(value):.1f}"


VALIDATION, TEST = ("validation", "swap"), ("the test", "swap")
# Not among the settings: stated elsewhere in the report, or replaced in each trial.
ELSEWHERE = {"storage", "study", "recipe.singles_share"}


def write_all(out: Path, config: Config, trials: Mapping[str, Sequence[FrozenTrial]]) -> Path:
    """Write all tables, figures and the page; returns the report."""
    all_points = points(trials)
    chosen = pareto_fronts_of(config, all_points)
    tables = {
        "pareto_fronts": pareto_table(config, chosen),
        "hypervolumes": volume_table(volumes_of(config, chosen)),
        "targets": target_table(config, all_points),
        "ratios": ratio_table(config, all_points),
        "importances": importance_table(config, all_points),
    }
    bounds = [reached_of(config, all_points, model).bound for model in config.models]
    rows = trial_rows(config, all_points)
    write_trials(out / "trials.csv", rows)
    write_tables(out, tables, config)
    figures = {
        "pareto_fronts": pareto_figure(config, all_points, chosen),
        "history": history_figure(config, all_points),
        "map": map_figure(config, all_points),
    }
    parallel, counts = settings_figures(config, all_points), counts_by_run(out, all_points)
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title=config.title,
        task=config.task,
        axis=axis_of(config),
        about=models_explained(config.models),
        terms=TERMS,
        missed=next((bound.images for bound in bounds if bound.censored), 0),
        explained=int((tables["importances"].iloc[:, 1:] != DASH).any().sum()),
        fewest=FEWEST,
        settings=config,
        judged=judged(config),
        meaning=meaning(config.seeds, fewest_pairs([known for _, known in counts], [TEST])),
        record_numbers=record_line((known for _, known in counts), {VALIDATION: "validation", TEST: "unseen pairs"}),
        on_test=on_the_test(config, all_points),
        capped=capped_of(config, all_points),
        equal=equal_steps(config) if config.budgets else 0,
        images_seen=config.recipe.steps * config.recipe.batch,
        staged={model: images_seen(config, model) for model in config.models if spec_of(model).stage},
        tables={name: to_rows(table) for name, table in tables.items()},
        trials=trial_texts(config, rows),
        states={row["state"] for row in rows},
        figures={name: write_figure(out / "figures" / f"{name}.png", figure) for name, figure in figures.items()},
        parallel={
            model: write_figure(out / "figures" / f"parallel-{k}.png", figure)
            for k, (model, figure) in enumerate(parallel.items(), start=1)
        },
        config={name: text for name, text in flat(asdict(chosen_alone(config))).items() if name not in ELSEWHERE},
        notes={**recipes(config), **where_it_ran(out)},
        smoke=smoke_words(
            [max(config.budgets, default=config.recipe.steps)], [known[TEST].records for _, known in counts]
        ),
    )


def counts_by_run(out: Path, all_points: Sequence[Point]) -> list[tuple[str, dict[Column, Count]]]:
    """How many records of validation, if its folder is here, and of the test each run has, by the cell's name."""
    found: dict[str, dict[Column, Count]] = {}
    for point in all_points:
        known = point.trial.user_attrs
        for cell, tally in zip(known.get("cells", ()), known.get("tests", ()), strict=True):
            counts = {TEST: Count(sum(int(count) for _, count in tally.values()), len(tally))}
            if finished(out / "cells" / cell):
                counts |= {
                    column: count for column, count in counts_in(out / "cells" / cell).items() if column == VALIDATION
                }
            found[cell] = counts
    return list(found.items())


def judged(config: Config) -> str:
    """The word for the statistic over seeds by which settings are judged."""
    return "mean" if config.budgets else "median"


def recipes(config: Config) -> dict[str, str]:
    """The recipe of each model, in which the share of single-object scenes is the setting's."""
    return {f"recipe of {model}": recipe_line(config, model, recipe_of(config, model, None)) for model in config.models}


def write_tables(out: Path, tables: Mapping[str, pd.DataFrame], config: Config) -> None:
    """Each table as CSV, and the three that papers print as LaTeX."""
    for name, table in tables.items():
        to_csv(out / f"{name}.csv", table)
    captions = {
        "pareto_fronts": f"Settings that no other beats on validation with as few images; {judged(config)} over seeds.",
        "hypervolumes": "Hypervolume of the Pareto fronts on unseen pairs, with 95 % intervals over seeds and pairs.",
        "targets": f"Distinct training images to {config.target:.0%} on validation; > where no setting reached it.",
    }
    parts = [to_latex(tables[name], caption) for name, caption in captions.items()]
    write_text(out / "results.tex", "\n".join(parts))
