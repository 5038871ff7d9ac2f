"""Trains what isn't finished, scores it on benchmarks, and writes results, `report.html` and what that would take."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.figures import write_figure
from menagerie.envs.core.files import write_text
from menagerie.envs.core.pages import write_page
from menagerie.envs.core.progress import Sparing
from menagerie.generators.sources.folders import Given
from menagerie.models.carry_over import Carried
from menagerie.studies.analysis.curves import Curve, training_curves
from menagerie.studies.analysis.model_table import model_table
from menagerie.studies.analysis.tables import flat, print_table, to_csv, to_latex, to_rows
from menagerie.studies.analysis.words import TERMS, models_explained, smoke_words
from menagerie.studies.frame.cells import title_of
from menagerie.studies.real_training.cells import Photos, Planned, Rendered, planned, recipes, rendered_splits
from menagerie.studies.real_training.config import NONE, Config, constant, grid_of
from menagerie.studies.real_training.describe import described
from menagerie.studies.real_training.photographs import OTHERS
from menagerie.studies.real_training.scores import AXES, FOLDER, Tests, data_table, headlines, pieces, results_of, tidy
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import collect
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece
from menagerie.studies.scoring.benchmark_tables import lacking


class StudyState(NamedTuple):
    """A study that was planned, and what is finished of it in its folder."""

    config: Config
    out: Path
    runs: Sequence[Planned]
    photos: Photos
    tests: Tests

    def results(self) -> list[dict[str, Any]]:
        """Results of the finished cells."""
        return collect(self.out / "cells" / run.cell.id for run in self.runs)

    def pieces(self) -> dict[str, list[BenchmarkPiece]]:
        """Benchmarks of the finished cells, by cell."""
        return pieces(self.runs, self.tests, self.out, self.config)

    def scores(self) -> dict[str, list[dict[str, Any]]]:
        """Results of benchmarks by cell."""
        return {cell: results_of(pieces, self.out) for cell, pieces in self.pieces().items()}


def write_report(study: StudyState, notes: Mapping[str, Any], left_out: Mapping[str, str] | None = None) -> Path:
    """Write tables and the page from what is finished."""
    results, config = study.results(), study.config
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
        title=f"Training on photographs: {', '.join(map(title_of, config.models))}",
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
        figures={name: write_figure(study.out / "figures" / f"{name}.png", drawn) for name, drawn in figures.items()},
        finished=len(results),
        cells=len(study.runs),
        seeds=config.seeds,
        config=flat(asdict(config)),
        notes={**notes, **where_it_ran(study.out, results)},
        smoke=smoke_words([run.cell.recipe.steps for run in study.runs]),
    )


def published(study: StudyState) -> dict[str, Any]:
    """The numbers that papers report, by benchmark; empty for a rehearsal, whose files only have the benchmarks'
    names."""
    tested = [] if study.config.rehearse else [subject for some in study.tests.subjects.values() for subject in some]
    return {subject.label: subject.spec.published for subject in tested}


def guess(study: StudyState) -> float:
    """The accuracy of guessing on the held-out photographs, in percent."""
    numbers = [described.numbers for described in study.photos.values()]
    return 100 / (1 + min([OTHERS, *(count.held_out - 1 for count in numbers)]))


def curve_of(study: StudyState, result: Mapping[str, Any]) -> Curve:
    """A finished cell in the figure of how all trained."""
    same = constant(study.config)
    place = [f"{name} {result.get(name, NONE)}" for name in AXES[1:] if name not in same]
    return Curve(result["model"], ", ".join(place) or "all", study.out / "cells" / result["id"])


def carried(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """For each cell that started from trained weights, a line on how much of them it took over."""
    return {
        f"{result['model']} {result['sources']}, from {result['start']}, seed {result['seed']}": Carried.recorded(
            result["carried"]
        ).text
        for result in results
        if "carried" in result
    }


def print_scores(study: StudyState) -> None:
    """The headlines on the terminal, a row each: places may be few and headlines many."""
    table = headlines(tidy(study.results(), study.scores()), published(study))
    where = [name for name in table if name in AXES]
    labels = [", ".join(map(str, row)) for row in table[where].to_numpy().tolist()]
    rows = [(name, *table[name]) for name in table.columns.drop(where)]
    print_table(["benchmark", *labels], rows, "official scores, %, mean and deviation over seeds")


def root_of(config: Config, out: Path) -> Path:
    """The root of the photographs: the user's, or that of a rehearsal."""
    if not config.rehearse:
        return config.data_root
    from menagerie.studies.real_training.describe import write_files

    grid = grid_of(config)
    return write_files(grid.recipe_given, out, config.store, config.resolution, grid.cores)


