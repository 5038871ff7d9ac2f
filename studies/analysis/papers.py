"""The parts of models that the ablation study varies, and what the papers claim about these parts: OC-CLIP's tables 6
and 7 and figures 3 and 4; SPARO's table 6, between attentional pooling and SPARO; DCSM's functional words.

Rows and claims are in `ablations.toml`, except the many rows of OC-CLIP's weights (appendix A.1) and sizes (figure 4).
In table 6 of SPARO's paper the towers keep their last blocks in all rows but SPARO; here each row has one change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from menagerie.envs.core.reading import read_toml
from menagerie.models.scorers import oc_clip
from menagerie.models.spec import ScorerSpec


@dataclass(frozen=True)
class Claim:
    """A paper's claim: on `columns` (subset, task) `row` is lower (`sign` -1) or higher (1) than the unchanged
    model."""

    row: str
    split: str
    columns: tuple[tuple[str, str], ...]
    sign: int
    text: str


@dataclass(frozen=True, eq=False)
class Ablations:
    """What `studies/ablations.py` varies of a model: named rows, each with the options that it changes, such as
    {"narrow": "dim=16"}."""

    rows: Mapping[str, str]
    says: Mapping[str, str] = field(default_factory=dict)
    """For each row, the words of reports for its change."""
    more: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Groups of further rows that are requested together, by name."""
    planes: tuple[tuple[str, str], ...] = ()
    """Pairs of options that groups vary together; the report has a heat map of a pair if the study has all its
    values."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """For each option, the text of axes beside its name."""
    relational: frozenset[str] = frozenset()
    """Fields that change nothing if no caption states a relation."""
    ratio: tuple[str, str] | None = None
    """Two scalar weights whose ratio after training the report shows."""
    ratio_says: str = ""
    """The report's sentence on this ratio."""
    claims: tuple[Claim, ...] = ()


INITIAL = (1.5, 1.0, 0.5, 0.1)  # of alpha and of beta (appendix A.1)
DEFAULTS = (1.5, 0.5)
SIZES = {"dim": (16, 32, 64, 128), "relation_dim": (8, 16, 32, 64)}  # figure 4, in sizes for small towers
WORDS = {"dim": ("objects", "objects"), "relation_dim": ("relations", "relations")}
SMALL = {name: oc_clip.OC_CLIP.small[name] for name in SIZES}


def size_row(**sizes: int) -> tuple[str, str]:
    """Return the name and the line of a row with these sizes, without those that are the defaults of small towers."""
    others = {name: size for name, size in sizes.items() if size != SMALL[name]}
    name = ", ".join(f"{WORDS[name][0]} in {size}" for name, size in others.items())
    return name, " ".join(f"{name}={size}" for name, size in others.items())


def size_rows() -> dict[str, Any]:
    """Return OC-CLIP's rows that vary one size, and its groups of rows: coefficients, and both sizes together."""
    alone = {size_row(**{name: size})[0]: (name, size) for name, sizes in SIZES.items() for size in sizes}
    alone.pop("")  # as it is
    coefficients = [pair for pair in product(INITIAL, INITIAL) if pair != DEFAULTS]
    both = [dict(zip(SIZES, pair, strict=True)) for pair in product(*SIZES.values())]
    return {
        "rows": {row: f"{name}={size}" for row, (name, size) in alone.items()},
        "says": {row: f"{WORDS[name][1]} have vectors of {size} numbers" for row, (name, size) in alone.items()},
        "more": {
            "coefficients": {f"alpha {a:g}, beta {b:g}": f"alpha={a} beta={b}" for a, b in coefficients},
            "dimensions": dict(size_row(**sizes) for sizes in both if sizes != SMALL),
        },
    }


def ablations_in(given: Mapping[str, Any], tests: Mapping[str, Any], more: Mapping[str, Any]) -> Ablations:
    """Make a model's ablations from its part of the file and from further rows."""
    claims = (Claim(its["row"], its["split"], tests[its["on"]], its["sign"], its["text"]) for its in given["claims"])
    return Ablations(
        rows={row: line for row, (line, _) in given["rows"].items()} | more.get("rows", {}),
        says={row: words for row, (_, words) in given["rows"].items()} | more.get("says", {}),
        more=more.get("more", {}),
        planes=tuple(map(tuple, given["planes"])),
        axes=given["axes"],
        relational=frozenset(given["relational"]),
        ratio=tuple(given["ratio"]) or None,
        ratio_says=given["ratio_says"],
        claims=tuple(claims),
    )


def read_ablations() -> dict[str, Ablations]:
    """Read `ablations.toml`; returns each model's ablations by its name."""
    given, more = read_toml(Path(__file__).with_name("ablations.toml")), {"oc-clip": size_rows()}
    tests = {name: tuple(map(tuple, columns)) for name, columns in given.pop("tests").items()}
    nothing = {"planes": [], "axes": {}, "relational": [], "ratio": [], "ratio_says": "", "claims": []}
    return {name: ablations_in(nothing | its, tests, more.get(name, {})) for name, its in given.items()}


# By the names of the models; a model without an entry has no rows of its own.
ABLATIONS = read_ablations()


def ablations_of(spec: ScorerSpec) -> Ablations:
    """Return the ablations of a model; empty for one without an entry."""
    return ABLATIONS.get(spec.name, Ablations({}))
