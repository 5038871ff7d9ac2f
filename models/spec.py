"""Describes scorers without importing their code; free of torch, so that command lines answer at once.

A scorer is registered by an entry in the `SPECS` of a file in `models/scorers/`, and nowhere else. A user's class has a
spec too: its attribute `spec = ScorerSpec(...)`, or a default one (`spec_of_class`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import build_dataclass
from menagerie.models.recipe import Recipe

KINDS = {"captions", "graphs", "images"}  # of what scorers read, and of negatives


@dataclass(frozen=True)
class Range:
    """Range of numbers that tuning searches, by their logarithm if `log`; whole ones if both ends are."""

    least: int | float
    most: int | float
    log: bool = False


@dataclass(frozen=True)
class Stage:
    """A scorer that is trained first, on the same data with the same recipe and seed, in a cell of its own.

    A later scorer is built on this one's weights. The images that this one sees in training are counted in the later
    scorer's `images_seen` too.
    """

    scorer: str
    """Name of a registered scorer."""
    frozen: bool = True
    """Whether its weights stay frozen while the later scorer is trained."""


@dataclass(frozen=True, eq=False)
class ScorerSpec:
    """The description of a scorer. Its options are the fields of `config`, whose defaults are its paper's."""

    name: str
    """Name on command lines: lower case with hyphens."""
    implementation: str
    """`module:Class` of a `menagerie.models.scorer.Scorer`, imported when a scorer is built."""
    config: type
    """Frozen dataclass of the scorer's options."""
    title: str = ""
    """Name in reports; empty takes `name`."""
    source: str = ""
    """Paper: authors, year, title."""
    about: str = ""
    """A line for reports that says what the scorer does."""
    small: Mapping[str, Any] = field(default_factory=dict)
    """Options for small towers."""
    smoke: Mapping[str, Any] = field(default_factory=dict)
    """Options for runs that take seconds; the contract tests use them too."""
    scratch: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Recipe` for training from scratch, as in its paper."""
    pretrained: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Recipe` for training pretrained towers, as in its paper; steps, batch and data belong to the study."""
    space: Mapping[str, Range | tuple[Any, ...]] = field(default_factory=dict)
    """Options that tuning searches besides the recipe: ranges, or values to choose from."""
    reads: tuple[str, ...] = ("captions",)
    """Inputs that the scorer reads of a text: captions, graphs or both."""
    negatives: tuple[str, ...] = ()
    """Negatives added to training batches: "captions" (swaps, unless the recipe requests other false captions) and
    "images" (counterfactuals)."""
    parts: bool = False
    """Whether training also takes parts of captions and false versions of these."""
    local_loss: tuple[str, ...] = ()
    """Options that only matter for a loss that compares graphs with altered ones: `local_weight`, `local_negatives` and
    others; empty if there is no such loss."""
    takes_negatives: bool = True
    """Whether the scorer's loss uses texts that belong to no image as negatives. Grids with `--text-negatives` leave
    out scorers whose loss doesn't."""
    scored: tuple[str, ...] = ()
    """Options that only change scores: another value scores the same trained weights again."""
    stage: Stage | None = None
    """The scorer that must be trained first."""
    control: bool = False
    """Whether the scorer only serves to explain another one: presets that compare all systems leave it out."""

    def __post_init__(self) -> None:
        check_config_class(self.name, self.config)
        options, shared = ({item.name for item in fields(kind)} for kind in (self.config, Recipe))
        named = {*self.small, *self.smoke, *self.space, *self.local_loss, *self.scored}
        recipes, kinds = {*self.scratch, *self.pretrained}, {*self.reads, *self.negatives}
        if strange := [*(named - options), *(recipes - shared), *(kinds - KINDS)]:
            raise UserError(f"the spec of {self.name!r} names {strange[0]!r}, which is no such option or kind")
        if self.negatives and not self.takes_negatives:
            raise UserError(f"the spec of {self.name!r} asks for negatives that its loss doesn't take")

    def make_config(self, options: Mapping[str, Any]) -> Any:
        """Build the config with these options; lists, as JSON has them, become tuples."""
        return build_dataclass(self.config, options, f"options of {self.name}")

    @property
    def flag(self) -> str:
        """The name as a Python identifier; command-line flags begin with it (`--oc-clip.dim`)."""
        return self.name.replace("-", "_")


def check_config_class(name: str, config: object) -> type:
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
    """Return the spec of a user's class whose name is `name` (file.py:Class): the class's own `spec`, or a default."""
    given = kind.__dict__.get("spec")
    if isinstance(given, ScorerSpec):
        return given
    config = check_config_class(name, getattr(kind, "config_class", None))
    flag = "".join(f"-{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(kind.__name__))
    return ScorerSpec(name=flag.replace("_", "-"), implementation=name, config=config)
