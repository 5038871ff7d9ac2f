"""The page of remedies for text embeddings: how much of the upper row's lead each recovers, and bits of each stage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from menagerie.envs.core.files import write_csv
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Facts, Heading, OwnFigure, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.rows import Columns, base_row, explain_rows, table_columns
from menagerie.studies.pages.probes import LOOSE, STAGES, Mean, means_over_seeds, rows_at_steps, write_measure_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNDECIDED = "undecided"
SHARES = """How much of {upper}'s lead over {base} on swaps of unseen pairs each remedy recovers, in percent: 0 is
{base}, 100 is {upper}. Dots are means over seeds, lines 95 % intervals over new seeds and their animal pairs. A remedy
whose interval includes 0 is undecided. A split has none where the interval of the lead itself includes 0."""
HELD = """Swaps: chance is 50 %. On the right: how many bits, of exactly 1, a linear probe reads from embeddings, or the
difference of two scores carries; chance is 0. On the binding split the bit is which animal has which texture, on the
spatial split which of two objects is on the left. Rows without a single vector for a text have no text embedding. Means
over seeds with 95 % intervals."""
ALIKE = """All remedies take equally many steps and images. These are few: where accuracy would still rise with more
steps, a remedy that learns faster looks better than it would in the end. Remedies that change captions are tested on
captions of their own kind."""


class Remedy(NamedTuple):
    """A row's accuracy on one split, and the share that it recovers of the upper row's lead over the base row."""

    split: str
    row: str
    accuracy: Estimate
    share: Estimate | None
    """Share of the lead that the row recovers; None unless the lead's interval is above 0 and a seed is common."""

    @property
    def outcome(self) -> str:
        if self.share is None or not self.share.known or self.share.low <= 0 <= self.share.high:
            return UNDECIDED
        return "recovers" if self.share.low > 0 else "loses"


def recovered_share(
    means: Float64[np.ndarray, "rows points"], base: int, row: int, upper: int
) -> Float64[np.ndarray, " rows"]:
    """Return, for each row of means, how far `row` is on the way from `base` to `upper`; NaN if these are equal."""
    lead = means[:, upper] - means[:, base]
    return np.divide(means[:, row] - means[:, base], lead, out=np.full(len(means), np.nan), where=lead != 0)


def unseen_swaps(columns: Columns) -> Columns:
    """Return the swap tests on unseen pairs; all swap tests if a split has none of these."""
    swaps = tuple(column for column in columns if column[1] == "swap")
    return tuple(column for column in swaps if column[0].endswith("unseen_pairs")) or swaps


class Section(NamedTuple):
    """The records of one split."""

    split: str
    base: str
    """The name of the unchanged model's row."""
    records: Records

    @property
    def columns(self) -> Columns:
        return table_columns(self.records.arms[0].cell.data)


def sections_of(study: Any, records: Records) -> dict[str, Section]:
    return {split: Section(split, base_row(study.spec), records.where(split=split)) for split in study.grids}


def remedies(section: Section, upper: str) -> tuple[Estimate | None, list[Remedy]]:
    """Return the upper row's lead on a split, and how much of it each other row recovers."""
    tests = section.records.where(test=unseen_swaps(section.columns))
    levels = {row: its for (row,), its in tests.estimates(("row",)).items()}
    lead = tests.estimates(("row",), {"row": section.base}).get((upper,))
    sure = lead is not None and lead.known and lead.low > 0
    others = [row for row in levels if row not in (section.base, upper)]
    return lead, [
        Remedy(section.split, row, levels[row], share_of_lead(tests, section.base, row, upper) if sure else None)
        for row in others
    ]


def share_of_lead(tests: Records, base: str, row: str, upper: str) -> Estimate | None:
    """Return the share of the lead that a row recovers, over the seeds of all three rows; None without any."""
    three = tests.where(row=(base, row, upper))
    order = [name for name in dict.fromkeys(arm.labels["row"] for arm, _ in three.results)]
    places = (order.index(name) for name in (base, row, upper))
    return three.estimates(("row",), statistic=("row", partial(recovered_share_at, tuple(places)))).get(())


def recovered_share_at(
    places: tuple[int, int, int], means: Float64[np.ndarray, "rows points"]
) -> Float64[np.ndarray, " rows"]:
    return recovered_share(means, *places)


def parts(study: Any, records: Records) -> Iterator[Part]:
    every = {split: its for split, its in sections_of(study, records).items() if its.records.results}
    found_of = {split: remedies(section, study.upper) for split, section in every.items()}
    for split, (lead, its) in found_of.items():
        yield Sentence(lead_sentence(every[split].base, study.upper, split, lead, its))
    rows = [remedy for _, its in found_of.values() for remedy in its]
    if any(remedy.share for remedy in rows):
        says = one_line(SHARES.format(base=next(iter(every.values())).base, upper=study.upper))
        yield RecoveredShares("recovered", rows, says=says)
    yield Paragraph(one_line(ALIKE))
    yield Heading("What embeddings hold")
    for split, section in every.items():
        held = remedy_rows(section, study.bits[split], {remedy.row: remedy for remedy in found_of[split][1]})
        yield Rows(f"held-{split}", HEADER, held, says=f"The {split} split. {one_line(f'{HELD} {LOOSE}')}")
    if explained := explain_rows(study.spec, study.lines):
        yield Heading("What is changed")
        yield Facts(explained)
    for split, section in every.items():
        yield from study.section(split, section.records)


