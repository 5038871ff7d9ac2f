"""The rows of the ablation study: what differs from OC-CLIP, one line of configuration each."""

import ast
from dataclasses import fields, replace
from typing import Any, NamedTuple

from envs.common.errors import UserError, choose
from models.recipe import Recipe
from models.scorers.oc_clip.spec import OCCLIPConfig
from studies.runs.cell import Cell

BASE = "OC-CLIP"
INITIAL = (1.5, 1.0, 0.5, 0.1)  # of alpha and of beta (OC-CLIP, appendix A.1)

# Name -> fields of OCCLIPConfig and Recipe (OC-CLIP, tables 6 and 7, figures 3 and 4, appendix A.1).
ROWS: dict[str, str] = {
    BASE: "",
    "no local loss": "local_weight=0.0",
    "swapped graph only": "local_negatives=('swapped',)",
    "shuffled graph only": "local_negatives=('shuffled',)",
    "regular attention": "competitive=False",
    "no default token": "default_tokens=0",
    "1 default token": "default_tokens=1",
    "joint relation": "relation='joint'",
    "objects in 16": "dim=16",
    "objects in 32": "dim=32",
    "objects in 128": "dim=128",
    "relations in 8": "relation_dim=8",
    "relations in 16": "relation_dim=16",
    "relations in 64": "relation_dim=64",
}
# The grid of initial coefficients; asked for as "coefficients".
COEFFICIENTS = {
    f"alpha {alpha:g}, beta {beta:g}": f"alpha={alpha} beta={beta}"
    for alpha in INITIAL
    for beta in INITIAL
    if (alpha, beta) != (OCCLIPConfig.alpha, OCCLIPConfig.beta)
}
# They change nothing where no caption tells a relation.
RELATIONAL = frozenset({"local_weight", "local_negatives", "relation", "relation_dim", "alpha", "beta"})

_TYPES = {field.name: type(field.default) for config in (Recipe, OCCLIPConfig) for field in fields(config)}


def chosen_rows(asked: tuple[str, ...]) -> dict[str, str]:
    """The rows asked for, by name, as a line such as "dim=32 relation_dim=16", or all "coefficients"; the
    first is always OC-CLIP as it is."""
    rows = {BASE: ROWS[BASE]}
    for name in asked:
        if name == "coefficients":
            rows |= COEFFICIENTS
        elif "=" in name:
            rows[name] = name
        else:
            rows[name] = (ROWS | COEFFICIENTS)[choose("row", name, [*ROWS, *COEFFICIENTS, "coefficients"])]
    for line in rows.values():
        changes(line)
    return rows


def changes(line: str) -> dict[str, Any]:
    """The fields that a line sets; raises for one that there isn't, or a value of another type."""
    found = {}
    for item in line.split():
        name, _, text = item.partition("=")
        wanted = _TYPES[choose("field of a row", name, _TYPES)]
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = text  # a word without quotes
        if wanted is float and type(value) is int:
            value = float(value)
        if wanted is not type(None) and type(value) is not wanted:
            raise UserError(f"row {line!r}: {name} must be of type {wanted.__name__}, got {text!r}")
        found[name] = value
    return found


def matters(line: str, relational: bool) -> bool:
    """Whether a row can differ from OC-CLIP as it is on such a split."""
    return not line or relational or not changes(line).keys() <= RELATIONAL


def changed(cell: Cell, line: str) -> Cell:
    """The cell with a row's fields, tuned ones too."""
    found = changes(line)
    module = {name: value for name, value in found.items() if name in cell.options}
    recipe = {name: value for name, value in found.items() if name not in module}
    return replace(cell, recipe=replace(cell.recipe, **recipe), options=cell.options | module)


class Place(NamedTuple):
    """One training run's place in the tables."""

    split: str
    row: str
