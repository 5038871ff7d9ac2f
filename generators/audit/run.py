"""Proves from a split file and its store that nothing held out is in train and nothing is mislabelled.

The audit recomputes from the file's content what train must not show (`held_out` and what each kind holds out) and what
is true of a scene (`texts`), independently of the code that generates splits, so that a mistake in one does not hide in
the other. They share the swaps of scenes, phrases, the parser of captions and hold-out rules, which have tests of their
own. It makes the split again from its recipe (`regeneration`), and compares every image with its digest and its scene,
and a sample or all of the images with new renderings (`pixels`). That draws are even is tested where they are made.

`audit_each` uses two processes: one reads records and makes splits again, the other compares pixels.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.processes import end_processes, end_with_parent, workers_context
from menagerie.envs.core.validation import build
from menagerie.generators.audit import counting, crowds, held_out, objects, pairs, probes, regeneration, texts
from menagerie.generators.audit.exported import audit_export
from menagerie.generators.audit.findings import Finding, skipped
from menagerie.generators.audit.pixels import HOW_MANY, Progress, check_pixels
from menagerie.generators.audit.rendered import Renderings, at_once, open_renderings
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.split_file import REMEDY, Split, only_if_set, read_split

# Checks of every split, then checks by kind of split.
CHECKS = (
    held_out.check_disjoint,
    held_out.check_partners,
    held_out.check_hold_out,
    texts.check_texts,
    texts.check_denials,
)
CHECKS_OF = {
    "binding": (held_out.check_views, pairs.check_pairs, pairs.check_bindings, objects.check_objects),
    "spatial": (held_out.check_views, pairs.check_orders, pairs.check_relations),
    "dependence": (held_out.check_views, pairs.check_painted),
    "counting": (held_out.check_views, counting.check_same_things, counting.check_held_animals),
    "crowd": (
        held_out.check_views,
        crowds.check_crowd_things,
        crowds.check_crowd_apart,
        crowds.check_crowd_cells,
    ),
    "probe": (
        probes.check_probe_trains_nothing,
        probes.check_probe_quartets,
        probes.check_probe_groups,
        probes.check_probe_entropies,
        probes.check_probe_mentions,
    ),
}


def audit(
    path: Path,
    pixels: str = "sample",
    report: Progress = lambda *_: None,
    world_file: Path | None = None,
    records: Callable[[], list[Finding]] | None = None,
    renderings: Renderings | None = None,
    exported: Path | None = None,
) -> list[Finding]:
    """All findings on a split file, or on the folder of an export of the split file `exported`; raises `UserError` if
    it can't be read.

    `pixels` is "sample" or "all": which images are rendered again. `report` is passed to `check_pixels`.
    `world_file` is the file of a user's own world, whose Python code is run. Without it, a split of such a world is
    neither made nor rendered again for comparison. `records` returns the findings on the records if another process
    makes them.
    """
    choose("pixels", pixels, HOW_MANY)
    if path.is_dir():
        return audit_export(path, exported)
    split = readable_split(path)
    findings = check_file(split)
    if any(finding.claim == regeneration.FITS and finding.holds for finding in findings):
        shown = list(check_pixels(split, pixels, report, world_file, renderings))
    else:
        shown = [skipped("images and masks", "there is nothing to compare them with until the store fits")]
    return [*findings, *(records() if records else check_records(split, world_file)), *shown]


def records_of(path: Path, world_file: Path | None = None) -> list[Finding]:
    """The findings on the records of a split file."""
    return check_records(readable_split(path), world_file)


def readable_split(path: Path) -> Split:
    """Open a split file; raises `UserError` unless it has everything that the checks read."""
    split = read_split(path, verify=False)
    check_readable(split)
    return split


def check_file(split: Split) -> list[Finding]:
    """The findings on the file itself and its links."""
    return [finding for check in (regeneration.check_file, regeneration.check_name) for finding in done(check, split)]


def check_records(split: Split, world_file: Path | None = None) -> list[Finding]:
    """The findings on scenes and texts; each failed one says what to do."""

    def made_again(split: Split) -> Iterator[Finding]:
        return regeneration.check_regeneration(split, world_file)

    checks = (*CHECKS, made_again, *CHECKS_OF[split.recipe["kind"]])
    return [with_way_out(finding) for check in checks for finding in done(check, split)]


def done(check: Callable[[Split], Iterator[Finding]], split: Split) -> Iterator[Finding]:
    """Run a check and yield its findings. A check that raises on malformed records, such as a single thing in a test of
    pairs, fails."""
    try:
        yield from check(split)
    except (ValueError, LookupError) as error:
        yield Finding(f"{check.__name__.replace('_', ' ')}: records are of the split's kind", False, repr(error))


def with_way_out(finding: Finding) -> Finding:
    """Add to a failed finding what to do about the file."""
    return finding if finding.holds else finding._replace(detail="; ".join(filter(None, (finding.detail, REMEDY))))


def check_readable(split: Split) -> None:
    """Raise unless the recipe can be read and the subsets that the checks read exist."""
    kind = KINDS[choose(f"kind of {split.path}", str(split.recipe.get("kind")), CHECKS_OF)]
    known = {field.name for field in fields(kind)}
    if missing := known - only_if_set(kind.kind) - split.recipe.keys():
        raise UserError(f"the recipe in {split.path} has no {' and no '.join(sorted(missing))}; {REMEDY}")
    try:
        recipe = build(kind, {name: value for name, value in split.recipe.items() if name in known})
    except UserError as error:
        raise UserError(f"the recipe in {split.path}: {error}; {REMEDY}") from error
    needed = {"train", "validation", *recipe.tests, *([HELD_OUT] if recipe.hold_out else [])}
    if missing := needed - split.subsets.keys():
        raise UserError(f"{split.path} has no subset {' and no '.join(sorted(missing))}; {REMEDY}")


Outcome = list[Finding] | UserError


def audit_each(
    paths: Sequence[Path], pixels: str, report: Progress, world_file: Path | None = None, exported: Path | None = None
) -> Iterator[tuple[Path, Outcome]]:
    """Audit files one after the other; yields each path with its findings, or with the error if it can't be read.

    Renderers, and rows that were found sound for one split, are reused for the next.
    """
    others = multiprocessing.active_children()
    with (
        open_renderings(at_once() if pixels == "all" else 1) as renderings,
        ProcessPoolExecutor(1, mp_context=workers_context(), initializer=end_with_parent) as other,
    ):
        records = {path: other.submit(records_of, path, world_file) for path in paths if path.is_file()}
        try:
            for path in paths:
                waiting = partial(result_of, records[path]) if path in records else None
                yield path, outcome_of(path, pixels, report, world_file, waiting, renderings, exported)
        except BaseException:  # on Ctrl-C too: unfinished work is useless
            end_processes([process for process in multiprocessing.active_children() if process not in others])
            raise


def outcome_of(path: Path, *arguments: Any) -> Outcome:
    """Audit a file; returns the findings, or the error if the file can't be read."""
    try:
        return audit(path, *arguments)
    except UserError as error:
        return error


def result_of(records: Future[list[Finding]]) -> list[Finding]:
    """The findings of the process that audits records; raises `UserError` if that process died."""
    try:
        return records.result()
    except BrokenProcessPool as error:
        raise UserError("the process that audits records has ended: killed, or out of memory; run it again") from error
