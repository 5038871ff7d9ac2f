"""The world: vocabulary, bodies, textures, backgrounds, placement, renderer.

Independent of captions and of split files.
"""

from envs.scene import Scene, Thing
from envs.world import World
from envs.worlds import load_world

__all__ = ["Scene", "Thing", "World", "load_world"]
