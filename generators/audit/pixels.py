"""Checks of a split's images and masks: against their digests, their scenes, and new renderings of them.

Every row that the split shows is read, unless the audit found it sound in another split. Digests prove that an image is
the rendered one; masks, colours and new renderings (`rendered`) prove that it shows the right scene.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Float32, UInt8

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.layouts import relations_of
from menagerie.envs.render import image_identity
from menagerie.envs.render.occlusion import visible_pixels
from menagerie.envs.scene import Scene
from menagerie.envs.slots import CROWD, place_of
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.findings import Finding, skipped
from menagerie.generators.audit.regeneration import Incomparable, trusted_world
from menagerie.generators.audit.rendered import (
    Reference,
    Renderings,
    at_once,
    check_again,
    open_renderings,
    wrong_colors,
)
from menagerie.generators.audit.rows import CLAIMS, Block, Problems, ShownRows, Sound
from menagerie.generators.storage.image_store import Progress
from menagerie.generators.storage.scene_checks import measure
from menagerie.generators.storage.split_file import REMEDY, Split
from menagerie.generators.storage.tables import PIXELS, digest_of

MOST_HIDDEN = 0.5  # share of a thing of a crowd whose colour is compared ...
FEWEST_IN_CROWD = 24  # ... and its pixels: at 64 pixels all have more, if not hidden
HIDDEN = ("near", "back")  # rows of crowds before which other things stand
HOW_MANY = ("sample", "all")  # which rows are rendered again


def check_pixels(
    split: Split,
    how_many: str,
    report: Progress = lambda *_: None,
    world_file: Path | None = None,
    renderings: Renderings | None = None,
) -> Iterator[Finding]:
    """All checks of images and masks; a sample or all of the rows are rendered again.

    `world_file` is as for `trusted_world`. `report` is called with the stage ("read", "factors", "rendered again"), the
    number done and the total. `renderings` are shared by the splits of one audit.
    """
    choose("pixels", how_many, HOW_MANY)
    shown = ShownRows(split)
    if not len(shown):
        return
    world, reason = same_world(split, shown, world_file)
    if world is None:
        yield from check_rows(shown, None, report, Sound())
        yield from (skipped(CLAIMS[name], reason) for name in ("colors", "again"))
        return
    with contextlib.ExitStack() as stack:
        renderings = renderings or stack.enter_context(open_renderings(at_once() if how_many == "all" else 1))
        sound = renderings.sound(world, shown.resolution)
        _, reference = renderings.of(world, shown.resolution)
        yield from check_rows(shown, reference, report, sound)
        if reference is None:
            yield skipped(CLAIMS["colors"], "things have their own colours, which differ between photographs")
        yield check_again(shown, renderings, world, how_many == "sample", report)


def same_world(split: Split, shown: ShownRows, world_file: Path | None) -> tuple[World | None, str]:
    """The split's world, if it would still be drawn as it was; else None, and the reason."""
    try:
        world = load_world(trusted_world(split.recipe["world"], world_file))
    except Incomparable as reason:
        return None, str(reason)
    except UserError as error:
        return None, f"{error}; give the world's file by --world"
    here = image_identity(world, shown.resolution)
    if here != split.identity:
        return None, f"the images are of another renderer or world ({split.identity}, here {here}); {REMEDY}"
    return world, ""


def check_rows(shown: ShownRows, reference: Reference | None, report: Progress, sound: Sound) -> Iterator[Finding]:
    """Check the image and mask of every row, but without `least_visible` in the recipe skip rows that another split
    showed to be `sound`. Check colours only if there is a reference."""
    digests = dict(zip(shown.rows.tolist(), shown.reader.digests(shown.rows), strict=True))
    least = shown.split.recipe.get("least_visible", 0.0)
    done_here = [name for name in CLAIMS if name != "again" and (least or name != "visible")]
    problems = {name: Problems(shown) for name in done_here}
    known = () if least else shown.rows.tolist()  # another split may allow more to be hidden
    pictures = {row: found for row in known if (found := sound.picture(*shown.at(row), shown.scene(row)))}
    new, done = shown.rows[[row not in pictures for row in shown.rows.tolist()]], len(pictures)
    for block in shown.blocks(new):
        for name, found in wrong_in(block, digests, reference, least).items():
            for row, what in found if name in problems else ():
                problems[name].add(row, what)
        pictures |= pictures_of(block)
        done += len(block.rows) + len(block.unreadable)
        report("read", done, len(shown))
    for row, what in repeated(shown, pictures):
        problems["alike"].add(row, what)
    bad = set().union(*(found.rows for found in problems.values()))
    for row in (row for row in new.tolist() if row not in bad):
        sound.add(*shown.at(row), shown.scene(row), pictures[row])
    for name, found in problems.items():
        if name != "colors" or reference is not None:
            yield found.finding(name, f"{len(shown)} rows")


def wrong_in(
    block: Block, digests: dict[int, np.ndarray], reference: Reference | None, least: float
) -> dict[str, Iterable[tuple[int, str]]]:
    """For each check of single rows, the rows of a block at which it fails, and how."""
    return {
        "read": block.unreadable,
        "digest": wrong_digests(block, digests),
        "ids": rows_in(block, wrong_ids(block.scenes, block.masks, may_hide(block, least))),
        "places": rows_in(block, wrong_places(block.scenes, block.masks, block.hidden)),
        "visible": rows_in(block, too_hidden(block.scenes, block.hidden, least)),
        "colors": rows_in(block, wrong_colors(block.scenes, block.images, uncovered(block), reference)),
    }


