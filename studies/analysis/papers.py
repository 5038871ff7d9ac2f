"""The parts of models that studies vary, and what the papers claim about these parts, from `ablations.toml`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from menagerie.envs.core.reading import read_toml
from menagerie.models.spec import ScorerSpec

RowLines = Mapping[str, Sequence[str]]
"""By name: the line of configuration by which a row differs from the base row, and the words of reports for that."""


@dataclass(frozen=True)
class Claim:
    """A paper's claim: on `tests`, (subset, task) each, `row` is lower (`sign` -1) or higher (1) than the model."""

    row: str
    split: str
    on: str
    """The name of the tests in the file."""
    sign: int
    text: str

    @property
    def tests(self) -> tuple[tuple[str, str], ...]:
        return tuple((subset, task) for subset, task in TESTS[self.on])


@dataclass(frozen=True, eq=False)
class Ablations:
    """What `studies/ablations.py` varies of a model."""

    rows: RowLines = field(default_factory=dict)
    more: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Groups of further rows: the line of each."""
    planes: Sequence[Sequence[str]] = ()
    """Pairs of options that groups vary together, of which the report has a heat map."""
    relational: Sequence[str] = ()
    """Fields that change nothing if no caption states a relation."""
    ratio: Sequence[str] = ()
    """Two scalar weights whose ratio after training the report shows."""
    ratio_says: str = ""
    claims: Sequence[Claim] = ()

    @property
    def lines(self) -> dict[str, str]:
        return {row: line for row, (line, _) in self.rows.items()}


GIVEN = read_toml(Path(__file__).with_name("ablations.toml"))
TESTS: Mapping[str, Sequence[tuple[str, str]]] = GIVEN.pop("tests")
RUNGS: Mapping[str, RowLines] = GIVEN.pop("rungs")
"""The rungs of `studies/left_right.py`: its path, changes beside it, and remedies."""
GROUPS: Mapping[str, Mapping[str, str]] = GIVEN.pop("groups")
"""Groups of rows for any model: the line of each row."""
# By the names of the models; a model without an entry has no rows of its own.
ABLATIONS = {
    name: Ablations(**its | {"claims": [Claim(**claim) for claim in its.get("claims", ())]})
    for name, its in GIVEN.items()
}


def ablations_of(spec: ScorerSpec) -> Ablations:
    """Return the ablations of a model; empty for one without an entry."""
    return ABLATIONS.get(spec.name, Ablations())
