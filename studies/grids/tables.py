"""Tables of a grid: accuracies of swaps and of all tasks, and how models differ from the first, with intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.envs.core.figures import short
from menagerie.studies.analysis.paired_bootstrap import difference, read_points
from menagerie.studies.analysis.tables import (
    DASH,
    QUAD,
    WAITING,
    by_task,
    described,
    flagged,
    gap,
    meaning_of_flags,
    pivot,
    tidy,
    to_latex,
    to_rows,
)
from menagerie.studies.frame.cells import untuned
from menagerie.studies.grids.figures import ranked
from menagerie.studies.runs.results import place_of


def summary(config: Any, results: Sequence[dict[str, Any]], flags: bool = False) -> pd.DataFrame:
    """A row per model and place of the grid, with a column per test; with `flags` at those accuracies that are of one
    caption liked whatever the image."""
    frame = tidy(results, place_names(config)[1:])
    rows = places(config)
    swaps = pivot(frame[frame.task == "swap"], place_names(config), ["subset"])
    texts = described(swaps, rows, list(config.tests))
    if flags:
        texts = flagged(texts, pivot(frame[frame.task == QUAD], place_names(config), ["subset"]))
    table = texts.reset_index()
    table = named(table, [f"{pairs:.0%} {counted(results, pairs)}" for pairs in table["pairs"]])
    table["model"] = [f"{model} (not tuned)" if model in untuned(config) else model for model in table["model"]]
    return table.rename(columns=config.label)


def task_table(config: Any, results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per test, model and place, and a column per task."""
    rows = pd.MultiIndex.from_tuples(
        [(model, test, *place) for test in config.tests for model, *place in places(config)],
        names=["model", "test", *place_names(config)[1:]],
    )
    frame = tidy(results, place_names(config)[1:]).rename(columns={"subset": "test"})
    table = described(pivot(frame, rows.names, ["task"]), rows, tasks_of(results)).reset_index()
    table["test"] = table["test"].map(config.label)
    return named(table, [f"{pairs:.0%}" for pairs in table["pairs"]])


def summary_of(config: Any, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The table of all swaps, how many of its columns say where, and in words what is the same in all rows, what flags
    in it mean, and whether it has gaps."""
    table = sorted_by_accuracy(config, results, summary(config, results, flags=True))
    shown = varying(table)
    alone = [name for name in table if name not in shown]
    same = ", ".join(f"{name} {table[name].iloc[0]}" for name in alone)
    what = {"flags": meaning_of_flags(shown), "gaps": bool(shown.isin([DASH, WAITING]).any(axis=None))}
    return {"table": to_rows(shown), "fixed": len(place_names(config)) - len(alone), "same": same, **what}


def varying(table: pd.DataFrame) -> pd.DataFrame:
    """A table without those fractions that are the same in all its rows."""
    return table.drop(columns=[name for name in ("pairs", "hard negatives") if table[name].nunique() == 1])


def task_tables(config: Any, results: Sequence[dict[str, Any]]) -> dict[str, tuple[int, list[list[str]]]]:
    """For each test, its part of `task_table` without columns of a single value, and the number of leading columns that
    name the place.

    A test that has no scenes is left out, once any has a result.
    """
    table, tables = sorted_by_accuracy(config, results, task_table(config, results)), {}
    places = 1 + len(place_names(config))
    alone = [name for name in table.columns[2:places] if name != "test" and table[name].nunique() == 1]
    for test in map(config.label, config.tests):
        of_test = table[table["test"] == test].drop(columns=["test", *alone])
        if not results or not of_test.iloc[:, places - 1 - len(alone) :].isin([DASH, WAITING]).all(axis=None):
            tables[test] = places - 1 - len(alone), to_rows(of_test)
    return tables


def sorted_by_accuracy(config: Any, results: Sequence[dict[str, Any]], table: pd.DataFrame) -> pd.DataFrame:
    """A table with rows in the order of `places`: of three models and more the best first at each place."""
    models = list(config.models)
    if len(models) < 3:
        return table
    order = [models.index(model) for model in ranked(results, models, [(test, "swap") for test in config.tests])]
    return table.iloc[[start + k for start in range(0, len(table), len(models)) for k in order]]


def places(config: Any) -> pd.MultiIndex:
    """All models at all places of the grid, in the order of its tables."""
    names = place_names(config)
    rows = [(model, *place_of(place, names[1:])) for place in config.places for model in config.models]
    return pd.MultiIndex.from_tuples(rows, names=names)


def place_names(config: Any) -> list[str]:
    """The names of the columns that say where in a grid a result belongs."""
    return ["model", *config.places[0]]


def named(table: pd.DataFrame, pairs: list[str]) -> pd.DataFrame:
    """A table for people: fractions as texts, those of pairs as given, own models without their folders."""
    negatives = [f"{share:.0%}" for share in table["hard_negatives"]]
    models = [" − ".join(map(short, model.split(" − "))) for model in table["model"]]
    shown = table.assign(model=models, pairs=pairs, hard_negatives=negatives)
    return shown.rename(columns={"hard_negatives": "hard negatives"})


def tasks_of(results: Sequence[dict[str, Any]]) -> list[str]:
    """All tasks that any cell has results of."""
    return sorted({task for r in results for tasks in r["subsets"].values() for task in tasks}, key=by_task)


def difference_table(out: Path, config: Any, results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per place and further model: how it differs from the first, with intervals."""
    names, rows = place_names(config), []
    for model, *place in places(config):
        if model == config.models[0]:
            continue
        first, second = (
            read_points((r["seed"], out / "cells" / r["id"]) for r in results if place_of(r, names) == (name, *place))
            for name in (config.models[0], model)
        )
        deltas = [str(difference(first, second, test, "swap") or gap(first and second)) for test in config.tests]
        rows.append([f"{model} − {config.models[0]}", *place, *deltas])
    table = pd.DataFrame(rows, columns=[*names, *map(config.label, config.tests)])
    return named(table, [f"{pairs:.0%}" for pairs in table["pairs"]])


def latex(config: Any, results: Sequence[dict[str, Any]]) -> str:
    """The table of accuracies for a paper."""
    table = summary(config, results).rename(columns=lambda name: name.replace("_", " "))
    return to_latex(table, "Accuracy in percent, mean over seeds; chance is 50.")


def counted(results: Sequence[dict[str, Any]], pairs: float) -> str:
    """The number of pairs that a fraction stands for, "(2 of 11)"; empty before a cell is finished."""
    found = {f"({r['training_pairs']} of {r['all_pairs']})" for r in results if r["pairs"] == pairs}
    return " ".join(sorted(found))
