"""The rows that an ablation study can be asked for: those of a paper, groups (`ablations.toml`), and lines."""

from functools import lru_cache

from menagerie.envs.core.errors import UserError, choose
from menagerie.generators.parsers.graph_source import GENERATOR, parser_digest
from menagerie.models.registry import spec_of, specs
from menagerie.models.spec import ScorerSpec
from menagerie.studies.analysis.papers import ABLATIONS, GROUPS, ablations_of
from menagerie.studies.frame.rows import base_row, parse_line


def ablation_spec(model: str) -> ScorerSpec:
    """Return the spec of a model. Raise if there is no such model, or no entry for it in `ABLATIONS`."""
    spec = spec_of(choose("model", model, specs()))
    if spec.name not in ABLATIONS:
        raise UserError(f"{model!r} has no ablations; models that have: {', '.join(ABLATIONS)}")
    return spec


def chosen_rows(spec: ScorerSpec, requested: tuple[str, ...]) -> dict[str, str]:
    """Return the requested rows by name, after that of the unchanged model. A request is a line such as "dim=32
    relation_dim=16", a row, or a group such as "oracle". Without requests, return the model's rows outside groups."""
    groups, base = {**GROUPS, **ablations_of(spec).more}, base_row(spec)
    known = ablations_of(spec).lines | {name: line for group in groups.values() for name, line in group.items()}
    rows: dict[str, str] = {}
    for name in requested or ablations_of(spec).rows:
        if name in groups:
            rows |= groups[name]
        elif "=" in name:
            rows[name] = name
        elif name != base:
            rows[name] = known[choose("row", name, [base, *known, *groups])]
    return {base: ""} | {row: line for row, line in rows.items() if row != base}


@lru_cache(maxsize=4)  # opening a parser may take seconds
def requested_rows(model: str, requested: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the line of each requested row of a model, and why rows are left out whose parser can't run here. Raise
    for an unknown row."""
    rows, left_out, spec = {}, {}, ablation_spec(model)
    for row, line in chosen_rows(spec, requested).items():
        graphs = parse_line(spec, line).get("graphs", GENERATOR)
        try:
            parser_digest(graphs)
        except UserError as error:
            left_out[row] = str(error)
        else:
            rows[row] = line
    return rows, left_out
