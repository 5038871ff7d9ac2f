"""How much of one row's lead over another each further row recovers, as a share with an interval."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from menagerie.studies.analysis.estimate import Estimate
from menagerie.studies.frame.records import Records

UNDECIDED = "undecided"
Columns = Sequence[tuple[str, str]]
"""Subset and task of each test."""


class Remedy(NamedTuple):
    """A row's accuracy on one split, and the share that it recovers of the upper row's lead over the base row."""

    row: str
    accuracy: Estimate
    share: Estimate | None
    """Share of the lead that the row recovers; None unless the lead's interval is above 0 and a seed is common."""

    @property
    def outcome(self) -> str:
        if self.share is None or not self.share.known or self.share.low <= 0 <= self.share.high:
            return UNDECIDED
        return "recovers" if self.share.low > 0 else "loses"


def unseen_swaps(columns: Columns) -> Columns:
    """Return the swap tests on unseen pairs; all swap tests if a split has none of these."""
    swaps = [column for column in columns if column[1] == "swap"]
    return [column for column in swaps if column[0].endswith("unseen_pairs")] or swaps


def remedies(tests: Records, base: str, upper: str) -> tuple[Estimate | None, list[Remedy]]:
    """Return the lead of the row `upper` over `base`, over all records, and how much of it each other row recovers."""
    levels = {row: its for (row,), its in tests.estimates(("row",)).items()}
    lead = tests.estimates(("row",), {"row": base}).get((upper,))
    sure = lead is not None and lead.known and lead.low > 0
    others = [row for row in levels if row not in (base, upper)]
    return lead, [Remedy(row, levels[row], share_of_lead(tests, base, row, upper) if sure else None) for row in others]


def share_of_lead(tests: Records, base: str, row: str, upper: str) -> Estimate | None:
    """Return the share of the lead that a row recovers, over the seeds of all three rows; None without any."""
    three = tests.where(row=(base, row, upper))
    order = list(dict.fromkeys(arm.labels["row"] for arm, _ in three.results))
    of = {name: order.index(its) for name, its in (("base", base), ("row", row), ("upper", upper))}
    found = three.estimates(("row",), statistic=("row", partial(recovered_share, **of))).get(())
    return found and found._replace(digits=0)


def recovered_share(
    means: Float64[np.ndarray, "rows points"], base: int, row: int, upper: int
) -> Float64[np.ndarray, " rows"]:
    """Return, for each row of means, how far `row` is on the way from `base` to `upper`; NaN if these are equal."""
    lead = means[:, upper] - means[:, base]
    return np.divide(means[:, row] - means[:, base], lead, out=np.full(len(means), np.nan), where=lead != 0)
