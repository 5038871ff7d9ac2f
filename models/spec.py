"""What a scorer brings with it, beside its code; free of torch, so that command lines answer at once.

A scorer is a file or a folder in `models/scorers/` with a `SPEC`; nothing else names it. A class of a
user's own has a spec too, its own (`spec = ScorerSpec(...)`) or the plainest one (`spec_of_class`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import build
from menagerie.models.recipe import Recipe

READS = ("captions", "graphs")
NEGATIVES = ("captions", "images")


@dataclass(frozen=True)
class Range:
    """Numbers that tuning searches, from the least to the most; whole ones if both are."""

    least: int | float
    most: int | float
    log: bool = False


@dataclass(frozen=True)
class Stage:
    """A scorer that is trained first, on the same data with the same recipe and seed, as a cell of its own.

    The later one is built with its weights and counts its passes too.
    """

    scorer: str
    """Name of a registered scorer."""
    frozen: bool = True
    """Whether its weights stay as they are from then on."""


@dataclass(frozen=True)
class Claim:
    """What a paper says of an ablation: on these columns (subset, task) it is lower (-1) or higher (1)."""

    row: str
    split: str
    columns: tuple[tuple[str, str], ...]
    sign: int
    text: str


@dataclass(frozen=True, eq=False)
class Ablations:
    """What `studies/ablations.py` varies: lines of configuration by name, such as {"narrow": "dim=16"}."""

    rows: Mapping[str, str]
    says: Mapping[str, str] = field(default_factory=dict)
    """What each of these rows changes, in words of reports."""
    more: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Groups of further rows that are requested together, by name."""
    planes: tuple[tuple[str, str], ...] = ()
    """Pairs of options that groups vary together: where a study has all of their values, its report draws heat maps."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """What their axes say of these options, beside the name."""
    relational: frozenset[str] = frozenset()
    """Fields that change nothing where no caption states a relation."""
    ratio: tuple[str, str] | None = None
    """Two scalar weights whose ratio after training the report shows."""
    ratio_says: str = ""
    """What the report says of it."""
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, eq=False)
class ScorerSpec:
    """One scorer. Options are the fields of `config`, whose defaults are its paper's."""

    name: str
    """On command lines: lower case with hyphens."""
    implementation: str
    """`module:Class` of a `menagerie.models.scorer.Scorer`, imported when a scorer is built."""
    config: type
    """A frozen dataclass of what is specific to it."""
    title: str = ""
    """In reports; empty takes the name."""
    source: str = ""
    """Paper: authors, year, title."""
    about: str = ""
    """What it does, in a line of reports."""
    small: Mapping[str, Any] = field(default_factory=dict)
    """Options beside small towers."""
    smoke: Mapping[str, Any] = field(default_factory=dict)
    """Options of runs of seconds, and of the contract tests."""
    scratch: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Recipe` with which its paper trains from scratch."""
    pretrained: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Recipe` with which its paper trains pretrained towers; steps, batch and data are the study's."""
    space: Mapping[str, Range | tuple[Any, ...]] = field(default_factory=dict)
    """Options of its own that tuning searches beside the recipe: ranges, or values to choose from."""
    reads: tuple[str, ...] = ("captions",)
    """What it reads of a text: captions, graphs or both."""
    negatives: tuple[str, ...] = ()
    """What more a training batch should hold, where its recipe requests nothing else: swapped captions, partner
    images."""
    altered_graphs: bool = False
    """Whether its loss compares graphs that state relations with altered ones (`Recipe.local_negatives`)."""
    stage: Stage | None = None
    """What is trained before it."""
    ablations: Ablations | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the implementation, the same always."""
    control: bool = False
    """Whether it is there to explain what another one does: presets that compare all systems leave it out."""

    def __post_init__(self) -> None:
        check_config(self.name, self.config)
        own, shared = {f.name for f in fields(self.config)}, {f.name for f in fields(Recipe)}
        for names, known, what in (
            (self.small, own, "small"),
            (self.smoke, own, "smoke"),
            (self.space, own, "space"),
            (self.scratch, shared, "scratch"),
            (self.pretrained, shared, "pretrained"),
            (self.reads, set(READS), "reads"),
            (self.negatives, set(NEGATIVES), "negatives"),
        ):
            if strange := sorted(set(names) - known):
                raise UserError(
                    f"the spec of {self.name!r}: {what} has no {strange[0]!r}; known: {', '.join(sorted(known))}"
                )

    def configured(self, options: Mapping[str, Any]) -> Any:
        """Its config with some options, also as JSON has them: with lists for tuples."""
        return build(self.config, options, f"options of {self.name}")

    @property
    def flag(self) -> str:
        """Its name as a Python name: flags begin with it (`--oc-clip.dim`)."""
        return self.name.replace("-", "_")


def check_config(name: str, config: object) -> type:
    """Return `config`; raise unless it is a dataclass whose fields all have defaults."""
    if not (isinstance(config, type) and is_dataclass(config)):
        raise UserError(f"model {name!r} needs `config_class`, a dataclass of its options (it may be empty)")
    try:
        config()
    except TypeError as error:
        raise UserError(
            f"every option of {config.__name__}, the config of {name!r}, needs a default ({error})"
        ) from error
    return config


def spec_of_class(name: str, kind: type) -> ScorerSpec:
    """The spec of a class of a user's own, called `name` (file.py:Class)."""
    own = kind.__dict__.get("spec")
    if isinstance(own, ScorerSpec):
        return own
    config = check_config(name, getattr(kind, "config_class", None))
    flag = "".join(f"-{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(kind.__name__))
    return ScorerSpec(name=flag.replace("_", "-"), implementation=name, config=config)
