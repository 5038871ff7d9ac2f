"""The rows that an ablation study can be asked for: those of a model's paper (`ablations.toml`), groups of the study's
own, and lines of configuration."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from menagerie.envs.core.errors import UserError, choose
from menagerie.generators.parsers.graph_source import GENERATOR, GRAPHS_AT, parser_digest
from menagerie.models.registry import spec_of, specs
from menagerie.models.spec import ScorerSpec
from menagerie.studies.analysis.papers import ABLATIONS, ablations_of
from menagerie.studies.frame.rows import base_row, parse_line

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


def groups_of(spec: ScorerSpec) -> dict[str, Mapping[str, str]]:
    """Return the groups of rows that can be requested by a name: those of the model's paper and those of the study.

    `oracle`: do scene graphs explain the gain, which CLIP doesn't read? `negatives`: every model with and without
    swapped captions as negatives, and training without one of its parts. `losses`: CLIP and SigLIP with the losses that
    other models add to them. `partial`: captions that leave out objects and textures, with kinds of attention that
    differ in how they treat objects that a test's caption leaves out.
    """
    losses = {base_row(specs()[model]): f"model={model}" for model in LOSSES if model != spec.name}
    made = {"oracle": oracle(spec), "negatives": negatives(spec), "partial": partial_captions(spec)}
    return {**ablations_of(spec).more, "losses": losses} | {name: dict(rows) for name, rows in made.items()}


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


def partial_captions(spec: ScorerSpec) -> Iterator[tuple[str, str]]:
    """Yield rows that combine every way of leaving objects out of captions with every kind of attention, except the
    unchanged model."""
    attentions = {"": ""} | {name: line for name, line in ablations_of(spec).lines.items() if name in ATTENTION}
    for left_out, settings in LEFT_OUT.items():
        for attention, option in attentions.items():
            if name := ", ".join(filter(None, (left_out, attention))):
                yield name, " ".join(filter(None, (settings, option)))


def ablation_spec(model: str) -> ScorerSpec:
    """Return the spec of a model. Raise if there is no such model, or no entry for it in `ABLATIONS`."""
    spec = spec_of(choose("model", model, specs()))
    if spec.name not in ABLATIONS:
        raise UserError(f"{model!r} has no ablations; models that have: {', '.join(ABLATIONS)}")
    return spec


def chosen_rows(spec: ScorerSpec, requested: tuple[str, ...]) -> dict[str, str]:
    """Return the requested rows by name, after that of the unchanged model. A request is a line such as "dim=32
    relation_dim=16", a row, or a group such as "oracle". Without requests, return the model's rows outside groups."""
    groups, rows = groups_of(spec), {base_row(spec): ""}
    known = ablations_of(spec).lines | {name: line for group in groups.values() for name, line in group.items()}
    for name in requested or ablations_of(spec).rows:
        if name in groups:
            rows |= groups[name]
        elif "=" in name:
            rows[name] = name
        elif name != base_row(spec):
            rows[name] = known[choose("row", name, [base_row(spec), *known, *groups])]
    for line in rows.values():
        parse_line(spec, line)
    return rows


@lru_cache(maxsize=4)  # opening a parser may take seconds
def requested_rows(model: str, requested: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the line of each requested row of a model, and why rows are left out whose parser can't run here. Raise
    for an unknown row."""
    rows, left_out, spec = {}, {}, ablation_spec(model)
    for row, line in chosen_rows(spec, requested).items():
        try:
            parser_digest(parse_line(spec, line).get("graphs", GENERATOR))
        except UserError as error:
            left_out[row] = str(error)
        else:
            rows[row] = line
    return rows, left_out
