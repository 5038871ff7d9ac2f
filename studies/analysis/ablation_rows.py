"""The rows of an ablation study: each changes the model by one line of configuration.

Rows come from a model's paper (`papers.py`), from the study (`groups`), or from the command line. A line sets fields of
the training recipe, of the model's options, of the graphs that are read (`GraphSource`) and of the split's recipe, or
the towers' `architecture`; `model=NAME` replaces the ablated model.

The study has four groups of its own:

`oracle`: do scene graphs explain the gain, which CLIP doesn't read? Rows with CLIP, with other models that read the
same graphs, with errors in the graphs, and with graphs that a parser makes from the caption alone.

`negatives`: every model with and without swapped captions as negatives; training without false-negative masks, without
the single-object phase, and with all single animals in the centre. Of the controls only those of `oracle` are included.

`losses`: CLIP and SigLIP with the losses that other models add to them, for the same towers and scores.

`partial`: training captions that leave out objects and textures, with kinds of attention that differ in how they treat
objects that a test's caption leaves out."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.generators.parsers.graph_source import GENERATOR, GRAPHS_AT, GraphSource, parser_digest
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of, specs
from menagerie.models.spec import ScorerSpec
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.analysis.papers import ABLATIONS, ablations_of

SHARES = (0.05, 0.1, 0.2)
ERRORS = {"dropped_nodes": "nodes dropped", "moved_attributes": "attributes moved"}
WHERE = {"train": "in training", "test": "in tests", "both": "in both"}
PARSERS = ("rules", "spacy-rules")
CONTROLS = ("clip", "clip-phrases", "filip-phrases")
LOSSES = ("clip", "negclip", "ce-clip", "fsc-clip", "read-clip", "cs-clip", "siglip", "c2lip")
# Parts of training besides the model, each of which is left out in turn.
PARTS = {
    "no false-negative mask": "mask_false_negatives=False",
    "no single-object phase": "single_object_phase=0.0",
    "single objects in the centre": "singles_slots=('center',)",
}
# What training captions leave out. Captions of spatial splits state a relation, so they mention both objects.
LEFT_OUT = {
    "": "",
    "attributes left out": "attributes=0.8",
    "objects and attributes left out": "mentioned=0.7 attributes=0.8",
}
ATTENTION = ("regular attention", "focused competition")  # rows of a model that has them


def groups(spec: ScorerSpec) -> dict[str, Mapping[str, str]]:
    """Return the study's rows for a model, by the name of their group."""
    losses = {base_row(specs()[model]): f"model={model}" for model in LOSSES if model != spec.name}
    made = {"oracle": oracle(spec), "negatives": negatives(spec), "partial": partial(spec)}
    return {"losses": losses} | {name: dict(rows) for name, rows in made.items()}


def oracle(spec: ScorerSpec) -> Iterator[tuple[str, str]]:
    """Yield rows with other models and, if this model reads graphs, with other graphs."""
    others = [model for model in CONTROLS if model in specs() and model != spec.name]
    yield from ((base_row(specs()[model]), f"model={model}") for model in others)
    if "graphs" not in spec.reads:
        return
    for name, what in ERRORS.items():
        for share in SHARES:
            for place in GRAPHS_AT:
                yield f"{share:.0%} {what} {WHERE[place]}", f"{name}={share} graphs_at={place}"
    yield from ((f"graphs of {parser}", f"graphs={parser}") for parser in PARSERS)


def negatives(spec: ScorerSpec) -> Iterator[tuple[str, str]]:
    """Yield rows of every system with and without swapped captions, and rows that change one part of training."""
    for model, other in specs().items():
        if other.control and model not in CONTROLS:
            continue
        if model != spec.name:
            yield base_row(specs()[model]), f"model={model}"
        if other.takes_negatives and "captions" not in other.negatives:  # else it has them without the option
            yield f"{base_row(specs()[model])}, swapped captions", f"model={model} text_negatives=('swap',)"
    if spec.local_loss:  # it has false relations as negatives without the option
        yield "no local loss", "local_weight=0.0"
        yield "swapped captions in place of the local loss", "local_weight=0.0 text_negatives=('swap',)"
    for model in dict.fromkeys(("clip", spec.name)):
        yield from ((f"{base_row(specs()[model])}, {what}", f"model={model} {line}") for what, line in PARTS.items())


def partial(spec: ScorerSpec) -> Iterator[tuple[str, str]]:
    """Yield rows that combine every way of leaving objects out of captions with every kind of attention, except the
    unchanged model."""
    attentions = {"": ""} | {name: line for name, line in ablations_of(spec).rows.items() if name in ATTENTION}
    for left_out, settings in LEFT_OUT.items():
        for attention, option in attentions.items():
            if name := ", ".join(filter(None, (left_out, attention))):
                yield name, " ".join(filter(None, (settings, option)))


# Fields of a split's recipe that belong to the study and its seeds.
STUDYS_OWN = {"world", "seed"}
GRAPH_FIELDS = {item.name for item in fields(GraphSource)}


def ablation_spec(model: str) -> ScorerSpec:
    """Return the spec of a model. Raise if there is no such model, or no entry for it in `ABLATIONS`."""
    spec = spec_of(choose("model", model, specs()))
    if spec.name not in ABLATIONS:
        raise UserError(f"{model!r} has no ablations; models that have: {', '.join(ABLATIONS)}")
    return spec


