"""What scenes need that an atlas lacks, counted without rendering any."""

from collections.abc import Sequence

from menagerie.envs.render.row import renderer_of
from menagerie.envs.scene import Scene
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.records import things_in

# Bytes of an atlas entry: its depth map, and the share of the image that each of its layers takes, of 6 bytes a pixel.
# Means of the shipped worlds, whose entries have from half to twice as many.
DEPTH_MAP, SHARE, LAYER = 35_000, 0.09, 6


def needed(folder: SplitFolder, scenes: Sequence[Scene]) -> str:
    """Say how many distinct scenes and atlas entries there are, how many entries the atlas lacks, and about how large
    these are."""
    things = things_in(folder.vocabulary.encode(scenes), folder.vocabulary)
    entries, building = (
        renderer.missing(things) for renderer in (renderer_of(folder.world, folder.resolution), folder.renderer())
    )
    layers = len(folder.world.textures) * len(folder.world.backgrounds)
    size = len(building) * (DEPTH_MAP + SHARE * LAYER * layers * folder.resolution**2)
    return (
        f"{len(set(scenes))} scenes; {len(entries)} atlas entries, {len(building)} of them to build, about "
        f"{size / 1e6:.1f} MB"
    )
