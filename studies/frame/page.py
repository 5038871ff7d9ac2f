"""Assembles a study's page: its answer, its other parts, and the sections on its runs that every page has."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd

from menagerie.envs.core.files import write_text
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import read_split
from menagerie.models.registry import is_own, short_name, spec_of, specs
from menagerie.studies.analysis.errors import read_predictions
from menagerie.studies.analysis.intervals import explain_intervals
from menagerie.studies.analysis.pictures import image_uri
from menagerie.studies.analysis.tables import DASH, flatten_texts, styled_table, to_latex
from menagerie.studies.analysis.words import MEANINGS, TERMS, explain_model, explain_subsets, smoke_warning
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.cells import SEARCHED, untuned_models
from menagerie.studies.frame.charts import page_script
from menagerie.studies.frame.draw import drop_former, write_page_part
from menagerie.studies.frame.layout import span, tests_in_order
from menagerie.studies.frame.parts import FIGURES, Curves, Heading, Part, RecordsPart, Sentence, check_page_parts
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.shortcuts import shortcut_parts
from menagerie.studies.frame.study import AnyStudy, SplitStudy
from menagerie.studies.runs.cell import DIVERGED
from menagerie.studies.runs.data import FRACTIONS, SplitData, SplitFile
from menagerie.studies.runs.evaluation import FILE
from menagerie.studies.runs.folder import machines_of_runs
from menagerie.studies.runs.results import reason_in

SWAP = "the hard negative: the same words, exchanged so that the caption is false"
MOST_CURVES = 24  # kinds of runs in one figure
MOST_VALUES = 12  # of a label that is varied; a label with more values is a measured one
SAMPLES = 5  # images in a row
COMPARED = 4  # models whose margins are written below an image
TRAINED = """A line for each finished run, or where runs are many for the mean of their seeds. Loss, learning rate and
speed are means of neighbouring steps. Losses differ in kind from model to model, and in the single-object phase, if
there is one, the loss is that of lone animals and falls lower. Validation: accuracy on at most 200 swaps, always the
same; the dotted line is chance. Where towers have learning rates of their own the figure shows the highest. Speed
depends on what else the machine did. All numbers: `cells/*/training.csv`."""


class DrawnParts(NamedTuple):
    """The contents of a page's parts for the template."""

    answer: list[dict[str, Any]]
    rest: list[dict[str, Any]]
    training: list[dict[str, Any]]
    """The curves of all runs, where no other part has any."""


def draw_parts(study: AnyStudy, records: Records) -> DrawnParts:
    """Write the files of all parts of a study's page from the records of all arms; returns their contents."""
    whole = [*study.page(records), *shortcut_parts(records)] if len(records.results) else []
    parts = check_page_parts(with_test_names(study, part) for part in whole)
    answer, rest = answer_first(parts)
    training = [] if any(isinstance(part, Curves) for part in parts) else curves_of(records)
    drop_former([*parts, *training], records.out)
    drawn = DrawnParts(*([write_page_part(part, records.out) for part in side] for side in (answer, rest, training)))
    if first := next((its for its in (*drawn.answer, *drawn.rest) if its["kind"] == "table"), None):
        write_text(records.out / "results.tex", to_latex(first["frame"], first["caption"]))
    return drawn


