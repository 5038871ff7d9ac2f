"""The ledger as a table and as a page."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.provenance import commit_of
from menagerie.studies.ledger.claim_file import ClaimFile, read_claims
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
    """That of the file before its first run; empty if it wasn't committed."""


HEADER = LedgerRow._fields
PUBLISHED, VERDICT = "ledger-", "verdict.csv"  # how runs of a claim are called as published ones, and their row


def ledger_row(file: ClaimFile, its: Judgement, folder: Path) -> LedgerRow:
    claim, noted = file.claim, recorded_config(folder).get("claim")
    commit = str(noted).partition(" ")[2] if noted else commit_of(file.path)
    runs = str(folder) if folder.exists() else ""
    return LedgerRow(file.name, claim.paper, claim.place, claim.claim, *its, file.digest, runs, commit)


def kept_rows(path: Path) -> list[LedgerRow]:
    """Read the rows of a ledger.csv; none if it isn't there. Raises `UserError` if it is no ledger."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [LedgerRow(**row) for row in csv.DictReader(file)]
    except FileNotFoundError:
        return []
    except (TypeError, ValueError) as error:
        raise UserError(f"{path} is no ledger ({error}); delete it, and the next command makes it again") from error


def shipped_rows(measured: Path) -> list[LedgerRow]:
    """Return the row of each claim that ships: the kept one in `measured` where its file is the same, else that it
    wasn't run, or only another state of it."""
    rows = []
    for file in read_claims(()):
        kept = kept_rows(measured / f"{PUBLISHED}{file.name}" / VERDICT)
        outcome = "run for another state of the file" if kept else "not run"
        row = ledger_row(file, Judgement(outcome), Path())._replace(folder="", commit="")
        rows += [its for its in kept if its.digest == file.digest] or [row]
    return rows


def ledger_page(rows: Iterable[LedgerRow]) -> str:
    """Write the ledger in Markdown: an item for each claim."""
    return "\n".join(map(item_text, rows))


def item_text(row: LedgerRow) -> str:
    where = [row.folder and f"Runs in `{row.folder}`", f"digest {row.digest}"]
    if row.folder:
        where.append(f"commit {row.commit}" if row.commit else "file not committed")
    facts = [row.numbers, row.condition and f"Condition {row.condition}", ", ".join(filter(None, where))]
    head = f"- **{row.outcome}**: {row.sentence} ({row.paper}, {row.place}; `{row.claim}.toml`)"
    return "\n".join([head, *(f"    - {fact[0].upper()}{fact[1:]}." for fact in facts if fact), ""])
