"""A claim of a paper as a TOML file: what tests it, and which numbers decide (docs/ledger.md)."""

from pathlib import Path
from typing import Annotated

import msgspec

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import digest
from menagerie.envs.core.reading import Unreadable, check_shape, read_toml

SHIPPED = Path(__file__).parent
STUDIES = SHIPPED.parent
BOUNDS = ("above", "below", "within")
GIVEN = {"--seeds", "--first-seed", "--out", "--store", "--workers", "--dry-run"}  # by the command
Label = str | float | bool
Labels = dict[str, Label]


class Seeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    first: Annotated[int, msgspec.Meta(ge=100)]
    number: Annotated[int, msgspec.Meta(ge=3)]


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number of the study and its bound; of a condition, only the number itself counts, not its interval."""

    says: str
    """What the number is, in words."""
    table: str = ""
    """A CSV in the study's folder, with the columns `value`, `low`, `high` and `seeds`."""
    row: Labels = {}
    """The row of the table: values by column."""
    accuracy: tuple[dict[str, Label | tuple[Label, ...]], ...] = ()
    """In place of a table: groups of records by labels, subset and task. Their accuracies (0 to 1) are added up, each
    times its `weight`, which is 1 unless given."""
    above: float | None = None
    below: float | None = None
    within: float | None = None
    """The number is between minus this and this."""

    def __post_init__(self) -> None:
        if sum(getattr(self, name) is not None for name in BOUNDS) != 1:
            raise ValueError("it needs exactly one of above, below and within")
        if bool(self.table) == bool(self.accuracy) or bool(self.table) != bool(self.row):
            raise ValueError("it needs either table and row, or accuracy")
        if not all(isinstance(group.get("weight", 1), int | float) for group in self.accuracy):
            raise ValueError("a weight is a number")

    @property
    def bound(self) -> tuple[str, float]:
        return next((name, value) for name in BOUNDS if (value := getattr(self, name)) is not None)


class PaperClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file of the ledger says."""

    paper: str
    place: str
    """Section, table or figure."""
    claim: str
    """The sentence, in our words."""
    study: str
    """The command, as in `menagerie STUDY`."""
    options: tuple[str, ...]
    """The words of its command line, without seeds and folders."""
    seeds: Seeds
    criterion: tuple[Criterion, ...]
    condition: tuple[Criterion, ...] = ()
    """Without these the claim isn't testable."""

    def __post_init__(self) -> None:
        if not self.criterion:
            raise ValueError("it needs a [[criterion]]")
        if given := sorted(GIVEN & {word.partition("=")[0] for word in self.options}):
            raise ValueError(f"options have {given[0]}, which `seeds` and the command line give")


class ClaimFile(msgspec.Struct, frozen=True):
    """A claim with its file."""

    path: Path
    claim: PaperClaim
    digest: str
    """Of the file's content; comments, blanks and the order of keys don't count."""

    @property
    def name(self) -> str:
        return self.path.stem


def read_claim(path: Path) -> ClaimFile:
    """Read a claim; raises `UserError` for a file that isn't one."""
    content = read_toml(path)
    try:
        check_shape(content, PaperClaim, path)
    except Unreadable as error:
        raise UserError(f"{error}; docs/ledger.md says what a claim has") from error
    claim = msgspec.convert(content, PaperClaim)
    choose(f"study in {path}", claim.study, [file.stem.replace("_", "-") for file in STUDIES.glob("[!_.]*.py")])
    return ClaimFile(path, claim, digest(content))


def read_claims(paths: tuple[Path, ...]) -> list[ClaimFile]:
    """Read claims, by default those that ship; raises if two would have the same folder."""
    found = [read_claim(path) for path in paths or sorted(SHIPPED.glob("*.toml"))]
    names = [file.name for file in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UserError(f"two claims are called {twice}.toml, after which their folders are named; rename one")
    return found
