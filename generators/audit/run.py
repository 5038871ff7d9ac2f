"""Proves from a split file and its store that nothing held out is in train and nothing is mislabelled.

The audit recomputes pairs, fractions, words and graphs from the file's content, independently of the
code that generates splits, so that a mistake in one does not hide in the other. They share only the
words for numbers, relations and conjunctions, and the language of hold-out rules, which have tests of their own.
Besides it looks for answers that don't need the picture (balance, cues), and for gaps and ties: what train leaves out
(crossed), what tests don't show evenly (drawn), and draws that go with something else (scene_draws, pair_draws,
sequence). It makes the split again from its recipe (regeneration), and compares every image with its digest, its scene
and, for a sample, with a new rendering (pixels).
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.validation import build
from menagerie.generators.audit import (
    balance,
    binding,
    contents,
    counting,
    crossed,
    cues,
    dependence,
    drawn,
    facing,
    file_checks,
    held_out,
    mentions,
    pair_draws,
    regeneration,
    scene_draws,
    separation,
    sequence,
    spatial,
    texts,
    wording,
)
from menagerie.generators.audit.exported import audit_export
from menagerie.generators.audit.findings import Finding, skipped
from menagerie.generators.audit.pixels import HOW_MANY, Progress, check_pixels
from menagerie.generators.audit.renderings import Renderings
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.split_file import REMEDY, Split, read_split

# Fields of a recipe that checks read; those that came later may be missing.
REQUIRED = {
    "kind",
    "world",
    "seed",
    "pairs",
    "hard_negatives",
    "views",
    "test_views",
    "test_scenes",
    "reserve",
    "validation",
    "template",
}


# Checks of every split, and of each kind.
CHECKS = (
    contents.check_not_empty,
    *separation.CHECKS,
    held_out.check_hold_out,
    contents.check_sizes,
    texts.check_texts,
    *wording.CHECKS,
    facing.check_facing,
    *balance.CHECKS,
    *cues.CHECKS,
    *drawn.CHECKS,
    *scene_draws.CHECKS,
    *pair_draws.CHECKS,
    *sequence.CHECKS,
)
CHECKS_OF = {
    "binding": (crossed.check_single_objects, crossed.check_pairs_crossed, *binding.CHECKS, *mentions.CHECKS),
    "spatial": (crossed.check_single_objects, crossed.check_pairs_crossed, *spatial.CHECKS, mentions.check_shares),
    "dependence": (crossed.check_dependence_crossed, *dependence.CHECKS),
    "counting": (crossed.check_numbers_crossed, *counting.CHECKS),
}


def audit(
    path: Path,
    pixels: str = "sample",
    report: Progress = lambda *its: None,
    world_file: Path | None = None,
    records: Callable[[], list[Finding]] | None = None,
    renderings: Renderings | None = None,
) -> list[Finding]:
    """All findings on a split file, or on the folder of an export; one that can't be read raises `UserError`.

    `pixels`: whether a "sample" of the images is rendered again, or "all". `report` is called as by `check_pixels`.
    `world_file` is the file of the split's own world, which is loaded with its Python code; without it neither the
    split nor its images are made again. `records` gives what `records_of` would, where another process does that.
    """
    choose("pixels", pixels, HOW_MANY)
    if path.is_dir():
        return audit_export(path, pixels, report, world_file)
    split = readable_split(path)
    findings = check_file(split)
    if any(finding.claim == file_checks.FITS and finding.holds for finding in findings):
        shown = list(check_pixels(split, pixels, report, world_file, renderings))
    else:
        shown = [skipped("images and masks", "there is nothing to compare them with until the store fits")]
    return [*findings, *(records() if records else check_records(split, world_file)), *shown]


def records_of(path: Path, world_file: Path | None = None) -> list[Finding]:
    """The findings on the records of a split file."""
    return check_records(readable_split(path), world_file)


def readable_split(path: Path) -> Split:
    """A split file that has what the checks read."""
    split = read_split(path, verify=False)
    check_readable(split)
    return split


def check_file(split: Split) -> list[Finding]:
    """The findings on the file itself and its links."""
    return [finding for check in file_checks.CHECKS for finding in done(check, split)]


def check_records(split: Split, world_file: Path | None = None) -> list[Finding]:
    """The findings on scenes and texts; each that fails says the way out."""

    def made_again(split: Split) -> Iterator[Finding]:
        return regeneration.check_regeneration(split, world_file)

    own = (*CHECKS, made_again, *CHECKS_OF[split.recipe["kind"]])
    return [with_way_out(finding) for check in own for finding in done(check, split)]


def done(check: Callable[[Split], Iterator[Finding]], split: Split) -> Iterator[Finding]:
    """What a check finds; records that it can make nothing of, such as a single thing in a test of pairs, fail it."""
    try:
        yield from check(split)
    except (ValueError, LookupError) as error:
        yield Finding(f"{check.__name__.replace('_', ' ')}: records are of the split's kind", False, repr(error))


def with_way_out(finding: Finding) -> Finding:
    """A failed finding with what to do about it: the file is wrong as it is."""
    return finding if finding.holds else finding._replace(detail="; ".join(filter(None, (finding.detail, REMEDY))))


def check_readable(split: Split) -> None:
    """Raise unless the recipe is one, and the subsets that the checks read are there."""
    if not isinstance(split.recipe, dict) or not split.recipe.keys() >= REQUIRED:
        missing = REQUIRED - set(split.recipe)
        raise UserError(f"the recipe in {split.path} has no {' and no '.join(sorted(missing))}; {REMEDY}")
    kind = KINDS[choose(f"kind of {split.path}", split.recipe["kind"], CHECKS_OF)]
    known = {field.name for field in fields(kind)}
    try:
        recipe = build(kind, {name: value for name, value in split.recipe.items() if name in known})
    except UserError as error:
        raise UserError(f"the recipe in {split.path}: {error}; {REMEDY}") from error
    needed = {"train", "validation", *recipe.tests, *([HELD_OUT] if recipe.hold_out else [])}
    if missing := needed - split.subsets.keys():
        raise UserError(f"{split.path} has no subset {' and no '.join(sorted(missing))}; {REMEDY}")
