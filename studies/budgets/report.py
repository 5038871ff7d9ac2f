"""What a study of compute writes: tables as CSV and LaTeX, figures, and `report.html`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from menagerie.envs.core.figure_files import write_figure
from menagerie.envs.core.files import write_csv, write_text
from menagerie.envs.core.pages import write_page
from menagerie.studies.analysis.paired_bootstrap import Points, counts_of, fewest_pairs, numbers_of
from menagerie.studies.analysis.tables import flat, to_csv, to_latex, to_rows
from menagerie.studies.analysis.two_levels import meaning
from menagerie.studies.analysis.words import TERMS, models_explained, smoke_words
from menagerie.studies.budgets.figures import all_tests, compute_figure, other_scales
from menagerie.studies.budgets.known import courses_of
from menagerie.studies.budgets.points import Line, lines_of
from menagerie.studies.budgets.setups import Trained
from menagerie.studies.budgets.tables import RESULTS, best_table, budget_table, choice_table, result_rows
from menagerie.studies.budgets.words import VERDICTS, sentences
from menagerie.studies.grids.curves import Curve, training_curves
from menagerie.studies.grids.figures import TITLES
from menagerie.studies.runs.folder import where_it_ran


def publish(trained: Trained) -> Path:
    """Write all that the finished runs allow; returns the report."""
    config, out = trained.config, trained.out
    lines = lines_of(trained, courses_of(trained))
    tables = {"best": best_table(trained, lines), "compute": budget_table(lines), "choices": choice_table(trained)}
    for name, table in tables.items():
        to_csv(out / f"{name}.csv", table)
    write_text(out / "results.tex", to_latex(tables["best"], "The budget of each model that validation chose."))
    write_csv(out / "results.csv", RESULTS, ([row.get(name) for name in RESULTS] for row in result_rows(trained)))
    figures = draw_figures(trained, lines)
    counts = {line.split: counts_of(one_seed(line.points[0].records)) for line in lines if line.points}
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title="Accuracy against compute",
        about=models_explained(config.models),
        terms=TERMS,
        sentences=sentences(config, lines),
        bar=config.bar,
        judged=judged_by(trained),
        patience=config.patience,
        rise=100 * config.rise,
        decay=config.decay,
        stopped={f"{line.split}, {line.model}": state(line) for line in lines},
        meaning=meaning(config.seeds, fewest_pairs(counts.values(), [("", "")])),
        record_numbers="; ".join(f"{split} {numbers_of(list(its.values()))}" for split, its in counts.items()),
        verdicts=VERDICTS,
        tables={name: to_rows(table) for name, table in tables.items()},
        figures={name: write_figure(out / "figures" / f"{name}.png", figure) for name, figure in figures.items()},
        config=flat(asdict(config)),
        notes=where_it_ran(out),
        smoke=smoke_words(config.budgets),
    )


def judged_by(trained: Trained) -> dict[str, tuple[str, ...]]:
    """The tests of what is unseen, by split."""
    return {split: grid.split_of(0, **grid.places[0]).judged for split, grid in trained.grids.items()}


def draw_figures(trained: Trained, lines: list[Line]) -> dict[str, Any]:
    """All figures that there are runs for."""
    recipes = {split: grid.split_of(0, **grid.places[0]) for split, grid in trained.grids.items()}
    judged = {split: in_title(its) for split, its in judged_by(trained).items()}
    if not any(line.points for line in lines):
        return {}
    tests = {split: ("validation", *recipe.all_tests) for split, recipe in recipes.items()}
    figures = {"compute": compute_figure(lines, trained.config.bar, judged), "scales": other_scales(lines)}
    figures["tests"] = all_tests(lines, tests)
    longest = [Curve(line.model, line.split, job.folder) for line in lines for job in longest_jobs(line)]
    training = training_curves(longest)
    return figures | ({"training": training} if training else {})


def in_title(tests: Sequence[str]) -> str:
    """The tests of which a panel shows the mean, in one line."""
    names = "; ".join(TITLES.get(test, test).replace("\n", " ") for test in tests)
    return names if len(tests) == 1 else f"mean of {names}"


def one_seed(records: Points) -> Points:
    """Those of the first seed."""
    first = min(key[0] for key in records)
    return {key: point for key, point in records.items() if key[0] == first}


def longest_jobs(line: Line) -> tuple[Any, ...]:
    """The runs of a line's largest budget."""
    return line.points[-1].jobs if line.points else ()


def state(line: Line) -> str:
    """How far a line is, in words."""
    if line.course.setup is None:
        return "choices are being halved"
    if line.course.missing:
        return f"{len(line.points)} budgets finished"
    return "validation stopped rising" if line.course.stopped else "trained up to the largest budget"
