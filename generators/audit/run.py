"""Proves from a split file that nothing held out is in train and nothing is mislabelled.

The audit recomputes from the file's content what train must not show (`leaks`; each kind of split says what its tests
call unseen, `SplitRecipe.lacks`) and what is true of a scene (`texts`), independently of the code that draws scenes and
writes captions, so that a mistake in one does not hide in the other. They share the swaps of scenes, phrases, the
parser of captions and hold-out rules, which have tests of their own. It makes the split again from its recipe
(`regeneration`), and compares the pictures in the file with those that its scenes give, and a sample with the direct
renderer (`pixels`). That draws are even is tested where they are made."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.audit import leaks, regeneration, texts
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.pixels import Progress, check_pictures
from menagerie.generators.storage.split_file import REMEDY, Split, read_split

CHECKS = (
    leaks.check_disjoint,
    leaks.check_counterfactuals,
    leaks.check_hard_negatives,
    leaks.check_hold_out,
    leaks.check_views,
    leaks.check_test_names,
    leaks.check_validation,
    leaks.check_kind,
    texts.check_captions,
    texts.check_denials,
)


def audit(path: Path, report: Progress = lambda *_: None, world_file: Path | None = None) -> list[Finding]:
    """All findings on a split file; raises `UserError` if it can't be read, or lacks a subset that the checks read.

    `report` is passed to `check_pictures`. `world_file` is the file of a user's own world, whose Python code is run.
    Without it, a split of such a world is neither made nor drawn again for comparison.
    """
    split = read_split(path)
    if missing := {"train", "validation", *split.made_by.all_tests} - split.subsets.keys():
        raise UserError(f"{split.path} has no subset {' and no '.join(sorted(missing))}; {REMEDY}")
    return [*audit_records(split, world_file), *map(with_way_out, check_pictures(split, report, world_file))]


def audit_records(split: Split, world_file: Path | None = None) -> list[Finding]:
    """The findings on all but pictures; each failed one says what to do."""
    findings = [finding for check in CHECKS for finding in run_check(check, split)]
    findings += run_check(regeneration.check_regeneration, split, world_file)
    return list(map(with_way_out, findings))


def run_check(check: Callable[..., Iterator[Finding]], *given: Any) -> Iterator[Finding]:
    """Run a check and yield its findings. A check that raises on malformed records, such as a single object in a test
    of pairs, fails."""
    try:
        yield from check(*given)
    except (ValueError, LookupError) as error:
        yield Finding(f"{check.__name__.replace('_', ' ')}: records are of the split's kind", False, repr(error))


def with_way_out(finding: Finding) -> Finding:
    """Add to a failed finding what to do about the file."""
    return (
        finding
        if finding.holds
        else finding._replace(detail="; ".join(filter(None, (finding.detail, f"delete the file and {REMEDY}"))))
    )
