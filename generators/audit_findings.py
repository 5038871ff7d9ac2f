"""What all parts of the audit share."""

from collections.abc import Iterator
from typing import NamedTuple

from generators.split_file import Split


class Finding(NamedTuple):
    """One check: what it claims, whether it holds, and the figures or the first offender."""

    claim: str
    holds: bool
    detail: str


def first(offenders: Iterator[str]) -> tuple[bool, str]:
    """(True, "") for no offender, else (False, the first of them)."""
    offender = next(iter(offenders), None)
    return offender is None, "" if offender is None else f"first: {offender}"


def nearest(what: str, found: int, fraction: float, total: int) -> Finding:
    """Whether `found` of `total` is as near to `fraction` as a whole number gets."""
    realised = found / total if total else 0.0
    detail = f"{found} of {total} = {realised:.3f}, asked {fraction:.3f}"
    return Finding(f"{what}: the asked fraction", abs(found - fraction * total) <= 0.5 + 1e-9, detail)


def held_out(split: Split) -> tuple[int, int]:
    """All animal pairs of the world, and how many of them reserve and validation take."""
    n_pairs = len(split.vocabulary.animals) * (len(split.vocabulary.animals) - 1) // 2
    shares = (split.recipe[name] for name in ("reserve", "validation"))
    return n_pairs, sum(max(round(share * n_pairs), share > 0) for share in shares)