def uncovered(block: Block) -> UInt8[np.ndarray, "n h w"]:
    """The masks of a block without things of crowds that hardly show, because what shows may be only a beak."""
    masks = block.masks.copy()
    known = ~np.isnan(block.hidden)
    small = known & ((block.hidden > MOST_HIDDEN) | (visible_pixels(masks) < FEWEST_IN_CROWD))
    for n, thing in np.argwhere(small).tolist():
        masks[n][masks[n] == thing + 1] = 0
    return masks


def too_hidden(
    scenes: Sequence[Scene], hidden: Float32[np.ndarray, "n things"], least: float
) -> Iterator[tuple[int, str]]:
    """The number of each scene in which less than `least` of a thing shows, with a description."""
    for n, scene in enumerate(scenes):
        for thing, share in zip(scene.things, hidden[n].tolist(), strict=False):
            if share > 1 - least:
                yield n, f"{share:.0%} of the {thing.animal} is hidden"


def rows_in(block: Block, found: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Replace positions within a block by row numbers of the store."""
    return ((int(block.rows[n]), what) for n, what in found)


def wrong_digests(block: Block, digests: dict[int, np.ndarray]) -> Iterator[tuple[int, str]]:
    """The rows of a block whose image or mask doesn't match the digest made when it was rendered."""
    for n, row in enumerate(block.rows.tolist()):
        for name, pixels, digest in zip(PIXELS, (block.images[n], block.masks[n]), digests[row], strict=True):
            if digest_of(block.scenes[n], name, pixels) != digest.tobytes():
                yield row, f"its {name.removesuffix('s')} is not the one that was rendered"


def pictures_of(block: Block) -> dict[int, bytes]:
    """A digest of the image in each row of a block; unlike stored digests it doesn't depend on the scene."""
    digests = (hashlib.blake2b(image, digest_size=16).digest() for image in block.images)
    return dict(zip(block.rows.tolist(), digests, strict=True))


def repeated(shown: ShownRows, pictures: dict[int, bytes]) -> Iterator[tuple[int, str]]:
    """The rows that have the same picture as an earlier row."""
    first_with: dict[bytes, int] = {}
    for row, picture in sorted(pictures.items()):
        if (other := first_with.setdefault(picture, row)) != row:
            yield row, f"the same picture as {shown.where(other)}"


# Words in names of slots -> the image axis along which they come before their opposites.
BEFORE = {"left": ("right", 1), "above": ("under", 0), "upper": ("lower", 0)}


def may_hide(block: Block, least: float) -> Bool[np.ndarray, "n things"]:
    """Which things of a block others hide entirely, as they may in the middle and the back of a crowd if the recipe
    leaves no scene out."""
    hidden = np.nan_to_num(block.hidden) == 1
    for n, i in np.argwhere(hidden).tolist():
        place = CROWD.get(block.scenes[n].things[i].slot)
        hidden[n, i] = not least and place is not None and place.row in HIDDEN
    return hidden


def wrong_ids(
    scenes: Sequence[Scene], masks: UInt8[np.ndarray, "n h w"], hidden: Bool[np.ndarray, "n things"]
) -> Iterator[tuple[int, str]]:
    """The number of each mask that doesn't hold 0 and one id for each thing, but for `hidden` ones, and the ids that it
    holds."""
    for n, (scene, mask) in enumerate(zip(scenes, masks, strict=True)):
        found = np.flatnonzero(np.bincount(mask.reshape(-1), minlength=1)).tolist()
        if found != [0, *(i + 1 for i in range(len(scene.things)) if not hidden[n, i])]:
            shown = ", ".join(map(str, found))
            yield n, f"ids {shown} instead of 0 to {len(scene.things)}"


def wrong_places(
    scenes: Sequence[Scene], masks: UInt8[np.ndarray, "n h w"], hidden: Float32[np.ndarray, "n things"]
) -> Iterator[tuple[int, str]]:
    """The number of each mask in which a thing's centre contradicts its place, with a description."""
    _, centers = measure(masks, max((len(scene.things) for scene in scenes), default=0))
    for n, scene in enumerate(scenes):
        crowd = any(thing.slot in CROWD for thing in scene.things)
        if (
            contradiction := contradicted_crowd(scene, centers[n], hidden[n])
            if crowd
            else contradicted(scene, centers[n])
        ):
            yield n, contradiction


def contradicted_crowd(
    scene: Scene, centers: Float[np.ndarray, "things 2"], hidden: Float32[np.ndarray, " columns"]
) -> str:
    """Describe the first two things of a crowd whose centres contradict their relation; empty if there are none. Things
    of which little shows are skipped, and so are relations in depth, which centres don't show."""
    axes = {"left/right": 1, "above/under": 0}
    for name, one, other in relations_of(scene):
        if name not in axes or max(hidden[one], hidden[other]) > MOST_HIDDEN:
            continue
        if not centers[one, axes[name]] < centers[other, axes[name]]:
            animals = f"the {scene.things[one].animal} and the {scene.things[other].animal}"
            return f"{animals} by their centres are not {name}"
    return ""


def contradicted(scene: Scene, centers: Float[np.ndarray, "things 2"]) -> str:
    """The first thing whose centre contradicts its place in the scene, in words; empty if there is none.

    A centre of NaN counts as a contradiction.
    """
    words = [place_of(thing.slot).split() for thing in scene.things]
    for word, (opposite, axis) in BEFORE.items():
        for i in (i for i, name in enumerate(words) if word in name):
            for j in (j for j, other in enumerate(words) if opposite in other):
                if not centers[i, axis] < centers[j, axis]:
                    return f"the {scene.things[i].animal} by its centre is not {word} of the {scene.things[j].animal}"
    return ""