def base_row(spec: ScorerSpec) -> str:
    """Return the name of the unchanged model's row."""
    return spec.title or spec.name


def groups_of(spec: ScorerSpec) -> dict[str, Mapping[str, str]]:
    """Return the groups of rows that can be requested by a name: those of the model's paper and those of the study."""
    return dict(ablations_of(spec).more) | groups(spec)


def all_rows(spec: ScorerSpec) -> dict[str, str]:
    """Return every row that has a name, including those of groups."""
    grouped = {name: line for group in groups_of(spec).values() for name, line in group.items()}
    return dict(ablations_of(spec).rows) | grouped


def chosen_rows(spec: ScorerSpec, requested: tuple[str, ...]) -> dict[str, str]:
    """Return the requested rows by name, after that of the unchanged model. A request is a line such as "dim=32
    relation_dim=16", a row, or a group such as "oracle". Without requests, return the model's rows outside groups."""
    together, rows = groups_of(spec), {base_row(spec): ""}
    for name in requested or ablations_of(spec).rows:
        if name in together:
            rows |= together[name]
        elif "=" in name:
            rows[name] = name
        elif name != base_row(spec):
            known = all_rows(spec)
            rows[name] = known[choose("row", name, [base_row(spec), *known, *together])]
    for line in rows.values():
        parse_line(spec, line)
    return rows


def kinds() -> Mapping[str, type[SplitRecipe]]:
    """Return the kinds of splits. Imported here, so that `--help` doesn't load SciPy."""
    from menagerie.generators.splits.recipe_file import KINDS

    return KINDS


def split_fields(kind: type[SplitRecipe]) -> dict[str, Any]:
    """Return the fields of a kind of split that rows may set, with their defaults."""
    return {item.name: item.default for item in fields(kind) if item.name not in STUDYS_OWN}


def types_of(spec: ScorerSpec) -> dict[str, type]:
    """Return the fields that a row of a model may set, with their types."""
    defaults = [split_fields(kind) for kind in kinds().values()]
    defaults += [{item.name: item.default for item in fields(owner)} for owner in (GraphSource, Recipe, spec.config)]
    defaults.append({"architecture": TowerConfig.architecture})
    return {name: type(default) for values in defaults for name, default in values.items()}


def model_in_line(spec: ScorerSpec, line: str) -> str:
    named = [item.partition("=")[2] for item in line.split() if item.startswith("model=")]
    return choose("model", named[-1], specs()) if named else spec.name


def parse_line(spec: ScorerSpec, line: str) -> dict[str, Any]:
    """Return the fields that a line sets, with their values. Raises for an unknown field, a value of the wrong type,
    and graphs that the row's model doesn't read."""
    model = model_in_line(spec, line)
    types = types_of(spec_of(model))
    given = (item.partition("=")[::2] for item in line.split() if not item.startswith("model="))
    values = {
        name: parse_value(line, choose("field of a row", name, [*types, "model"]), text, types) for name, text in given
    }
    graphs = GraphSource(**{name: value for name, value in values.items() if name in GRAPH_FIELDS})
    if not graphs.plain and "graphs" not in spec_of(model).reads:
        raise UserError(f"row {line!r}: {model} reads no scene graphs; name a model that does, or leave them out")
    return values


def parse_value(line: str, name: str, text: str, types: Mapping[str, type]) -> Any:
    """Return a field's value; raise if it isn't of the field's type."""
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
    names, recipe = parse_line(spec, line).keys(), kinds()[kind]
    trained_with = {
        item.name for owner in (Recipe, spec_of(model_in_line(spec, line)).config) for item in fields(owner)
    }
    of_splits = {name for one in kinds().values() for name in split_fields(one)} - trained_with
    if not names & of_splits <= split_fields(recipe).keys():
        return False
    other = model_in_line(spec, line) != spec.name
    return not line or other or recipe.relational or not names <= ablations_of(spec).relational


def explain_rows(spec: ScorerSpec, rows: Sequence[str]) -> dict[str, str]:
    """Explain what each row changes: in words, if its model has them, and by options. Skip the unchanged model."""
    lines, words = all_rows(spec), ablations_of(spec).says
    texts = {row: "; ".join(filter(None, (words.get(row), lines.get(row)))) for row in dict.fromkeys(rows)}
    return {row: text or "a line of configuration" for row, text in texts.items() if row != base_row(spec)}


class AblationRows(NamedTuple):
    """The rows of a study."""

    lines: Mapping[str, str]
    """The options that each row changes, by the row's name."""
    left_out: Mapping[str, str]
    """For each row that was left out, why its parser can't run here."""


@lru_cache(maxsize=4)  # opening a parser may take seconds
def requested_rows(model: str, requested: tuple[str, ...]) -> AblationRows:
    """Return the requested rows of a model, and why some are left out. Raise for an unknown row."""
    rows, left_out, spec = {}, {}, ablation_spec(model)
    for row, line in chosen_rows(spec, requested).items():
        try:
            parser_digest(parse_line(spec, line).get("graphs", GENERATOR))
        except UserError as error:
            left_out[row] = str(error)
        else:
            rows[row] = line
    return AblationRows(rows, left_out)