def run(config: Config, out: Path, folders: Given) -> None:
    """Read photographs, render, train, score, report."""
    from menagerie.studies.real_training.scores import Tests, score
    from menagerie.studies.runs.dispatch import run_cells
    from menagerie.studies.runs.results import collect

    grid = grid_of(config)
    root = root_of(config, out)
    photos = described(config, root, folders)
    runs = planned(config, photos, rendered_splits(config, grid.cores))
    check_false_captions(runs)
    tests = Tests.of(config, [each.place.parser for each in runs], root, folders)
    jobs = [Job(each.cell, each.data_file, out, execution=Execution.of(config)) for each in runs]
    notes = recipes(config, photos)
    for name, text in notes.items():
        print(f"{name}: {text}")

    study = StudyState(config, out, runs, photos, tests)
    done = {result["id"] for result in collect(job.folder for job in jobs)}
    print(f"{len(jobs)} cells, {len(done)} of them finished before", flush=True)
    sparing = Sparing()
    waiting = [job for job in jobs if job.cell.id not in done]
    run_cells(waiting, config.cluster, grid.at_once, out, lambda _: sparing(lambda: write_report(study, notes)))
    print_carried(runs, out)
    report = write_report(study, notes, score(runs, tests, out, config))
    print_scores(study)
    print(f"report: {report}")


def check_false_captions(runs: Sequence[Planned]) -> None:
    """Raise before training for a model whose loss needs false captions of data that have none."""
    from menagerie.models.recipe import negatives_of

    for run in runs:
        if (
            run.place.mix < 1
            and negatives_of(run.cell.recipe, run.cell.negatives).texts
            and not run.cell.data.synthetic
        ):
            raise UserError(
                f"{run.cell.model} trains with false captions, which photographs don't have; choose another model or "
                "other --text-negatives, or mix rendered scenes in, which have them: --mix 0.5"
            )


def print_carried(runs: Sequence[Planned], out: Path) -> None:
    """Print for each cell how much it took over from the weights that it started with."""
    from menagerie.models.carry_over import Carried
    from menagerie.studies.runs.results import finished

    for run in runs:
        carried = (finished(out / "cells" / run.cell.id) or {}).get("carried")
        if carried:
            print(f"{run.cell.name}: {Carried.recorded(carried).text}")


def plan(config: Config, folders: Given) -> None:
    """Print what there is, what would be trained, and how long that takes; nothing is rendered or kept."""
    import torch

    from menagerie.studies.frame.dry_run import steps_of
    from menagerie.studies.frame.step_cost import REST_SECONDS, STUDY_SECONDS, shown, step_seconds

    if config.rehearse:
        raise UserError(
            "--dry-run reads the files that are trained on, which --rehearse has yet to write; leave one out"
        )
    photos = described(config, config.data_root, folders)
    alone = replace(config, mix=(0.0,))
    runs = planned(alone, photos, Rendered((), {}))
    torch.set_num_threads(config.threads)
    total = 0.0
    for model, place in dict.fromkeys((run.cell.model, run.place) for run in runs):
        alike = [run.cell for run in runs if (run.cell.model, run.place) == (model, place)]
        data = alike[0].data.open(config.data_root).train
        fresh = replace(alike[0], start=None, towers=replace(alike[0].towers, pretrained="", load=True))
        seconds = step_seconds(fresh, data)
        cells = len(alike) * len(config.mix)
        total += len(config.mix) * steps_of(alike) * seconds + REST_SECONDS * cells
        print(f"{alike[0].name}: {cells} cells, {alike[0].recipe.steps} steps each, {1000 * seconds:.0f} ms a step")
    at_once = min(grid_of(config).at_once, len(runs) * len(config.mix))
    about = shown(STUDY_SECONDS + total / at_once)
    print(f"about {about} of training in all, {at_once} cells at once; benchmarks are not counted")
