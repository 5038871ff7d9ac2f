"""`report.html`, `results.csv` and `cells.jsonl` of a study on photographs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.figure_files import write_figure
from menagerie.envs.core.files import write_text
from menagerie.envs.core.pages import write_page
from menagerie.models.carry_over import Carried
from menagerie.studies.analysis.tables import flat, to_csv, to_latex, to_rows
from menagerie.studies.analysis.words import TERMS, models_explained, smoke_words
from menagerie.studies.grids.curves import Curve, training_curves
from menagerie.studies.grids.model_table import model_table, titles_of
from menagerie.studies.real_training.cells import Photos, Planned
from menagerie.studies.real_training.config import NONE, Config, constant
from menagerie.studies.real_training.hold_out import OTHERS
from menagerie.studies.real_training.score import FOLDER, Tests, pieces
from menagerie.studies.real_training.tables import AXES, data_table, headlines, tidy
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import collect
from menagerie.studies.transferring.pieces import Piece
from menagerie.studies.transferring.report import lacking, results_of


class Study(NamedTuple):
    """A study that was planned, and what is finished of it in its folder."""

    config: Config
    out: Path
    runs: Sequence[Planned]
    photos: Photos
    tests: Tests

    def results(self) -> list[dict[str, Any]]:
        """Of the finished cells."""
        return collect(self.out / "cells" / its.cell.id for its in self.runs)

    def pieces(self) -> dict[str, list[Piece]]:
        """Benchmarks by cell, of the finished ones."""
        return pieces(self.runs, self.tests, self.out, self.config.unknown_words == "skip")

    def scores(self) -> dict[str, list[dict[str, Any]]]:
        """Results of benchmarks by cell."""
        return {cell: results_of(its) for cell, its in self.pieces().items()}


def write_report(study: Study, notes: Mapping[str, Any], left_out: Mapping[str, str] | None = None) -> Path:
    """Write tables and the page from what is finished."""
    results, config = study.results(), study.config
    titles = titles_of(config.models)
    frame = tidy(results, study.scores())
    write_text(study.out / "cells.jsonl", "".join(json.dumps(result) + "\n" for result in results))
    to_csv(study.out / "results.csv", frame)
    table = headlines(frame, published(study))
    write_text(study.out / "results.tex", to_latex(table, "Official scores in percent, mean and deviation over seeds."))
    figure = training_curves([curve_of(study, result) for result in results], guess(study))
    figures = {"training": figure} if figure else {}
    return write_page(
        study.out / "report.html",
        Path(__file__).with_suffix(".html"),
        title=f"Training on photographs: {', '.join(titles.values())}",
        rehearsed=config.rehearse,
        table=to_rows(table) if results else [],
        same=", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in constant(config).items()
        ),
        data=to_rows(data_table(study.photos)),
        models=to_rows(model_table(config.models, results)),
        about=models_explained(config.models),
        terms=TERMS,
        carried=carried(results),
        lacking=lacking(frame),
        left_out=left_out or {},
        benchmarks=f"{FOLDER}/report.html" if (study.out / FOLDER / "report.html").exists() else "",
        figures={name: write_figure(study.out / "figures" / f"{name}.png", its) for name, its in figures.items()},
        finished=len(results),
        cells=len(study.runs),
        seeds=config.seeds,
        config=flat(asdict(config)),
        notes={**notes, **where_it_ran(study.out, results)},
        smoke=smoke_words([its.cell.recipe.steps for its in study.runs]),
    )


def published(study: Study) -> dict[str, Any]:
    """What papers report, by benchmark; none of a rehearsal, whose files have the names alone."""
    subjects = [] if study.config.rehearse else [its for own in study.tests.subjects.values() for its in own]
    return {subject.label: subject.spec.published for subject in subjects}


def guess(study: Study) -> float:
    """What guessing gives on the held-out photographs, in percent."""
    numbers = [its.numbers for its in study.photos.values()]
    return 100 / (1 + min([OTHERS, *(its.held_out - 1 for its in numbers)]))


def curve_of(study: Study, result: Mapping[str, Any]) -> Curve:
    """A finished cell in the figure of how all trained."""
    same = constant(study.config)
    place = [f"{name} {result.get(name, NONE)}" for name in AXES[1:] if name not in same]
    return Curve(result["model"], ", ".join(place) or "all", study.out / "cells" / result["id"])


def carried(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What cells had of the weights that they started with."""
    return {
        f"{its['model']} {its['sources']}, from {its['start']}, seed {its['seed']}": Carried.recorded(
            its["carried"]
        ).text
        for its in results
        if "carried" in its
    }


def print_table(study: Study) -> None:
    """The headlines on the terminal, a row each: places may be few and headlines many."""
    from rich.console import Console
    from rich.table import Table

    table = headlines(tidy(study.results(), study.scores()), published(study))
    where = [name for name in table if name in AXES]
    labels = [", ".join(map(str, row)) for row in table[where].to_numpy().tolist()]
    shown = Table("benchmark", *labels, title="official scores, %, mean and deviation over seeds")
    for name in table.columns.drop(where):
        shown.add_row(name, *table[name])
    Console().print(shown)
