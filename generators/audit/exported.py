"""Audit of an export: its files are those that `menagerie export` wrote, and they are of a split."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable, read_json, read_text
from menagerie.envs.core.records import sha256
from menagerie.generators.audit.findings import Finding, skipped
from menagerie.generators.export.write import MARK, SUMS, export_identity, present_in
from menagerie.generators.storage.split_file import read_split

LINE = re.compile(r"([0-9a-f]{64})  (.+)")
REMEDY = "export the split again with 'menagerie export'"
NAMED = 5  # files of each finding that are named; the others are counted
OF_THE_SPLIT = "the export is of the split"


def audit_export(folder: Path, split: Path | None = None) -> list[Finding]:
    """All findings on an export, which is said to be of the file `split`. Raises `UserError` if either can't be
    read."""
    listed, present = read_sums(folder), present_in(folder) - {SUMS}
    common = sorted(listed.keys() & present)
    changed = [path for path in common if sha256(folder / path).hex() != listed[path]]
    return [
        no_files("files are as they were written", changed, f"{len(common)} files"),
        no_files("no file is missing", listed.keys() - present),
        no_files("no file was added", present - listed.keys()),
        check_mark(folder, split) if split else skipped(OF_THE_SPLIT, "name the split's file by --split"),
    ]


def read_sums(folder: Path) -> dict[str, str]:
    """The digest of each file by its path; raises `UserError` if the export isn't finished."""
    try:
        lines = [LINE.fullmatch(line) for line in read_text(folder / SUMS).splitlines()]
        return {line[2]: line[1] for line in lines}
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{folder} is no finished export: {SUMS} has no digests ({error}); {REMEDY}") from error


def check_mark(folder: Path, path: Path) -> Finding:
    """Whether an export's mark is the one that an export of a split file has."""
    split = read_split(path)
    try:
        recorded = read_json(folder / MARK, dict[str, str | list[str]])
    except Unreadable as error:
        return Finding(OF_THE_SPLIT, False, f"{error}; {REMEDY}")
    its = {name: records for name, records in split.subsets.items() if name in recorded.get("subsets", ())}
    same = export_identity(replace(split, subsets=its), str(recorded.get("format"))) == recorded
    return Finding(OF_THE_SPLIT, same, str(path) if same else f"{folder / MARK} is of another split; {REMEDY}")


def no_files(claim: str, paths: Iterable[str], detail: str = "") -> Finding:
    """A finding that holds if there are no such files; else it names the first ones."""
    wrong = sorted(paths)
    more = f" and {len(wrong) - NAMED} more" * (len(wrong) > NAMED)
    return Finding(claim, not wrong, f"{', '.join(wrong[:NAMED])}{more}; {REMEDY}" if wrong else detail)
