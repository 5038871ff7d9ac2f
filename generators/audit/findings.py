"""The finding that a check of the audit yields."""

from collections.abc import Iterable
from typing import NamedTuple


class Finding(NamedTuple):
    """The result of one check: its claim, whether it holds, and the numbers or the first counterexample."""

    claim: str
    holds: bool
    detail: str
    skipped: bool = False
    """Whether the check wasn't done, for the reason in `detail`; then `holds` has no meaning."""


def none(claim: str, found: Iterable[str], detail: str = "") -> Finding:
    """The finding of a claim that holds if no counterexample is `found`; else its detail names the first one."""
    counterexample = next(iter(found), None)
    return Finding(claim, counterexample is None, detail if counterexample is None else f"first: {counterexample}")


def skipped_finding(claim: str, reason: str) -> Finding:
    """Make the finding of a check that couldn't be done here: it counts as no failure, but is shown."""
    return Finding(claim, True, reason, skipped=True)
