"""Assembles a study's page: its answer, its other parts, and the sections on its runs that every page has."""

import operator
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.studies.analysis.spread import is_for_own_pairs
from menagerie.studies.analysis.tables import DASH, flatten_texts, to_latex
from menagerie.studies.analysis.two_levels import explain_intervals
from menagerie.studies.analysis.words import (
    TERMS,
    explain_models,
    explain_subsets,
    explain_tasks,
    records_in,
    smoke_warning,
)
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.cases import cases_with_scores, sample_images
from menagerie.studies.frame.cells import SEARCHED, untuned_models
from menagerie.studies.frame.charts import page_script
from menagerie.studies.frame.draw import drop_former, write_page_part
from menagerie.studies.frame.layout import OF_RECORDS, tests_in_order
from menagerie.studies.frame.parts import (
    FIGURES,
    Curves,
    Heading,
    Part,
    Pictures,
    RecordsPart,
    Sentence,
    check_page_parts,
)
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy, SplitStudy
from menagerie.studies.report.figures import model_label
from menagerie.studies.report.tables import styled_table
from menagerie.studies.runs.cell import DIVERGED, Cell
from menagerie.studies.runs.data import FRACTIONS, SplitData, SplitFile
from menagerie.studies.runs.folder import machines_of_runs
from menagerie.studies.runs.results import reason_in

SWAP = "the hard negative: the same words, exchanged so that the caption is false"
MOST_CURVES = 24  # kinds of runs in one figure
MOST_VALUES = 12  # of a label that is varied; a label with more values is a measured one
TRAINED = """A line for each finished run, or where runs are many for the mean of their seeds. Loss, learning rate and
speed are means of neighbouring steps. Losses differ in kind from model to model, and in the single-object phase, if
there is one, the loss is that of lone animals and falls lower. Validation: accuracy on at most 200 swaps, always the
same; the dotted line is chance. Where towers have learning rates of their own the figure shows the highest. Speed
depends on what else the machine did. All numbers: `cells/*/training.csv`."""


def write_report(study: AnyStudy, records: Records) -> Path:
    """Write the files of all parts of a study's page, and `report.html`.

    `records` has all arms of the study; an arm with a split file must have its `file`.
    """
    out, results = records.out, [result for _, result in records.results]
    parts = check_page_parts(with_test_names(study, part) for part in study.page(records)) if results else []
    answer, rest = answer_first(parts)
    training = [] if any(isinstance(part, Curves) for part in parts) else curves_of(records)
    every = [*answer, *rest, *training]
    drop_former(every, out)
    shown = {id(part): write_page_part(part, out) for part in every}
    if first := next((its for its in shown.values() if its["kind"] == "table"), None):
        write_text(out / "results.tex", to_latex(first["frame"], first["caption"]))
    values: dict[str, Any] = dict(
        title=study.title,
        answer=[shown[id(part)] for part in answer],
        cases=cases_with_scores(records),
        rest=[shown[id(part)] for part in rest],
        training=[shown[id(part)] for part in training],
        **run_states(study, records),
        **describe_models(records, results),
        **explain_tests(study, records),
        seen=samples_of(records),
        untuned=untuned_models(study) if isinstance(study, SplitStudy) else [],
        config=shared_split_values(records) | reported_options(study) | varied_fields(records),
        remarks=study.notes(),
        notes=machines_of_runs(out, results),
        charts=page_script() if any(its["kind"] == "chart" for its in shown.values()) else "",
        smoke=smoke_warning(steps_of_runs(records), records_in(results)),
    )
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["combine"] = operator.or_
    page = environment.get_template("page.html")
    terms = terms_in(page.render(values | {"charts": ""}, terms={}), TERMS)
    write_text(out / "report.html", page.render(values, terms=terms))
    return out / "report.html"


def terms_in(page: str, terms: Mapping[str, str]) -> dict[str, str]:
    """Choose the terms that occur in the text of a page, in singular or plural, or with underscores as a field's name;
    returns them with their meanings."""
    text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", page)
    patterns = {term: r"[\s_-]+".join(map(re.escape, re.split(r"[\s-]", term))) for term in terms}
    return {term: terms[term] for term, words in patterns.items() if re.search(rf"\b{words}s?\b", text, re.IGNORECASE)}


def with_test_names(study: AnyStudy, part: Part) -> Part:
    """Add the study's names of tests to a part; names of hold-out tests include their rules."""
    if not isinstance(part, RecordsPart):
        return part
    labels = {test: study.label(test) for test in part.records.tests if study.label(test) != test}
    return replace(part, words={"subset": labels, **part.words}) if labels else part


