"""Several splits audited by two processes: one reads records and makes splits again, the other compares pixels."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.processes import end_processes, end_with_parent, workers_context
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.pixels import Progress
from menagerie.generators.audit.renderings import at_once, open_renderings
from menagerie.generators.audit.run import audit, records_of

Outcome = list[Finding] | UserError


def audit_each(
    paths: Sequence[Path], pixels: str, report: Progress, world_file: Path | None = None
) -> Iterator[tuple[Path, Outcome]]:
    """What `audit` finds of each file, or why it can't be read; what is rendered for one split serves the next."""
    others = multiprocessing.active_children()
    with (
        open_renderings(at_once() if pixels == "all" else 1) as renderings,
        ProcessPoolExecutor(1, mp_context=workers_context(), initializer=end_with_parent) as other,
    ):
        records = {path: other.submit(records_of, path, world_file) for path in paths if path.is_file()}
        try:
            for path in paths:
                waiting = partial(result_of, records[path]) if path in records else None
                yield path, outcome_of(path, pixels, report, world_file, waiting, renderings)
        except BaseException:  # Ctrl-C, too: what was begun is of no use
            end_processes([its for its in multiprocessing.active_children() if its not in others])
            raise


def outcome_of(path: Path, *arguments: Any) -> Outcome:
    """What `audit` finds of a file, or why it can't be read."""
    try:
        return audit(path, *arguments)
    except UserError as error:
        return error


def result_of(records: Future[list[Finding]]) -> list[Finding]:
    """What the other process finds."""
    try:
        return records.result()
    except BrokenProcessPool as error:
        raise UserError("the process that audits records has ended: killed, or out of memory; run it again") from error
