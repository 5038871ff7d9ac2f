"""Rows against a base row: each is a run that differs from the base by a line, such as "dim=32 layers=1".

A line sets fields of the training recipe, of the model's options, of the graphs that are read (`GraphSource`) and of
the split's recipe, or the towers' `architecture` and `resolution`; `model=NAME` replaces the model.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache, lru_cache
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.generators.parsers.graph_source import GENERATOR, GraphSource, parser_digest
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of, specs
from menagerie.models.spec import ScorerSpec
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.analysis.papers import ABLATIONS, GROUPS, ablations_of
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.claims import Verdict, make_verdict, sign_of_effect
from menagerie.studies.frame.parts import Bars, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.runs.data import FRACTIONS, CellData

Columns = tuple[tuple[str, str], ...]
"""Subset and task of each column."""
# Kind of split -> subset and task of each column of its tables.
COLUMNS: dict[str, Columns] = {
    "spatial": tuple(
        (f"{relation}_{test}", "swap")
        for test in ("unseen_order", "unseen_pairs", "seen_order")
        for relation in ("left_right", "above_under")
    ),
    "binding": (
        *(("unseen_pairs", "swap"), ("seen_pairs", "swap")),
        *(("unseen_pairs", "replace texture"), ("unseen_pairs", "one animal")),
    ),
}
BOTH = ("subset", "task")


def base_row(spec: ScorerSpec) -> str:
    """Return the name of the unchanged model's row."""
    return spec.title or spec.name


def ablation_spec(model: str) -> ScorerSpec:
    """Return the spec of a model. Raise if there is no such model, or no entry for it in `ABLATIONS`."""
    spec = spec_of(choose("model", model, specs()))
    if spec.name not in ABLATIONS:
        raise UserError(f"{model!r} has no ablations; models that have: {', '.join(ABLATIONS)}")
    return spec