def write_report(study: AnyStudy, records: Records) -> Path:
    """Write the files of all parts of a study's page, and `report.html`, from the records of all arms."""
    out, results = records.out, [result for _, result in records.results]
    (answer, rest, training), seen = draw_parts(study, records), samples_of(records)
    shown = [*answer, *rest, *training]
    cases = [its for test, of_test in seen.items() if test != "train" for its in of_test]
    values: dict[str, Any] = dict(
        title=study.title,
        answer=answer,
        cases=cases[:: max(1, len(cases) // SAMPLES)][:SAMPLES],
        terms=TERMS,
        rest=rest,
        training=training,
        **run_states(study, records),
        **describe_models(records, results),
        **explain_tests(study, records),
        seen=seen,
        untuned=untuned_models(study) if isinstance(study, SplitStudy) else [],
        config=shared_split_values(records) | reported_options(study) | study.notes(),
        notes=machines_of_runs(out, results),
        charts=page_script() if any(its["kind"] == "chart" for its in shown) else "",
        smoke=smoke_warning(max(map(steps_of, records.arms), default=0)),
    )
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    write_text(out / "report.html", environment.get_template("page.html").render(values))
    return out / "report.html"


def with_test_names(study: AnyStudy, part: Part) -> Part:
    """Add the study's names of tests to a part; names of hold-out tests include their rules."""
    if not isinstance(part, RecordsPart):
        return part
    labels = {test: study.label(test) for test in part.records.tests if study.label(test) != test}
    return replace(part, words={"subset": labels, **part.words}) if labels else part


def answer_first(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """Split the parts of a page into the answer (sentences and the first figure before a heading) and the rest."""
    end = next((k for k, part in enumerate(parts) if isinstance(part, Heading)), len(parts))
    figures = [part for part in parts[:end] if isinstance(part, FIGURES)]
    answer = [part for part in parts[:end] if isinstance(part, Sentence)] + figures[:1]
    return answer, [part for part in parts if all(part is not other for other in answer)]


def curves_of(records: Records) -> list[Part]:
    """Return the part that shows how all runs trained, by the labels that vary; none for more than `MOST_CURVES`."""
    places = [arm.place for arm in records.arms if arm.trains]
    names = [
        name
        for name in dict.fromkeys(name for place in places for name in place if name not in ("model", "seed"))
        if 1 < len({place.get(name) for place in places}) <= MOST_VALUES
    ]
    kinds = {tuple(place.get(name) for name in names) for place in places}
    return [Curves("training", records, names, says=TRAINED)] if 0 < len(kinds) <= MOST_CURVES else []


def run_states(study: AnyStudy, records: Records) -> dict[str, Any]:
    seeds = {arm.cell.seed for arm in records.arms if arm.trains} if on_splits(records) else ()
    diverged = [arm for arm in records.arms if records.has_diverged(arm)]
    return {
        "called": study.called,
        "finished": len({arm.id for arm, _ in records.results}),
        "arms": len({arm.id for arm in records.arms}),
        "diverged": {arm.name: reason_in(records.folder(arm), DIVERGED) for arm in diverged},
        "meaning": explain_intervals(len(seeds)) if seeds else "",
    }


def on_splits(records: Records) -> bool:
    """Whether runs are on splits, whose tests have names and animal pairs; else they are on photographs."""
    kinds = {arm.cell.data.kind for arm in records.arms if hasattr(arm.cell, "data")}
    return not kinds or bool(kinds & KINDS.keys())


def steps_of(arm: Arm) -> int:
    """Return the number of steps of a training run, or of the run that trained a scored model; 0 if unknown."""
    return arm.cell.recipe.steps if hasattr(arm.cell, "recipe") else getattr(arm.cell, "trained_steps", 0)


def explain_tests(study: AnyStudy, records: Records) -> dict[str, Any]:
    tests = tests_in_order(records) if on_splits(records) else []
    meanings = {"swap": KINDS[study.kind].swap_words if isinstance(study, SplitStudy) else SWAP} | MEANINGS
    subsets = explain_subsets([subset for subset, _ in tests])
    return {
        "subsets": {name.replace("_", " "): text for name, text in subsets.items()},  # as in tables
        "tasks": {task: text for task, text in meanings.items() if task in {task for _, task in tests}},
    }


def samples_of(records: Records) -> dict[str, list[dict[str, Any]]]:
    """Return sample images of the first split, by subset, with the margins of the first runs of `COMPARED` models."""
    files = [(arm, shown_split(arm)) for arm in records.arms]
    if not (known := [(arm, file) for arm, file in files if file]):
        return {}
    first, runs = known[0][1], {}
    for arm, file in known:
        if file == first and records.result(arm) and (folder := records.folder(arm) / FILE).exists():
            runs.setdefault(short_name(arm.cell.model), folder.parent)
    return sample_images(first, records.tests, tuple(runs.items())[:COMPARED])


def shown_split(arm: Arm) -> Path | None:
    """Return the split file that a run trains on, or that a piece of an evaluation tests on; None for photographs."""
    if not isinstance(getattr(arm.cell, "data", None), SplitData | SplitFile | None):
        return None
    file = arm.file or getattr(arm.cell, "path", None)
    return Path(file) if file and Path(file).is_file() else None


@lru_cache(maxsize=1)  # finished runs don't change, and reports are rewritten after every run
def sample_images(
    split: Path, tests: tuple[str, ...], runs: tuple[tuple[str, Path], ...]
) -> dict[str, list[dict[str, Any]]]:
    """Return sample images of train and of each test that has images, with their captions and margins, by subset."""
    samples, pictures = {}, SplitPictures(read_split(split))
    margins = {name: swap_margins(folder) for name, folder in runs}
    for subset in ("train", *tests):
        if not (count := len(records := pictures.split.subsets.get(subset, ()))):  # of several files not each has all
            continue
        chosen = sorted({count * (2 * i + 1) // (2 * SAMPLES) for i in range(SAMPLES)})
        samples[subset] = [
            {
                **{"uri": image_uri(image), "note": subset, "true": f"✓ {records.captions[i]}"},
                "false": records.negatives[i] and f"✗ {records.negatives[i]}",
                "margins": [
                    f"{name}: {its[key]}"
                    for name, its in margins.items()
                    if (key := (subset, records.scenes[i].key, records.captions[i], records.negatives[i])) in its
                ],
            }
            for image, i in zip(pictures.images(subset, chosen), chosen, strict=True)
        ]
    return samples


def swap_margins(folder: Path) -> dict[tuple[str, ...], str]:
    """Return the margin of each swap, the true caption's score minus the false one's, by subset, scene, true and false
    caption."""
    frame = read_predictions(folder)
    rows = frame[frame["task"] == "swap"].itertuples()
    return {(row.subset, row.scene, row.caption, row.negative): f"{row.margin:+.4g}" for row in rows}


def reported_options(study: AnyStudy) -> dict[str, str]:
    """Return the configuration for the page, without the options that tuned recipes replace."""
    replaced = {"architecture", *(f"recipe.{name}" for name in SEARCHED)} if getattr(study, "tuned", "") else set()
    return {name: text for name, text in flatten_texts(asdict(study.as_recorded())).items() if name not in replaced}


def shared_split_values(records: Records) -> dict[str, str]:
    """Return the kind of all splits, and the fields that their recipes share: `FRACTIONS`, and those that aren't their
    defaults. Empty if kinds differ."""
    of_splits = [arm.cell.data.recipe for arm in records.arms if isinstance(getattr(arm.cell, "data", None), SplitData)]
    recipes = list(dict.fromkeys(of_splits))
    if len({recipe.kind for recipe in recipes}) != 1:
        return {}
    texts, plain = [flatten_texts(asdict(recipe)) for recipe in recipes], flatten_texts(asdict(type(recipes[0])()))
    shared = {name: text for name, text in texts[0].items() if all(other[name] == text for other in texts)}
    listed = {name: text for name, text in shared.items() if text != plain[name] or name in FRACTIONS}
    return {"kind of split": recipes[0].kind, **listed}


TIME = "CPU ms a step"
PARSES = "graphs of a parser"


def describe_models(records: Records, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    models = [
        m for m in dict.fromkeys(arm.cell.model for arm in records.arms if arm.trains) if m in specs() or is_own(m)
    ]
    table = model_table(models, [result for result in results if "loss_negatives" in result])
    about = {short_name(model): explain_model(model) for model in models}
    return {"about": about, "models": styled_table(table) if len(table) else ""}


def model_table(models: Sequence[str], results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Make a table with a row per model with a finished cell: parameters, images of all steps, the median processor
    time of a step, the negatives in its loss, besides the other images and captions of a batch, and if a parser made
    graphs how many captions it couldn't parse."""
    rows, parses = [], any("parsed" in result for result in results)
    for model in models:
        if not (of_model := [result for result in results if result["model"] == model]):
            continue
        sizes = (span(result[name] for result in of_model) for name in ("parameters", "images_seen"))
        timed = [result["provenance"].get("step_cpu_seconds") for result in of_model]
        known = [seconds for seconds in timed if seconds is not None]
        lists = [result["loss_negatives"] for result in of_model]
        names = dict.fromkeys(name for seen in lists for name in seen)
        texts = [name + " (where training has them)" * any(name not in seen for seen in lists) for name in names]
        negatives = ", ".join(texts) or "none"
        if "graphs" not in negatives and spec_of(model).local_loss:
            negatives += " (of altered scene graphs: no caption here states a relation that could be altered)"
        time = f"{1000 * statistics.median(known):.0f}" if known else DASH
        parsed = "; ".join(dict.fromkeys(result["parsed"] for result in of_model if "parsed" in result)) or DASH
        rows.append([short_name(model), *sizes, time, negatives, *([parsed] if parses else [])])
    columns = ["model", "parameters", "images in all steps", TIME, "negatives in its loss"]
    return pd.DataFrame(rows, columns=[*columns, *([PARSES] if parses else [])])
