"""`report.html` of a grid: one page that needs no other file."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from envs.common.figure_files import write_png
from envs.common.files import write_text
from envs.common.pages import write_page
from generators.captions.hard_negatives import TASKS
from studies.analysis.format import flat
from studies.analysis.paired_bootstrap import difference, read_points
from studies.analysis.tables import DASH, described, pivot, tidy, to_latex, to_rows
from studies.grids.curves import Curve, training_curves
from studies.grids.figures import heat_maps, sample_sheet
from studies.grids.tuned_recipes import SEARCHED

SAMPLES = 5
# What says where in a grid a result belongs.
PLACE = ["model", "pairs", "hard_negatives"]


def write_report(out: Path, config: Any, notes: dict[str, Any], results: Sequence[dict[str, Any]], split: Path) -> Path:
    """Write figures and `report.html` from the finished cells; `split` gives the sample images."""
    swaps = [(test, "swap") for test in config.tests]
    others = [(test, task) for test in unseen(config) for task in tasks_of(results) if task in TASKS and task != "swap"]
    figures = {"accuracy": heat_maps(results, config, swaps)}
    figures |= {"recognition": heat_maps(results, config, others)} if others else {}
    training = training_curves([curve_of(out, result) for result in results])
    figures |= {"training": training} if training else {}
    samples = sample_sheets(split, config.tests)
    write_text(out / "results.tex", latex(config, results))
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title=config.title,
        asked=config.task,
        config=told_config(config),
        notes=notes,
        table=to_rows(summary(config, results)),
        tasks=to_rows(task_table(config, results)),
        differences=to_rows(difference_table(out, config, results)),
        figures={name: write_png(out / "figures" / f"{name}.png", figure) for name, figure in figures.items()},
        samples={name: write_png(out / "figures" / f"samples-{name}.png", sheet) for name, sheet in samples.items()},
        finished=len(results),
        cells=len(config.models) * len(config.pairs) * len(config.hard_negatives) * config.seeds,
    )


def curve_of(out: Path, result: dict[str, Any]) -> Curve:
    """A finished cell in the figure of how all trained."""
    model, pairs, negatives = place_of(result)
    return Curve(model, f"{pairs:.0%} of pairs, {negatives:.0%} with negatives", out / "cells" / result["id"])


def told_config(config: Any) -> dict[str, str]:
    """The configuration; with tuned recipes without what they replace (each model's own is told below)."""
    replaced = {"architecture", *(f"recipe.{name}" for name in SEARCHED)} if config.tuned else set()
    return {name: text for name, text in flat(asdict(config)).items() if name not in replaced}


def summary(config: Any, results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per model and place of the grid, with a column per test."""
    frame = tidy(results)
    rows = places(config)
    table = described(pivot(frame[frame.task == "swap"], PLACE, ["subset"]), rows, list(config.tests)).reset_index()
    return named(table, [f"{pairs:.0%} {counted(results, pairs)}" for pairs in table["pairs"]])


def task_table(config: Any, results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per model and place, and a column per task: every task on pairs that no cell trains on."""
    rows = pd.MultiIndex.from_tuples(
        [(model, test, *place) for test in unseen(config) for model, *place in places(config)],
        names=["model", "test", *PLACE[1:]],
    )
    frame = tidy(results).rename(columns={"subset": "test"})
    table = described(pivot(frame, rows.names, ["task"]), rows, tasks_of(results)).reset_index()
    return named(table, [f"{pairs:.0%}" for pairs in table["pairs"]])


def places(config: Any) -> pd.MultiIndex:
    """All models at all places of the grid, in the order of its tables."""
    order = product(config.pairs, config.hard_negatives, config.models)
    return pd.MultiIndex.from_tuples([(model, pairs, negatives) for pairs, negatives, model in order], names=PLACE)


def named(table: pd.DataFrame, pairs: list[str]) -> pd.DataFrame:
    """A table whose fractions are texts, those of pairs as given."""
    negatives = [f"{share:.0%}" for share in table["hard_negatives"]]
    return table.assign(pairs=pairs, hard_negatives=negatives).rename(columns={"hard_negatives": "hard negatives"})


def unseen(config: Any) -> list[str]:
    """The tests on pairs that no cell trains on."""
    return [test for test in config.tests if test.endswith("unseen_pairs")]


def tasks_of(results: Sequence[dict[str, Any]]) -> list[str]:
    """All tasks that any cell has results of."""
    return sorted({task for r in results for tasks in r["subsets"].values() for task in tasks}, key=by_task)


def by_task(task: str) -> tuple[int, str]:
    """Tasks in the order of `TASKS`, quads after them."""
    return (list(TASKS).index(task) if task in TASKS else len(TASKS), task)


def difference_table(out: Path, config: Any, results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per place and further model: how it differs from the first, with intervals."""
    rows = []
    for pairs, negatives, model in product(config.pairs, config.hard_negatives, config.models[1:]):
        first, second = (
            read_points(
                (r["seed"], out / "cells" / r["id"]) for r in results if place_of(r) == (name, pairs, negatives)
            )
            for name in (config.models[0], model)
        )
        deltas = [str(difference(first, second, test, "swap") or DASH) for test in config.tests]
        rows.append([f"{model} − {config.models[0]}", f"{pairs:.0%}", f"{negatives:.0%}", *deltas])
    return pd.DataFrame(rows, columns=["model", "pairs", "hard negatives", *config.tests])


def place_of(result: dict[str, Any]) -> tuple[str, float, float]:
    """Model and fractions of a result."""
    return result["model"], result["pairs"], result["hard_negatives"]


def latex(config: Any, results: Sequence[dict[str, Any]]) -> str:
    """The table of accuracies for a paper."""
    table = summary(config, results).rename(columns=lambda name: name.replace("_", " "))
    return to_latex(table, "Accuracy in percent, mean over seeds; chance is 50.")


def counted(results: Sequence[dict[str, Any]], pairs: float) -> str:
    """How many pairs a fraction came to: "(2 of 11)"; empty before a cell is finished."""
    found = {f"({r['training_pairs']} of {r['all_pairs']})" for r in results if r["pairs"] == pairs}
    return " ".join(sorted(found))


def sample_sheets(split: Path, tests: Sequence[str]) -> dict[str, Any]:
    """A row of sample images for every subset that has any."""
    from generators.storage.dataset import SplitDataset, open_split

    sheets, opened = {}, open_split(split)
    for subset in ("train", *tests):
        data = SplitDataset(opened, subset, preload=False)
        if not len(data):
            continue
        chosen = [len(data) * (2 * i + 1) // (2 * SAMPLES) for i in range(SAMPLES)]
        images = data.images(chosen).permute(0, 2, 3, 1).numpy()
        captions = [(data.records.captions[i], data.records.negatives[i]) for i in chosen]
        sheets[subset] = sample_sheet(images, captions)
    return sheets