def lead_sentence(base: str, upper: str, split: str, lead: Estimate | None, rows: Sequence[Remedy]) -> str:
    """Say how much of a lead the remedies recover, the best first."""
    where = f"On swaps of unseen pairs ({split} split, chance 50 %)"
    if lead is None:
        return f"{where} {base} and {upper} aren't both finished."
    if not (lead.known and lead.low > 0):
        undecided = "So what text embeddings are worth is undecided."
        return f"{where} {upper} isn't decidedly above {base} ({lead} points). {undecided}"
    sure = sorted((its for its in rows if its.share and its.outcome != UNDECIDED), key=lambda its: -its.share.value)
    said = [f"{its.row} {its.outcome} {lead_text(its.share)}" for its in sure]
    said += [f"{len(rows) - len(sure)} of {len(rows)} remedies are undecided"] * (len(sure) < len(rows))
    return f"{where} {upper} is {lead} points above {base}. Of this lead {'; '.join(said)}."


def lead_text(share: Estimate) -> str:
    return f"{100 * abs(share.value):.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]"


HEADER = ("row", "swaps on unseen pairs (%)", "share of the lead (%)", *STAGES.values())


def remedy_rows(section: Section, measure: Any, rows: dict[str, Remedy]) -> list[tuple[str, ...]]:
    """Return the table's lines, one for each row: accuracy, share of the lead, and the bits of each stage."""
    tests = section.records.where(test=unseen_swaps(section.columns)).estimates(("row",))
    held = bits_by_stage(section.records, measure)
    return [
        (
            row,
            str(its),
            remedy_text(rows.get(row)),
            *(str(held.get((row, *stage), "–")) for stage in STAGES),
        )
        for (row,), its in tests.items()
    ]


def remedy_text(remedy: Remedy | None) -> str:
    """Return a row's share of the lead as text, or why it has none."""
    if remedy is None:
        return "–"
    if remedy.share is None:
        return UNDECIDED
    its = remedy.share
    return f"{100 * its.value:.0f} [{f'{100 * its.low:.0f}, {100 * its.high:.0f}' if its.known else its.bounds}]"


def bits_by_stage(records: Records, measure: Any) -> dict[Any, Mean]:
    """Return the mean bits by row and stage; empty if nothing is measured."""
    rows = rows_at_steps(records, measure)
    if not len(rows):
        return {}
    bits = rows[(rows["measure"] == "bits") & rows["value"].notna()]
    return means_over_seeds(bits, ("row", "part", "layer", "read"))


@dataclass(frozen=True)
class RecoveredShares(OwnFigure):
    """A line for each row with its share of the lead, a panel for each split."""

    rows: Sequence[Remedy]

    def numbers(self) -> list[dict[str, Any]]:
        return [
            {"split": its.split, "row": its.row, "share": its.share.value, "low": its.share.low, "high": its.share.high}
            for its in self.rows
            if its.share
        ]

    def figure(self) -> "Figure | None":
        known = [its for its in self.rows if its.share]
        if not known:
            return None
        from menagerie.studies.frame.figures import panel_axes, style_axes
        from menagerie.studies.report.figures import COLOURS, PALE

        splits = list(dict.fromkeys(its.split for its in known))
        names = list(dict.fromkeys(its.row for its in known))[::-1]
        figure, axes = panel_axes(len(splits), (3.6, 0.6 + 0.28 * len(names)), sharey=True)
        for axis, split in zip(axes, splits, strict=True):
            axis.set_title(split, fontsize=9)
            style_axes(axis)
            for its in (one for one in known if one.split == split):
                y, colour = names.index(its.row), COLOURS[1 if its.outcome == UNDECIDED else 0]
                axis.plot([100 * its.share.low, 100 * its.share.high], [y, y], color=colour)
                axis.plot([100 * its.share.value], [y], marker="o", markersize=4, color=colour)
            for place in (0, 100):
                axis.axvline(place, **PALE)
            axis.set_xlabel("% of the lead", fontsize=9)
        axes[0].set_yticks(range(len(names)), names, fontsize=8)
        return figure


def export_remedies(study: Any, records: Records) -> None:
    """Write all shares of leads into `remedies.csv`, and all rows of the measures into `bits.csv`."""
    import pandas as pd

    every = {split: its for split, its in sections_of(study, records).items() if its.records.results}
    rows = [its for section in every.values() for its in remedies(section, study.upper)[1]]
    columns = ("split", "row", "accuracy", "share", "low", "high", "outcome")
    numbers = ([i.share.value, i.share.low, i.share.high] if i.share else ["", "", ""] for i in rows)
    lines = ([i.split, i.row, i.accuracy.value, *its, i.outcome] for i, its in zip(rows, numbers, strict=True))
    write_csv(records.out / "remedies.csv", columns, lines)
    measured = [rows_at_steps(section.records, study.bits[split]) for split, section in every.items()]
    if measured:
        write_measure_rows(records.out / "bits.csv", pd.concat(measured, ignore_index=True))