@lru_cache(maxsize=4)  # opening a parser may take seconds
def requested_rows(model: str, requested: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the line of each requested row of a model, the unchanged model's first, and why rows are left out whose
    parser can't run here. A request is a line, a row, or a group; without any, all rows outside groups are taken."""
    spec = ablation_spec(model)
    groups, base = {**GROUPS, **ablations_of(spec).more}, base_row(spec)
    known = ablations_of(spec).lines | {name: line for group in groups.values() for name, line in group.items()}
    rows, left_out = {base: ""}, {}
    for name in requested or ablations_of(spec).rows:
        if name in groups:
            rows |= groups[name]
        elif name != base:
            rows[name] = name if "=" in name else known[choose("row", name, [base, *known, *groups])]
    for row, line in (rows | {base: ""}).items():
        graphs = parse_line(spec, line).get("graphs", GENERATOR)
        try:
            parser_digest(graphs)
        except UserError as error:
            left_out[row] = str(error)
    return {row: line for row, line in (rows | {base: ""}).items() if row not in left_out}, left_out


@cache  # imported here, so that `--help` doesn't load SciPy
def split_fields() -> dict[str, dict[str, Any]]:
    """Return, for each kind of split, the fields of its recipe that rows may set, with their defaults."""
    from menagerie.generators.splits.recipe_file import KINDS

    return {kind: {i.name: i.default for i in fields(recipe) if i.name != "seed"} for kind, recipe in KINDS.items()}


def model_in_line(spec: ScorerSpec, line: str) -> str:
    named = [item.partition("=")[2] for item in line.split() if item.startswith("model=")]
    return choose("model", named[-1], specs()) if named else spec.name


def parse_line(spec: ScorerSpec, line: str) -> dict[str, Any]:
    """Return the fields that a line sets, with their values. Raises for an unknown field, a value of the wrong type,
    and graphs that the row's model doesn't read."""
    model = model_in_line(spec, line)
    owners = (GraphSource, Recipe, spec_of(model).config)
    defaults = [*split_fields().values(), *({item.name: item.default for item in fields(owner)} for owner in owners)]
    defaults.append({name: getattr(TowerConfig, name) for name in ("architecture", "resolution")})
    types = {name: type(default) for values in defaults for name, default in values.items()}
    given = (item.partition("=")[::2] for item in line.split() if not item.startswith("model="))
    values = {
        name: parse_value(line, choose("field of a row", name, [*types, "model"]), text, types) for name, text in given
    }
    graphs = GraphSource(**{item.name: values[item.name] for item in fields(GraphSource) if item.name in values})
    if not graphs.plain and "graphs" not in spec_of(model).reads:
        raise UserError(f"row {line!r}: {model} reads no scene graphs; name a model that does, or leave them out")
    return values


def parse_value(line: str, name: str, text: str, types: Mapping[str, type]) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text  # a word without quotes
    wanted = types[name]
    if wanted is float and type(value) is int:
        value = float(value)
    if wanted is not type(None) and type(value) is not wanted:
        raise UserError(f"row {line!r}: {name} must be of type {wanted.__name__}, got {text!r}")
    return value


def can_matter(spec: ScorerSpec, line: str, kind: str) -> bool:
    """Whether to train a row on splits of a kind: whether it can change something there, or is the unchanged model."""
    from menagerie.generators.splits.recipe_file import KINDS

    names, model = parse_line(spec, line).keys(), model_in_line(spec, line)
    trained_with = {item.name for owner in (Recipe, spec_of(model).config) for item in fields(owner)}
    of_splits = {name for names in split_fields().values() for name in names} - trained_with
    if not names & of_splits <= split_fields()[kind].keys():
        return False
    relational = {*ablations_of(spec).relational}
    return not line or model != spec.name or KINDS[kind].relational or not names <= relational


def row_arm(study: SplitStudy, spec: ScorerSpec, line: str, seed: int, labels: Mapping[str, Any]) -> Arm:
    """Return the run of a row at the study's first place; a stage before the model keeps its own training recipe."""
    model, values = model_in_line(spec, line), parse_line(spec, line)
    training = {item.name: values.pop(item.name) for item in fields(Recipe) if item.name in values}
    place = {name: getattr(study, name)[0] for name in FRACTIONS if hasattr(study, name)} | values
    try:
        files = study.files
        arm = study.of_file(model, seed, *files, **values) if files else study.at(model, seed, **place)
    except UserError as error:
        raise error.at(f"row {line!r}") from error
    return arm._replace(cell=replace(arm.cell, recipe=replace(arm.cell.recipe, **training)), labels=labels)


def table_columns(data: CellData) -> Columns:
    """Return subset and task of each column of a split's table. Tests of hold-out rules come last."""
    usual = COLUMNS.get(data.kind, tuple((test, "swap") for test in data.tests))
    rules = tuple((test, "swap") for test in data.tests if test.startswith(HELD_OUT))
    return tuple(column for column in usual if column[0] in data.tests and column not in rules) + rules


def column_name(subset: str, task: str) -> str:
    """Write a test in words: its subset, and its task unless that is swap."""
    return subset.replace("_", " ") + ("" if task == "swap" else f": {task}")


def row_claims(spec: ScorerSpec, split: str, records: Records) -> Iterator[Verdict]:
    """Yield the verdicts on what a model's paper claims of rows on a kind of split."""
    for claim in ablations_of(spec).claims:
        if claim.split == split:
            found = records.where(test=claim.tests).estimates(("row",), {"row": base_row(spec)})
            tests = f"{split}: {', '.join(column_name(*test) for test in claim.tests)}"
            yield make_verdict(claim.text, claim.row, tests, found.get((claim.row,)), claim.sign)


def row_parts(name: str, records: Records, base: str, **look: Any) -> Iterator[Part]:
    """Yield how many rows differ from the base row, and their accuracy and differences. `look` is for the first
    table."""
    found = {row: its for (row,), its in records.estimates(("row",), {"row": base}).items()}
    if found:
        signs = list(map(sign_of_effect, found.values()))
        lowest = min(found, key=lambda row: found[row].value)
        counts = f"{signs.count(-1)} of {len(found)} rows are lower than {base} by more than chance and "
        counts += f"{signs.count(1)} higher"
        yield Sentence(f"Over these tests {counts}; the lowest is {lowest}, {found[lowest]} points.")
    dots = f"Accuracy of each row, a panel for each test; pale dots are seeds. Dashed: {base}."
    yield Bars(name, records, ("row",), panels=BOTH, dots=True, beside=records.where(row=base), says=dots)
    yield Table(f"accuracy-{name}", records, ("row",), BOTH, says="Accuracy in percent, mean and deviation.", **look)
    above = f"Percentage points above {base} on the same records, or on the same animals if scenes differ."
    yield Table(f"differences-{name}", records, ("row",), BOTH, against={"row": base}, says=above)


def explain_rows(spec: ScorerSpec, lines: Mapping[str, str]) -> dict[str, str]:
    """Explain what each row changes: in words, if its model has them, and by its line. Skip the unchanged model."""
    known = ablations_of(spec).rows
    words = {row: known[row][1] if row in known else "" for row in lines}
    return {row: "; ".join(filter(None, (words[row], line))) for row, line in lines.items() if line}
