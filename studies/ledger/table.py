"""The ledger as a table and as a page."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from menagerie.studies.ledger.claim_file import ClaimFile
from menagerie.studies.ledger.verdict import Judgement
from menagerie.studies.runs.folder import recorded_config


class LedgerRow(NamedTuple):
    claim: str
    paper: str
    place: str
    sentence: str
    outcome: str
    numbers: str
    condition: str
    digest: str
    folder: str
    commit: str
    """That of the file when its runs began; empty if it wasn't committed."""


HEADER = LedgerRow._fields


def ledger_row(file: ClaimFile, its: Judgement, folder: Path) -> LedgerRow:
    claim, noted = file.claim, str(recorded_config(folder).get("claim", ""))
    commit = noted.partition(" ")[2]
    return LedgerRow(*(file.name, claim.paper, claim.place, claim.claim, *its, file.digest, str(folder), commit))


def ledger_page(rows: Iterable[LedgerRow]) -> str:
    """Write the ledger in Markdown: an item for each claim."""
    return "\n".join(map(item_text, rows))


def item_text(row: LedgerRow) -> str:
    runs = f"Runs in `{row.folder}`, digest {row.digest}, file committed in {row.commit or 'no commit'}."
    facts = [row.numbers and f"Numbers: {row.numbers}.", row.condition and f"Condition {row.condition}.", runs]
    head = f"- **{row.outcome}**: {row.sentence} ({row.paper}, {row.place}; `{row.claim}.toml`)"
    return "\n".join([head, *(f"  - {fact}" for fact in facts if fact), ""])
