"""The renderer of any world, of modelled animals, of cut-outs or of both.

`Renderer` draws modelled animals; its file decides what every image store is named, so that what cut-outs add is here.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from menagerie.envs.custom.cutouts import check_sharp, load_cutout
from menagerie.envs.render.entry import Entry, EntryKey, build_entry
from menagerie.envs.render.identity import entry_identity
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.world import World


class CutoutRenderer(Renderer):
    """Renders the scenes of a world with cut-outs; all else is as in `Renderer`."""

    def __init__(self, world: World, resolution: int, cache: Path | None = None, workers: int = 1):
        super().__init__(replace(world, cutouts=()), resolution, cache, workers)
        for name, digest in world.cutouts:
            check_sharp(world.name, name, load_cutout(digest), resolution)
        self.world = world
        self._build = entry_builder(world, resolution)


def open_renderer(world: World, resolution: int, cache: Path | None = None, workers: int = 1) -> Renderer:
    """The renderer of a world at a resolution; for the arguments see `Renderer`."""
    kind = CutoutRenderer if world.cutouts else Renderer
    return kind(world, resolution, cache, workers)


def entry_builder(world: World, resolution: int) -> Callable[[EntryKey], Entry]:
    """What builds an entry of the atlas of a world."""
    parts = {"textures": world.textures, "backgrounds": world.backgrounds, "resolution": resolution}
    if world.cutouts:
        return partial(build_any_entry, cutouts=dict(world.cutouts), **parts)
    return partial(build_entry, **parts)


def build_any_entry(key: EntryKey, cutouts: dict[str, str], **parts) -> Entry:
    """The entry of a cut-out, whose hash is in `cutouts`, or of a modelled animal."""
    from menagerie.envs.photographs.entry import build_cutout_entry

    if key.animal in cutouts:
        return build_cutout_entry(key, load_cutout(cutouts[key.animal]), **parts)
    return build_entry(key, **parts)


def atlas_name(world: World, resolution: int) -> str:
    """The name of the folder of a world's entries in a cache."""
    return entry_identity(resolution, replace(world, cutouts=()))
