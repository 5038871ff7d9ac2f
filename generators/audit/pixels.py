"""Checks of a split's pictures and texts: those in its file are what its scenes give, and a sample is what the direct
renderer draws, which uses no atlas."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from menagerie.envs.checks.against_direct import compare_with_direct
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.render import image_identity
from menagerie.envs.render.row import renderer_of
from menagerie.envs.world import World
from menagerie.generators.audit.findings import Finding, skipped_finding
from menagerie.generators.audit.regeneration import Incomparable, current_recipe, recorded_left_out, trusted_world
from menagerie.generators.storage.folder import Progress
from menagerie.generators.storage.pack import pictures_intact, texts_at
from menagerie.generators.storage.pictures import SplitPictures, atlas_of, map_pictures, too_hidden
from menagerie.generators.storage.records import blocks
from menagerie.generators.storage.split_file import PICTURED, REMEDY, Split

SAMPLE = 12  # records that are drawn directly: drawing a background takes as long as several objects
# The direct renderer samples shadows and edges otherwise. Decibels over the pixels that objects or their shadows touch,
# and share of these on which masks agree.
LEAST_DECIBELS, LEAST_MASKS = 28.0, 0.9
AGAIN = "images and masks in the file are those of its scenes"
TEXTS = "texts in the file are those of its records"
HIDDEN = "scenes were left out as the recipe says, for what they hide"
DIRECT = "a sample of images is what the direct renderer draws"


def check_pictures(
    split: Split, report: Progress = lambda *_: None, world_file: Path | None = None
) -> Iterator[Finding]:
    """All checks of pictures. `world_file` is as for `trusted_world`. `report` is called with a stage ("factors",
    "compared"), the number done and the total."""
    try:
        held = {name: found for name in split.subsets if (found := map_pictures(split, name))}
    except UserError as error:
        yield Finding(AGAIN, False, str(error).removesuffix(f"; {REMEDY}"))
        return
    if held:
        changed = [name for name in split.subsets if name not in held or not pictures_intact(split, name)]
        detail = f"those of {', '.join(changed)} are others or missing" if changed else f"{len(held)} subsets"
        yield Finding("pictures and texts are as they were written", not changed, detail)
        yield compare_columns(TEXTS, held, PICTURED[2:], lambda subset, rows: texts_at(split.subsets[subset], rows))
    try:
        world = trusted_world(split, world_file)
        if image_identity(world, split.resolution) != split.identity:
            raise Incomparable(f"its images are of another renderer or world ({split.identity})")
    except Incomparable as reason:
        yield from (skipped_finding(claim, str(reason)) for claim in (AGAIN, HIDDEN, DIRECT))
        return
    with scratch_folder() as folder:
        there = atlas_of(split.path.parent, split.identity)
        folder = there if any(there.glob("atlas-*")) else folder
        renderer = renderer_of(world, split.resolution, folder, usable_cores())
        scenes = [scene for name in held for scene in split.subsets[name].scenes_at(slice(None))]
        renderer.prepare(scenes, lambda done, total: report("factors", done, total))
        pictures = SplitPictures(split, world, folder)
        if held:
            yield compare_columns(AGAIN, held, PICTURED[:2], pictures.both, report)
        else:
            yield skipped_finding(AGAIN, "the file holds none: they are composed when they are asked for")
        yield left_out_again(split, pictures, world_file)
        if world.row is None:
            yield matches_direct_drawing(split, held, pictures, world)


def left_out_again(split: Split, pictures: SplitPictures, world_file: Path | None) -> Finding:
    """Whether the scenes that the file says were left out are those that hide too much."""
    try:
        recipe = current_recipe(split, world_file)
    except (Incomparable, UserError) as reason:
        return skipped_finding(HIDDEN, str(reason))
    planned = recipe.subsets() if recipe.least_visible else {}
    again = recipe.leave_out(planned, too_hidden(pictures.renderer, planned, recipe.least_visible))
    return Finding(HIDDEN, again == recorded_left_out(split), f"{sum(map(len, again.values()))} scenes")


def compare_columns(
    claim: str,
    held: Mapping[str, dict],
    names: Sequence[str],
    made: Callable[[str, slice], Sequence],
    report: Progress = lambda *_: None,
) -> Finding:
    """Whether the columns `names` of all that the file holds are what `made` gives for some rows of a subset."""
    wrong, done, total = [], 0, sum(len(found["masks"]) for found in held.values())
    for subset, found in held.items():
        for rows in blocks(len(found["masks"])):
            for name, again in zip(names, made(subset, rows), strict=True):
                same = (np.asarray(found[name][rows]) == np.asarray(again)).reshape(len(again), -1).all(1)
                wrong += [f"{name} of row {rows.start + row} of {subset}" for row in np.flatnonzero(~same)]
            done += rows.stop - rows.start
            report("compared", done, total)
    return Finding(claim, not wrong, f"{len(wrong)} are others, first {wrong[0]}" if wrong else f"{total} rows")


def matches_direct_drawing(split: Split, held: dict, pictures: SplitPictures, world: World) -> Finding:
    """Whether a sample of the file's images, or of composed ones, is what the direct renderer draws."""
    chosen = spaced_records(split)
    apart = []
    for subset, row in chosen:
        found = held.get(subset)
        image, mask = (
            np.asarray(found[name][row]) if found else getattr(pictures, name)(subset, [row])[0]
            for name in PICTURED[:2]
        )
        (scene,) = split.subsets[subset].scenes_at([row])
        result = compare_with_direct(scene, image, mask, pictures.renderer.areas([scene])[0], world)
        if result.touched < LEAST_DECIBELS or result.masks_differ > 1 - LEAST_MASKS:
            apart.append(f"row {row} of {subset}, {scene.key}: {result.touched:.0f} dB")
    detail = f"{len(chosen)} {'images' if held else 'composed images; the file holds none'}"
    return Finding(DIRECT, not apart, f"{len(apart)} of {detail} are others, first {apart[0]}" if apart else detail)


def spaced_records(split: Split) -> Sequence[tuple[str, int]]:
    """Evenly spaced records of all subsets, at least one of each that has any: subset and number."""
    names = [name for name in split.subsets if len(split.subsets[name])]
    each = -(-SAMPLE // max(len(names), 1))
    return [
        (name, int(row))
        for name in names
        for row in np.linspace(0, len(split.subsets[name]) - 1, min(each, len(split.subsets[name]))).round()
    ]
