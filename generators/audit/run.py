"""Proves from a split file that nothing held out is in train and nothing is mislabelled.

The audit recomputes from the file's content what train must not show (`held_out` and what each kind holds out) and what
is true of a scene (`texts`), independently of the code that generates splits, so that a mistake in one does not hide in
the other. They share the swaps of scenes, phrases, the parser of captions and hold-out rules, which have tests of their
own. It makes the split again from its recipe (`regeneration`), and compares the pictures in the file with those that
its scenes give, and a sample with the direct renderer (`pixels`). That draws are even is tested where they are made.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.validation import build
from menagerie.generators.audit import held_out, kinds, multi_object, probes, regeneration, texts
from menagerie.generators.audit.exported import audit_export
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.pixels import Progress, check_pictures
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.split_file import REMEDY, Split, inspect_split

# Checks of every split, then checks by kind of split.
CHECKS = (
    held_out.check_disjoint,
    held_out.check_counterfactuals,
    held_out.check_negatives,
    held_out.check_hold_out,
    held_out.check_views,
    texts.check_texts,
    texts.check_denials,
)
CHECKS_OF = {
    "binding": (kinds.check_pairs, kinds.check_bindings, kinds.check_compositions),
    "spatial": (kinds.check_orders, kinds.check_relations),
    "dependence": (kinds.check_painted,),
    "counting": (kinds.check_counted,),
    "multi-object": (multi_object.check_numbers, multi_object.check_apart, multi_object.check_coverage),
    "probe": (
        probes.check_probe_trains_nothing,
        probes.check_probe_quartets,
        probes.check_probe_pairs,
        probes.check_probe_entropies,
        probes.check_probe_mentions,
    ),
}


def audit(
    path: Path, report: Progress = lambda *_: None, world_file: Path | None = None, exported: Path | None = None
) -> list[Finding]:
    """All findings on a split file, or on the folder of an export of the split file `exported`; raises `UserError` if
    it can't be read.

    `report` is passed to `check_pictures`. `world_file` is the file of a user's own world, whose Python code is run.
    Without it, a split of such a world is neither made nor drawn again for comparison.
    """
    if path.is_dir():
        return audit_export(path, exported)
    split = inspect_split(path)
    check_readable(split)
    shown = map(with_way_out, check_pictures(split, report, world_file))
    return [*check_file(split), *check_records(split, world_file), *shown]


def check_file(split: Split) -> list[Finding]:
    """The findings on the file itself."""
    return [finding for check in (regeneration.check_file, regeneration.check_name) for finding in done(check, split)]


def check_records(split: Split, world_file: Path | None = None) -> list[Finding]:
    """The findings on scenes and texts; each failed one says what to do."""

    def made_again(split: Split) -> Iterator[Finding]:
        return regeneration.check_regeneration(split, world_file)

    checks = (*CHECKS, made_again, *CHECKS_OF[split.recipe["kind"]])
    return [with_way_out(finding) for check in checks for finding in done(check, split)]


def done(check: Callable[[Split], Iterator[Finding]], split: Split) -> Iterator[Finding]:
    """Run a check and yield its findings. A check that raises on malformed records, such as a single object in a test
    of pairs, fails."""
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
    if missing := known - split.recipe.keys():
        raise UserError(f"the recipe in {split.path} has no {' and no '.join(sorted(missing))}; {REMEDY}")
    try:
        recipe = build(kind, {name: value for name, value in split.recipe.items() if name in known})
    except UserError as error:
        raise UserError(f"the recipe in {split.path}: {error}; {REMEDY}") from error
    needed = {"train", "validation", *recipe.tests, *([HELD_OUT] if recipe.hold_out else [])}
    if missing := needed - split.subsets.keys():
        raise UserError(f"{split.path} has no subset {' and no '.join(sorted(missing))}; {REMEDY}")
