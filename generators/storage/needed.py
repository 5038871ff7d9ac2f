"""What scenes need that a store lacks, counted without rendering any."""

from collections.abc import Sequence

from menagerie.envs.render.row import renderer_of
from menagerie.envs.scene import Scene
from menagerie.generators.storage.image_store import ImageStore

# Bytes of an atlas entry: its depth map, and the share of the image that each of its layers takes, of 6 bytes a pixel.
# Means of the shipped worlds, whose entries have from half to twice as many.
DEPTH_MAP, SHARE, LAYER = 35_000, 0.09, 6


def needed(store: ImageStore, scenes: Sequence[Scene]) -> str:
    """Say how many distinct scenes and atlas entries there are, how many of them the store lacks, and about how large
    these are."""
    lacking, entries = store.missing(scenes), renderer_of(store.world, store.resolution).missing(scenes)
    building = store.renderer(workers=1).missing(lacking)
    layers = len(store.world.textures) * len(store.world.backgrounds)
    entry_bytes = DEPTH_MAP + SHARE * LAYER * layers * store.resolution**2
    size = len(lacking) * store.scene_bytes + len(building) * entry_bytes
    return (
        f"{len(set(scenes))} scenes, {len(lacking)} of them to render; "
        f"{len(entries)} atlas entries, {len(building)} of them to build; about {size / 1e6:.1f} MB"
    )
