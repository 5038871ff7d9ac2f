"""The parts of a study's page: sentences, tables and figures. They only describe what is drawn.

A part gets the records that it shows, already narrowed, and the names of the labels that make its rows, columns and
axes. A study that needs more makes its own `Chart`, `OwnFigure` or `Rows`. Texts outside tables may have `code`."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.studies.analysis.intervals import Estimate
from menagerie.studies.frame.arm import label_text
from menagerie.studies.frame.records import Records

if TYPE_CHECKING:
    import altair as alt
    from matplotlib.figure import Figure


class Part:
    """Base class of all parts of a page."""


@dataclass(frozen=True)
class Sentence(Part):
    """A finding with its numbers, in bold."""

    text: str


@dataclass(frozen=True)
class Paragraph(Part):
    """A text that explains."""

    text: str


@dataclass(frozen=True)
class Heading(Part):
    """A heading, and a paragraph below it."""

    title: str
    text: str = ""
    level: int = field(default=2, kw_only=True)


@dataclass(frozen=True)
class Facts(Part):
    """Names with their meanings."""

    facts: Mapping[str, str]


@dataclass(frozen=True)
class FilePart(Part):
    """A part that has files of its own."""

    forms: ClassVar[tuple[str, ...]] = tuple(f"figures/{{}}.{kind}" for kind in ("png", "svg", "csv"))
    """Their names in the study's folder, with a place for the part's name."""
    name: str
    says: str = field(default="", kw_only=True)
    """The sentence above the part that says what it shows."""
    folded: str = field(default="", kw_only=True)
    """A line behind which the part is hidden until the reader opens it; empty: not hidden."""

    @property
    def files(self) -> set[str]:
        return {form.format(self.name) for form in self.forms}


@dataclass(frozen=True)
class Rows(FilePart):
    """A table of given texts."""

    forms: ClassVar[tuple[str, ...]] = ("{}.csv",)
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class EstimateTable(FilePart):
    """A table of given estimates by the labels `names`; its CSV has their numbers, as shares."""

    forms: ClassVar[tuple[str, ...]] = ("{}.csv",)
    names: Sequence[str]
    found: Mapping[tuple[Any, ...], Estimate]


@dataclass(frozen=True)
class OwnFigure(FilePart, ABC):
    """A figure that a study draws itself. Import matplotlib only in `figure`, because `--help` doesn't need it."""

    @abstractmethod
    def figure(self) -> "Figure | None":
        """Draw the figure; return None if there is nothing to draw yet."""

    def numbers(self) -> Sequence[Mapping[str, Any]]:
        """Return the numbers that the figure shows, as rows of a table."""
        return ()


@dataclass(frozen=True)
class Chart(FilePart):
    """An altair chart of a study's own. Import altair where it is made, because `--help` doesn't need it."""

    chart: "alt.TopLevelMixin"
    """The chart; the frame in it (`data`) is written as the figure's CSV."""


@dataclass(frozen=True)
class RecordsPart(FilePart):
    """A part that shows records, arranged by their labels."""

    records: Records
    words: Mapping[str, Mapping[Any, str]] = field(default_factory=dict, kw_only=True)
    """Texts that replace values of labels, by label: {"pairs": {0.2: "20 % (2 of 11)"}}."""

    def word(self, name: str, value: Any) -> str:
        return self.words.get(name, {}).get(value) or label_text(name, value)

    def title(self, names: Sequence[str], key: Sequence[Any]) -> str:
        """Write several labels in one line; a number has the name of its label before it."""
        said = zip(names, key, strict=True)
        return ", ".join(f"{n.replace('_', ' ')} " * isinstance(v, int | float) + self.word(n, v) for n, v in said)


@dataclass(frozen=True)
class Table(RecordsPart):
    """A table of accuracies by the labels `rows` and `columns`; the best of three models or more comes first.

    A row label with a single value (except the first) and a column without records are named above the table instead.
    Accuracies on swaps are flagged if the models prefer the same caption whatever the image.
    """

    forms: ClassVar[tuple[str, ...]] = ("{}.csv",)
    rows: Sequence[str]
    columns: Sequence[str] = ("subset",)
    against: Mapping[str, Any] | None = None
    """If given, such as {"model": "clip"}, numbers are differences from the row with these labels, on its records."""
    intervals: bool = field(default=False, kw_only=True)
    """Whether numbers have intervals in place of deviations over seeds."""
    beside: Mapping[str, Mapping[tuple[Any, ...], str]] = field(default_factory=dict, kw_only=True)
    """Further columns: by header, a text for the labels of each row."""