def answer_first(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """Split the parts of a page into the answer and the rest. The answer is all sentences, the first figure and the
    first pictures before the first heading."""
    end = next((k for k, part in enumerate(parts) if isinstance(part, Heading)), len(parts))
    sentences = [part for part in parts[:end] if isinstance(part, Sentence)]
    figures = [part for part in parts[:end] if isinstance(part, FIGURES)]
    pictures = [part for part in parts[:end] if isinstance(part, Pictures)]
    answer = [*sentences, *figures[:1], *pictures[:1]]
    return answer, [part for part in parts if all(part is not other for other in answer)]


def curves_of(records: Records) -> list[Part]:
    """Return a part that shows how all runs trained, with a curve for each combination of the labels that vary; an
    empty list if there are more than `MOST_CURVES` combinations."""
    places = [arm.place for arm in records.arms if arm.trains]
    names = [
        name
        for name in dict.fromkeys(name for place in places for name in place if name not in ("model", "seed"))
        if 1 < len({place.get(name) for place in places}) <= MOST_VALUES
    ]
    kinds = {tuple(place.get(name) for name in names) for place in places}
    return [Curves("training", records, names, says=TRAINED)] if 0 < len(kinds) <= MOST_CURVES else []


def run_states(study: AnyStudy, records: Records) -> dict[str, Any]:
    """Describe how many runs are finished, which diverged, and what intervals mean."""
    trained = [arm for arm in records.arms if arm.trains] if on_splits(records) else []
    return {
        "called": study.called,
        "finished": len({arm.id for arm, _ in records.results}),
        "arms": len({arm.id for arm in records.arms}),
        "diverged": {
            arm.name: reason_in(records.folder(arm), DIVERGED) for arm in records.arms if records.has_diverged(arm)
        },
        "meaning": intervals_meaning(trained, records) if trained else "",
    }


def on_splits(records: Records) -> bool:
    """Whether runs are on splits, whose tests have names and animal pairs; else they are on photographs."""
    kinds = {arm.cell.data.kind for arm in records.arms if hasattr(arm.cell, "data")}
    return not kinds or bool(kinds & KINDS.keys())


def intervals_meaning(trained: Sequence[Arm], records: Records) -> str:
    """Explain the intervals of these runs, which depend on whether seeds share splits and few test pairs."""
    seeds: dict[Any, set[int]] = {}
    for arm in trained:
        seeds.setdefault(getattr(arm.cell, "data", arm.id), set()).add(arm.cell.seed)
    points, few = records.where(subset=records.tests, task="swap").points, False
    if len(points):
        runs = [name for name in points.columns if name not in OF_RECORDS | {"seed"}]
        tested = points[[*runs, "subset", "seed", "animals"]].drop_duplicates()
        of_tests = tested.groupby([*runs, "subset"], sort=False, dropna=False)["animals"]
        few = any(is_for_own_pairs(np.ones((len(pairs), 1)), pairs.tolist())[0] for _, pairs in of_tests)
    return explain_intervals(len(set.union(*seeds.values())), all(len(its) > 1 for its in seeds.values()), few)


def describe_models(records: Records, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Describe the models and their runs."""
    models = list(dict.fromkeys(arm.cell.model for arm in records.arms if arm.trains and is_scorer(arm.cell.model)))
    trained = [result for result in results if "loss_negatives" in result]
    table = model_table(models, trained)
    return {"about": explain_models(models), "models": styled_table(table) if len(table) else ""}


def is_scorer(model: str) -> bool:
    """Whether a model is one of our scorers or a user's class, not a file or a run."""
    try:
        spec_of(model)
    except UserError:
        return False
    return True


def explain_tests(study: AnyStudy, records: Records) -> dict[str, Any]:
    """Explain the subsets and tasks that the runs have."""
    tests = tests_in_order(records) if on_splits(records) else []
    swap = KINDS[study.kind].swap_words if isinstance(study, SplitStudy) else SWAP
    subsets = explain_subsets([subset for subset, _ in tests])
    return {
        "subsets": {name.replace("_", " "): text for name, text in subsets.items()},  # as in tables
        "tasks": explain_tasks([task for _, task in tests], swap),
    }


def samples_of(records: Records) -> dict[str, list[dict[str, str]]]:
    """Return sample images of the first split, by subset."""
    files = [arm.file for arm in records.arms if arm.file and isinstance(arm.cell.data, SplitData | SplitFile)]
    return sample_images(files[0], records.tests) if files else {}


def reported_options(study: AnyStudy) -> dict[str, str]:
    """Return the configuration for the page, without the options that tuned recipes replace; the study's notes list
    these recipes."""
    replaced = {"architecture", *(f"recipe.{name}" for name in SEARCHED)} if getattr(study, "tuned", "") else set()
    return {name: text for name, text in flatten_texts(asdict(study.as_recorded())).items() if name not in replaced}


def shared_split_values(records: Records) -> dict[str, str]:
    """Return the kind of all splits and the values that all their recipes share: `FRACTIONS`, and fields that differ
    from their defaults. Empty if kinds differ. The study's options override these."""
    recipes = list(dict.fromkeys(arm.cell.data.recipe for arm in records.arms if trains_on(arm, SplitData)))
    if len({recipe.kind for recipe in recipes}) != 1:
        return {}
    texts, plain = [flatten_texts(asdict(recipe)) for recipe in recipes], flatten_texts(asdict(type(recipes[0])()))
    shared = {name: text for name, text in texts[0].items() if all(other[name] == text for other in texts)}
    listed = {name: text for name, text in shared.items() if text != plain[name] or name in FRACTIONS}
    return {"kind of split": recipes[0].kind, **listed}


def varied_fields(records: Records) -> dict[str, str]:
    """Return the fields of the training recipe in which runs of one model differ, with their values."""
    recipes: dict[str, dict[Recipe, None]] = {}  # each once, as there may be thousands of arms
    for arm in records.arms:
        if trains_on(arm, object):
            recipes.setdefault(arm.cell.model, {})[arm.cell.recipe] = None
    values: dict[str, dict[str, None]] = {}
    for of_model in recipes.values():
        texts = [flatten_texts(asdict(recipe)) for recipe in of_model]
        for name in texts[0]:
            if len(found := dict.fromkeys(text[name] for text in texts)) > 1:
                values.setdefault(name, {}).update(found)
    return {f"recipe.{name}": f"varies: {', '.join(found)}" for name, found in values.items()}


def trains_on(arm: Arm, kind: type) -> bool:
    """Whether an arm is a training run on data of a kind."""
    return isinstance(arm.cell, Cell) and isinstance(arm.cell.data, kind)


def steps_of_runs(records: Records) -> list[int]:
    """List the numbers of steps of all training runs, and of the runs that trained the scored models."""
    cells = [arm.cell for arm in records.arms]
    trained = [cell.recipe.steps for cell in cells if hasattr(cell, "recipe")]
    return trained + [cell.tested.steps for cell in cells if hasattr(cell, "tested")]


TIME = "CPU ms a step"


def model_table(models: Sequence[str], results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Make a table with a row per model with a finished cell: parameters, images of all steps, processor time of a
    step, and the negatives in its loss. If a model's loss against altered scene graphs has no such negatives, the row
    says why."""
    rows = []
    for model in models:
        of_model = [result for result in results if result["model"] == model]
        if of_model:
            sizes = (range_text(of_model, name) for name in ("parameters", "images_seen"))
            negatives = negatives_seen(of_model)
            if "graphs" not in negatives and spec_of(model).local_loss:
                negatives += " (of altered scene graphs: no caption here states a relation that could be altered)"
            rows.append([model_label(model), *sizes, step_time(of_model), negatives])
    columns = ["model", "parameters", "images in all steps", TIME, "negatives in its loss"]
    return pd.DataFrame(rows, columns=columns)


def range_text(of_model: Sequence[dict[str, Any]], name: str) -> str:
    """Write a number of a model's cells; if they differ, the least and the most: "100 to 200"."""
    least, most = (choose(result[name] for result in of_model) for choose in (min, max))
    return f"{least}" if least == most else f"{least} to {most}"


def step_time(of_model: Sequence[dict[str, Any]]) -> str:
    """Return the median processor time of a step over cells, in milliseconds; a dash where none was timed."""
    timed = [result["provenance"].get("step_cpu_seconds") for result in of_model]
    known = [seconds for seconds in timed if seconds is not None]
    return f"{1000 * statistics.median(known):.0f}" if known else DASH


def negatives_seen(of_model: Sequence[dict[str, Any]]) -> str:
    """Name the negatives in a model's losses, besides the other images and captions of a batch."""
    lists = [result["loss_negatives"] for result in of_model]
    names = dict.fromkeys(name for seen in lists for name in seen)
    texts = [name if all(name in seen for seen in lists) else f"{name} (where training has them)" for name in names]
    return ", ".join(texts) or "none"
