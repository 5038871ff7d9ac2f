"""Check split files and the images of their stores; exit status 1 if a check fails."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.processes import serve
from menagerie.envs.core.progress import progress_bars

if TYPE_CHECKING:
    from menagerie.generators.audit.findings import Finding


@dataclass(frozen=True)
class Config:
    files: tyro.conf.Positional[tuple[Path, ...]]
    """Split files, packed or not, or folders of exports."""
    pixels: Literal["sample", "all"] = "sample"
    """Images that are rendered again and compared byte for byte: a sample, or all. All are compared with their
    digests and their scenes."""
    world: Path | None = None
    """The TOML file of the splits' own world, to make the splits and their images again. Its Python files are run; the
    path that a split itself names is not opened."""


def run(config: Config) -> int:
    """Print every finding on each file; a file that can't be read is one line, and an error if it is the only one."""
    from menagerie.envs.worlds import load_world
    from menagerie.generators.audit.run import audit_each

    if not config.files:
        raise UserError("audit needs a split file: 'menagerie make' prints the path of its own")
    if config.world is not None:
        load_world(str(config.world))
    serve(("menagerie.generators.audit.run",))
    failed = False
    with progress_bars("read", "factors", "rendered again") as progress:
        for path, outcome in audit_each(config.files, config.pixels, progress, config.world):
            if isinstance(outcome, UserError) and len(config.files) == 1:
                raise outcome
            failed |= print_error(outcome) if isinstance(outcome, UserError) else print_findings(path, outcome)
    return int(failed)


def print_error(error: UserError) -> bool:
    """Print why a file can't be read; true, as that is a failure."""
    print(f"error: {error}", file=sys.stderr)
    return True


def print_findings(path: Path, findings: "Sequence[Finding]") -> bool:
    """Print the findings on a file and how many hold; whether one fails."""
    table = Table("check", "", "detail", title=str(path))
    for finding in findings:
        word = "skipped" if finding.skipped else "ok" if finding.holds else "FAILED"
        table.add_row(finding.claim, word, escape(finding.detail))
    Console().print(table)
    failed = sum(not finding.holds for finding in findings)
    skipped = sum(finding.skipped for finding in findings)
    print(f"{len(findings) - failed - skipped} checks hold, {failed} fail" + f", {skipped} skipped" * bool(skipped))
    return failed > 0