@dataclass(frozen=True)
class FigurePart(RecordsPart):
    """A figure with a panel for each combination of the labels `panels`."""

    panels: Sequence[str] = field(default=("subset",), kw_only=True)
    chances: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    """Chance in percent, for tasks whose chance differs here."""


@dataclass(frozen=True)
class PlacedPart(FigurePart):
    """A figure of accuracy along `x`."""

    x: str
    colour: str = field(default="model", kw_only=True)
    stroke: str = field(default="", kw_only=True)
    """A label whose values have different dashes."""
    at: str = field(default="", kw_only=True)
    """A measured column, such as the cost, whose mean over its runs is the position of a point in place of `x`."""
    log: bool = field(default=False, kw_only=True)
    along: str = field(default="", kw_only=True)
    """The name of the axis, if it isn't the label's."""
    level: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Lines(PlacedPart):
    """A line for each value of `colour`, with the interval as a band."""

    beside: Records | None = field(default=None, kw_only=True)
    """Records without `x`: a dashed line for each value of `colour`."""


@dataclass(frozen=True)
class Bars(FigurePart):
    """A bar for each combination of the labels `rows`, with its deviation over seeds; ordered as in `Table`."""

    rows: Sequence[str] = ("model",)
    colour: str = field(default="", kw_only=True)
    """A label whose values share a row, each in its colour."""
    dots: bool = field(default=False, kw_only=True)
    """Whether to draw, in place of bars from 0, a dot with its interval and a pale dot for each seed."""
    against: Mapping[str, Any] | None = field(default=None, kw_only=True)
    """As `Table.against`; differences are drawn as dots."""
    beside: Records | None = field(default=None, kw_only=True)
    """Records whose mean is drawn as a dashed line across all rows of their panel."""


@dataclass(frozen=True)
class HeatMap(FigurePart):
    """Accuracy by `x`, to the right, and `y`, upwards, with the deviation of seeds. The last of `panels` goes to the
    right, the others downwards: the layout of OC-CLIP's figure 2."""

    x: str
    y: str
    panels: Sequence[str] = field(default=("subset", "model"), kw_only=True)


@dataclass(frozen=True)
class Front(PlacedPart):
    """Accuracy by `x`, a measured cost. Every setting, a combination of the labels `points`, is a ring. A line joins
    those that no other beats at the same cost or less; points show how these do on the records `judged`."""

    points: Sequence[str]
    log: bool = field(default=True, kw_only=True)
    panels: Sequence[str] = field(default=(), kw_only=True)
    judged: Records | None = field(default=None, kw_only=True)
    """Those of a test, where `records` are of validation, on which settings are chosen."""


@dataclass(frozen=True)
class Cases(RecordsPart):
    """Where a model errs: accuracy by properties of images, and the records with the widest margins, wrong and right.
    Uses only arms whose split file is known. `rows` are labels of errors.csv."""

    forms: ClassVar[tuple[str, ...]] = ("errors.csv",)
    rows: Sequence[str] = ("model",)


@dataclass(frozen=True)
class Curves(RecordsPart):
    """Loss, validation, learning rate and speed by step. A page without it gets one, if kinds of runs are few."""

    labels: Sequence[str] = ()
    """The labels that name a line."""
    panels: str = field(default="model", kw_only=True)
    chance: float = field(default=0.5, kw_only=True)
    """Chance on validation, as a share."""


NAME = re.compile(r"[\w.-]+")
FIGURES = FigurePart | OwnFigure | Chart


def check_page_parts(parts: Iterable[Part]) -> list[Part]:
    """Return the parts of a page; raises if a name can't be a file name, or if two would write the same files."""
    found, taken = list(parts), {"results.csv"}
    for part in found:
        if isinstance(part, FilePart):
            if part.files & taken or not NAME.fullmatch(part.name):
                raise UserError(
                    f"a part of the page can't be called {part.name!r}, after which its files are named: "
                    "give each a name of its own, of letters, digits, - and _",
                    "name of a part",
                )
            taken |= part.files
    return found


SIDES = ("rows", "columns", "panels", "points", "x", "y", "colour", "stroke", "at")
"""Fields of parts that name labels, one or several."""


def part_labels(part: RecordsPart) -> list[str]:
    named = (getattr(part, side, ()) for side in SIDES)
    return [label for one in named for label in ((one,) if isinstance(one, str) else one) if label]
